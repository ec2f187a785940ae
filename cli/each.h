/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_EACH_H
#define CLI_EACH_H

#include "cli/offline/hosts.h"

/*
 * Run this very command for each of the hosts alone, some at a time, and print what each says
 * behind its name, in their order.  The largest of their exit codes.
 */
int each_run(char **argv, int argc, const struct hosts *hosts);

#endif
