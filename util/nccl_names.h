/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UTIL_NCCL_NAMES_H
#define UTIL_NCCL_NAMES_H

/* NCCL's names of its events and states.  The same text is always the same pointer. */

#include <stdint.h>

/* "Coll" for NCI_EV_COLL; NULL: no event of NCCL's. */
const char *nccl_event_name(uint32_t event);

/* "SendGPUWait" for 8; NULL: there is no such state. */
const char *nccl_state_name(uint32_t state);

#endif
