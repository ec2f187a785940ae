/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BASE_INTERRUPT_H
#define CLI_BASE_INTERRUPT_H

#include <stdbool.h>

/*
 * For commands that write files: Ctrl-C ends what they do, not the file; so does a terminal
 * that goes, and who reads a pipe no more.
 */
void interrupt_catch(void);

/* Has one come since? */
bool interrupt_came(void);

#endif
