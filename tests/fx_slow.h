/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FX_SLOW_H
#define TESTS_FX_SLOW_H

/* Four ranks, what their links carry, and the one finding that comes of it. */
#include "tests/fixture_serve.h"

#define STEP_NS	1000000

static inline void setup(void)
{
	fx_serve_open(NULL);
}

/* What one link did in an operation: times in ns for each of its ten steps. */
static inline void transfer_on(struct process *p, uint16_t comm_index, name_t comm, int32_t rank,
			       int32_t peer, uint8_t channel, uint64_t held, uint64_t busy)
{
	const struct nci_ev_proxy_op op = {
		.type = NCI_EV_PROXY_OP, .form = 2 | NCI_FORM_SEND, .rank = rank, .peer = peer,
		.channel = channel, .steps_done = 10, .bytes = 10 << 16,
	};
	const struct nci_ev_proxy_sums sums = {
		.start = 1000, .stop = 1000 + 10 * (held + busy + 20), .steps = 10,
		.bytes = 10 << 16, .busy = 10 * busy, .covered = 10 * (held + busy),
	};
	const struct transfers t = { p, p, comm_index, comm, NULL, &op, &sums, 0 };

	links_add(fx.links, &t, fx.now_ns);
}

static inline void transfer_of(struct process *p, name_t comm, int32_t rank, int32_t peer,
			       uint8_t channel, uint64_t held, uint64_t busy)
{
	transfer_on(p, 0, comm, rank, peer, channel, held, busy);
}

static inline void transfer(int32_t rank, int32_t peer, uint8_t channel, uint64_t held,
			    uint64_t busy)
{
	transfer_of(fx.processes[rank], "dp", rank, peer, channel, held, busy);
}

static inline void start_ranks(void)
{
	for (int32_t rank = 0; rank < 4; rank++)
		fx_process(100 + rank, 0, rank);
}

static inline json_t *only_finding(const char *query)
{
	char target[64];
	json_t *a;

	snprintf(target, sizeof(target), "/v1/findings%s", query);
	a = fx_get(target, 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 1);
	return a;
}

#endif
