/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_SIM_COMPETE_H
#define TESTS_SIM_COMPETE_H

#include <time.h>

/*
 * Want a CPU all the time until then (CLOCK_MONOTONIC), and get one for little of it: the
 * calling thread keeps to one CPU, and others that are as busy come and keep to it too.
 */
void compete_until(const struct timespec *deadline);

#endif
