/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans: what lies between two CUDA events.  The stream is held by a gate until a
 * few of them are posted, so that the second event follows the kernel and not the
 * host.  truth.RANK has the process's pid first, then of each span
 *
 *   {"span": its name, "bytes": size}
 *   the truth about its operations, as tests/nccl/world.h has it
 *
 * and, when it is known,
 *
 *   {"event_ns": [time of each of the last spans], "after_mono_ns": no kernel of
 *    theirs began earlier, "before_mono_ns": none ended later}
 */
#include "programs.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "cuda.h"

#define BATCH		8	/* the GPU's stamps of one communicator have 64 places */
#define WARM_UP		2
#define SMALL_BYTES	((size_t)4 << 20)

static atomic_bool gate_open;

static void wait_at_gate(void *unused)
{
	(void)unused;
	while (!atomic_load_explicit(&gate_open, memory_order_acquire))
		sched_yield();
}

struct timer {
	bool real;
	void *from[BATCH], *to[BATCH];
};

static void timer_init(struct timer *t)
{
	t->real = cuda_has_time();
	for (int i = 0; t->real && i < BATCH; i++) {
		CUDA_REQUIRE(cudaEventCreate(&t->from[i]));
		CUDA_REQUIRE(cudaEventCreate(&t->to[i]));
	}
}

static void tell_times(const struct timer *t, FILE *truth, int count, uint64_t after_ns)
{
	uint64_t before_ns = now_ns();

	fprintf(truth, "{\"event_ns\":[");
	for (int i = 0; i < count; i++) {
		float ms;

		if (!t->real) {
			fprintf(truth, "%snull", i ? "," : "");
			continue;
		}
		CUDA_REQUIRE(cudaEventElapsedTime(&ms, t->from[i], t->to[i]));
		fprintf(truth, "%s%.0f", i ? "," : "", (double)ms * 1e6);
	}
	fprintf(truth, "],\"after_mono_ns\":%llu,\"before_mono_ns\":%llu}\n",
		(unsigned long long)after_ns, (unsigned long long)before_ns);
}

static void time_batch(struct world *w, const struct timer *t, const struct operation *op,
		       size_t bytes, int count)
{
	FILE *truth = w->job->truth;
	uint64_t after_ns;

	atomic_store_explicit(&gate_open, false, memory_order_relaxed);
	if (t->real)
		CUDA_REQUIRE(cudaLaunchHostFunc(w->stream[0], wait_at_gate, NULL));
	after_ns = now_ns();
	for (int i = 0; i < count; i++) {
		fprintf(truth, "{\"span\":\"%s\",\"bytes\":%zu}\n", op->name, bytes);
		if (t->real)
			CUDA_REQUIRE(cudaEventRecord(t->from[i], w->stream[0]));
		op->run(w, bytes);
		if (t->real)
			CUDA_REQUIRE(cudaEventRecord(t->to[i], w->stream[0]));
	}
	if (t->real)
		after_ns = now_ns();
	atomic_store_explicit(&gate_open, true, memory_order_release);
	world_wait(w);
	tell_times(t, truth, count, after_ns);
}

int program_times(struct job *job, char **arguments)
{
	size_t most = strtoull(arguments[0], NULL, 0);
	struct world *w = world_new(job, "times", (struct world_options){ .single = false });
	FILE *truth = job->truth;
	struct timer timer;

	timer_init(&timer);
	for (const struct operation *op = operations; op->name; op++) {
		if (op->needs && !cuda_finds(op->needs))
			continue;
		for (size_t bytes = 64; bytes <= most; bytes *= 4) {
			/* Connections are made at first use; nothing is behind a gate then. */
			for (int i = 0; i < WARM_UP; i++) {
				fprintf(truth, "{\"span\":null,\"bytes\":%zu}\n", bytes);
				op->run(w, bytes);
				world_wait(w);
			}
			time_batch(w, &timer, op, bytes, bytes < SMALL_BYTES ? BATCH : 2);
			time_batch(w, &timer, op, bytes, 1);
		}
	}
	world_destroy(w);
	return 0;
}
