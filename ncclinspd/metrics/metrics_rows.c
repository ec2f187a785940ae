/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The series of each family (schema/metrics.schema has the families), room for rows, and rows as
 * text.  A family's series are those of one kind of row; what it has several of per row differ in
 * one or two labels.
 *
 * What counts against the limit are series, so that it is what somebody who pays by series has
 * asked for.  A part is kept free, in which there is a row of each kind for all that found no
 * room.
 */
#include "ncclinspd/metrics/metrics_rows.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "reader/base/job.h"
#include "reader/base/process.h"
#include "reader/time/timeline.h"
#include "tables/stat.h"
#include "util/list.h"

#define SECOND_NS	UINT64_C(1000000000)
/*
 * A series unused for so long goes where room is wanted, one of a job that has ended at once; and
 * after that it goes in any case.
 */
#define WANTED_NS	(600 * SECOND_NS)
#define KEEP_NS		(3600 * SECOND_NS)
#define SCARCE_NS	(60 * SECOND_NS)	/* unused communicators wait so long for room */
#define LATELY_NS	(UINT64_C(60) * 1000000000)

struct write_series {
	int value;
	const char *name, *text;	/* NULL: no label */
	const char *name2, *text2;
};

struct family {
	enum metrics_kind kind;
	enum exposition_type type;
	bool fleet;		/* it is in that profile as well */
	const char *name, *help;
	uint32_t n;
	const struct write_series *series;
	/* labels that it alone has of its row: their names, and the first one's place in info[] */
	uint32_t first_fact, nfacts;
	const char *const *facts;
};

#define MANY(all) .n = sizeof(all) / sizeof((all)[0]), .series = (all)
#define SERIES(...) MANY(((const struct write_series[]){ __VA_ARGS__ }))
#define FACTS(first, ...) .first_fact = (first), \
	.nfacts = sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(const char *), \
	.facts = (const char *const[]){ __VA_ARGS__ }
#define ONE(value) SERIES({ value, NULL, NULL, NULL, NULL })
#define TWO(name, v, a, w, b) SERIES({ v, name, a, NULL, NULL }, { w, name, b, NULL, NULL })
#define STEP(i, phase, way) { MEMBER_STEP + (i), "phase", phase, "direction", way }
#define STEPS SERIES(STEP(0, "produce", "send"), STEP(1, "credit", "send"),		\
		     STEP(2, "wire", "send"), STEP(3, "recv_wait", "receive"),		\
		     STEP(4, "flush", "receive"), STEP(5, "consume", "receive"))
#define CALLBACKS TWO("thread", MEMBER_CALLBACK + NCI_THREADS_USER, "user",		\
		      MEMBER_CALLBACK + NCI_THREADS_PROXY, "proxy")

#define DROPPED(NAME, text) { MEMBER_DROPPED + METRICS_REASON_##NAME, "reason", text, NULL, NULL },
#define FOUND(NAME, text) { NODE_FOUND + FINDING_##NAME, "kind", text, NULL, NULL },
#define SUSPECTED(NAME, text) { NODE_SUSPECTED + FINDING_##NAME, "kind", text, NULL, NULL },
#define PUSHED(NAME, text) { NODE_PUSHED + OTLP_##NAME, "signal", text, NULL, NULL },
#define UNPUSHED(NAME, text) { NODE_UNPUSHED + OTLP_##NAME, "signal", text, NULL, NULL },

static const struct write_series dropped[] = { METRICS_REASONS(DROPPED) };
static const struct write_series found[] = { FINDING_KINDS(FOUND) };
static const struct write_series suspected[] = { FINDING_KINDS(SUSPECTED) };
static const struct write_series pushed[] = { OTLP_SIGNALS(PUSHED) };
static const struct write_series unpushed[] = { OTLP_SIGNALS(UNPUSHED) };

static const struct family families[] = {
#include "schema/families.h"
};

#define FAMILIES (sizeof(families) / sizeof(families[0]))

static bool family_is_told(const struct metrics_rows *t, const struct family *f)
{
	return f->fleet || !t->fleet;
}

/* A histogram is its buckets, its sum and its count. */
static void rows_count_costs(struct metrics_rows *t)
{
	for (size_t i = 0; i < FAMILIES; i++)
		if (family_is_told(t, &families[i]))
			t->cost[families[i].kind] += families[i].type == EXPOSITION_HISTOGRAM ?
						     METRICS_BOUNDS + 3 : families[i].n;
}

