/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_SCHEDULE_H
#define TESTS_SIM_SCHEDULE_H

/*
 * The rounds of Send and Recv: in each a rank sends to one other and receives from
 * one, and the two are one piece of work.  Pure.
 */

#include "tests/sim/scenario.h"

/* The round in which one rank of a communicator sends to another. */
int schedule_round(const struct scenario *scn, const struct sim_comm *comm, int from, int to);

/* How many channels Send and Recv have, given those of the communicator. */
int schedule_channels(int channels);

/* The first channel of a round's operations. */
int schedule_first(int round, int channels);

#endif
