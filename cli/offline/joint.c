/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges the snapshots of many nodes together.  Ranks of all nodes are joined by their
 * communicator's id and size.  Late ranks, hangs, deaths and slow links are judged anew of all of
 * them; all else that is wrong the nodes have found themselves.
 */
#include "cli/offline/joint.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/base/must.h"
#include "cli/offline/deaths.h"
#include "cli/offline/flight.h"
#include "cli/offline/hangs.h"
#include "cli/offline/stragglers.h"
#include "util/phrase.h"

#define RANKS_MOST (1 << 20)	/* most in a communicator; the largest so far had a tenth of that */
#define NAMED	 16			/* ranks in a sentence */
#define WINDOW_NS UINT64_C(60000000000)	/* straggler-window, as it is by default */

/* The worst first: what stands still, who costs most, what is suspected, what is not known. */
enum { NOTE, SUSPECTED, WARNING, CRITICAL = 4 };

/* The rows so far. */
struct told {
	struct shots *shots;
	struct slow_peers *slow_peers;
	struct flight *flight;
	json_t *rows;
	json_t *late;	/* rows of late ranks, by GPU */
	json_t *slow;	/* the rows of slow links */
	json_t *elsewhere; /* set of comm_id: a node has found its ranks waiting for another's */
	json_t *hung;	/* set of comm_id: an operation of it hangs, and has its rows */
	json_t *waiting;	/* waiting for a process that died, by process_key() */
};

/* ---- communicators ------------------------------------------------------------------- */

#define ID  24	/* bytes of an id as text */
#define KEY 288	/* bytes of process_key() */

static char *id_text(uint64_t id, char text[ID])
{
	snprintf(text, ID, "0x%016" PRIx64, id);
	return text;
}

/* The first with that id, of whatever size; NULL: none. */
static const struct shots_comm *told_find_comm(const struct told *t, uint64_t id)
{
	uint32_t first = 0, end = t->shots->comms.n;

	while (first < end) {
		uint32_t middle = first + (end - first) / 2;

		if (t->shots->comms.at[middle]->id < id)
			first = middle + 1;
		else
			end = middle;
	}
	return first < t->shots->comms.n && t->shots->comms.at[first]->id == id ?
	       t->shots->comms.at[first] : NULL;
}

static const struct shots_comm *finding_comm(const struct told *t, const json_t *finding)
{
	return told_find_comm(t, member_hex(finding, "comm_id"));
}

static bool row_is_of_comm(const json_t *row, const struct shots_comm *comm)
{
	return comm && member_text(row, "comm_id", NULL) && member_hex(row, "comm_id") == comm->id;
}

static const char *rank_host(const struct shots_rank *rank)
{
	return rank ? rank->node->host : NULL;
}

static bool ranks_share_process(const struct shots_rank *a, const struct shots_rank *b)
{
	return a && b && a->node == b->node && a->row->pid == b->row->pid;
}

static struct whom rank_whom(const struct shots_rank *rank)
{
	return (struct whom){ .rank = rank->row->rank, .world_rank = rank->row->world_rank,
			      .pid = rank->row->pid == UNKNOWN_I32 ? 0 : rank->row->pid,
			      .host = rank->node->host, .pci_bus_id = rank->row->pci_bus_id,
			      .gpu_index = rank->row->gpu_index };
}

/* ---- rows ---------------------------------------------------------------------------- */

static void row_set_number(json_t *row, const char *key, int64_t number)
{
	json_object_set_new(row, key, json_integer(number));
}

static void row_take_comm(json_t *row, const struct shots_comm *comm)
{
	char id[ID];

	json_object_set_new(row, "comm_id", json_string(id_text(comm->id, id)));
	if (comm->name)
		json_object_set_new(row, "comm_name", json_string(comm->name));
	if (comm->nranks != UNKNOWN_I32)
		row_set_number(row, "nranks", comm->nranks);
}

static void row_take_rank(json_t *row, const struct shots_rank *rank)
{
	row_set_number(row, "rank", rank->row->rank);
	json_object_set_new(row, "host", json_string(rank->node->host));
	if (rank->row->pid != UNKNOWN_I32)
		row_set_number(row, "pid", rank->row->pid);
	if (rank->row->world_rank != UNKNOWN_I32)
		row_set_number(row, "world_rank", rank->row->world_rank);
	if (rank->row->pci_bus_id)
		json_object_set_new(row, "pci_bus_id", json_string(rank->row->pci_bus_id));
	if (rank->row->gpu_index != UNKNOWN_I32)
		json_object_set_new(row, "gpu_index", json_integer(rank->row->gpu_index));
}

