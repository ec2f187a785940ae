/* SPDX-License-Identifier: Apache-2.0 */
/* Several clocks may tell how long an operation took; the most trusted that knows decides. */
#include "reader/time/timeline.h"

#include "reader/time/gpus.h"

#define SHORT_NS	1000000	/* the clock drifts by less than its stamps step */

uint64_t timeline_span(const struct tick_clock *clock, uint64_t from, uint64_t to)
{
	if (to < from)
		return UNKNOWN_U64;
	return (uint64_t)((double)(to - from) * clock->ns_per_tick + 0.5);
}

static uint64_t span_between(const struct tick_clock *clock, uint64_t from, uint64_t to)
{
	return from && to ? timeline_span(clock, from, to) : UNKNOWN_U64;
}

static uint64_t exec_kernel_gpu(const struct op *op)
{
	if (op->end_unstamped || !timeline_stamps_sane(op->gpu_start_ns, op->gpu_stop_ns))
		return UNKNOWN_U64;
	return op->gpu_stop_ns - op->gpu_start_ns;
}

/*
 * Only for an API without stamps: where stamps were given and are wrong, NCCL's
 * counters have drifted, and what the host saw is about another operation.
 */
static uint64_t exec_kernel_cpu(const struct tick_clock *clock, const struct op *op)
{
	if (op->stamps_refused || op->end_unstamped)
		return UNKNOWN_U64;
	return span_between(clock, op->kernel_start_ticks, op->kernel_stop_ticks);
}

/* Sources in the order of trust: the first that knows decides. */
static enum timing_source exec_source(const struct tick_clock *clock, const struct op *op,
				      uint64_t *exec_ns)
{
	*exec_ns = UNKNOWN_U64;
	if (op->is_ce)
		return TIMING_ENQUEUE_CPU;
	if (!op->complete)
		return TIMING_NONE;
	*exec_ns = exec_kernel_gpu(op);
	if (*exec_ns != UNKNOWN_U64)
		return TIMING_KERNEL_GPU;
	*exec_ns = exec_kernel_cpu(clock, op);
	if (*exec_ns != UNKNOWN_U64)
		return TIMING_KERNEL_CPU;
	*exec_ns = span_between(clock, op->proxy_start_ticks, op->proxy_stop_ticks);
	return *exec_ns != UNKNOWN_U64 ? TIMING_PROXY_CPU : TIMING_NONE;
}

static uint64_t queue_ns(const struct tick_clock *clock, const struct op *op, uint64_t posted)
{
	uint64_t watched = span_between(clock, op->kernel_start_ticks, op->kernel_stop_ticks);

	if (op->source != TIMING_KERNEL_GPU || watched == UNKNOWN_U64)
		return UNKNOWN_U64;
	if ((double)watched < 0.9 * (double)op->exec_ns)
		return UNKNOWN_U64;
	return span_between(clock, posted, op->kernel_start_ticks);
}

/* A moment of the GPU's, and at least how much earlier it can have been. */
static uint64_t place_gpu(const struct gpu *gpu, const struct tick_clock *clock,
			  uint64_t gpu_ns, uint64_t *error_ns)
{
	uint64_t ns, earlier;

	if (!gpus_map(gpu, clock, gpu_ns, &ns, &earlier))
		return 0;
	if (earlier > *error_ns)
		*error_ns = earlier;
	return ns;
}

static void place_on_gpu(const struct gpu *gpu, const struct tick_clock *clock,
			 struct op *op)
{
	uint64_t error_ns = 0;

	op->gpu_start_mono_ns = op->gpu_stop_mono_ns = 0;
	op->gpu_clock_error_ns = UNKNOWN_U64;
	if (!gpu || op->source != TIMING_KERNEL_GPU)
		return;
	op->exec_error_ns = gpuclock_span_error(gpu->clock, op->exec_ns);
	op->gpu_stop_mono_ns = place_gpu(gpu, clock, op->gpu_stop_ns, &error_ns);
	if (!op->gpu_stop_mono_ns)
		return;
	/* no other bracket than that of the stop, as far as the clock may drift meanwhile */
	op->gpu_start_mono_ns = op->gpu_stop_mono_ns - op->exec_ns;
	op->gpu_clock_error_ns = error_ns;
	if (op->exec_ns >= SHORT_NS || op->exec_error_ns == UNKNOWN_U64) {
		op->gpu_start_mono_ns = place_gpu(gpu, clock, op->gpu_start_ns, &error_ns);
		op->gpu_clock_error_ns = op->gpu_start_mono_ns ? error_ns : UNKNOWN_U64;
	} else if (error_ns != UNKNOWN_U64) {
		op->gpu_start_mono_ns += op->exec_error_ns;
		op->gpu_clock_error_ns += 2 * op->exec_error_ns;
	}
}

/* Its first look after the GPU began, against the latest moment of that beginning. */
static uint64_t unseen_ns(const struct tick_clock *clock, const struct op *op)
{
	uint64_t seen_ns = timeline_mono(clock, op->kernel_start_ticks);

	if (!seen_ns || !op->gpu_start_mono_ns)
		return UNKNOWN_U64;
	return seen_ns > op->gpu_start_mono_ns ? seen_ns - op->gpu_start_mono_ns : 0;
}

static uint64_t started_ns(const struct tick_clock *clock, const struct op *op)
{
	if (op->gpu_start_mono_ns)
		return op->gpu_start_mono_ns;
	return timeline_mono(clock, op->source == TIMING_PROXY_CPU ? op->proxy_start_ticks :
								     op->kernel_start_ticks);
}

void timeline_place(const struct tick_clock *clock, const struct gpu *gpu, struct op *op)
{
	uint64_t posted = op->api_start_ticks ? op->api_start_ticks : op->start_ticks;

	op->enqueued_ns = timeline_mono(clock, posted);
	op->enqueue_ns = span_between(clock, op->start_ticks, op->stop_ticks);
	op->source = exec_source(clock, op, &op->exec_ns);
	op->exec_error_ns = UNKNOWN_U64;
	op->sampled = op->exec_ns != UNKNOWN_U64;
	op->queue_ns = queue_ns(clock, op, posted);
	place_on_gpu(gpu, clock, op);
	op->started_ns = started_ns(clock, op);
	op->unseen_ns = unseen_ns(clock, op);
}

const char *timeline_source_text(enum timing_source source)
{
	static const char *const text[TIMING_END] = {
#define X(NAME, string) [TIMING_##NAME] = string,
		TIMING_SOURCES(X)
#undef X
	};

	return source < TIMING_END ? text[source] : NULL;
}
