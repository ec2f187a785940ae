/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signals that end a command which writes files: they set a flag, so that the command can
 * finish its file.
 */
#include "cli/base/interrupt.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t interrupted;

static void interrupt_on_signal(int number)
{
	interrupted = 1;
}

void interrupt_catch(void)
{
	static const int ends[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction action = { .sa_handler = interrupt_on_signal };
	struct sigaction before;

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (!sigaction(ends[i], NULL, &before) && before.sa_handler != SIG_IGN)
			sigaction(ends[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN);
}

bool interrupt_came(void)
{
	return interrupted;
}