/* Has what found no room a row of that kind?  One means nothing of several ranks or findings. */
static bool kind_has_other(const struct metrics_rows *t, enum metrics_kind kind)
{
	return !t->fleet && kind != METRICS_NODE && kind != METRICS_FINDING &&
	       kind != METRICS_RANK && kind != METRICS_INSIDE && kind != METRICS_WAITING;
}

static void row_reset_gauges(struct metrics_row *row)
{
	for (size_t i = 0; i < FAMILIES; i++) {
		const struct family *f = &families[i];

		if (f->kind != row->labels.kind || f->type == EXPOSITION_COUNTER ||
		    f->type == EXPOSITION_HISTOGRAM)
			continue;
		for (uint32_t s = 0; s < f->n; s++)
			row->v[f->series[s].value] = NAN;
	}
}

void metrics_rows_reset(struct metrics_rows *t)
{
	for (int kind = 0; kind < METRICS_KIND_END; kind++)
		for (struct metrics_row *row = t->kind[kind].first; row;
		     row = pool_list_next(&t->kind[kind], row))
			row_reset_gauges(row);
}

/* ---- room --------------------------------------------------------------------------- */

/* The series of a user's account, so far; nobody's are in none. */
static uint32_t *user_series(struct metrics_rows *t, uid_t uid)
{
	return accounts_count(&t->of_account, accounts_of(t->accounts, uid));
}

static void row_drop(struct metrics_rows *t, struct metrics_row *row)
{
	uint32_t kind = row->labels.kind;

	if (kind == METRICS_TIME)
		pool_put(&t->lately, row->lately);
	pool_list_remove(&t->kind[kind], row);
	t->series -= t->cost[kind];
	if (row->labels.uid != METRICS_NOBODY)
		*user_series(t, row->labels.uid) -= t->cost[kind];
	t->generation++;
	keyed_drop(&t->table, row);
}

static bool row_is_old(const struct metrics_row *row, uint64_t now_ns, uint64_t age_ns)
{
	return row->labels.uid != METRICS_NOBODY && row->used_ns + age_ns < now_ns;
}

/* The row of its job, or NULL. */
static const struct metrics_row *row_find_job(const struct metrics_rows *t,
					      const struct metrics_row *row)
{
	struct metrics_labels l;

	memset(&l, 0, sizeof(l));
	l.kind = METRICS_JOB;
	l.uid = row->labels.uid;
	l.rank = UNKNOWN_I32;
	memcpy(l.job, row->labels.job, sizeof(l.job));
	return keyed_find(&t->table, &l);
}

/* A row whose job lives, or did a moment ago, may only be idle. */
static bool row_has_job(const struct metrics_rows *t, const struct metrics_row *row,
			uint64_t now_ns)
{
	const struct metrics_row *job = row_find_job(t, row);

	return job && !row_is_old(job, now_ns, WANTED_NS);
}

/* All that was unused for `age_ns`; with `idle`, also of jobs that live. */
static void drop_old(struct metrics_rows *t, uint64_t now_ns, uint64_t age_ns, bool idle)
{
	for (int kind = 0; kind < METRICS_KIND_END; kind++) {
		struct metrics_row *row, *next;

		for (row = t->kind[kind].first; row; row = next) {
			next = pool_list_next(&t->kind[kind], row);
			if (row_is_old(row, now_ns, age_ns) &&
			    (idle || !row_has_job(t, row, now_ns)))
				row_drop(t, row);
		}
	}
}

/* The row of the rank that it tells of, or NULL. */
static const struct metrics_row *row_find_rank(const struct metrics_rows *t,
					       const struct metrics_row *row)
{
	struct metrics_labels l = row->labels;

	if (l.kind < METRICS_RANK || l.kind > METRICS_WAITING)
		return NULL;
	l.kind = METRICS_RANK;
	l.op = NULL;
	return keyed_find(&t->table, &l);
}

/* Did the last look see its job, its rank in a communicator, or the finding, no more? */
static bool row_has_ended(const struct metrics_rows *t, const struct metrics_row *row)
{
	const struct metrics_row *job = row_find_job(t, row), *rank = row_find_rank(t, row);

	return (job && row_is_old(job, t->looked_ns, 0)) ||
	       (rank && row_is_old(rank, t->looked_ns, 0)) ||
	       (row->labels.kind == METRICS_FINDING && row_is_old(row, t->looked_ns, 0));
}

