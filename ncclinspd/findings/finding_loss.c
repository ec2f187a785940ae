/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of which records are lost: what is shown of them rests on less than all.
 *
 * The counters only grow.  What counts is by how much they did since the slice before
 * this one began, against the records that were read.  A table that is full is told at
 * the first name or communicator that finds no room.  What was overwritten before the
 * daemon came is nobody's fault, hence no warning.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/findings/diagnose.h"
#include "reader/time/timeline.h"
#include "util/json.h"
#include "util/list.h"
#include "util/phrase.h"

#define SECOND_NS	UINT64_C(1000000000)
#define SLICE_NS	(15 * SECOND_NS)
#define HOLD_NS		(3 * SECOND_NS)
#define YOUNG_NS	(5 * SECOND_NS)	/* age of a process all of whose losses we have seen */
#define LEAST_LOST	100		/* records in two slices: less is a hiccup */

/* Part of the records: to begin and to go on. */
static const double begin_share = 0.001, go_on_share = 0.0005;

static const struct cause {
	const char *name;	/* the name in /v1/processes */
	size_t offset;		/* its place in struct loss */
	bool is_table;		/* names are missing; false: it is counted with records */
	const char *what;
	const char *action;
} causes[] = {
#define C(name) #name, offsetof(struct loss, name)
	{ C(overrun), false, "overwritten before they were read",
	  "The daemon comes too late: see what keeps the CPU from ncclinspd (nice, cgroup, "
	  "pinning), or lower the level (NCCLINSP_LEVEL)." },
	{ C(pool), false, "events for which their thread had no free slot",
	  "More events of a thread were open at once than can be followed: lower the level "
	  "(NCCLINSP_LEVEL)." },
	{ C(lane), false, "events of threads that found no room",
	  "Make room in shared memory (--shm-size, NCCLINSP_SHM_DIR); a process may have 128 such "
	  "threads." },
	{ C(rejected), false, "refused, because they cannot be true",
	  "Plugin and daemon may be of different builds: compare their versions (ncclinsp ps)." },
	{ C(unknown), false, "of a type that this daemon does not know",
	  "The plugin is newer than the daemon: install and start the new ncclinspd." },
	{ C(evicted), false, "operations given up before their end was seen",
	  "More operations were open at once than the daemon can follow: lower the level "
	  "(NCCLINSP_LEVEL)." },
	{ C(string), true, "names that found the table full",
	  "That lasts until the process ends; what goes by a new name is shown without it." },
	{ C(comm), true, "communicators that found the table full",
	  "That lasts until the process ends; of further communicators nothing is shown." },
#undef C
};

struct snapshot {
	uint64_t at_ns;
	uint64_t records;
	struct loss loss;
};

struct loss_watch {
	uint64_t process_id;
	uint64_t since_ns;	/* start of the losses; 0: nothing is lost */
	struct snapshot before, now;	/* when the slice before, and when this one began */
};

struct losses {
	LIST(struct loss_watch) watch;	/* one for each process, as they appeared */
};

/* Losses of late. */
struct lately {
	uint64_t window_ns;
	uint64_t records;	/* records that were read */
	struct loss loss;
	uint64_t lost;		/* all but tables */
	uint64_t full;		/* tables */
	double share;
};

static uint64_t cause_count(const struct loss *loss, const struct cause *cause)
{
	return *(const uint64_t *)((const char *)loss + cause->offset);
}

/* ---- counting --------------------------------------------------------------- */

static struct snapshot loss_take(const struct process *p, uint64_t now_ns)
{
	return (struct snapshot){ now_ns, p->records, p->loss };
}

/* Losses of a process before we came to it are no news, except what we missed of it. */
static struct snapshot first_of(const struct process *p, uint64_t now_ns)
{
	struct snapshot first = loss_take(p, now_ns);

	if (timeline_mono(&p->clock, p->first_ticks) + YOUNG_NS > now_ns)
		return (struct snapshot){ .at_ns = now_ns };
	first.loss.before = 0;
	return first;
}

