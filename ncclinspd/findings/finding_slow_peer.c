/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links that are slower than the others: every few seconds judge/ is asked about what each did
 * meanwhile.  Only what is sent from here can be compared; what the other end sees is on its
 * node.
 *
 * A thread that is away sees the end of its transfers late, which looks the same: where
 * the progress thread is starved, that is the finding (finding_proxy_starved.c).  Hiccups
 * pass: it has to be so in CONFIRMED intervals one after another.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge/slow_peer.h"
#include "ncclinspd/base/jobs.h"
#include "ncclinspd/findings/around.h"
#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/findings/probelink.h"
#include "ncclinspd/sums/queues.h"
#include "reader/base/accounts.h"
#include "reader/base/job.h"
#include "reader/base/pool.h"
#include "tables/keyed.h"

#define SECOND_NS	UINT64_C(1000000000)
#define LOOK_NS		(3 * SECOND_NS)
#define HOLD_NS		(10 * SECOND_NS)
#define CONFIRMED	3
#define SUSPECTS	512

struct suspect {
	struct keyed_head head;
	uint64_t key;
	uint64_t since_ns;
	uint64_t seen_ns;
	uint32_t times;		/* one after another */
};

struct slow_peer_state {
	uint64_t looked_ns;
	struct slow_links before;	/* sums at looked_ns, by link */
	struct keyed suspects;
};

/* One look. */
struct slow_peer_context {
	struct diagnose *dg;
	struct slow_peer_state *sp;
	uint64_t now_ns;
	uint64_t window_ns;	/* time since the last look */
};

/* ---- rows ------------------------------------------------------------------- */

static uint64_t who_comm(const struct links_who *who)
{
	const uint64_t key[] = {
		who->uid,
		who->has_comm_id,
		who->has_comm_id ? who->comm_id : who->process_id,
		who->has_comm_id ? (uint64_t)who->nranks : who->comm_index,
	};

	return index_hash(0, key, sizeof(key));
}

static uint64_t who_link(const struct links_who *who)
{
	const uint64_t key[] = {
		who->process_id, who->comm_index, (uint64_t)who->peer, who->channel,
		(uint64_t)who->proxy_pid,
	};

	return index_hash(0, key, sizeof(key));
}

static bool links_take_row(const struct links_row *row, void *arg)
{
	const struct links_who *who = &row->who;
	const struct links_sums *sums = &row->sums;
	struct slow_links *list = arg;
	struct slow_link *link;

	if (!who->send || who->rank < 0 || who->peer < 0 || !sums->timed_steps)
		return true;
	link = list_add(list);
	if (!link)
		return true;
	*link = (struct slow_link){
		.link = who_link(who), .comm = who_comm(who), .row = who->rank,
		.column = who->peer, .user = who->uid, .process = who->process_id,
		.has_comm_id = who->has_comm_id, .comm_id = who->comm_id,
		.comm_name = who->comm_name, .nranks = who->nranks, .rank = who->rank,
		.peer = who->peer, .comm_index = who->comm_index, .channel = who->channel,
		.bytes = sums->timed_bytes, .steps = sums->timed_steps,
		.busy_ns = sums->busy_ns, .held_ns = sums->held_ns,
	};
	return true;
}

static void links_meanwhile(void *arg)
{
	diagnose_meanwhile(arg);
}

/* All that ever was, by link; the caller has list_deinit().  False: not this time. */
static bool slow_links_take(struct diagnose *dg, struct slow_links *list, uint64_t now_ns)
{
	const struct links_query query = {
		.windows = 1u << LINKS_ALL,
		.all_users = true,
		.meanwhile = links_meanwhile,
		.meanwhile_arg = dg,
	};
	struct links *links = diagnose_source(dg)->links;

	if (list_init(list, links_stats(links)->links) < 0 ||
	    links_visit(links, &query, now_ns, links_take_row, list) < 0) {
		list_deinit(list);
		return false;
	}
	list_sort(list, slow_links_by_link);
	return true;
}

/* False: no memory. */
static bool slow_links_set_jobs(struct diagnose *dg, struct slow_links *links, uint64_t now_ns)
{
	const struct diagnose_source *source = diagnose_source(dg);
	struct process *const *list;
	size_t n = source->processes(source->arg, &list);
	uint32_t *job = malloc((n + 1) * sizeof(*job));
	bool known = job && jobs_group(list, n, now_ns, job) == 0;

	for (uint32_t i = 0; known && i < links->n; i++) {
		size_t k = 0;

		while (k < n && list[k]->id != links->at[i].process)
			k++;
		links->at[i].job = k < n ? job[k] : UINT32_MAX;
	}
	free(job);
	return known;
}

