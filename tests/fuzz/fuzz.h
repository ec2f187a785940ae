/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What every fuzz_<input>.c defines, and libFuzzer or driver.c calls. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of targets whose inputs have a form; returns the new size. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed);

/* libFuzzer's, or driver.c's: bytes here and there. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max);

/*
 * True at first and at every 64th run: then what costs more to make than to run is made anew.
 * What was found between may need the inputs before it.
 */
static inline bool fuzz_begins_anew(void)
{
	static unsigned runs;

	return runs++ % 64 == 0;
}

/* What must hold whatever the input: else say what did not, and end. */
#define demand(held) ((held) ? (void)0 : demand_failed(#held, __FILE__, __LINE__))

_Noreturn static inline void demand_failed(const char *what, const char *file, int line)
{
	dprintf(STDERR_FILENO, "%s:%d: not so: %s\n", file, line, what);
	abort();
}

#endif
