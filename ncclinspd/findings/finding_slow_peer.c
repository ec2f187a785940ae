/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Links that are slower than the others of their communicator: which one, or which end
 * of it (delay.h).  Only what is sent from here can be compared; what the other end sees
 * is on its node.  Where that leaves two causes, the text names both.  A communicator with
 * one link from here is compared with others of the same job, name and size.
 *
 * Compared is the time that a byte is on the wire, among links whose transfers are of
 * one size (within a factor of two).  Where nobody's wire is slow, the time for which the
 * peer had no room comes next: that is the peer's own doing, whatever its reason.
 *
 * A thread that is away sees the end of its transfers late, which looks the same: where
 * the progress thread is starved, that is the finding (finding_proxy_starved.c).  Hiccups
 * pass: it has to be so in CONFIRMED intervals one after another.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/base/jobs.h"
#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/findings/slow_peer.h"
#include "ncclinspd/findings/slow_peer_samples.h"
#include "reader/base/pool.h"

#define SECOND_NS	UINT64_C(1000000000)
#define LOOK_NS		(3 * SECOND_NS)
#define HOLD_NS		(10 * SECOND_NS)
#define CONFIRMED	3
#define FEW_LINKS	3	/* fewer, and one of them has to be worse to be called slow */
#define HOT_MAX		8	/* told of one communicator */
#define SUSPECTS	64

/* Limits to begin and to go on: times slower, and the part of the time that it costs. */
static const struct limits {
	double ratio, ratio_of_few, share;
} begin = { 1.5, 2, 0.02 }, go_on = { 1.25, 1.5, 0.01 };

struct suspect {
	uint64_t key;		/* 0: unused */
	uint64_t since_ns;
	uint64_t seen_ns;
	uint32_t times;		/* one after another */
};

struct slow_peers {
	uint64_t looked_ns;
	struct slow_peer_samples before;	/* sums at looked_ns, by link */
	struct suspect suspects[SUSPECTS];
};

/* A time that is compared. */
struct aspect {
	const char *name;
	uint64_t (*ns)(const struct slow_peer_sample *s);
	enum finding_severity severity;
};

static uint64_t wire_ns(const struct slow_peer_sample *s)
{
	return s->busy_ns;
}

static uint64_t room_ns(const struct slow_peer_sample *s)
{
	return s->busy_ns + s->held_ns;
}

static const struct aspect wire = { "wire", wire_ns, FINDING_WARNING };
static const struct aspect room = { "room", room_ns, FINDING_INFO };

/* Links of one group, and what is slow among them. */
struct slow_peer_context {
	struct diagnose *dg;
	struct slow_peers *sp;
	const struct aspect *aspect;
	const struct slow_peer_sample *at;
	size_t n;
	bool siblings;		/* links of several communicators, one of each */
	uint64_t now_ns;
	uint64_t window_ns;	/* time since the last look */
	double median;		/* ns for a byte */
};

static size_t make_links(const struct slow_peer_context *s, struct delay_link *links)
{
	for (size_t i = 0; i < s->n; i++)
		links[i] = (struct delay_link){
			.from = s->at[i].row,
			.to = s->at[i].column,
			.channel = s->at[i].who.channel,
			.delay = (double)s->aspect->ns(&s->at[i]) / (double)s->at[i].bytes,
		};
	return s->n;
}

/* ---- what is slow ---------------------------------------------------------- */

static bool hot_has(const struct delay_hot *hot, const struct slow_peer_sample *s)
{
	return (hot->where == DELAY_RECEIVE_SIDE || hot->from == s->row) &&
	       (hot->where == DELAY_SEND_SIDE || hot->to == s->column) &&
	       (hot->where != DELAY_CHANNEL || hot->channel == s->who.channel);
}

/* The link that costs most; *share: the part of the time that it is slower for. */
static const struct slow_peer_sample *hot_worst(const struct slow_peer_context *s,
						const struct delay_hot *hot,
				     double *share)
{
	const struct slow_peer_sample *worst = NULL;

	*share = -1;
	for (size_t i = 0; i < s->n; i++) {
		double ns = (double)s->aspect->ns(&s->at[i]);
		double part = ns * (1 - 1 / hot->ratio) / (double)s->window_ns;

		if (!hot_has(hot, &s->at[i]) || part <= *share)
			continue;
		*share = part;
		worst = &s->at[i];
	}
	return worst;
}