/* ---- what is slow ---------------------------------------------------------- */

/* Has it been so in enough looks, one after another?  *since_ns: the start. */
static bool suspect_is_confirmed(const struct slow_peer_context *s, uint64_t key, uid_t account,
				 uint64_t *since_ns)
{
	bool made;
	struct suspect *suspect = keyed_use(&s->sp->suspects, &key, account, &made);

	if (!suspect)
		return false;
	if (made || s->now_ns - suspect->seen_ns > s->window_ns) {
		suspect->since_ns = s->now_ns - s->window_ns;
		suspect->times = 0;
	}
	suspect->seen_ns = s->now_ns;
	suspect->times++;
	*since_ns = suspect->since_ns;
	return suspect->times >= CONFIRMED;
}

static uint64_t slow_peer_key(const struct slow_peer *p)
{
	const struct delay_hot *hot = &p->hot;
	const uint64_t key[] = {
		p->worst->comm, p->aspect, hot->where,
		hot->where == DELAY_RECEIVE_SIDE ? 0 : (uint64_t)hot->from,
		hot->where == DELAY_SEND_SIDE ? 0 : (uint64_t)hot->to,
		hot->channel,
	};

	return index_hash(0, key, sizeof(key)) | 1;
}

/* Is it that process that is this rank, or any with UNKNOWN_I32, of the communicator? */
static bool link_is_rank(const struct slow_link *l, const struct process *p, int32_t rank)
{
	if (!l->has_comm_id)
		return p->id == l->process && (rank == l->rank || rank == UNKNOWN_I32);
	return p->uid == l->user && jobs_comm(p, l->comm_id, rank);
}

/* The CPU time that threads here lacked: the largest part of the time. */
struct link_threads {
	double away;		/* absence, as kernels that were seen late tell */
	double lacks;		/* the same, or as the kernel tells, which gave no CPU */
	int32_t rank;		/* the rank of that thread */
};

/*
 * The threads at both ends.  What a receiver has no room for may be held up by any thread of
 * the communicator.
 */
static struct link_threads link_find_threads(const struct slow_peer_context *s,
					     const struct slow_link *l, bool any)
{
	const struct diagnose_source *source = diagnose_source(s->dg);
	struct link_threads found = { .rank = UNKNOWN_I32 };
	struct process *const *list;
	size_t n = source->processes(source->arg, &list);

	for (size_t i = 0; i < n; i++) {
		bool sends = link_is_rank(l, list[i], l->rank);
		bool receives = link_is_rank(l, list[i], l->peer);
		double away, lacks;

		if (!sends && !receives && !(any && link_is_rank(l, list[i], UNKNOWN_I32)))
			continue;
		away = proxy_starved_share(s->dg, list[i]->id, s->now_ns);
		lacks = fmax(away, proxy_cpu_share(list[i], s->now_ns));
		found.away = fmax(found.away, away);
		if (lacks <= found.lacks)
			continue;
		found.lacks = lacks;
		found.rank = sends ? l->rank : receives ? l->peer : UNKNOWN_I32;
	}
	return found;
}

/* The usual lack of the threads of these links. */
static double links_usual_away(const struct slow_peer_context *s, const struct slow_link *links,
			       uint32_t n)
{
	double *shares = malloc(n * sizeof(*shares)), usual;

	if (!shares)
		return 0;
	for (uint32_t i = 0; i < n; i++)
		shares[i] = link_find_threads(s, &links[i], false).away;
	usual = slow_links_usual_away(shares, n);
	free(shares);
	return usual;
}

/* Does what a thread here was away for, beyond all others, explain it?  Sets p->away. */
static bool slow_peer_is_starved(const struct slow_peer_context *s, struct slow_peer *p,
				 const struct slow_link *links, uint32_t n)
{
	bool any = p->aspect == SLOW_PEER_ROOM;
	struct link_threads threads = link_find_threads(s, p->worst, any);
	double usual = 0;

	p->away = threads.lacks;
	p->away_rank = threads.rank;
	if (!any && slow_peer_is_explained(p, threads.away, 0))
		usual = links_usual_away(s, links, n);
	return slow_peer_is_explained(p, threads.away, usual);
}

