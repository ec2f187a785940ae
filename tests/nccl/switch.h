/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NCCL_SWITCH_H
#define TESTS_NCCL_SWITCH_H

/* Programs of a few seconds, for processes of one rank each; see switch.c. */

#include "world.h"

/* One thread, groups of all forms. */
void switch_bursts(struct job *job);

/* A second thread that sends as well, or that has collectives only. */
void switch_senders(struct job *job);
void switch_beside(struct job *job);

/* Another level every tenth of a second, in each process another one. */
void switch_levels(struct job *job);

#endif