/* A row has more than is shown: its kind, and all that a finding tells of its rank. */
static json_t *make_row(const char *kind, const char *severity, const char *verdict,
			const struct shots_comm *comm, const struct shots_rank *rank,
			const char *text)
{
	json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s, s:i}", "kind", kind,
				"severity", severity, "grade", "found", "verdict", verdict,
				"text", text, "weight", *severity == 'c' ? CRITICAL : NOTE);

	if (comm)
		row_take_comm(row, comm);
	if (rank)
		row_take_rank(row, rank);
	return row;
}

/* The surer stand first, and of these who costs most. */
static void row_set_grade(json_t *row, bool found, double share)
{
	double weight = member_is(row, "severity", "critical") ? CRITICAL : WARNING;

	json_object_set_new(row, "grade", json_string(found ? "found" : "suspected"));
	json_object_set_new(row, "weight", json_real((found ? weight : SUSPECTED) +
						     (share < 1 ? share : 0.99)));
}

static json_t *told_add_row(struct told *t, const char *kind, const char *severity,
			    const char *verdict, const struct shots_comm *comm,
			    const struct shots_rank *rank, const char *text)
{
	json_t *row = make_row(kind, severity, verdict, comm, rank, text);

	json_array_append_new(t->rows, row);
	return row;
}

static double row_weight(const json_t *row)
{
	return json_number_value(json_object_get(row, "weight"));
}

/* One row for a GPU, from where it is surest and costs most: late is late wherever it comes. */
static void keep_worst(struct told *t, const struct shots_rank *rank, json_t *row)
{
	const char *gpu = rank ? rank->row->gpu_uuid : NULL;
	char key[400];
	json_t *other;

	snprintf(key, sizeof(key), "%.255s %.60s %d", rank_host(rank) ?: "", gpu ?: "",
		 gpu || !rank ? 0 : rank->row->pid);
	other = json_object_get(t->late, key);
	if (!other || row_weight(other) < row_weight(row))
		json_object_set(t->late, key, row);
}

static bool told_finding_has(const struct told *t, const json_t *f, const struct shots_rank *rank)
{
	const struct shots_comm *comm = finding_comm(t, f);

	json_each(number, json_object_get(f, "ranks"))
		if (ranks_share_process(shots_rank(comm, json_integer_value(number)), rank))
			return true;
	return false;
}

/* The finding of that kind, found or suspected, that the rank's node has of it; NULL: none. */
static const json_t *told_own_finding(const struct told *t, const struct shots_rank *rank,
				      const char *kind)
{
	json_each(f, rank ? rank->node->findings : NULL)
		if (member_is(f, "kind", kind) && member_true(f, "active") &&
		    told_finding_has(t, f, rank))
			return f;
	return NULL;
}

/* The time over which that rank's samples lie, on its node's clock. */
static uint64_t late_span(const struct offline_straggler *l)
{
	const struct shots_span *span = shots_span(l->series, l->rank);

	return span && span->to_ns > span->from_ns ? span->to_ns - span->from_ns : 0;
}

/*
 * A late rank is found where it has lasted for three windows, of a minute if nobody has said
 * otherwise, as for the daemon: its own node, one that waits for it, or the samples tell.
 */
static bool late_has_lasted(const struct told *t, const struct offline_straggler *l,
			    const json_t *own)
{
	char id[ID];

	return late_span(l) >= 3 * WINDOW_NS || (own && member_is(own, "grade", "found")) ||
	       json_object_get(t->elsewhere, id_text(l->comm->id, id));
}

/* Ranks of the communicator that are of one process. */
static uint32_t comm_count_launched(const struct shots_comm *comm, const struct shots_rank *rank)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < comm->ranks.n; i++)
		n += ranks_share_process(&comm->ranks.at[i], rank);
	return n;
}

static enum late_why why_of_text(const char *text)
{
	enum late_why why = LATE_WHY_END;

	while (--why > LATE_WHY_UNKNOWN && strcmp(late_why_text(why), text))
		;
	return why;
}

