/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_PATCHED_H
#define TESTS_FUZZ_PATCHED_H

/*
 * A sound segment with some of its bytes overwritten, as the input says: 4 bytes that cut the
 * file short once it is open (0: not), then patches of 12 bytes: where, and the 8 bytes to put
 * there.  The first half of them is there from the beginning.
 */

#include <stddef.h>
#include <stdint.h>

struct patched {
	int dirfd;
	const char *name;
	const uint8_t *patches;
	size_t n, half;
	uint32_t cut;
};

/* The file as it is found; then the other patches, and the cut; then all is undone. */
void patched_open(struct patched *file, const uint8_t *data, size_t size);
void patched_go_on(const struct patched *file);
void patched_close(const struct patched *file);

/* Puts 8 bytes in the file until patched_close(). */
void patched_put(size_t at, uint64_t bytes);

#endif
