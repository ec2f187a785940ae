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

/* Takes away what is in any of `less`. */
static void spans_subtract(struct kernels_spans *s, const struct kernels_spans *less)
{
	struct kernels_spans rest = { .passed = 0 };
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
	list_deinit(&s->list);
	*s = rest;
}

/* The part of them from `from_ns`, which is never less than before, to `to_ns`. */
static int64_t spans_time(struct kernels_spans *s, int64_t from_ns, int64_t to_ns)
{
	int64_t ns = 0;

	while (s->passed < s->list.n && s->list.at[s->passed].stop_ns <= from_ns)
		s->passed++;
	for (uint32_t i = s->passed; i < s->list.n && s->list.at[i].start_ns < to_ns; i++) {
		int64_t start_ns = s->list.at[i].start_ns, stop_ns = s->list.at[i].stop_ns;

		ns += (stop_ns < to_ns ? stop_ns : to_ns) -
		      (start_ns > from_ns ? start_ns : from_ns);
	}
	return ns;
}

/* ---- one GPU ------------------------------------------------------------------------------ */

enum sums_set {
	COMPUTE, COMM,
	EXPOSED,	/* COMM without COMPUTE, as are those below */
	COMPARED,	/* kernels of which it is known how long they waited */
	WAITED,
	SETS
};

struct device_sums {
	const struct kernels *k;
	int32_t device;
	int64_t first_ns, last_ns;	/* begin and end of its kernels */
	struct kernels_spans set[SETS];
	bool joined;			/* `rank` is that of its operations */
	int32_t rank;			/* UNKNOWN_I32: they are of several */
};

static void sums_take(struct device_sums *s, const struct gpu_kernel *kernel)
{
	int64_t start_ns = kernel->start_ns, stop_ns = kernel->stop_ns;
	const struct kernels_unit *unit = kernel->unit;

	s->first_ns = start_ns < s->first_ns ? start_ns : s->first_ns;
	s->last_ns = stop_ns > s->last_ns ? stop_ns : s->last_ns;
	spans_add(&s->set[kernel->nccl ? COMM : COMPUTE], start_ns, stop_ns);
	if (kernel->nccl)
		spans_add(&s->set[EXPOSED], start_ns, stop_ns);
	if (unit) {
		int32_t rank = member_i32(unit->row, "rank");

		s->rank = s->joined && s->rank != rank ? UNKNOWN_I32 : rank;
		s->joined = true;
	}
	if (unit && unit->wait_ns != UINT64_MAX) {
		spans_add(&s->set[COMPARED], start_ns, stop_ns);
		if (unit->wait_ns < (uint64_t)(stop_ns - start_ns))
			stop_ns = start_ns + (int64_t)unit->wait_ns;
		spans_add(&s->set[WAITED], start_ns, stop_ns);
	}
}

static void sums_init(struct device_sums *s, const struct kernels *k, int32_t device)
{
	*s = (struct device_sums){ .k = k, .device = device, .first_ns = INT64_MAX,
				   .rank = UNKNOWN_I32 };
	for (uint32_t i = 0; i < k->all.n; i++)
		if (k->all.at[i].device == device)
			sums_take(s, &k->all.at[i]);
	for (int i = EXPOSED; i < SETS; i++)
		spans_subtract(&s->set[i], &s->set[COMPUTE]);
}

static void sums_deinit(struct device_sums *s)
{
	for (int i = 0; i < SETS; i++)
		list_deinit(&s->set[i].list);
}

static json_t *number_or_null(int64_t number)
{
	return number >= 0 ? json_integer(number) : json_null();
}

static double sums_part(int64_t part_ns, int64_t of_ns)
{
	return of_ns ? (double)part_ns / (double)of_ns : 0.0;
}

/* A row of the time from `from_ns`, which is never less than in the row before. */
static void sums_tell(struct device_sums *s, json_t *rows, int64_t step, int64_t from_ns,
		      int64_t to_ns)
{
	json_int_t time_ns = to_ns - from_ns, ns[SETS];
	json_t *row;

	for (int i = 0; i < SETS; i++)
		ns[i] = spans_time(&s->set[i], from_ns, to_ns);
	row = json_pack("{s:s, s:o, s:o, s:i, s:o, s:I, s:I, s:I, s:I, s:I, s:f, s:I}",
			"file", s->k->path, "rank",
			number_or_null(s->k->rank == UNKNOWN_I32 ? s->rank : s->k->rank),
			"pid", number_or_null(s->k->host_pid ?: s->k->pid), "device", s->device,
			"step", number_or_null(step), "time_ns", time_ns,
			"compute_ns", ns[COMPUTE], "comm_ns", ns[COMM],
			"hidden_ns", ns[COMM] - ns[EXPOSED], "exposed_ns", ns[EXPOSED],
			"exposed_fraction", sums_part(ns[EXPOSED], time_ns),
			"idle_ns", time_ns - ns[COMPUTE] - ns[EXPOSED]);
	json_object_update_new(row, ns[COMPARED] ?
		json_pack("{s:I, s:f}", "waited_ns", ns[WAITED], "compared_fraction",
			  sums_part(ns[COMPARED], ns[EXPOSED])) :
		json_pack("{s:n, s:n}", "waited_ns", "compared_fraction"));
	json_array_append_new(rows, row);
}

/* The step's begin on the GPU, where none of the kernels before *at is in it. */
static int64_t sums_step_begin(const struct device_sums *s, const struct kernels_step *step,
			       uint32_t *at)
{
	const struct kernels *k = s->k;

	if (!step->correlation) {
		int64_t at_ns = step->at_ns > s->first_ns ? step->at_ns : s->first_ns;

		return at_ns < s->last_ns ? at_ns : s->last_ns;
	}
	while (*at < k->all.n && (k->all.at[*at].device != s->device ||
				  k->all.at[*at].correlation < step->correlation))
		++*at;
	return *at < k->all.n ? k->all.at[*at].start_ns : s->last_ns;
}

/* Each ends where the next one begins, the last one with the last kernel. */
static void sums_tell_steps(struct device_sums *s, json_t *rows)
{
	const struct kernels *k = s->k;
	int64_t from_ns = s->last_ns, to_ns;
	uint32_t at = 0;

	for (uint32_t i = 0; i <= k->steps.n; i++, from_ns = to_ns) {
		to_ns = i < k->steps.n ? sums_step_begin(s, &k->steps.at[i], &at) : s->last_ns;
		if (to_ns > from_ns)
			sums_tell(s, rows, k->steps.at[i - 1].number, from_ns, to_ns);
	}
}

/* ---- all of them -------------------------------------------------------------------------- */

void kernels_sum(const struct kernels *k, json_t *rows)
{
	struct device_sums s;

	for (int32_t device = 0; device < KERNELS_DEVICES; device++) {
		sums_init(&s, k, device);
		if (s.first_ns <= s.last_ns) {
			sums_tell(&s, rows, -1, s.first_ns, s.last_ns);
			sums_tell_steps(&s, rows);
		}
		sums_deinit(&s);
	}
}

struct kernels_spans kernels_exposed(const struct kernels *k, int32_t device)
{
	struct kernels_spans exposed;
	struct device_sums s;

	sums_init(&s, k, device);
	exposed = s.set[EXPOSED];
	s.set[EXPOSED] = (struct kernels_spans){ .passed = 0 };
	sums_deinit(&s);
	return exposed;
}