/* The cause, and waiting that was handed on: samples do not tell them, the rank's own node does. */
static void late_take_cause(struct late_case *c, const json_t *finding,
			    const struct shots_comm *comm, const struct shots_rank *rank)
{
	uint64_t blame_ns = member_number(report_get(finding, "evidence"), "blame_ns", 0);
	uint64_t moved_ns = member_number(report_get(finding, "evidence"), "moved_ns", 0);

	c->why = why_of_text(member_text(report_get(finding, "evidence"), "why", ""));
	c->launched = c->why == LATE_WHY_LAUNCHES ? comm_count_launched(comm, rank) : 0;
	if (moved_ns >= blame_ns || !row_is_of_comm(finding, comm))
		return;
	c->moved_ns = (uint64_t)((double)c->blame_ns * (double)moved_ns /
				 (double)(blame_ns - moved_ns));
	c->blame_ns += c->moved_ns;
}

/* The time from when it began to when the file was written. */
static json_t *finding_file_age(const json_t *f, const struct shots_node *node)
{
	uint64_t since_ns = member_number(f, "since_mono_ns", 0);

	return since_ns && node->clock.mono_ns != UNKNOWN_U64 && node->clock.mono_ns > since_ns ?
	       json_integer((json_int_t)(node->clock.mono_ns - since_ns)) : json_null();
}

/* The age that its own node tells; else as long as its samples tell, or longer. */
static json_t *late_age(const struct offline_straggler *l, const json_t *own,
			const struct shots_rank *rank)
{
	uint64_t span_ns = late_span(l);

	if (own)
		return finding_file_age(own, rank->node);
	return span_ns ? json_integer((json_int_t)span_ns) : json_null();
}

/* The part of the time that it costs: rows of different sources are ordered by it. */
static double late_share_of_wall(uint64_t blame_ns, uint64_t wall_ns)
{
	return wall_ns ? (double)blame_ns / (double)wall_ns : 0;
}

/* The row of a late rank with its own node's judgement, as it is. */
static json_t *late_own_row(const struct shots_comm *comm, const struct shots_rank *rank,
			    const json_t *f)
{
	const json_t *evidence = json_object_get(f, "evidence");
	json_t *row = make_row("straggler", "warning", member_text(f, "verdict", "straggler"), comm,
			       rank, member_text(f, "text", ""));

	json_object_set(row, "func", json_object_get(evidence, "func"));
	json_object_set(row, "wait_ns", json_object_get(evidence, "blame_ns"));
	json_object_set_new(row, "age_ns", finding_file_age(f, rank->node));
	row_set_grade(row, member_is(f, "grade", "found"),
		      late_share_of_wall(member_number(evidence, "blame_ns", 0),
					 member_number(evidence, "window_ns", 0)));
	return row;
}

/* A node that saw all ranks of the communicator knows more of this one than the samples. */
static bool finding_tells_all(const json_t *f, const struct shots_comm *comm)
{
	const json_t *evidence = json_object_get(f, "evidence");
	uint64_t nranks = member_number(evidence, "nranks", 0);

	return nranks && member_number(evidence, "local_ranks", 0) == nranks &&
	       json_array_size(json_object_get(f, "ranks")) == 1 && row_is_of_comm(f, comm);
}

/* The row of a late rank that samples of all nodes tell; `own`: its own node's finding, or NULL. */
static json_t *late_joint_row(const struct told *t, const struct offline_straggler *l,
			      const struct shots_rank *rank, const json_t *own)
{
	struct late_case c = l->c;
	char text[1024];
	json_t *row;

	c.comm_name = l->comm->name ?: "";
	c.comm_id = l->comm->id;
	if (rank)
		c.who = rank_whom(rank);
	late_take_cause(&c, own, l->comm, rank);
	if (!late_has_lasted(t, l, own))
		c.suspected_window_ns = WINDOW_NS;
	late_say(&c, text, sizeof(text));
	row = make_row("straggler", "warning", words_verdict(c.verdict)->name, l->comm, rank, text);
	json_object_set_new(row, "func", json_string(c.func));
	json_object_set_new(row, "wait_ns", json_integer((json_int_t)c.blame_ns));
	json_object_set_new(row, "age_ns", late_age(l, own, rank));
	row_set_grade(row, !c.suspected_window_ns, late_share_of_wall(c.blame_ns, c.wall_ns));
	return row;
}

static void told_late(const struct offline_straggler *l, void *arg)
{
	struct told *t = arg;
	const struct shots_rank *rank = shots_rank(l->comm, l->rank);
	double share = l->inside_ns ? (double)l->c.blame_ns / (double)l->inside_ns : 0;
	const json_t *own = told_own_finding(t, rank, "straggler");
	json_auto_t *row = NULL;

	if (!own && late_span(l) < WINDOW_NS / LATE_SUSPECT && !late_has_lasted(t, l, own))
		return;
	row = own && finding_tells_all(own, l->comm) ? late_own_row(l->comm, rank, own) :
						       late_joint_row(t, l, rank, own);
	row_set_number(row, "rank", l->rank);
	json_object_set_new(row, "ops", json_integer((json_int_t)l->c.judged));
	json_object_set_new(row, "last", json_integer((json_int_t)l->c.last));
	json_object_set_new(row, "share", json_real(share));
	keep_worst(t, rank, row);
}

