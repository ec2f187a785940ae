/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers -> sums of their link. */
#include "ncclinspd/sums/links.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nci/sums.h"
#include "ncclinspd/sums/links_impl.h"

#define LINKS		4096
#define TICKS_SLOP	(UINT64_C(1) << NCI_SPAN_SHIFT)	/* ticks that a coarse span leaves out */

/* ---- making -------------------------------------------------------------- */

int links_new(struct links **lp, const struct links_limits *limits, uint64_t now_ns)
{
	const struct keyed_config config = {
		.capacity = limits && limits->links ? limits->links : LINKS,
		.item_bytes = sizeof(struct link),
		.key_bytes = sizeof(struct link_key),
		.seed = limits ? limits->seed : 0,
	};
	struct links *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	if (list_init(&l->held, LINKS_HELD) < 0 || keyed_init(&l->table, &config)) {
		links_free(l);
		return -ENOMEM;
	}
	l->started_ns = now_ns;
	l->stats.bytes = keyed_bytes(&l->table) + LINKS_HELD * sizeof(*l->held.at);
	*lp = l;
	return 0;
}

void links_free(struct links *l)
{
	if (!l)
		return;
	keyed_deinit(&l->table);
	list_deinit(&l->held);
	free(l);
}

/* ---- adding -------------------------------------------------------------- */

static int32_t known(int32_t value)
{
	return value < 0 ? UNKNOWN_I32 : value;
}

static void set_who(struct links_who *who, const struct transfers *t)
{
	const struct comm *comm = process_comm(t->issuer, t->comm_index);

	*who = (struct links_who){
		.process_id = t->issuer->id,
		.pid = t->issuer->pid,
		.uid = t->issuer->uid,
		.comm_name = t->comm_name,
		.nranks = comm && comm->has_id ? comm->nranks : UNKNOWN_I32,
		.rank = known(t->op->rank),
		.peer = known(t->op->peer),
		.comm_index = t->comm_index,
		.channel = t->op->channel,
		.send = t->op->form & NCI_FORM_SEND,
		.proxy_pid = t->executor->pid,
	};
	/* Profiler API 1 to 3: the communicator does not say, its operations do. */
	if (comm && comm->has_id) {
		who->has_comm_id = true;
		who->comm_id = comm->id;
	} else if (t->parent && t->parent->has_comm_id) {
		who->has_comm_id = true;
		who->comm_id = t->parent->comm_id;
	}
	if (comm && who->rank == UNKNOWN_I32)
		who->rank = comm->rank;
}

static uint64_t to_ns(const struct process *p, uint64_t ticks)
{
	double ns = (double)ticks * p->clock.ns_per_tick;

	return ns < (double)INT64_MAX ? (uint64_t)ns : INT64_MAX;
}

/* They came from a job: whatever is larger than what it is part of is a lie. */
static bool are_possible(const struct nci_ev_proxy_sums *s)
{
	uint64_t active = s->stop - s->start + TICKS_SLOP;

	if (s->stop < s->start || s->covered > active || s->busy > s->covered)
		return false;
	for (int i = 0; i < LINKS_STATES; i++)
		if (s->ticks[i] / s->steps > active || nci_span_ticks(s->longest[i]) > active)
			return false;
	return true;
}

static void add_points(struct fit *fit, const struct process *p,
		       const struct nci_point point[2])
{
	int n = point[0].bytes == point[1].bytes ? 1 : 2;

	for (int i = 0; i < n; i++)
		fit_add(fit, point[i].bytes, to_ns(p, nci_span_ticks(point[i].span)), 1);
}

static void make_sums(struct links_sums *sums, const struct transfers *t, bool times)
{
	const struct nci_ev_proxy_sums *s = t->sums;
	const struct process *p = t->executor;

	*sums = (struct links_sums){
		.ops = 1, .steps = t->op->steps_done, .bytes = t->op->bytes,
	};
	if (!times)
		return;
	sums->timed_steps = s->steps;
	sums->timed_bytes = s->bytes;
	for (int i = 0; i < LINKS_STATES; i++) {
		sums->state_ns[i] = to_ns(p, s->ticks[i]);
		sums->longest_ns[i] = to_ns(p, nci_span_ticks(s->longest[i]));
	}
	sums->active_ns = to_ns(p, nci_sums_later(s->stop - s->start, s->covered));
	sums->held_ns = to_ns(p, s->covered - s->busy);
	sums->busy_ns = to_ns(p, s->busy);
	sums->repeats = s->repeats;
	if (t->op->form & NCI_FORM_SEND)
		add_points(&sums->fit, p, s->point);
}

void links_add_up(struct links_sums *to, const struct links_sums *from)
{
	to->ops += from->ops;
	to->steps += from->steps;
	to->bytes += from->bytes;
	to->timed_steps += from->timed_steps;
	to->timed_bytes += from->timed_bytes;
	to->active_ns += from->active_ns;
	to->held_ns += from->held_ns;
	to->busy_ns += from->busy_ns;
	to->repeats += from->repeats;
	for (int i = 0; i < LINKS_STATES; i++) {
		to->state_ns[i] += from->state_ns[i];
		if (from->longest_ns[i] > to->longest_ns[i])
			to->longest_ns[i] = from->longest_ns[i];
	}
}

void links_merge(struct links_sums *to, const struct links_sums *from)
{
	links_add_up(to, from);
	fit_merge(&to->fit, &from->fit);
}

static struct links_sums *current_slice(struct link *link, uint64_t now_ns)
{
	uint64_t period = now_ns / LINKS_SLICE_NS + 1;
	struct slice *slice = &link->slice[period % LINKS_SLICES];

	if (slice->period < period) {
		memset(slice, 0, sizeof(*slice));
		slice->period = period;
	}
	return &slice->sums;
}

static void take_in(struct links *l, const struct links_entry *e)
{
	bool made;
	struct link *link = keyed_use(&l->table, &e->key, 0, &made);

	if (!link)
		return;
	if (made) {
		link->first_ns = e->now_ns;
		l->stats.links = keyed_count(&l->table);
		l->stats.evicted = l->table.evicted;
	}
	if (!link->who.has_comm_id)
		link->who = e->who;
	links_merge(&link->sums, &e->sums);
	links_merge(current_slice(link, e->now_ns), &e->sums);
}

void links_hold(struct links *l)
{
	l->holding = true;
}

void links_release(struct links *l)
{
	l->holding = false;
	l->released++;
	for (uint32_t i = 0; i < l->held.n; i++)
		take_in(l, &l->held.at[i]);
	l->held.n = 0;
}

void links_add(struct links *l, const struct transfers *t, uint64_t now_ns)
{
	bool times = t->sums && are_possible(t->sums);
	struct links_entry *e = &l->last, *held;

	e->now_ns = now_ns;
	e->key = (struct link_key){
		.issuer = t->issuer->id,
		.executor = t->executor->id,
		.comm_index = t->comm_index,
		.peer = t->op->peer,
		.channel = t->op->channel,
		.send = t->op->form & NCI_FORM_SEND,
	};
	set_who(&e->who, t);
	make_sums(&e->sums, t, times);
	l->stats.added++;
	l->stats.refused += t->sums && !times;
	if (l->held.n == l->held.room)
		links_release(l);
	held = l->holding ? list_add(&l->held) : NULL;
	if (held)
		*held = *e;
	else
		take_in(l, e);
}

const struct links_stats *links_stats(const struct links *l)
{
	return &l->stats;
}
