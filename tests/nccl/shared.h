/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NCCL_SHARED_H
#define TESTS_NCCL_SHARED_H

/*
 * Members of the structures that NCCL's kernels share with the host, by what the
 * library's debug information says about them (layout.sh).
 */

#include <stdint.h>
#include <string.h>

#include "layout.h"

/* An lvalue of that type. */
#define MEMBER(base, s, member, type) (*(type *)((char *)(base) + AT_##s##_##member))

/* The value of a bit field, which lies within 16 bits. */
#define BITS(base, s, member) \
	shared_bits((const char *)(base) + AT_##s##_##member, BIT_##s##_##member, \
		    WIDTH_##s##_##member)

static inline unsigned int shared_bits(const char *p, unsigned int first, unsigned int width)
{
	uint16_t word;

	memcpy(&word, p, sizeof(word));
	return word >> first & ((1U << width) - 1);
}

#endif