static bool hot_is_beyond(const struct limits *limits, const struct slow_peer_context *s,
			  double ratio, double share)
{
	return share >= limits->share &&
	       ratio >= (s->siblings || s->n < FEW_LINKS ? limits->ratio_of_few : limits->ratio);
}

/* The entry with this key, else an unused one, else the stalest. */
static struct suspect *find_suspect(struct slow_peers *sp, uint64_t key)
{
	struct suspect *stalest = &sp->suspects[0];

	for (size_t i = 0; i < SUSPECTS; i++) {
		if (sp->suspects[i].key == key)
			return &sp->suspects[i];
		if (sp->suspects[i].seen_ns < stalest->seen_ns)
			stalest = &sp->suspects[i];
	}
	return stalest;
}

/* Has it been so in enough looks, one after another?  *since_ns: the start. */
static bool hot_is_confirmed(const struct slow_peer_context *s, uint64_t key, uint64_t *since_ns)
{
	struct suspect *suspect = find_suspect(s->sp, key);
	bool again = suspect->key == key && s->now_ns - suspect->seen_ns <= s->window_ns;

	if (!again)
		*suspect = (struct suspect){ .key = key, .since_ns = s->now_ns - s->window_ns };
	suspect->seen_ns = s->now_ns;
	suspect->times++;
	*since_ns = suspect->since_ns;
	return suspect->times >= CONFIRMED;
}

static uint64_t hot_key(const struct slow_peer_context *s, const struct delay_hot *hot,
			uint64_t comm)
{
	const uint64_t key[] = {
		comm, (uintptr_t)s->aspect, hot->where,
		hot->where == DELAY_RECEIVE_SIDE ? 0 : (uint64_t)hot->from,
		hot->where == DELAY_SEND_SIDE ? 0 : (uint64_t)hot->to,
		hot->channel,
	};

	return index_hash(0, key, sizeof(key)) | 1;
}

static void slow_peer_report(const struct slow_peer_context *s, const struct delay_hot *hot,
			     const struct slow_peer_sample *w, double share, uint64_t key,
			     uint64_t since_ns)
{
	const struct slow_peer told = {
		.hot = hot,
		.who = &w->who,
		.aspect = s->aspect->name,
		.by_room = s->aspect == &room,
		.share = share,
		.rate_gbs = (double)w->bytes / (double)s->aspect->ns(w),
		.median_gbs = 1 / s->median,
		.links = s->n,
		.siblings = s->siblings,
		.window_ns = s->window_ns,
	};
	struct finding f = {
		.kind = FINDING_SLOW_PEER,
		.severity = s->aspect->severity,
		.uid = w->who.uid,
		.has_comm_id = w->who.has_comm_id,
		.comm_id = w->who.comm_id,
		.since_ns = since_ns,
	};

	if (w->who.comm_name)
		snprintf(f.comm_name, sizeof(f.comm_name), "%s", w->who.comm_name);
	slow_peer_describe(&told, &f);
	diagnose_report(s->dg, &finding_slow_peer, key, &f, s->now_ns);
}

/* ---- the detector ---------------------------------------------------------- */

/* Is it that process that is this rank, or any with UNKNOWN_I32, of the communicator? */
static bool who_is_rank(const struct links_who *who, const struct process *p, int32_t rank)
{
	if (!who->has_comm_id)
		return p->id == who->process_id && (rank == who->rank || rank == UNKNOWN_I32);
	return p->uid == who->uid && jobs_comm(p, who->comm_id, rank);
}

/*
 * Does what a thread here was away for explain it?  What a receiver has no room for may be
 * held up by any thread of the communicator; else it is the one at either end.
 */
static bool rank_is_starved(const struct slow_peer_context *s, const struct links_who *who,
			    double share)
{
	const struct diagnose_source *source = diagnose_source(s->dg);
	struct process *const *list;
	size_t n = source->processes(source->arg, &list);

	for (size_t i = 0; i < n; i++) {
		bool any = s->aspect == &room && who_is_rank(who, list[i], UNKNOWN_I32);

		if ((any || who_is_rank(who, list[i], who->rank) ||
		     who_is_rank(who, list[i], who->peer)) &&
		    proxy_starved_share(s->dg, list[i]->id, s->now_ns) >= share / 2)
			return true;
	}
	return false;
}

