/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OFFLINE_DEATHS_H
#define CLI_OFFLINE_DEATHS_H

/* Processes that died on many nodes: what the nodes found becomes judge/'s rows. */

#include "cli/offline/shots.h"
#include "judge/died.h"

/*
 * Gets the deaths of one cause, the first of them first; `own`: the finding that has them all, or
 * NULL: there are several.
 */
typedef void deaths_found_fn(const struct death *const *deaths, uint32_t n, const json_t *own,
			     void *arg);

/* The operations that wait for that process of the node (hang_say_waiting()); NULL: none. */
typedef const char *deaths_waiting_fn(const struct shots_node *node, int32_t pid, void *arg);

void deaths_find(const struct shots *s, deaths_waiting_fn *waiting, deaths_found_fn *found,
		 void *arg);

/* Does a node tell of that process's death in a finding that deaths_find() has rows of? */
bool deaths_have(const struct shots_node *node, int32_t pid);

/* Is that a node's finding of deaths that deaths_find() has rows of? */
bool deaths_are_of(const json_t *finding);

#endif
