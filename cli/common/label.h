/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_COMMON_LABEL_H
#define CLI_COMMON_LABEL_H

/*
 * What a communicator is called on the screen: its name, with the end of its id
 * where several have that name ("dp:2fca"), or its id where it has none.
 */

#include <jansson.h>
#include <stdbool.h>

/*
 * Set "comm_label" in each of `rows` (objects, changed in place).  `known` are
 * rows that tell which names are taken by whom; may be `rows` itself.
 */
void label_rows(json_t *rows, const json_t *known);

/* Add the row's communicator to `known`, unless it is there already. */
void label_learn(json_t *known, const json_t *row);

/* Does a row's communicator answer to that name, id (with or without 0x) or label? */
bool label_matches(const char *wanted, const json_t *row);

#endif