/* True: it is slow, told or not yet. */
static bool slow_peer_judge(const struct slow_peer_context *s, const struct delay_hot *hot)
{
	const struct slow_peer_sample *worst;
	struct delay_hot named = *hot;
	uint64_t key, since_ns;
	double share;

	worst = hot_worst(s, hot, &share);
	if (!worst || !hot_is_beyond(&go_on, s, hot->ratio, share) ||
	    rank_is_starved(s, &worst->who, share))
		return false;
	named.from = worst->who.rank;
	named.to = worst->who.peer;
	key = hot_key(s, &named, worst->comm);
	if (!hot_is_beyond(&begin, s, hot->ratio, share))
		return diagnose_renew(s->dg, &finding_slow_peer, key, s->now_ns);
	if (hot_is_confirmed(s, key, &since_ns))
		slow_peer_report(s, &named, worst, share, key, since_ns);
	return true;
}

/* Is the receiver on this node?  Its own proxies and its lateness then tell more. */
static bool rank_is_here(const struct slow_peer_context *s, int32_t rank)
{
	const struct diagnose_source *source = diagnose_source(s->dg);
	struct process *const *list;
	size_t n = source->processes(source->arg, &list);

	for (size_t i = 0; i < n; i++)
		if (who_is_rank(&s->at->who, list[i], rank))
			return true;
	return false;
}

static bool is_worth_telling(const struct slow_peer_context *s, const struct delay_hot *hot)
{
	if (s->siblings)	/* its own channels were compared before */
		return hot->where == DELAY_LINK;
	return s->aspect == &wire ||
	       (hot->where != DELAY_SEND_SIDE && hot->where != DELAY_CHANNEL &&
		!rank_is_here(s, hot->to));
}

static int hots_by_delay(const void *a, const void *b)
{
	const struct delay_link *x = a, *y = b;

	return (x->delay > y->delay) - (x->delay < y->delay);
}

/* Returns how many are slow. */
static int look_at_aspect(struct slow_peer_context *s, const struct aspect *aspect)
{
	struct delay_link *links = malloc(s->n * sizeof(*links));
	struct delay_hot hot[HOT_MAX];
	int found = 0, n;

	if (!links)
		return 0;
	s->aspect = aspect;
	n = delay_find(links, make_links(s, links), go_on.ratio, hot, HOT_MAX);
	qsort(links, s->n, sizeof(*links), hots_by_delay);
	s->median = links[(s->n - 1) / 2].delay;
	free(links);
	for (int i = 0; i < n; i++)
		if (is_worth_telling(s, &hot[i]))
			found += slow_peer_judge(s, &hot[i]);
	return found;
}

static void look_at_groups(struct slow_peer_context *s, const struct slow_peer_samples *list)
{
	size_t end;

	for (size_t i = 0; i < list->n; i = end) {
		for (end = i + 1; end < list->n && list->at[end].group == list->at[i].group; end++)
			continue;
		s->at = &list->at[i];
		s->n = end - i;
		diagnose_meanwhile(s->dg);
		if (!look_at_aspect(s, &wire) && !s->siblings)
			look_at_aspect(s, &room);
	}
}

static void look_at_siblings(struct slow_peer_context *s, const struct slow_peer_samples *since)
{
	struct slow_peer_samples siblings;

	slow_peer_samples_siblings(s->dg, since, &siblings, s->now_ns);
	s->siblings = true;
	look_at_groups(s, &siblings);
	list_deinit(&siblings);
}

static void slow_peer_look(struct diagnose *dg, void *state, uint64_t now_ns)
{
	struct slow_peers *sp = state;
	struct slow_peer_context s = { .dg = dg, .sp = sp, .now_ns = now_ns,
				       .window_ns = now_ns - sp->looked_ns };
	struct slow_peer_samples now, since;

	if (!diagnose_source(dg)->links || s.window_ns < LOOK_NS ||
	    !slow_peer_samples_take(dg, &now, now_ns))
		return;
	slow_peer_samples_since(&now, &sp->before, &since);
	if (sp->looked_ns && since.at) {
		look_at_groups(&s, &since);
		look_at_siblings(&s, &since);
	}
	list_deinit(&since);
	list_deinit(&sp->before);
	sp->before = now;
	sp->looked_ns = now_ns;
}

static void slow_peer_deinit(void *state)
{
	struct slow_peers *sp = state;

	list_deinit(&sp->before);
}

const struct detector finding_slow_peer = {
	.name = "slow_peer",
	.state_bytes = sizeof(struct slow_peers),
	.hold_ns = HOLD_NS,
	.deinit = slow_peer_deinit,
	.look = slow_peer_look,
};