/* NULL: no memory, the next look may have some. */
static struct loss_watch *watch_of(struct losses *l, const struct process *p, size_t hint,
				   uint64_t now_ns)
{
	struct loss_watch *w;

	if (hint < l->watch.n && l->watch.at[hint].process_id == p->id)
		return &l->watch.at[hint];
	for (size_t i = 0; i < l->watch.n; i++)
		if (l->watch.at[i].process_id == p->id)
			return &l->watch.at[i];
	w = list_append(&l->watch);
	if (!w)
		return NULL;
	*w = (struct loss_watch){ .process_id = p->id };
	w->before = w->now = first_of(p, now_ns);
	return w;
}

/* The counters are the job's: what falls has begun anew. */
static uint64_t counter_growth(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

static struct lately watch_compare(const struct loss_watch *w, const struct process *p,
				   uint64_t now_ns)
{
	const struct snapshot *from = &w->before;
	struct lately l = {
		.window_ns = now_ns - from->at_ns,
		.records = counter_growth(from->records, p->records),
		.loss.before = counter_growth(from->loss.before, p->loss.before),
	};

	for (size_t i = 0; i < ARRAY_LEN(causes); i++) {
		uint64_t n = counter_growth(cause_count(&from->loss, &causes[i]),
					    cause_count(&p->loss, &causes[i]));

		*(uint64_t *)((char *)&l.loss + causes[i].offset) = n;
		if (causes[i].is_table)
			l.full += n;
		else
			l.lost += n;
	}
	l.share = l.lost ? (double)l.lost / ((double)l.lost + (double)l.records) : 0;
	return l;
}

static void watch_slide(struct loss_watch *w, const struct process *p, uint64_t now_ns)
{
	if (now_ns - w->now.at_ns < SLICE_NS)
		return;
	w->before = w->now;
	w->now = loss_take(p, now_ns);
}

/* ---- saying it ---------------------------------------------------------------- */

static void loss_add_process(struct phrase *text, const struct process *p, const struct comm *comm)
{
	phrase_add(text, "process %d (%s", (int)p->pid, p->command);
	if (comm && comm->rank != UNKNOWN_I32)
		phrase_add(text, ", rank %" PRId32 " of %s", comm->rank,
			   comm->name[0] ? comm->name : "its communicator");
	phrase_add(text, ")");
}

/* "1200 overwritten before they were read, 30 events ..."; what counts most. */
static const struct cause *add_causes(struct phrase *text, const struct lately *l)
{
	const struct cause *most = NULL;

	for (size_t i = 0; i < ARRAY_LEN(causes); i++) {
		uint64_t n = cause_count(&l->loss, &causes[i]);

		if (!n)
			continue;
		phrase_add(text, "%s%" PRIu64 " %s", most ? ", " : "", n, causes[i].what);
		if (!most || n > cause_count(&l->loss, most))
			most = &causes[i];
	}
	return most;
}

static void say_lost(struct phrase *text, const struct lately *l)
{
	const struct cause *most;

	phrase_add(text, " loses records, %.3g %% in ", 100 * l->share);
	phrase_add_duration(text, l->window_ns);
	phrase_add(text, ": ");
	most = add_causes(text, l);
	if (l->lost)
		phrase_add(text, ". What is counted of it is too little by as much, operations may "
			   "have no time or seem not to end, and findings about it rest on less "
			   "than all");
	phrase_add(text, ". %s", most->action);
}

static void say_before(struct phrase *text, const struct lately *l)
{
	phrase_add(text, " ran before this daemon came: %" PRIu64 " records were overwritten by "
		   "then. What it did earlier is not known, and its figures begin when it was "
		   "first seen. Nothing is to be done.", l->loss.before);
}

static void loss_show(const struct process *p, const struct lately *l, struct finding *f)
{
	struct json j;

	json_init(&j, sizeof(f->evidence));
	json_begin(&j, '{');
	json_key(&j, "pid");
	json_put_i64(&j, p->pid);
	json_key(&j, "window_ns");
	json_put_u64(&j, l->window_ns);
	json_key(&j, "records");
	json_put_u64(&j, l->records);
	json_key(&j, "share");
	json_put_rounded(&j, l->share);
	json_key(&j, "lost");
	json_begin(&j, '{');
	for (size_t i = 0; i < ARRAY_LEN(causes); i++) {
		json_key(&j, causes[i].name);
		json_put_u64(&j, cause_count(&l->loss, &causes[i]));
	}
	json_key(&j, "before");
	json_put_u64(&j, l->loss.before);
	json_end(&j, '}');
	json_end(&j, '}');
	finding_set_evidence(f, &j);
	json_deinit(&j);
}

static void loss_report(struct diagnose *dg, const struct process *p, const struct loss_watch *w,
			const struct lately *l, bool before, uint64_t now_ns)
{
	struct finding f = { .kind = FINDING_LOSS, .peer = UNKNOWN_I32, .uid = p->uid,
			     .severity = before ? FINDING_INFO : FINDING_WARNING,
			     .since_ns = before ? p->first_seen_ns : w->since_ns };
	const struct comm *comm = diagnose_largest_comm(p);
	struct phrase text;

	if (comm) {
		f.has_comm_id = true;
		f.comm_id = comm->id;
		memcpy(f.comm_name, comm->name, sizeof(f.comm_name));
		f.nranks = comm->rank != UNKNOWN_I32;
		f.ranks[0] = comm->rank;
	}
	phrase_start(&text, f.text, sizeof(f.text));
	loss_add_process(&text, p, comm);
	if (before)
		say_before(&text, l);
	else
		say_lost(&text, l);
	loss_show(p, l, &f);
	diagnose_report(dg, &finding_loss, 2 * p->id + before, &f, now_ns);
}

/* ---- the detector -------------------------------------------------------------- */

static bool loss_is_beyond(const struct lately *l, double share)
{
	return l->full || (l->lost >= LEAST_LOST && l->share >= share);
}

static void loss_judge(struct diagnose *dg, const struct process *p, struct loss_watch *w,
		       uint64_t now_ns)
{
	struct lately l = watch_compare(w, p, now_ns);

	if (!l.lost && !l.full)
		w->since_ns = 0;
	else if (!w->since_ns)
		w->since_ns = now_ns;
	if (loss_is_beyond(&l, begin_share))
		loss_report(dg, p, w, &l, false, now_ns);
	else if (loss_is_beyond(&l, go_on_share))
		diagnose_renew(dg, &finding_loss, 2 * p->id, now_ns);
	if (l.loss.before)
		loss_report(dg, p, w, &l, true, now_ns);
	watch_slide(w, p, now_ns);
}

static void loss_look(struct diagnose *dg, void *state, uint64_t now_ns)
{
	const struct diagnose_source *source = diagnose_source(dg);
	struct process *const *list;
	size_t n = source->processes(source->arg, &list);

	for (size_t i = 0; i < n; i++) {
		struct loss_watch *w = watch_of(state, list[i], i, now_ns);

		if (w)
			loss_judge(dg, list[i], w, now_ns);
	}
}

static void loss_on_forgotten(struct diagnose *dg, void *state, const struct process *p)
{
	struct losses *l = state;
	uint32_t i = 0;

	(void)dg;
	while (i < l->watch.n && l->watch.at[i].process_id != p->id)
		i++;
	if (i < l->watch.n)
		list_remove(&l->watch, i);
}

static void loss_deinit(void *state)
{
	struct losses *l = state;

	list_deinit(&l->watch);
}

const struct detector finding_loss = {
	.name = "loss",
	.state_bytes = sizeof(struct losses),
	.hold_ns = HOLD_NS,
	.deinit = loss_deinit,
	.forgotten = loss_on_forgotten,
	.look = loss_look,
};
