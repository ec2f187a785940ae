/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of a GPU, divided: some kernel computes, only NCCL's run (exposed communication), or
 * none does.  On the GPU a step begins with the first kernel that the host launched in it, so
 * that steps follow each other without gaps, and their times add up.
 */
#include <stdlib.h>

#include "cli/base/member.h"
#include "cli/base/must.h"
#include "cli/kernels/kernels.h"

struct kernels_span {
	int64_t start_ns, stop_ns;
};

/* Invariant: in order, disjoint. */
struct kernels_spans {
	LIST(struct kernels_span) list;
};

/* ---- sets of time ------------------------------------------------------------------------- */

/* They come by their start. */
static void spans_add(struct kernels_spans *s, int64_t start_ns, int64_t stop_ns)
{
	struct kernels_span *last = s->list.n ? &s->list.at[s->list.n - 1] : NULL;

	if (stop_ns <= start_ns)
		return;
	if (last && start_ns <= last->stop_ns)
		last->stop_ns = stop_ns > last->stop_ns ? stop_ns : last->stop_ns;
	else
		*(struct kernels_span *)must(list_append(&s->list)) =
			(struct kernels_span){ start_ns, stop_ns };
}

/* The rest of them that is in none of `less`. */
static struct kernels_spans spans_without(const struct kernels_spans *s,
					  const struct kernels_spans *less)
{
	struct kernels_spans rest = { .list.n = 0 };
	uint32_t k = 0;

	for (uint32_t i = 0; i < s->list.n; i++) {
		int64_t at_ns = s->list.at[i].start_ns, end_ns = s->list.at[i].stop_ns;

		while (k < less->list.n && less->list.at[k].stop_ns <= at_ns)
			k++;
		for (uint32_t m = k; m < less->list.n && less->list.at[m].start_ns < end_ns; m++) {
			spans_add(&rest, at_ns, less->list.at[m].start_ns);
			at_ns = less->list.at[m].stop_ns;
		}
		spans_add(&rest, at_ns, end_ns);
	}
	return rest;
}

/* The part of them from `from_ns` to `to_ns`. */
static uint64_t spans_time(const struct kernels_spans *s, int64_t from_ns, int64_t to_ns)
{
	uint64_t ns = 0;

	for (uint32_t i = 0; i < s->list.n && s->list.at[i].start_ns < to_ns; i++) {
		int64_t start_ns = s->list.at[i].start_ns, stop_ns = s->list.at[i].stop_ns;

		start_ns = start_ns > from_ns ? start_ns : from_ns;
		stop_ns = stop_ns < to_ns ? stop_ns : to_ns;
		ns += stop_ns > start_ns ? (uint64_t)(stop_ns - start_ns) : 0;
	}
	return ns;
}

/* ---- one GPU ------------------------------------------------------------------------------ */

struct device_sums {
	const struct kernels *k;
	int32_t device;
	int64_t first_ns, last_ns;	/* begin and end of its kernels */
	struct kernels_spans compute, comm, exposed, waits;
	const struct kernels_unit *unit;	/* one of its operations; NULL: not joined */
	bool waits_known;
	json_t *rows;
};

static void sums_take(struct device_sums *s, const struct gpu_kernel *kernel)
{
	const struct kernels_unit *unit = kernel_unit(s->k, kernel);

	if (!s->compute.list.n && !s->comm.list.n)
		s->first_ns = kernel->start_ns;
	s->last_ns = kernel->stop_ns > s->last_ns ? kernel->stop_ns : s->last_ns;
	spans_add(kernel->nccl ? &s->comm : &s->compute, kernel->start_ns, kernel->stop_ns);
	s->unit = unit ?: s->unit;
	if (unit && unit->wait_ns != UINT64_MAX) {
		int64_t longest_ns = kernel->stop_ns - kernel->start_ns;
		int64_t wait_ns = unit->wait_ns < (uint64_t)longest_ns ? (int64_t)unit->wait_ns
									: longest_ns;

		s->waits_known = true;
		spans_add(&s->waits, kernel->start_ns, kernel->start_ns + wait_ns);
	}
}

/* The rank in the job, else in the communicator. */
static int32_t sums_rank(const struct device_sums *s)
{
	return s->k->rank == UNKNOWN_I32 && s->unit ? member_i32(s->unit->row, "rank")
						    : s->k->rank;
}

static json_t *number_or_null(int64_t number)
{
	return number >= 0 ? json_integer(number) : json_null();
}

