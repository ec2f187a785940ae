/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FIXTURE_SIM_H
#define TESTS_FIXTURE_SIM_H

/* Scenarios given as text, played to the probe. */

#include "tests/sim/scenario.h"

#define FX_TWO_NODES "nodes 2\npace none\ncomm w ranks 0,1 channels 1\n"
#define FX_ONE_NODE "gpus 2\nthreads process\npace none\ncomm w ranks 0,1 channels 2\n"

/* For scenario_free(); a scenario that is not understood fails the test. */
struct scenario *fx_scenario(const char *text);

/*
 * Play process 0 to the probe's table of this version, without waiting unless the
 * scenario has a pace above that of the clock; the result of player_run().
 */
int fx_play_version(const char *text, int version);

/* Play it to its end in the newest version, to a probe that asks for `mask`. */
void fx_play(const char *text, int mask);

#endif
