/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OFFLINE_HANGS_H
#define CLI_OFFLINE_HANGS_H

/* Hangs in the snapshots of many nodes: their rows become judge/'s. */

#include "cli/offline/shots.h"
#include "judge/hang.h"

/* `suspected`: it is not old enough to be found, and some node sees that nothing of it moves. */
typedef void hangs_found_fn(const struct hang_case *c, bool suspected, void *arg);

/* Drops what cannot hang: parts in flight where nothing is old, calls of ranks that go on. */
void hangs_trim(struct snapshot_read *rows);

/* The owner of a rank (struct hang_rank) is a struct shots_rank.  `s` is settled. */
void hangs_find(struct shots *s, hangs_found_fn *found, void *arg);

#endif
