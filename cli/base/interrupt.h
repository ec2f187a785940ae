/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_BASE_INTERRUPT_H
#define CLI_BASE_INTERRUPT_H

#include <stdbool.h>

/*
 * Catches Ctrl-C for commands that write files: it ends what they do, not the file; so does a
 * terminal that goes, and a pipe whose reader has gone.
 */
void interrupt_catch(void);

/* Has one come since? */
bool interrupt_came(void);

#endif