/* A row that tells that others have ended is of a lower kind, and goes after them. */
static void drop_ended(struct metrics_rows *t)
{
	for (int kind = METRICS_KIND_END; kind-- > 0;) {
		struct metrics_row *row, *next;

		for (row = t->kind[kind].first; row; row = next) {
			next = pool_list_next(&t->kind[kind], row);
			if (row_has_ended(t, row))
				row_drop(t, row);
		}
	}
}

void metrics_rows_expire(struct metrics_rows *t, uint64_t now_ns)
{
	drop_old(t, now_ns, KEEP_NS, false);
	if (!t->wanting)
		return;
	t->wanting = false;
	drop_ended(t);
}

/* Series left for a row that somebody can name. */
static bool rows_have_room(const struct metrics_rows *t, uint32_t series)
{
	return t->series + series + t->reserved <= t->limit;
}

/* The series that each user may have where there is not enough for all, this one among them. */
static uint32_t fair_share(struct metrics_rows *t, uid_t uid)
{
	uint32_t users = uid != METRICS_NOBODY && !*user_series(t, uid);

	for (uint32_t i = 0; i < ACCOUNTS_TALLY; i++)
		users += !!t->of_account.of[i];
	return (t->limit - t->reserved) / (users ? users : 1);
}

/*
 * Users with more than a fair share lose some of it to one with less, until a tenth is free:
 * detail first, the oldest rows of it, but for those that are at work now.  For a while they
 * get no more.
 */
static void share_out(struct metrics_rows *t, uid_t uid, uint64_t now_ns)
{
	uint32_t fair = fair_share(t, uid);
	struct metrics_row *row, *next;

	if (*user_series(t, uid) >= fair)
		return;
	t->shared_until_ns = now_ns + WANTED_NS;
	for (int kind = METRICS_KIND_END; kind-- > 0;)
		for (row = t->kind[kind].first; row; row = next) {
			next = pool_list_next(&t->kind[kind], row);
			if (row_is_old(row, now_ns, 0) && *user_series(t, row->labels.uid) > fair &&
			    !rows_have_room(t, t->limit / 10))
				row_drop(t, row);
		}
}

static bool user_may_grow(struct metrics_rows *t, uint32_t series, uid_t uid, uint64_t now_ns)
{
	return rows_have_room(t, series) && (now_ns >= t->shared_until_ns ||
					     *user_series(t, uid) + series <= fair_share(t, uid));
}

/*
 * Rows of later kinds go until there is room, the last kind's newest first: the user's own, and
 * those of users with more than a fair share.  A rank is told whole or not at all, but for its
 * waiting.
 */
static void rows_displace(struct metrics_rows *t, enum metrics_kind kind, uid_t uid,
			  uint64_t now_ns)
{
	int most = kind < METRICS_RANK ? (int)kind : METRICS_INSIDE;
	uint32_t fair = fair_share(t, uid);
	struct metrics_row *row, *before;

	for (int later = METRICS_KIND_END; --later > most;)
		for (row = t->kind[later].last; row; row = before) {
			before = row->link.prev;
			if (user_may_grow(t, t->cost[kind], uid, now_ns))
				return;
			if (row->labels.uid == uid || *user_series(t, row->labels.uid) > fair)
				row_drop(t, row);
		}
}

static bool rows_make_room(struct metrics_rows *t, enum metrics_kind kind, uid_t uid,
			   uint64_t now_ns)
{
	uint32_t series = t->cost[kind];

	if (user_may_grow(t, series, uid, now_ns))
		return true;
	if (now_ns >= t->evict_ns) {	/* not with every operation that is refused */
		t->evict_ns = now_ns + SECOND_NS;
		drop_ended(t);
		drop_old(t, now_ns, WANTED_NS, true);
		if (!rows_have_room(t, series))
			share_out(t, uid, now_ns);
	}
	if (t->fleet)
		rows_displace(t, kind, uid, now_ns);
	return user_may_grow(t, series, uid, now_ns);
}

/*
 * Add a row: what its kind's table of series calls a gauge or an info is not known yet, and
 * counters are 0.  NULL: no room.
 */
static struct metrics_row *row_add(struct metrics_rows *t, const struct metrics_labels *labels,
				   uint64_t now_ns)
{
	bool timed = labels->kind == METRICS_TIME, made;
	uint32_t lately = timed ? pool_take(&t->lately) : POOL_NONE;
	struct metrics_row *row = NULL;

	if (!timed || lately != POOL_NONE)
		row = keyed_use(&t->table, labels, 0, &made);
	if (!row) {
		if (lately != POOL_NONE)
			pool_put(&t->lately, lately);
		return NULL;
	}
	t->generation += t->fleet;
	row->used_ns = now_ns;
	row->lately = lately;
	row_reset_gauges(row);
	pool_list_append(&t->kind[labels->kind], row);
	t->series += t->cost[labels->kind];
	if (labels->uid != METRICS_NOBODY)
		*user_series(t, labels->uid) += t->cost[labels->kind];
	return row;
}

