/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OFFLINE_SLOW_PEERS_H
#define CLI_OFFLINE_SLOW_PEERS_H

/*
 * Slow links between many nodes: the links of their snapshots become judge/'s rows, in
 * communicators whose links are from several nodes.  Within one, the node has compared them
 * itself.
 */

#include "cli/offline/shots.h"
#include "judge/slow_peer.h"

/* The links in one window of time. */
struct slow_window {
	struct slow_links links;	/* one per link, or in groups */
	uint64_t window_ns;
};

struct slow_peers {
	struct shots *shots;
	struct slow_window all, lately;	/* all the time; the last minute */
};

/* Takes the links of one more node, or of a newer file of it. */
void slow_peers_take(struct slow_peers *sp, const struct shots_node *node, bool is_first);
void slow_peers_deinit(struct slow_peers *sp);

/* `lasts`: it was slow before the last minute as well. */
typedef void slow_peers_found_fn(const struct slow_peer *p, bool lasts, void *arg);

void slow_peers_find(struct slow_peers *sp, slow_peers_found_fn *found, void *arg);

#endif
