/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_BASE_PROCESS_H
#define READER_BASE_PROCESS_H

/* Words for the state of a process; NULL: not known.  Equal texts are one pointer. */

#include "reader/base/model.h"

extern const char *const process_levels[NCI_LEVELS];	/* "off" and so on */

const char *process_level(const struct process *p);
const char *process_state_text(const struct process *p);	/* "live", "exited" or "died" */

/* The state of one of its communicators: that of the process, or "finalized". */
const char *process_comm_state(const struct process *p, const struct comm *comm);

/* The pairs of GPU stamps that were refused. */
uint64_t process_stamps_refused(const struct process *p);

/* Communicators that are not finalized. */
uint32_t process_comms_open(const struct process *p);

/* Writes a GPU's uuid as the driver does. */
#define PROCESS_UUID_BYTES 48
void process_uuid_text(const uint8_t uuid[16], char text[PROCESS_UUID_BYTES]);

#endif
