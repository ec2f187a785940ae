/* SPDX-License-Identifier: (Apache-2.0 OR GPL-2.0) */
#ifndef PROBE_KERNEL_TYPES_H
#define PROBE_KERNEL_TYPES_H

/* The types of <stdint.h>, which a program for the kernel has no C library for. */

#include <linux/types.h>

typedef __u8 uint8_t;
typedef __u16 uint16_t;
typedef __u32 uint32_t;
typedef __s32 int32_t;
typedef __u64 uint64_t;

#endif
