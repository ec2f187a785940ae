/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FIXTURE_RAS_H
#define TESTS_FIXTURE_RAS_H

/* Answers of NCCL's RAS in its form for programs, as NCCL 2.28.9 writes them. */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "tests/fixture.h"

#define FX_RAS_COMM	UINT64_C(0xcafe)

struct fx_ras_answer {
	char text[1 << 16];
	size_t n;
};

__attribute__((format(printf, 2, 3)))
static inline void fx_ras_add(struct fx_ras_answer *a, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	a->n += (size_t)vsnprintf(a->text + a->n, sizeof(a->text) - a->n, format, ap);
	va_end(ap);
	ck_assert_uint_lt(a->n, sizeof(a->text));
}

static inline void fx_ras_begin(struct fx_ras_answer *a)
{
	a->n = 0;
	fx_ras_add(a, "{\n  \"nccl_version\": \"2.28.9+cuda13.0\",\n"
		   "  \"cuda_runtime_version\": 13000,\n"
		   "  \"communicators_count\": 2,\n  \"communicators\": [\n");
}

static inline void fx_ras_comm(struct fx_ras_answer *a, uint64_t id, int size)
{
	fx_ras_add(a, "    {\n      \"hash\": \"0x%" PRIx64 "\",\n"
		   "      \"secondary_hash\": \"0x1:0x%" PRIx64 "\",\n      \"size\": %d,\n"
		   "      \"ranks_count\": 1,\n      \"missing_ranks_count\": 1,\n"
		   "      \"ranks\": [\n", id, id, size);
}

static inline void fx_ras_rank(struct fx_ras_answer *a, int rank, int pid, uint64_t reduces)
{
	fx_ras_add(a, "        {\n          \"rank\": %d,\n"
		   "          \"host\": \"10.0.0.%d\",\n"
		   "          \"pid\": %d,\n          \"cuda_dev\": 0,\n"
		   "          \"nvml_dev\": 0,\n"
		   "          \"status\": {\n            \"init_state\": 0,\n"
		   "            \"abort_flag\": false\n          },\n"
		   "          \"collective_counts\": {\n            \"Broadcast\": 0,\n"
		   "            \"AllReduce\": %" PRIu64 "\n          }\n        },\n",
		   rank, rank, pid, reduces);
}

static inline void fx_ras_missing(struct fx_ras_answer *a)
{
	fx_ras_add(a, "      ],\n      \"missing_ranks\": [\n");
}

/* No comma behind nvml_dev: so 2.28.9 has it. */
static inline void fx_ras_lost(struct fx_ras_answer *a, int rank, int pid, bool silent, bool dead)
{
	fx_ras_add(a, "        {\n          \"rank\": %d,\n"
		   "          \"host\": \"10.0.0.%d\",\n"
		   "          \"pid\": %d,\n          \"cuda_dev\": 0,\n          \"nvml_dev\": 0\n"
		   "          \"status\": {\n            \"unresponsive\": %s,\n"
		   "            \"considered_dead\": %s\n          }\n        },\n",
		   rank, rank, pid, silent ? "true" : "false", dead ? "true" : "false");
}

static inline void fx_ras_end_comm(struct fx_ras_answer *a)
{
	fx_ras_add(a, "      ]\n    },\n");
}

static inline void fx_ras_end(struct fx_ras_answer *a)
{
	fx_ras_add(a, "  ],\n  \"ras\": {\n    \"collection_time_sec\": 0.001,\n"
		   "    \"timeouts_count\": 0\n  }\n}\n");
}

#endif
