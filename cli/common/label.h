/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_COMMON_LABEL_H
#define CLI_COMMON_LABEL_H

/*
 * A communicator's name on the screen: its own, with the end of its id where several have that
 * name ("dp:2fca"), or its id where it has none.
 */

#include <jansson.h>
#include <stdbool.h>

/*
 * Names and whose they are: each the key of an object whose keys are the ids.  A new
 * object, of the communicators that rows (NULL: none) are about.
 */
json_t *label_names(const json_t *rows);

/* Add the row's communicator. */
void label_learn(json_t *names, const json_t *row);

/* Set "comm_label" in each of `rows` (objects, changed in place). */
void label_rows(json_t *rows, const json_t *names);

/* Does a communicator answer to that name, id (with or without 0x) or label? */
bool label_is(const char *wanted, const char *name, const char *id);

/* Does a row's? */
bool label_matches(const char *wanted, const json_t *row);

/* The job of each communicator, by its id, and of each process, by host and pid; a new object. */
json_t *label_jobs(const json_t *ranks);

/* Add that of the row's process, and of its communicator; a job that is no text: it has none. */
void label_learn_job(json_t *jobs, const json_t *row, json_t *job);

/* Set "job" in rows without it, where it is known by their communicator, else their process. */
void label_put_jobs(json_t *rows, const json_t *jobs);

#endif