/*
 * All that found no room shares one row of that kind.  It is nobody's, so that only viewers
 * of everything see it.
 */
static struct metrics_row *row_other(struct metrics_rows *t, enum metrics_kind kind,
				     uint64_t now_ns)
{
	struct metrics_labels labels;
	struct metrics_row *row;

	t->refused++;
	t->wanting = true;
	if (kind < METRICS_WAITING)
		t->scarce_until_ns = now_ns + SCARCE_NS;
	if (!kind_has_other(t, kind))
		return NULL;
	memset(&labels, 0, sizeof(labels));
	labels.kind = kind;
	labels.uid = METRICS_NOBODY;
	labels.rank = UNKNOWN_I32;
	row = keyed_find(&t->table, &labels);
	return row ? row : row_add(t, &labels, now_ns);
}

uint32_t metrics_row(struct metrics_rows *t, const struct metrics_labels *labels, uint64_t now_ns)
{
	enum metrics_kind kind = (enum metrics_kind)labels->kind;
	struct metrics_row *row = keyed_find(&t->table, labels);

	if (!t->cost[kind])
		return POOL_NONE;
	if (!row && rows_make_room(t, kind, labels->uid, now_ns))
		row = row_add(t, labels, now_ns);
	if (row)
		row->used_ns = now_ns;
	else
		row = row_other(t, kind, now_ns);
	return row ? keyed_number(row) : POOL_NONE;
}

uint32_t metrics_row_known(const struct metrics_rows *t, const struct metrics_labels *labels)
{
	const struct metrics_row *row = keyed_find(&t->table, labels);

	return row ? keyed_number(row) : POOL_NONE;
}

/* ---- labels ------------------------------------------------------------------------- */

void metrics_comm_text(char text[40], const char *name, bool has_id, uint64_t id)
{
	memset(text, 0, 40);
	if (name && *name)
		snprintf(text, 40, "%.*s", (int)strcspn(name, ":/|@# "), name);
	else if (has_id)
		snprintf(text, 40, "%012llx", (unsigned long long)(id & 0xffffffffffff));
}

static void common_labels(struct metrics_labels *l, enum metrics_kind kind,
			  const struct process *p)
{
	const char *job = job_id(p);

	memset(l, 0, sizeof(*l));
	l->kind = kind;
	l->uid = p->uid;
	l->rank = UNKNOWN_I32;
	if (job)
		strncpy(l->job, job, sizeof(l->job) - 1);
}

void metrics_job_labels(struct metrics_labels *l, const struct process *p)
{
	common_labels(l, METRICS_JOB, p);
}

/* Its rank in the communicator that is the job's own, and its first GPU. */
void metrics_member_labels(struct metrics_labels *l, const struct process *p)
{
	const struct comm *largest = job_largest_comm(p);

	common_labels(l, METRICS_MEMBER, p);
	if (largest)
		l->rank = largest->rank;
	for (uint32_t i = 0; i < p->ncomms; i++)
		if (p->comms[i].ready && p->comms[i].has_gpu) {
			memcpy(l->gpu, p->comms[i].gpu_uuid, sizeof(l->gpu));
			break;
		}
}

void metrics_finding_labels(struct metrics_labels *l, const struct finding *f)
{
	memset(l, 0, sizeof(*l));
	l->kind = METRICS_FINDING;
	l->uid = f->uid;
	snprintf(l->job, sizeof(l->job), "%.63s", f->life.job);
	metrics_comm_text(l->comm, f->comm_name, f->has_comm_id, f->comm_id);
	l->comm_id = f->has_comm_id ? f->comm_id : 0;
	l->rank = f->nranks ? f->ranks[0] : UNKNOWN_I32;
	l->op = finding_kind_name(f->kind);
	l->algo = f->verdict;
	l->proto = finding_grade_name(f->grade);
}

void metrics_comm_labels(struct metrics_labels *l, enum metrics_kind kind,
			 const struct process *p, const struct comm *comm)
{
	common_labels(l, kind, p);
	metrics_comm_text(l->comm, comm->name, comm->has_id, comm->id);
	if (kind < METRICS_RANK || kind > METRICS_PEER)
		return;
	if (kind != METRICS_PEER && comm->has_id)
		l->comm_id = comm->id;
	l->rank = comm->rank;
	if (comm->has_gpu)
		memcpy(l->gpu, comm->gpu_uuid, sizeof(l->gpu));
}