static bool kind_is_of_hang(const json_t *row)
{
	return member_is(row, "kind", "stall") || member_is(row, "kind", "desync");
}

/* Is it one of a process that is told already to have not come, to something else? */
static bool told_has_absent(const struct told *t, const struct hang_case *c,
			    const struct shots_rank *rank)
{
	if (c->verdict.verdict != VERDICT_NOT_JOINED)
		return false;
	json_each(row, t->rows)
		if (member_is(row, "verdict", words_verdict(VERDICT_NOT_JOINED)->name) &&
		    json_integer_value(json_object_get(row, "pid")) == rank->row->pid &&
		    member_is(row, "host", rank_host(rank)))
			return true;
	return false;
}

/* Are all that it names? */
static bool told_has_hang(const struct told *t, const struct hang_case *c)
{
	for (uint32_t i = 0; i < c->verdict.nranks; i++) {
		const struct hang_rank *r = hang_rank_of(c, c->verdict.ranks[i]);

		if (!r || !told_has_absent(t, c, r->owner))
			return false;
	}
	return c->verdict.nranks;
}

/* The name of a node's process in a set. */
static const char *process_key(const char *host, int32_t pid, char key[KEY])
{
	snprintf(key, KEY, "%.255s %" PRId32, host, pid);
	return key;
}

/* One death is one row, which tells what waits.  False: no node tells of that death. */
static bool told_has_death(struct told *t, const struct hang_case *c)
{
	char key[KEY], text[128];
	bool told = false;

	if (c->verdict.verdict != VERDICT_RANK_DEAD)
		return false;
	hang_say_waiting(c, text, sizeof(text));
	for (uint32_t i = 0; !told && i < c->verdict.nranks; i++) {
		const struct hang_rank *r = hang_rank_of(c, c->verdict.ranks[i]);
		const struct shots_rank *rank = r ? r->owner : NULL;

		told = rank && deaths_have(rank->node, rank->row->pid);
		if (told)
			json_object_set_new(t->waiting, process_key(rank_host(rank),
					    rank->row->pid, key), json_string(text));
	}
	return told;
}

/* NCCL's RAS named ranks of other nodes to the node. */
static bool finding_is_heard(const json_t *f)
{
	return json_array_size(report_get(f, "evidence.ras_ranks"));
}

static bool finding_has_ranks(const json_t *f, const struct hang_verdict *v)
{
	const json_t *ranks = json_object_get(f, "ranks");
	bool same = json_array_size(ranks) == v->nranks;

	for (uint32_t i = 0; same && i < v->nranks; i++)
		same = json_integer_value(json_array_get(ranks, i)) == v->ranks[i];
	return same;
}

/*
 * The finding of a node that knows more of the hang than rows tell: ranks that RAS named where the
 * cause is not seen, or, of the same verdict and ranks, an Xid or a network interface that fails.
 */
static const json_t *told_own_hang(const struct told *t, const struct hang_case *c, uint64_t comm)
{
	for (uint32_t n = 0; n < t->shots->nodes.n; n++)
		json_each(f, t->shots->nodes.at[n]->findings) {
			if (!kind_is_of_hang(f) || !member_true(f, "active") ||
			    member_hex(f, "comm_id") != comm)
				continue;
			if (c->verdict.verdict == VERDICT_UNKNOWN ? finding_is_heard(f) :
			    member_is(f, "verdict", words_verdict(c->verdict.verdict)->name) &&
			    finding_has_ranks(f, &c->verdict) &&
			    (json_is_integer(report_get(f, "evidence.xid")) ||
			     json_is_object(report_get(f, "evidence.nic"))))
				return f;
		}
	return NULL;
}

