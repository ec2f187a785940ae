/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_RECORDING_DESCR_H
#define TESTS_SIM_RECORDING_DESCR_H

/* What recorded names and fields stand for in the newest interface. */

#include <jansson.h>
#include <stdbool.h>

#include "nccl/profiler.h"

struct recording_names;

/* Equal names get one pointer; NULL if it is no string. */
const char *recording_name(struct recording_names *names, const json_t *obj, const char *key);

/* Type and union from an event's line; false, and nothing set: its type is not known. */
bool recording_descr(struct recording_names *names, const json_t *line,
		     struct nccl_descr_v7 *to);

/* The state of this name, which may be NULL; -1: not known. */
int recording_state(const char *name);

#endif