/* ---- as text ------------------------------------------------------------------------ */

static void labels_put_gpu(struct exposition *e, const uint8_t u[16])
{
	static const uint8_t none[16];
	char text[PROCESS_UUID_BYTES];

	if (!memcmp(u, none, sizeof(none)))
		return;
	process_uuid_text(u, text);
	exposition_label(e, "gpu_uuid", text);
}

static void labels_put_number(struct exposition *e, const char *name, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	exposition_label(e, name, text);
}

static void labels_put_hex(struct exposition *e, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%016llx", (unsigned long long)value);
	exposition_label(e, name, text);
}

static void labels_put_size_class(struct exposition *e, uint64_t class)
{
	static const char *const units[] = { "KiB", "MiB", "GiB" };
	int unit = 0;
	char text[24];

	if (!class)
		return;
	class >>= 10;
	for (; class >= 1024 && unit < 2; unit++)
		class >>= 10;
	snprintf(text, sizeof(text), "%llu%s", (unsigned long long)class, units[unit]);
	exposition_label(e, "size_class", class > 16 && unit == 2 ? "inf" : text);
}

static void labels_put_facts(struct exposition *e, const struct family *f,
			     const struct metrics_row *row)
{
	for (uint32_t i = 0; i < f->nfacts; i++)
		exposition_label(e, f->facts[i], row->info[f->first_fact + i]);
}

static void labels_put_other(struct exposition *e, enum metrics_kind kind)
{
	exposition_label(e, "job_id", METRICS_OTHER);
	if (kind != METRICS_JOB && kind != METRICS_MEMBER)
		exposition_label(e, "comm", METRICS_OTHER);
	if (kind == METRICS_OP || kind == METRICS_TIME)
		exposition_label(e, "op", METRICS_OTHER);
}

/*
 * A rank's user, job and GPU are told once in the fleet profile, and joined by its communicator's
 * id.
 */
static bool labels_are_joined(const struct metrics_rows *t, const struct family *f,
			      const struct metrics_labels *l)
{
	return t->fleet && l->comm_id && f->type != EXPOSITION_INFO &&
	       l->kind >= METRICS_RANK && l->kind <= METRICS_WAITING;
}

static void labels_put_words(struct exposition *e, const struct metrics_labels *l)
{
	bool finding = l->kind == METRICS_FINDING;

	exposition_label(e, finding ? "kind" : "op", l->op);
	labels_put_size_class(e, l->size_class);
	exposition_label(e, finding ? "verdict" : "algo", l->algo);
	exposition_label(e, finding ? "grade" : "proto", l->proto);
}

static void labels_put(const struct metrics_rows *t, struct exposition *e, const struct family *f,
		       const struct metrics_row *row)
{
	const struct metrics_labels *l = &row->labels;
	bool joined = labels_are_joined(t, f, l);

	exposition_label(e, "node", t->host);
	if (l->kind == METRICS_NODE)
		return;
	if (l->uid == METRICS_NOBODY) {
		labels_put_other(e, (enum metrics_kind)l->kind);
		return;
	}
	if (!joined) {
		labels_put_number(e, "uid", l->uid);
		exposition_label(e, "job_id", l->job);
	}
	exposition_label(e, "comm", l->comm);
	if (l->comm_id)
		labels_put_hex(e, "comm_id", l->comm_id);
	if (l->rank != UNKNOWN_I32)
		labels_put_number(e, "rank", l->rank);
	if (!joined)
		labels_put_gpu(e, l->gpu);
	if (l->kind == METRICS_PEER) {
		labels_put_number(e, "peer_rank", l->peer);
		exposition_label(e, "direction", l->receives ? "receive" : "send");
	}
	labels_put_words(e, l);
	exposition_label(e, "source", timeline_source_text((enum timing_source)l->source));
}

/* ---- values ---------------------------------------------------------------------------- */

/* NaN: there was none for a minute. */
static double row_median(const struct metrics_rows *t, const struct metrics_row *row, int which,
			 uint64_t now_ns)
{
	const struct metrics_lately *lately = pool_at(&t->lately, row->lately);
	double rate[METRICS_LATELY];
	uint32_t n = 0, all = lately->of[which].n;

	for (uint32_t i = 0; i < all && i < METRICS_LATELY; i++)
		if (lately->of[which].at_ns[i] + LATELY_NS > now_ns)
			*array_must_add(rate, &n) = lately->of[which].rate[i];
	return n ? stat_median(rate, n) : NAN;
}