/* A row for each rank that the verdict names; where it names none, one of the communicator. */
static void tell_hang(const struct hang_case *c, bool suspected, void *arg)
{
	const struct hang_group *g = &c->hang->groups.at[c->verdict.comm];
	const struct hang_rank *any = &c->hang->ranks.at[g->first];
	const char *kind = hang_is_desync(c) ? "desync" : "stall";
	uint32_t rows = c->verdict.nranks ? c->verdict.nranks : 1;
	const struct shots_comm *comm;
	struct told *t = arg;
	const json_t *own;
	char id[ID], text[1024];

	if (told_has_hang(t, c))
		return;
	own = told_own_hang(t, c, any->id);
	if (own && c->verdict.verdict == VERDICT_UNKNOWN)
		return;		/* it becomes a row as it is */
	json_object_set_new(t->hung, id_text(any->id, id), json_true());
	if (told_has_death(t, c))
		return;
	comm = shots_comm(t->shots, any->id, any->nranks);
	hang_say(c, text, sizeof(text));
	for (uint32_t i = 0; i < rows; i++) {
		const struct hang_rank *r = c->verdict.nranks ?
					    hang_rank_of(c, c->verdict.ranks[i]) : NULL;
		json_t *row = told_add_row(t, kind, hang_is_warning(c) ? "warning" : "critical",
					   words_verdict(c->verdict.verdict)->name, comm,
					   r ? r->owner : NULL, member_text(own, "text", text));

		row_set_grade(row, !suspected, 1);
		json_object_set_new(row, "age_ns", json_integer((json_int_t)c->age_ns));
		if (g->op.func)
			json_object_set_new(row, "func", json_string(g->op.func));
		if (g->op.seq != UNKNOWN_U64)
			json_object_set_new(row, "seq", json_integer((json_int_t)g->op.seq));
	}
}

static const char *tell_waiting(const struct shots_node *node, int32_t pid, void *arg)
{
	const struct told *t = arg;
	char key[KEY];

	return member_text(t->waiting, process_key(node->host, pid, key), NULL);
}

/* One row for deaths of one cause, of whatever nodes. */
static void tell_death(const struct death *const *deaths, uint32_t n, const json_t *own, void *arg)
{
	const struct death *first = deaths[0];
	bool waited = died_waiting(deaths, n) || member_text(own, "verdict", NULL);
	struct told *t = arg;
	const struct shots_node *node = shots_node(t->shots, first->who.host);
	char text[1024];
	json_t *row;

	died_say(deaths, n, text, sizeof(text));
	row = told_add_row(t, "died", waited || died_is_critical(deaths, n) ? "critical" :
									      "warning",
			   waited ? words_verdict(VERDICT_RANK_DEAD)->name : "died",
			   first->has_comm_id ? told_find_comm(t, first->comm_id) : NULL, NULL,
			   died_waiting(deaths, n) && t->shots->nodes.n > 1 ? text :
			   member_text(own, "text", text));	/* all that its node knows */
	if (first->who.rank != UNKNOWN_I32)
		json_object_set_new(row, "rank", json_integer(first->who.rank));
	json_object_set_new(row, "host", json_string(first->who.host));
	json_object_set_new(row, "pid", json_integer(first->who.pid));
	if (first->ended_ns)
		json_object_set_new(row, "age_ns", json_integer((json_int_t)(
							   node->clock.written_ns -
							   first->ended_ns)));
	row_set_grade(row, true, 0);
}

/* The part of the time for which that rank's node found its progress thread to be away. */
static double told_starved(const struct told *t, const struct shots_rank *rank)
{
	const json_t *f = told_own_finding(t, rank, "proxy_starved");

	return f && member_is(f, "grade", "found") ?
	       json_number_value(report_get(f, "evidence.share")) : 0;
}

/* A link that was slow for the last minute alone is suspected. */
static void tell_slow_peer(const struct slow_peer *p, bool lasts, void *arg)
{
	int32_t blamed = p->hot.where == DELAY_RECEIVE_SIDE ? p->hot.to : p->hot.from;
	const struct shots_comm *comm = (const struct shots_comm *)(uintptr_t)p->worst->comm;
	const struct shots_rank *from = shots_rank(comm, p->from.rank);
	const struct shots_rank *to = shots_rank(comm, p->to.rank);
	struct slow_peer said = *p;
	struct told *t = arg;
	double away[] = { told_starved(t, from), told_starved(t, to) };
	char text[1024];
	json_t *row;

	said.away = fmax(away[0], away[1]);
	said.away_rank = away[1] > away[0] ? p->to.rank : p->from.rank;
	if (slow_peer_is_explained(p, said.away, 0))
		return;
	if (from)
		said.from = rank_whom(from);
	if (to)
		said.to = rank_whom(to);
	slow_peer_say(&said, text, sizeof(text));
	row = told_add_row(t, "slow_peer", "warning", words_verdict(p->verdict)->name, comm,
			   shots_rank(comm, blamed), text);
	json_object_set_new(row, "rank", json_integer(blamed));
	if (p->hot.where == DELAY_LINK || p->hot.where == DELAY_CHANNEL)
		json_object_set_new(row, "peer", json_integer(p->hot.to));
	json_object_set_new(row, "share", json_real(p->share));
	row_set_grade(row, lasts, p->share);
	json_array_append(t->slow, row);
}