static void sums_tell(struct device_sums *s, int64_t step, int64_t from_ns, int64_t to_ns)
{
	uint64_t time_ns = (uint64_t)(to_ns - from_ns);
	uint64_t compute_ns = spans_time(&s->compute, from_ns, to_ns);
	uint64_t comm_ns = spans_time(&s->comm, from_ns, to_ns);
	uint64_t exposed_ns = spans_time(&s->exposed, from_ns, to_ns);
	uint64_t waited_ns = spans_time(&s->waits, from_ns, to_ns);

	json_array_append_new(s->rows, json_pack(
		"{s:s, s:o, s:o, s:i, s:o, s:I, s:I, s:I, s:I, s:I, s:f, s:o, s:I}",
		"file", s->k->path, "rank", number_or_null(sums_rank(s)),
		"pid", number_or_null(s->k->host_pid ?: s->k->pid),
		"device", s->device, "step", number_or_null(step),
		"time_ns", (json_int_t)time_ns, "compute_ns", (json_int_t)compute_ns,
		"comm_ns", (json_int_t)comm_ns, "hidden_ns", (json_int_t)(comm_ns - exposed_ns),
		"exposed_ns", (json_int_t)exposed_ns,
		"exposed_fraction", time_ns ? (double)exposed_ns / (double)time_ns : 0.0,
		"waited_ns", s->waits_known ? json_integer((json_int_t)waited_ns) : json_null(),
		"idle_ns", (json_int_t)(time_ns - compute_ns - exposed_ns)));
}

/* ---- steps -------------------------------------------------------------------------------- */

/* The first correlation id from there on; UINT64_MAX: nothing is launched. */
static uint64_t launch_first(const struct kernels *k, int64_t from_ns)
{
	uint64_t first = UINT64_MAX;

	for (uint32_t i = k->launches.n; i && k->launches.at[i - 1].at_ns >= from_ns; i--)
		if (k->launches.at[i - 1].correlation < first)
			first = k->launches.at[i - 1].correlation;
	return first;
}

/* The step's begin on the GPU; without calls that launch kernels in the file: on the host. */
static int64_t sums_step_begin(const struct device_sums *s, int64_t host_ns)
{
	const struct kernels *k = s->k;
	uint64_t first = launch_first(k, host_ns);

	if (!k->launches.n)
		return host_ns > s->first_ns ? host_ns : s->first_ns;
	for (uint32_t i = 0; i < k->all.n; i++)
		if (k->all.at[i].device == s->device && k->all.at[i].correlation >= first)
			return k->all.at[i].start_ns;
	return s->last_ns;
}

static void sums_tell_steps(struct device_sums *s)
{
	const struct kernels *k = s->k;

	for (uint32_t i = 0; i < k->steps.n; i++) {
		int64_t from_ns = sums_step_begin(s, k->steps.at[i].at_ns), to_ns = s->last_ns;

		if (i + 1 < k->steps.n)
			to_ns = sums_step_begin(s, k->steps.at[i + 1].at_ns);
		if (to_ns > from_ns)
			sums_tell(s, k->steps.at[i].number, from_ns, to_ns);
	}
}

static void sums_take_device(struct device_sums *s, const struct kernels *k, int32_t device)
{
	*s = (struct device_sums){ .k = k, .device = device, .last_ns = INT64_MIN };
	for (uint32_t i = 0; i < k->all.n; i++)
		if (k->all.at[i].device == device)
			sums_take(s, &k->all.at[i]);
	s->exposed = spans_without(&s->comm, &s->compute);
	if (s->waits_known) {
		struct kernels_spans all = s->waits;

		s->waits = spans_without(&all, &s->compute);
		list_deinit(&all.list);
	}
}

static void sums_deinit(struct device_sums *s)
{
	list_deinit(&s->compute.list);
	list_deinit(&s->comm.list);
	list_deinit(&s->exposed.list);
	list_deinit(&s->waits.list);
}

/* ---- all of them -------------------------------------------------------------------------- */

static void kernels_each_device(const struct kernels *k,
				void (*on_device)(struct device_sums *s, void *arg), void *arg)
{
	struct device_sums s;

	for (int32_t device = 0; device < KERNELS_DEVICES; device++) {
		sums_take_device(&s, k, device);
		if (s.compute.list.n + s.comm.list.n)
			on_device(&s, arg);
		sums_deinit(&s);
	}
}

static void device_tell(struct device_sums *s, void *rows)
{
	s->rows = rows;
	sums_tell(s, -1, s->first_ns, s->last_ns);
	sums_tell_steps(s);
}

void kernels_sum(const struct kernels *k, json_t *rows)
{
	kernels_each_device(k, device_tell, rows);
}

static void device_tell_exposed(struct device_sums *s, void *arg)
{
	const struct kernels_exposed *to = arg;

	for (uint32_t i = 0; i < s->exposed.list.n; i++)
		to->on_span(to->arg, s->device, s->exposed.list.at[i].start_ns,
			    s->exposed.list.at[i].stop_ns);
}

void kernels_each_exposed(const struct kernels *k, struct kernels_exposed to)
{
	kernels_each_device(k, device_tell_exposed, &to);
}
