/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OFFLINE_DEATHS_H
#define CLI_OFFLINE_DEATHS_H

/* Processes that died on many nodes: what the nodes found becomes judge/'s rows. */

#include "cli/offline/shots.h"
#include "judge/died.h"

/* Gets the deaths of one cause, the first of them first. */
typedef void deaths_found_fn(const struct death *const *deaths, uint32_t n, void *arg);

void deaths_find(const struct shots *s, deaths_found_fn *found, void *arg);

/* Is that a node's finding of deaths that deaths_find() has rows of? */
bool deaths_are_of(const json_t *finding);

#endif