/* "rank 3", "ranks 0-7 8-15": from nobody's file. */
static void told_missing(struct told *t, const struct shots_comm *comm)
{
	int64_t nranks = comm->nranks, missing = 0;
	char ranks[320] = "", text[464];
	size_t used = 0, named = 0;

	if (nranks > RANKS_MOST || !comm->ranks.n)
		return;		/* a file that tells nonsense, or samples of one that is over */
	for (int64_t r = 0; r < nranks; r++) {
		int64_t first = r;

		while (r < nranks && !shots_rank(comm, r))
			r++;
		if (r == first)
			continue;
		missing += r - first;
		if (named++ == NAMED)
			used += (size_t)snprintf(ranks + used, sizeof(ranks) - used, " ...");
		if (named > NAMED)
			continue;
		used += (size_t)snprintf(ranks + used, sizeof(ranks) - used, " %" PRId64, first);
		if (r - first > 1)
			used += (size_t)snprintf(ranks + used, sizeof(ranks) - used, "-%" PRId64,
						 r - 1);
	}
	if (!missing)
		return;
	snprintf(text, sizeof(text), "no file covers %" PRId64 " of the %" PRId64 " ranks:%s. "
		 "Add the files of their nodes", missing, nranks, ranks);
	told_add_row(t, "missing", "info", "MISSING", comm, NULL, text);
}

/*
 * Nodes that were asked and did not answer: what runs on them nobody knows, and one that is down
 * may be what a job waits for.
 */
static void told_silent(struct told *t)
{
	size_t n = json_object_size(t->shots->silent), named = 0;
	char text[1024];
	const char *name;
	struct phrase p;
	json_t *why;

	if (!n)
		return;
	phrase_start(&p, text, sizeof(text));
	phrase_add(&p, "%zu of %zu nodes that were asked %s not answer: ", n,
		   n + t->shots->nodes.n, n == 1 ? "does" : "do");
	json_object_foreach(t->shots->silent, name, why)
		if (named++ < NAMED)
			phrase_add(&p, "%s%s (%s)", named > 1 ? ", " : "", name,
				   json_string_value(why));
	phrase_add(&p, "%s. What runs there is not in these figures, and missing ranks may be "
		   "there. If a node is down, the other ranks wait because of that: try ssh %s",
		   named > NAMED ? ", ..." : "",
		   json_object_iter_key(json_object_iter(t->shots->silent)));
	told_add_row(t, "silent", "warning", "SILENT", NULL, NULL, text);
}

/* ---- findings of one node ------------------------------------------------------------- */

/* Are all ranks of the communicator on that node? */
static bool comm_is_whole_on(const struct shots_comm *comm, const struct shots_node *node)
{
	int32_t n = 0;

	for (uint32_t i = 0; i < comm->ranks.n; i++) {
		if (comm->ranks.at[i].node != node)
			return false;
		n += !i || comm->ranks.at[i].row->rank != comm->ranks.at[i - 1].row->rank;
	}
	return comm->nranks == n;
}

/*
 * Is a node's slow link told already, by its place among those of all nodes?  What the node has
 * found is found.
 */
static bool told_has_slow_peer(const struct told *t, const json_t *f)
{
	const json_t *from = json_array_get(json_object_get(f, "ranks"), 0);
	const json_t *to = json_object_get(f, "peer");

	json_each(row, t->slow) {
		const json_t *rank = json_object_get(row, "rank");

		if (!member_is(row, "comm_id", member_text(f, "comm_id", "")) ||
		    (!json_equal(rank, from) && !json_equal(rank, to) &&
		     !json_equal(json_object_get(row, "peer"), from)))
			continue;
		row_set_grade(row, true, json_number_value(json_object_get(row, "share")));
		return true;
	}
	return false;
}

/*
 * Is a node's finding a row?  What all nodes together say of hangs and late ranks is there, but
 * for a hang within the node that is not old enough yet, or of which no operation tells.
 */
