/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_DOCTOR_FOREIGN_H
#define CLI_DOCTOR_FOREIGN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Processes whose plugin writes another format than the daemon reads, as one sentence:
 * who, and what to restart.  `processes` is the answer of /v1/processes.  False: there
 * are none, and `text` is left as it is.
 */
bool foreign_tell(const json_t *processes, char *text, size_t size);

#endif
