/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only like is compared with like: the work of links between two looks, grouped by
 * communicator and size of transfers, or by job where a communicator has one link.
 */
#include "ncclinspd/findings/slow_peer_samples.h"

#include <stdlib.h>
#include <string.h>

#include "ncclinspd/base/jobs.h"
#include "reader/base/pool.h"

#define LEAST_STEPS	20	/* steps of a link, to be compared */

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

static bool take_sample(const struct links_row *row, void *arg)
{
	struct slow_peer_samples *list = arg;
	const struct links_sums *sums = &row->sums;

	struct slow_peer_sample *sample;

	if (!row->who.send || row->who.rank < 0 || row->who.peer < 0 || !sums->timed_steps)
		return true;
	sample = list_add(list);
	if (!sample)
		return true;
	*sample = (struct slow_peer_sample){
		.link = who_link(&row->who),
		.comm = who_comm(&row->who),
		.row = row->who.rank,
		.column = row->who.peer,
		.who = row->who,
		.bytes = sums->timed_bytes,
		.steps = sums->timed_steps,
		.busy_ns = sums->busy_ns,
		.held_ns = sums->held_ns,
	};
	return true;
}

static int samples_by_link(const void *a, const void *b)
{
	const struct slow_peer_sample *x = a, *y = b;

	return (x->link > y->link) - (x->link < y->link);
}

/* Less what it had done before.  False: too little is left to be compared. */
static bool make_difference(struct slow_peer_sample *s, const struct slow_peer_samples *before)
{
	const struct slow_peer_sample *old = NULL;

	if (before->n)
		old = bsearch(s, before->at, before->n, sizeof(*s), samples_by_link);
	if (old && old->steps <= s->steps) {
		s->bytes -= old->bytes;
		s->steps -= old->steps;
		s->busy_ns -= old->busy_ns;
		s->held_ns -= old->held_ns;
	}
	if (s->steps < LEAST_STEPS || !s->bytes || !s->busy_ns)
		return false;
	/* sizes up to the next power of two */
	s->group = index_mix(s->comm, (uint64_t)__builtin_clzll(s->bytes / s->steps | 1));
	return true;
}

static int samples_by_group(const void *a, const void *b)
{
	const struct slow_peer_sample *x = a, *y = b;

	return (x->group > y->group) - (x->group < y->group);
}

static void samples_meanwhile(void *arg)
{
	diagnose_meanwhile(arg);
}

bool slow_peer_samples_take(struct diagnose *dg, struct slow_peer_samples *list, uint64_t now_ns)
{
	const struct links_query query = {
		.windows = 1u << LINKS_ALL,
		.all_users = true,
		.meanwhile = samples_meanwhile,
		.meanwhile_arg = dg,
	};
	struct links *links = diagnose_source(dg)->links;

	if (list_init(list, links_stats(links)->links) < 0 ||
	    links_visit(links, &query, now_ns, take_sample, list) < 0) {
		list_deinit(list);
		return false;
	}
	list_sort(list, samples_by_link);
	return true;
}

void slow_peer_samples_since(const struct slow_peer_samples *now,
			     const struct slow_peer_samples *before,
			     struct slow_peer_samples *out)
{
	if (list_init(out, now->n) < 0)
		return;
	for (size_t i = 0; i < now->n; i++) {
		struct slow_peer_sample sample = now->at[i];

		if (make_difference(&sample, before))
			*list_must_add(out) = sample;
	}
	list_sort(out, samples_by_group);
}

/* ---- links that are alone in their communicator ------------------------------------ */

static uint32_t end_of_group(const struct slow_peer_samples *list, uint32_t first)
{
	uint32_t end = first + 1;

	while (end < list->n && list->at[end].group == list->at[first].group)
		end++;
	return end;
}

/* All of them, channel by channel, are of one link. */
static bool is_one_link(const struct slow_peer_sample *s, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (s[i].row != s[0].row || s[i].column != s[0].column)
			return false;
	return s->who.has_comm_id;
}

/* The processes that are there, and which of them are one job's. */
struct samples_crowd {
	struct process *const *list;
	size_t n;
	uint32_t *job;
};

static uint32_t crowd_job(const struct samples_crowd *c, uint64_t process_id)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->list[i]->id == process_id)
			return c->job[i];
	return UINT32_MAX;
}

/* Links of one job, one name and number of ranks, and one size of transfers are a family. */
static uint64_t family_of(const struct samples_crowd *c, const struct slow_peer_sample *s)
{
	const uint64_t key[] = {
		crowd_job(c, s->who.process_id), (uintptr_t)s->who.comm_name,
		(uint64_t)s->who.nranks, (uint64_t)__builtin_clzll(s->bytes / s->steps | 1),
	};

	return index_hash(0, key, sizeof(key));
}

static void samples_collect(const struct samples_crowd *c, const struct slow_peer_samples *since,
			    struct slow_peer_samples *out)
{
	uint32_t end;

	for (uint32_t i = 0; i < since->n; i = end) {
		end = end_of_group(since, i);
		if (!is_one_link(&since->at[i], end - i))
			continue;
		for (uint32_t k = i; k < end; k++) {
			struct slow_peer_sample *s = list_must_add(out);

			*s = since->at[k];
			s->group = family_of(c, s);
			s->row = s->column = (int32_t)i;	/* its communicator's own */
		}
	}
}

/* Links of one communicator have nobody to be compared with. */
static void keep_families(struct slow_peer_samples *list)
{
	uint32_t kept = 0, end;

	for (uint32_t i = 0; i < list->n; i = end) {
		end = end_of_group(list, i);
		if (is_one_link(&list->at[i], end - i))
			continue;
		memmove(&list->at[kept], &list->at[i], (end - i) * sizeof(*list->at));
		kept += end - i;
	}
	list->n = kept;
}

void slow_peer_samples_siblings(struct diagnose *dg, const struct slow_peer_samples *since,
				struct slow_peer_samples *out, uint64_t now_ns)
{
	const struct diagnose_source *source = diagnose_source(dg);
	struct samples_crowd c;

	c.n = source->processes(source->arg, &c.list);
	c.job = malloc((c.n + 1) * sizeof(*c.job));
	if (list_init(out, since->n) == 0 && c.job && jobs_group(c.list, c.n, now_ns, c.job) == 0) {
		samples_collect(&c, since, out);
		list_sort(out, samples_by_group);
		keep_families(out);
	}
	free(c.job);
}