static bool finding_is_row(const struct told *t, const json_t *f, bool whole)
{
	if (!member_true(f, "active") || member_is(f, "severity", "info") ||
	    member_is(f, "kind", "straggler") || deaths_are_of(f))
		return false;
	if (member_is(f, "kind", "slow_peer"))
		return !told_has_slow_peer(t, f);
	if (!kind_is_of_hang(f))
		return true;
	return (whole || finding_is_heard(f)) &&
	       !json_object_get(t->hung, member_text(f, "comm_id", ""));
}

/* The row of the same fault that another node has found already, which then is that node's too. */
static json_t *told_same(const struct told *t, const char *host, const json_t *f)
{
	json_each(row, t->rows) {
		const json_t *other = json_object_get(row, "finding");

		if (other && !member_is(row, "host", host) &&
		    members_same(other, f, "kind", "verdict", "grade", "severity", "job",
				 "comm_name"))
			return row;
	}
	return NULL;
}

static void row_add_host(json_t *row, const char *host)
{
	json_t *also = json_object_get(row, "also");

	if (!also) {
		also = json_object();
		json_object_set_new(row, "also", also);
	}
	json_object_set_new(also, host, json_true());
}

/* One cause, one line: the nodes that have found it as well stand in its text. */
static void row_tell_also(json_t *row)
{
	json_t *also = json_object_get(row, "also"), *value;
	const char *said = member_text(row, "text", "");
	char text[2048];
	const char *host;
	struct phrase p;
	size_t named = 0;

	if (!also)
		return;
	phrase_start(&p, text, sizeof(text));
	phrase_add(&p, "%s%sThe same on %zu other node%s: ", said,
		   *said && said[strlen(said) - 1] == '.' ? " " : ". ",
		   json_object_size(also), json_object_size(also) == 1 ? "" : "s");
	json_object_foreach(also, host, value)
		if (named++ < NAMED)
			phrase_add(&p, "%s%s", named > 1 ? ", " : "", host);
	phrase_add(&p, "%s", named > NAMED ? ", ..." : "");
	json_object_set_new(row, "text", json_string(text));
}

static void told_finding(struct told *t, const struct shots_node *node, const json_t *f)
{
	const json_t *rank = json_array_get(json_object_get(f, "ranks"), 0);
	const struct shots_comm *comm = finding_comm(t, f);
	const char *host = node->host;
	json_t *row;

	if (!finding_is_row(t, f, comm && comm_is_whole_on(comm, node)))
		return;
	row = told_same(t, host, f);
	if (row) {
		row_add_host(row, host);
		return;
	}
	row = told_add_row(t, member_text(f, "kind", ""), member_text(f, "severity", "warning"),
			   member_text(f, "verdict", member_text(f, "kind", "")), comm,
			   rank ? shots_rank(comm, json_integer_value(rank)) : NULL,
			   member_text(f, "text", ""));
	json_object_set(row, "finding", (json_t *)(uintptr_t)f);
	json_object_set_new(row, "host", json_string(host));
	json_object_set_new(row, "age_ns", finding_file_age(f, node));
	row_set_grade(row, !member_is(f, "grade", "suspected"), 0);
	if (kind_is_of_hang(f))
		json_object_set_new(t->hung, member_text(f, "comm_id", ""), json_true());
}

/*
 * A slow stage of a pipeline: its node compares sends and receives, of which there are no
 * samples.
 */
static void told_stage(struct told *t, const struct shots_node *node, const json_t *f)
{
	const json_t *evidence = json_object_get(f, "evidence");
	const struct shots_comm *comm = finding_comm(t, f);
	const json_t *number = json_array_get(json_object_get(f, "ranks"), 0);
	const struct shots_rank *rank = shots_rank(comm, json_integer_value(number));
	json_auto_t *row = NULL;

	if (!member_is(f, "kind", "straggler") || !member_true(f, "active") ||
	    !member_is(evidence, "func", LATE_STAGES) || !rank)
		return;
	row = late_own_row(comm, rank, f);
	keep_worst(t, rank, row);
}

static void told_take_elsewhere(struct told *t, const struct shots_node *node, const json_t *f)
{
	if (member_is(f, "verdict", "ELSEWHERE") && member_is(f, "grade", "found") &&
	    member_true(f, "active"))
		json_object_set_new(t->elsewhere, member_text(f, "comm_id", ""), json_true());
}

/* ---- from outside ------------------------------------------------------------------------ */

typedef void told_finding_fn(struct told *t, const struct shots_node *node,
			     const json_t *finding);

static void told_each_finding(struct told *t, told_finding_fn *take)
{
	for (uint32_t n = 0; n < t->shots->nodes.n; n++)
		json_each(finding, t->shots->nodes.at[n]->findings)
			take(t, t->shots->nodes.at[n], finding);
}

