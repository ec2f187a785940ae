/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node compares the links that send from it, often one of each communicator; from all nodes'
 * files a communicator's links can be compared with each other.  A file has what they did in its
 * last minute, and in all: what is slow in the former may be a hiccup, unless it was so before.
 */
#include "cli/offline/slow_peers.h"

#include <string.h>

#include "cli/base/must.h"
#include "reader/base/pool.h"

/* ---- rows ---------------------------------------------------------------------------- */

static uint64_t link_key(const struct slow_link *l, int32_t proxy_pid)
{
	const uint64_t key[] = {
		l->comm, (uintptr_t)l->host, (uint64_t)l->rank, (uint64_t)l->peer, l->channel,
		(uint64_t)proxy_pid,
	};

	return index_hash(0, key, sizeof(key));
}

/* The bytes of the transfers whose times are known: each is as large as another. */
static uint64_t row_timed_bytes(const struct peer_read *row)
{
	if (row->bytes == UNKNOWN_U64 || !row->steps || row->timed_steps > row->steps ||
	    row->steps == UNKNOWN_U64)
		return 0;
	return row->timed_steps == row->steps ? row->bytes : (uint64_t)((double)row->bytes *
		(double)row->timed_steps / (double)row->steps);
}

static uint64_t known(uint64_t number)
{
	return number == UNKNOWN_U64 ? 0 : number;
}

static void window_add(struct shots *s, struct slow_window *w, const char *host,
		       const struct peer_read *row)
{
	uint64_t window_ns = known(row->window_ns);
	struct slow_link link = {
		.nranks = row->nranks, .rank = row->rank, .peer = row->peer,
		.channel = (uint32_t)row->channel, .host = host,
		.steps = known(row->timed_steps), .bytes = row_timed_bytes(row),
		.busy_ns = known(row->busy_ns), .held_ns = known(row->held_ns),
		.has_comm_id = true, .comm_id = row->comm_id, .comm_name = row->comm_name,
		.row = row->rank, .column = row->peer,
	};

	if (!row->direction || strcmp(row->direction, "send") || row->comm_id == UNKNOWN_U64 ||
	    link.rank < 0 || link.peer < 0 || !link.bytes)
		return;
	link.comm = (uintptr_t)shots_comm_add(s, row->comm_id, row->nranks);
	link.link = link_key(&link, row->proxy_pid);
	*(struct slow_link *)must(list_append(&w->links)) = link;
	w->window_ns = window_ns > w->window_ns ? window_ns : w->window_ns;
}

static void window_drop(struct slow_window *w, const char *host)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < w->links.n; i++)
		if (w->links.at[i].host != host)
			w->links.at[kept++] = w->links.at[i];
	w->links.n = kept;
}

void slow_peers_take(struct slow_peers *sp, const struct shots_node *node, bool is_first)
{
	if (!is_first) {
		window_drop(&sp->all, node->host);
		window_drop(&sp->lately, node->host);
	}
	list_each(row, &node->rows.peers) {
		window_add(sp->shots, row->window && !strcmp(row->window, "all") ?
				      &sp->all : &sp->lately, node->host, row);
	}
}

void slow_peers_deinit(struct slow_peers *sp)
{
	list_deinit(&sp->all.links);
	list_deinit(&sp->lately.links);
}

/* The work that is in `now` and not in `before`, which becomes sorted by link; in groups. */
static struct slow_window window_since(struct slow_window *now, struct slow_window *before)
{
	struct slow_window since = { .window_ns = now->window_ns - before->window_ns };

	list_sort(&now->links, slow_links_by_link);
	list_sort(&before->links, slow_links_by_link);
	slow_links_since(&now->links, &before->links, &since.links);
	must(since.links.at);
	return since;
}

static struct slow_window window_copy(const struct slow_window *w)
{
	struct slow_window copy = { .window_ns = w->window_ns };

	must(list_init(&copy.links, w->links.n) ? NULL : &copy);
	for (uint32_t i = 0; i < w->links.n; i++)
		*list_must_add(&copy.links) = w->links.at[i];
	return copy;
}

/* ---- judgement ------------------------------------------------------------------------- */

static bool links_are_of_several_hosts(const struct slow_link *links, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (strcmp(links[i].host, links[0].host))
			return true;
	return false;
}

static int group_find(const struct slow_window *w, uint32_t first, uint32_t end,
		      struct slow_peer slow[SLOW_PEERS])
{
	return slow_peer_find(&w->links.at[first], end - first, SLOW_PEER_WIRE, false,
			      w->window_ns, slow);
}

static bool slow_peers_are_one(const struct slow_peer *a, const struct slow_peer *b)
{
	return a->hot.where == b->hot.where && a->hot.channel == b->hot.channel &&
	       (a->hot.where == DELAY_RECEIVE_SIDE || a->hot.from == b->hot.from) &&
	       (a->hot.where == DELAY_SEND_SIDE || a->hot.to == b->hot.to);
}

static bool window_has(const struct slow_window *w, const struct slow_peer *p)
{
	struct slow_peer slow[SLOW_PEERS];
	uint32_t end;

	for (uint32_t i = 0; w->window_ns && i < w->links.n; i = end) {
		int n;

		end = slow_links_group_end(&w->links, i);
		if (w->links.at[i].comm != p->worst->comm)
			continue;
		n = group_find(w, i, end, slow);
		for (int k = 0; k < n; k++)
			if (slow_peers_are_one(&slow[k], p))
				return true;
	}
	return false;
}

/* Slow links of all groups; each once, with the transfers of the size that cost most. */
struct slow_list {
	LIST(struct slow_peer);
};

static void slow_list_take(struct slow_list *list, const struct slow_peer *p)
{
	list_each(other, list) {
		if (other->worst->comm != p->worst->comm || !slow_peers_are_one(other, p))
			continue;
		if (p->share > other->share)
			*other = *p;
		return;
	}
	*(struct slow_peer *)must(list_append(list)) = *p;
}

static void window_judge(const struct slow_window *lately, struct slow_list *list)
{
	struct slow_peer slow[SLOW_PEERS];
	uint32_t end;

	for (uint32_t i = 0; lately->window_ns && i < lately->links.n; i = end) {
		int n;

		end = slow_links_group_end(&lately->links, i);
		if (!links_are_of_several_hosts(&lately->links.at[i], end - i))
			continue;
		n = group_find(lately, i, end, slow);
		for (int k = 0; k < n; k++)
			if (slow[k].begins)
				slow_list_take(list, &slow[k]);
	}
}

/* Most often there are none, and links by the million: these lie there once. */
void slow_peers_find(struct slow_peers *sp, slow_peers_found_fn *found, void *arg)
{
	struct slow_list list = { .n = 0 };
	struct slow_window lately, before = { .window_ns = 0 };

	slow_links_group(&sp->lately.links);
	window_judge(&sp->lately, &list);
	if (list.n) {
		lately = window_copy(&sp->lately);
		before = window_since(&sp->all, &lately);
		list_deinit(&lately.links);
	}
	for (uint32_t i = 0; i < list.n; i++)
		found(&list.at[i], window_has(&before, &list.at[i]), arg);
	list_deinit(&list);
	list_deinit(&before.links);
}