/* Is the receiver on this node?  Its own proxies and its lateness then tell more. */
static bool link_peer_is_here(const struct slow_peer_context *s, const struct slow_link *l)
{
	const struct diagnose_source *source = diagnose_source(s->dg);
	struct process *const *list;
	size_t n = source->processes(source->arg, &list);

	for (size_t i = 0; i < n; i++)
		if (link_is_rank(l, list[i], l->peer))
			return true;
	return false;
}

/* ---- the finding ------------------------------------------------------------ */

#include "schema/slow_peer_evidence.h"

/* The ranks at both ends; of one that is not here the sender may know the number in the job. */
static void slow_peer_set_whom(const struct slow_peer_context *s, struct slow_peer *p)
{
	const struct diagnose_source *source = diagnose_source(s->dg);
	const struct delay_hot *hot = &p->hot;
	const struct slow_link *l = p->worst;
	struct process *const *list;
	size_t n = source->processes(source->arg, &list);

	for (size_t i = 0; i < n && l->has_comm_id; i++) {
		bool own = list[i]->uid == l->user;
		const struct comm *from = own ? jobs_comm(list[i], l->comm_id, l->rank) : NULL;
		const struct comm *to = own ? jobs_comm(list[i], l->comm_id, l->peer) : NULL;

		const struct comm *slow = hot->where == DELAY_RECEIVE_SIDE ? to : from;

		if (slow)
			p->apart = around_find_placement(s->dg, list[i], slow, s->now_ns,
							 &p->placement);
		if (from)
			p->from = diagnose_whom(s->dg, list[i], from);
		if (from && !p->to.pid)
			p->to.world_rank = job_world_rank_of(list[i], from, l->peer);
		if (to)
			p->to = diagnose_whom(s->dg, list[i], to);
	}
}

/* Rows come with the slowest first; receives are compared with nothing. */
static bool queues_take_row(const struct queues_row *row, void *arg)
{
	struct slow_peer *p = arg;
	struct slow_peer_queue *queue = &p->queue;
	const struct links_who *who = &row->who;

	if (who->process_id != p->worst->process || who->comm_index != p->worst->comm_index ||
	    who->peer != p->worst->peer ||
	    (p->hot.where == DELAY_CHANNEL && who->channel != p->worst->channel))
		return true;
	slow_queues_sum_add(&queue->all, &row->load);
	if (!slow_queue_is_slow(&row->load) || queue->all.slow > 1)
		return true;
	queue->load = row->load;
	queue->is_socket = row->is_socket;
	queue->number = row->number;
	queue->channel = who->channel;
	queue->nic = row->nic;
	return true;
}

/* Is it one path of several?  The queues of a link tell, where NCCL tells of these. */
static void slow_peer_set_queue(const struct slow_peer_context *s, struct slow_peer *p)
{
	const struct links_query query = {
		.windows = 1u << LINKS_60S, .all_users = true,
		.meanwhile = links_meanwhile, .meanwhile_arg = s->dg,
	};
	struct queues *source = diagnose_source(s->dg)->queues;

	if (!source || !queues_stats(source)->queues || p->aspect != SLOW_PEER_WIRE)
		return;
	queues_visit(source, &query, s->now_ns, queues_take_row, p);
	if (!slow_queues_explain(&p->queue.all, p->hot.ratio))
		memset(&p->queue, 0, sizeof(p->queue));
}

static void slow_peer_report(const struct slow_peer_context *s, struct slow_peer *p,
			     uint64_t key, uint64_t since_ns)
{
	const struct delay_hot *hot = &p->hot;
	bool pair = hot->where == DELAY_LINK || hot->where == DELAY_CHANNEL;
	struct finding f = {
		.kind = FINDING_SLOW_PEER,
		.severity = p->aspect == SLOW_PEER_ROOM ? FINDING_INFO : FINDING_WARNING,
		.verdict = words_verdict(p->verdict)->name,
		.uid = (uid_t)p->worst->user,
		.process_id = p->worst->has_comm_id ? 0 : p->worst->process,
		.has_comm_id = p->worst->has_comm_id,
		.comm_id = p->worst->comm_id,
		.ranks = { hot->where == DELAY_RECEIVE_SIDE ? hot->to : hot->from },
		.nranks = 1,
		.peer = pair ? hot->to : UNKNOWN_I32,
		.since_ns = since_ns,
	};

	if (p->worst->comm_name)
		snprintf(f.comm_name, sizeof(f.comm_name), "%s", p->worst->comm_name);
	if (pair)
		slow_peer_set_queue(s, p);
	around_find_nic(s->dg, s->now_ns, &p->nic);
	probelink_resent(diagnose_source(s->dg)->probe, p->worst->process, s->now_ns, &p->resent);
	slow_peer_say(p, f.text, sizeof(f.text));
	finding_set_evidence(&f, slow_peer_evidence_fields, p);
	diagnose_report(s->dg, &finding_slow_peer, key, &f, s->now_ns);
}