/* The first row that tells of a node's finding; NULL: none does. */
static json_t *told_row_of(const struct told *t, const json_t *f)
{
	json_each(row, t->rows)
		if (member_is(row, "comm_id", member_text(f, "comm_id", "")) &&
		    (member_is(row, "kind", member_text(f, "kind", "")) ||
		     (kind_is_of_hang(row) && kind_is_of_hang(f))))
			return row;
	return NULL;
}

/* The lines of what was seen beside a row, to which more may be added. */
static json_t *row_gathered(json_t *row)
{
	if (!json_object_get(row, "gathered"))
		json_object_set_new(row, "gathered", json_array());
	return json_object_get(row, "gathered");
}

/* A row has what was seen in the finding's processes, with their node where there are more. */
static void told_gathered(struct told *t, const struct shots_node *node, const json_t *f)
{
	json_t *row = json_array_size(json_object_get(f, "gathered")) ? told_row_of(t, f) : NULL;
	const char *host = t->shots->nodes.n > 1 ? node->host : "";
	json_t *all;

	if (!row)
		return;
	all = row_gathered(row);
	json_each(line, json_object_get(f, "gathered"))
		json_array_append_new(all, json_sprintf("%s%s%s", host, *host ? ": " : "",
							json_string_value(line)));
}

/* The first of the rows of a hang, or of a death, has the lines of all its ranks. */
static void told_flight(struct told *t, size_t first)
{
	json_t *row = json_array_get(t->rows, first), *other;
	const struct shots_comm *comm;
	LIST(int32_t) named = { .n = 0 };
	size_t i;

	comm = shots_comm(t->shots, member_hex(row, "comm_id"), member_i32(row, "nranks"));
	if (!comm || (!kind_is_of_hang(row) && !member_is(row, "kind", "died")))
		return;
	json_array_foreach(t->rows, i, other) {
		int32_t rank = member_i32(other, "rank");

		if (!members_same(row, other, "comm_id", "text"))
			continue;
		if (i < first) {
			list_deinit(&named);
			return;
		}
		if (rank != UNKNOWN_I32)
			*(int32_t *)must(list_append(&named)) = rank;
	}
	flight_tell(t->flight, comm, named.at, named.n, row_gathered(row));
	list_deinit(&named);
}

static void told_all(struct told *t)
{
	const char *key;
	json_t *value;
	size_t i;

	told_each_finding(t, told_take_elsewhere);
	hangs_find(t->shots, tell_hang, t);
	deaths_find(t->shots, tell_waiting, tell_death, t);
	stragglers_find(t->shots, told_late, t);
	slow_peers_find(t->slow_peers, tell_slow_peer, t);
	told_each_finding(t, told_stage);
	json_object_foreach(t->late, key, value)
		json_array_append(t->rows, value);
	told_each_finding(t, told_finding);
	told_each_finding(t, told_gathered);
	for (i = 0; t->flight && i < json_array_size(t->rows); i++)
		told_flight(t, i);
	json_array_foreach(t->rows, i, value)
		row_tell_also(value);
	for (uint32_t n = 0; n < t->shots->comms.n; n++)
		told_missing(t, t->shots->comms.at[n]);
	told_silent(t);
}

json_t *joint_verdicts(struct joint *joint)
{
	struct told t = { .shots = &joint->shots, .slow_peers = &joint->slow_peers,
			  .flight = joint->flight, .rows = json_array(),
			  .late = json_object(), .slow = json_array(),
			  .elsewhere = json_object(), .hung = json_object(),
			  .waiting = json_object() };

	shots_settle(&joint->shots);
	told_all(&t);
	json_decref(t.late);
	json_decref(t.slow);
	json_decref(t.elsewhere);
	json_decref(t.hung);
	json_decref(t.waiting);
	return t.rows;
}

static void joint_take(void *arg, struct shots_node *node, bool is_first)
{
	struct joint *joint = arg;

	slow_peers_take(&joint->slow_peers, node, is_first);
	hangs_trim(&node->rows);
}

void joint_init(struct joint *joint)
{
	*joint = (struct joint){
		.shots = { .wants_samples = true, .newest = joint_take,
			   .newest_arg = joint },
		.slow_peers = { .shots = &joint->shots },
	};
	shots_init(&joint->shots);
}

void joint_deinit(struct joint *joint)
{
	slow_peers_deinit(&joint->slow_peers);
	shots_deinit(&joint->shots);
}
