/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OFFLINE_FLIGHT_H
#define CLI_OFFLINE_FLIGHT_H

/*
 * Dumps of PyTorch's Flight Recorder, beside snapshots: the calls of each rank, with their lines of
 * Python.  They are evidence of verdicts that were made without them.
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/offline/shots.h"

struct flight;

/*
 * The dumps of a directory, or with the first part of their paths, as TORCH_FR_DUMP_TEMP_FILE has
 * it.  Files that are refused are told on stderr; NULL, also told: nothing can be read.
 */
struct flight *flight_open(const char *path);
/* Says on stderr that no line was shown, if none was.  NULL: there are no dumps. */
void flight_say_unused(const struct flight *f);

/* A set without files: dumps are taken one by one.  `path` names all, and stays the caller's. */
struct flight *flight_new(const char *path);
void flight_free(struct flight *f);

/* A dump as bytes, of that global rank, ranks in their order; false: it is none, *why tells. */
bool flight_take(struct flight *f, int32_t rank, const char *bytes, size_t n, const char **why);

/*
 * Adds to the array of lines what dumps tell of the ranks of `comm`: which have not called what
 * the others wait in, and where all of them called.  Ranks of `named` are told of also where
 * they have no dump.
 */
void flight_tell(struct flight *f, const struct shots_comm *comm, const int32_t *named, size_t n,
		 json_t *lines);

#endif