/* True: it is slow, told or not yet. */
static bool slow_peer_judge(const struct slow_peer_context *s, struct slow_peer *p,
			    const struct slow_link *links, uint32_t n)
{
	uid_t account = accounts_of(diagnose_settings(s->dg)->accounts, (uid_t)p->worst->user);
	uint64_t key = slow_peer_key(p), since_ns;

	if ((p->aspect == SLOW_PEER_ROOM && link_peer_is_here(s, p->worst)) ||
	    slow_peer_is_starved(s, p, links, n))
		return false;
	if (!p->begins)
		return diagnose_renew(s->dg, &finding_slow_peer, key, s->now_ns);
	if (!suspect_is_confirmed(s, key, account, &since_ns))
		return true;
	slow_peer_set_whom(s, p);
	slow_peer_report(s, p, key, since_ns);
	return true;
}

/* ---- the detector ---------------------------------------------------------- */

/* Returns how many are slow. */
static int look_at_aspect(const struct slow_peer_context *s, const struct slow_link *links,
			  uint32_t n, enum slow_peer_aspect aspect, bool siblings)
{
	struct slow_peer slow[SLOW_PEERS];
	int found = slow_peer_find(links, n, aspect, siblings, s->window_ns, slow), told = 0;

	for (int i = 0; i < found; i++)
		told += slow_peer_judge(s, &slow[i], links, n);
	return told;
}

static void look_at_groups(const struct slow_peer_context *s, const struct slow_links *list,
			   bool siblings)
{
	uint32_t end;

	for (uint32_t i = 0; i < list->n; i = end) {
		end = slow_links_group_end(list, i);
		diagnose_meanwhile(s->dg);
		if (!look_at_aspect(s, &list->at[i], end - i, SLOW_PEER_WIRE, siblings) &&
		    !siblings)
			look_at_aspect(s, &list->at[i], end - i, SLOW_PEER_ROOM, false);
	}
}

/* A communicator with one link from here is compared with others of the same job. */
static void look_at_siblings(const struct slow_peer_context *s, struct slow_links *since)
{
	struct slow_links siblings;

	if (!slow_links_set_jobs(s->dg, since, s->now_ns))
		return;
	slow_links_siblings(since, &siblings);
	look_at_groups(s, &siblings, true);
	list_deinit(&siblings);
}

static void slow_peer_look(struct diagnose *dg, void *state, uint64_t now_ns)
{
	struct slow_peer_state *sp = state;
	const struct slow_peer_context s = { .dg = dg, .sp = sp, .now_ns = now_ns,
					     .window_ns = now_ns - sp->looked_ns };
	struct slow_links now, since;

	if (!diagnose_source(dg)->links || s.window_ns < LOOK_NS ||
	    !slow_links_take(dg, &now, now_ns))
		return;
	slow_links_since(&now, &sp->before, &since);
	if (sp->looked_ns && since.at) {
		look_at_groups(&s, &since, false);
		look_at_siblings(&s, &since);
	}
	list_deinit(&since);
	list_deinit(&sp->before);
	sp->before = now;
	sp->looked_ns = now_ns;
}

static void slow_peer_deinit(void *state)
{
	struct slow_peer_state *sp = state;

	list_deinit(&sp->before);
	keyed_deinit(&sp->suspects);
}

static int slow_peer_init(struct diagnose *dg, void *state)
{
	return keyed_init(&((struct slow_peer_state *)state)->suspects,
			  &KEYED_CONFIG(struct suspect, key, SUSPECTS));
}

const struct detector finding_slow_peer = {
	.name = "slow_peer",
	.state_bytes = sizeof(struct slow_peer_state),
	.hold_ns = HOLD_NS,
	.of_living = true,
	.init = slow_peer_init,
	.deinit = slow_peer_deinit,
	.look = slow_peer_look,
};