static void row_put_histogram(struct exposition *e, const struct metrics_row *row)
{
	double bound_s = METRICS_FIRST_BOUND_NS * 1e-9, n = 0;
	size_t before = e->label_bytes;
	char text[32];

	for (int i = 0; i <= METRICS_BOUNDS; i++, bound_s *= 2) {
		snprintf(text, sizeof(text), "%.9g", bound_s);
		n += row->v[TIME_BUCKET + i];
		exposition_label(e, "le", i < METRICS_BOUNDS ? text : "+Inf");
		exposition_sample(e, "_bucket", n);
		exposition_unlabel(e, before);
	}
	exposition_sample(e, "_sum", row->v[TIME_SUM]);
	exposition_sample(e, "_count", n);
}

static double row_value(const struct metrics_rows *t, const struct metrics_row *row, int value,
			uint64_t now_ns)
{
	if (row->labels.kind == METRICS_TIME)
		return row_median(t, row, value == TIME_WAITFREE, now_ns);
	return row->v[value];
}

static void metric_row_put(const struct metrics_rows *t, struct exposition *e,
			   const struct family *f, const struct metrics_row *row, uint64_t now_ns)
{
	labels_put(t, e, f, row);
	labels_put_facts(e, f, row);
	if (f->type == EXPOSITION_HISTOGRAM) {
		row_put_histogram(e, row);
	} else {
		size_t before = e->label_bytes;

		for (uint32_t i = 0; i < f->n; i++) {
			const struct write_series *s = &f->series[i];

			if (s->name)
				exposition_label(e, s->name, s->text);
			if (s->name2)
				exposition_label(e, s->name2, s->text2);
			exposition_sample(e, "", row_value(t, row, s->value, now_ns));
			exposition_unlabel(e, before);
		}
	}
	exposition_unlabel(e, 0);
}

void metrics_rows_write(const struct metrics_rows *t, struct exposition *e,
			const struct metrics_row *node, bool all, uid_t uid, uint64_t now_ns)
{
	for (size_t i = 0; i < FAMILIES; i++) {
		const struct family *f = &families[i];
		const struct pool_list *rows = &t->kind[f->kind];

		if (!family_is_told(t, f) ||
		    (f->kind == METRICS_NODE && !all && f->type != EXPOSITION_INFO))
			continue;
		exposition_family(e, f->name, f->type, f->help);
		if (f->kind == METRICS_NODE)
			metric_row_put(t, e, f, node, now_ns);
		for (struct metrics_row *row = rows->first; row;
		     row = pool_list_next(rows, row)) {
			if (all || row->labels.uid == uid)
				metric_row_put(t, e, f, row, now_ns);
		}
	}
}

/* ---- life --------------------------------------------------------------------------- */

/* The series that are kept free: the node's, and a row of each kind for what found no room. */
static uint32_t rows_reserved(const struct metrics_rows *t)
{
	uint32_t sum = t->cost[METRICS_NODE];

	for (int kind = 0; kind < METRICS_KIND_END; kind++)
		if (kind_has_other(t, (enum metrics_kind)kind))
			sum += t->cost[kind];
	return sum;
}

int metrics_rows_init(struct metrics_rows *t, const struct metrics_config *config)
{
	int err;

	snprintf(t->host, sizeof(t->host), "%s", config->host);
	t->accounts = config->accounts;
	t->generation = 1;
	t->fleet = config->fleet;
	rows_count_costs(t);
	t->reserved = rows_reserved(t);
	t->limit = config->series ? config->series :
		   t->fleet ? METRICS_SERIES_FLEET : METRICS_SERIES_FULL;
	for (int kind = 0; kind < METRICS_KIND_END; kind++)
		pool_list_init(&t->kind[kind], offsetof(struct metrics_row, link));
	err = pool_init(&t->lately, t->fleet ? 1 : t->limit / t->cost[METRICS_TIME] + 1,
			sizeof(struct metrics_lately));
	return err ? err : keyed_init(&t->table, &KEYED_CONFIG(struct metrics_row, labels, t->limit,
				.seed = config->seed, .refuses = true));
}

void metrics_rows_deinit(struct metrics_rows *t)
{
	keyed_deinit(&t->table);
	pool_deinit(&t->lately);
}
