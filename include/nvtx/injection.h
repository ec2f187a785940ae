/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NVTX_INJECTION_H
#define NVTX_INJECTION_H

/*
 * The part of NVTX 3's injection interface that ranges of threads need, in our own words.
 * What it is was learnt from NVIDIA's headers (https://github.com/NVIDIA/NVTX:
 * nvToolsExt.h, nvtxDetail/nvtxTypes.h).  Each library of a process that uses NVTX loads
 * $NVTX_INJECTION64_PATH when it first calls it, and asks InitializeInjectionNvtx2() in it
 * to fill in its own tables of functions.  Numbers and layouts are for ever.
 */

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

#define NVTX_TABLE_CALLBACKS	1	/* of nvtx_export_fn: struct nvtx_callbacks */

#define NVTX_MODULE_CORE	1	/* functions of the domain without a name */
#define NVTX_CORE_PUSH_EX	8
#define NVTX_CORE_PUSH_A	9
#define NVTX_CORE_PUSH_W	10
#define NVTX_CORE_POP		11
#define NVTX_CORE_END		16

#define NVTX_MODULE_CORE2	5	/* functions of a domain that is passed; NULL: the same */
#define NVTX_CORE2_PUSH_EX	4
#define NVTX_CORE2_POP		5
#define NVTX_CORE2_STRING_A	10
#define NVTX_CORE2_STRING_W	11
#define NVTX_CORE2_DOMAIN_A	12
#define NVTX_CORE2_DOMAIN_W	13
#define NVTX_CORE2_DESTROY	14
#define NVTX_CORE2_END		16

#define NVTX_MESSAGE_ASCII	1
#define NVTX_MESSAGE_WIDE	2
#define NVTX_MESSAGE_STRING	3	/* a value that NVTX_CORE2_STRING_* returned */

#define NVTX_UNTRACKED		(-2)	/* returned by push and pop: no depth is told */

typedef void nvtx_fn(void);
typedef const void *nvtx_export_fn(uint32_t table);

struct nvtx_callbacks {
	size_t bytes;
	/* 0: there is no such module.  An entry says where the function's address is kept. */
	int (*functions)(int32_t module, nvtx_fn ****table, unsigned int *entries);
};

struct nvtx_event {
	uint16_t version, bytes;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type;
	union {
		const char *ascii;
		const wchar_t *wide;
		const void *string;
	} message;
};
_Static_assert(offsetof(struct nvtx_event, message) == 40, "NVTX: the message moved");

#endif
