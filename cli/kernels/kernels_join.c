/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One time axis for two clocks.  The profiler tells the time of day, the daemon CLOCK_MONOTONIC
 * with the time of day beside it; either may be off, and the time of day may have been set between
 * the two.  NCCL's kernels are in both: operation and kernel of one function and as long are
 * likely the same, and the shift that most such pairs agree on is the clocks'.  A shift near 0 is
 * believed first, because the steps of a job are alike: each fits the next one as well.
 */
#include "cli/kernels/kernels.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/base/member.h"
#include "cli/base/must.h"
#include "tables/stat.h"
#include "util/cleanup.h"
#include "util/text.h"

#define NEAR_NS		10e6	/* a shift below that is one of clocks, not of steps */
#define TOGETHER_NS	100e3	/* an operation and its kernel end as close, by true clocks */
#define LONGER_NS	20000	/* CUPTI's kernel begins before NCCL's first stamp */
#define LEAST		3	/* pairs that prove anything */
#define FAR_LEAST	8	/* the same, if clocks are further apart than NEAR_NS */
#define PAIRS		4000000u
#define NEAR_MOST	1000	/* kernels near an operation that are looked at */

/* ---- the process -------------------------------------------------------------------------- */

/* Is a row, or another process, of that process's node?  Each node compares its own ranks. */
static bool row_is_of_node(const json_t *row, const json_t *process)
{
	return !strcmp(member_text(row, "host", ""), member_text(process, "host", ""));
}

static bool row_is_of_process(const json_t *row, const json_t *process)
{
	return json_equal(json_object_get(row, "pid"), json_object_get(process, "pid")) &&
	       row_is_of_node(row, process);
}

static bool process_fits(const struct kernels *k, const json_t *process)
{
	int32_t rank = member_i32(json_object_get(process, "job"), "rank");

	if (k->pid == UNKNOWN_I32 || (member_i32(process, "pid") != k->pid &&
				      member_i32(process, "ns_pid") != k->pid))
		return false;
	return k->rank == UNKNOWN_I32 || rank == UNKNOWN_I32 || rank == k->rank;
}

/* Its row in `processes`; NULL: none, or several. */
static const json_t *join_find_process(const struct kernels *k, const json_t *processes,
				       char why[KERNELS_WHY])
{
	const json_t *found = NULL;

	json_each(process, processes) {
		if (!process_fits(k, process))
			continue;
		if (found && !row_is_of_process(found, process)) {
			snprintf(why, KERNELS_WHY, "several processes are pid %d, on the "
				 "node or to themselves, and their ranks tell none apart", k->pid);
			return NULL;
		}
		found = process;
	}
	if (!found && k->pid == UNKNOWN_I32)
		snprintf(why, KERNELS_WHY, "it holds no call of CUDA, which would tell its "
			 "process");
	else if (!found)
		snprintf(why, KERNELS_WHY, "no process that used NCCL is its pid %d and has its "
			 "rank; ncclinsp ps lists them", k->pid);
	return found;
}

/* ---- operations --------------------------------------------------------------------------- */

/* "2026-11-27T08:56:13.213630642Z"; 0: it is none, or not of this century. */
static int64_t time_read(const char *text)
{
	struct tm tm = { 0 };
	const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
	unsigned ns;

	if (!rest || tm.tm_year < 100 || tm.tm_year >= 190 || sscanf(rest, ".%9uZ", &ns) != 1)
		return 0;
	return (int64_t)timegm(&tm) * 1000000000 + ns;
}

/* The number that the text has in `numbers`; where it is new, it gets `next`. */
static uint32_t number_of(json_t *numbers, const char *text, uint32_t next)
{
	const json_t *known = json_object_get(numbers, text);

	if (known)
		return (uint32_t)json_integer_value(known);
	json_object_set_new(numbers, text, json_integer(next));
	return next;
}

static void row_put_operation(const json_t *row, char *key, size_t size)
{
	snprintf(key, size, "%s %s %" PRIu64 " %s", member_text(row, "comm_id", ""),
		 member_text(row, "func", ""), member_number(row, "seq", UINT64_MAX),
		 member_text(row, "comm_name", ""));
}

/* The lateness of each operation's last rank, where all ranks of the node are compared. */
static json_t *rows_latest(const json_t *rows, const json_t *process)
{
	json_t *latest = must(json_object());
	char key[256];

	json_each(row, rows) {
		const json_t *order = json_object_get(row, "arrival_rank_order");
		size_t ranks = json_array_size(order);

		if (!ranks || !row_is_of_node(row, process) ||
		    !json_equal(json_array_get(order, ranks - 1), json_object_get(row, "rank")))
			continue;
		row_put_operation(row, key, sizeof(key));
		json_object_set(latest, key, json_object_get(row, "late_ns"));
	}
	return latest;
}

static uint64_t row_wait_ns(const json_t *row, const json_t *latest)
{
	uint64_t late_ns = member_number(row, "late_ns", UINT64_MAX), last_ns;
	char key[256];

	row_put_operation(row, key, sizeof(key));
	last_ns = member_number(latest, key, UINT64_MAX);
	if (late_ns == UINT64_MAX || last_ns == UINT64_MAX)
		return UINT64_MAX;
	return last_ns > late_ns ? last_ns - late_ns : 0;
}

static uint8_t row_func(const json_t *row)
{
	const char *func = member_text(row, "func", "");

	return kernels_func(func, strlen(func));
}

/* A batch is one kernel, whose function NCCL names by one of them. */
static void unit_take(struct kernels_unit *u, const json_t *row)
{
	uint64_t start_ns = member_number(row, "gpu_start_mono_ns", 0);
	uint64_t stop_ns = member_number(row, "gpu_stop_mono_ns", 0);

	u->start_ns = start_ns < u->start_ns ? start_ns : u->start_ns;
	u->stop_ns = stop_ns > u->stop_ns ? stop_ns : u->stop_ns;
	u->func = u->func == row_func(row) ? u->func : 0;
}

static bool row_is_ours(const json_t *row, const json_t *process)
{
	return row_is_of_process(row, process) && !json_is_true(json_object_get(row, "derived")) &&
	       member_number(row, "gpu_start_mono_ns", 0) &&
	       member_number(row, "gpu_stop_mono_ns", 0);
}

/* All that the GPU timed of the process; the number of communicators and ranks that they are of. */
static uint32_t join_take_units(struct kernels *k, const json_t *process, const json_t *rows)
{
	json_auto_t *groups = must(json_object()), *batches = must(json_object());
	json_auto_t *latest = rows_latest(rows, process);
	uint32_t ngroups;
	char key[256];

	json_each(row, rows) {
		const char *batch = member_text(json_object_get(row, "batch"), "token", NULL);
		uint32_t unit = k->units.n;

		if (!row_is_ours(row, process))
			continue;
		if (batch)
			unit = number_of(batches, batch, unit);
		if (unit == k->units.n) {
			snprintf(key, sizeof(key), "%s %" PRIu64 " %s",
				 member_text(row, "comm_id", ""), member_number(row, "rank", 0),
				 member_text(row, "comm_name", ""));
			ngroups = (uint32_t)json_object_size(groups);
			*(struct kernels_unit *)must(list_append(&k->units)) =
				(struct kernels_unit){
					.start_ns = UINT64_MAX, .row = row, .func = row_func(row),
					.group = number_of(groups, key, ngroups),
					.wait_ns = row_wait_ns(row, latest),
				};
		}
		unit_take(&k->units.at[unit], row);
	}
	return (uint32_t)json_object_size(groups);
}

/* ---- the shift ---------------------------------------------------------------------------- */

struct joining {
	struct kernels *k;
	struct { LIST(struct gpu_kernel *) by_stop; } device[KERNELS_DEVICES];	/* NCCL's */
	int64_t first_ns, last_ns;	/* the first and the last end of these */
	uint32_t nkernels, ngroups;
	double together_ns;	/* ends that are as close may be the same */
	LIST(double) shifts;	/* sorted */
};

static bool unit_is_like(const struct kernels_unit *u, const struct gpu_kernel *kernel)
{
	int64_t unit_ns = (int64_t)(u->stop_ns - u->start_ns);
	int64_t longer_ns = kernel->stop_ns - kernel->start_ns - unit_ns;

	return (!u->func || !kernel->func || u->func == kernel->func) &&
	       llabs(longer_ns) <= LONGER_NS + unit_ns / 10;
}

/* The time by which the kernel ended after the operation, as the offset has it so far. */
static int64_t unit_shift_ns(const struct kernels *k, const struct kernels_unit *u,
			     const struct gpu_kernel *kernel)
{
	return kernel->stop_ns - (int64_t)u->stop_ns - k->offset_ns;
}

static int kernel_by_stop(const void *a, const void *b)
{
	const struct gpu_kernel *x = *(const struct gpu_kernel *const *)a;
	const struct gpu_kernel *y = *(const struct gpu_kernel *const *)b;

	return (x->stop_ns > y->stop_ns) - (x->stop_ns < y->stop_ns);
}

static void joining_init(struct joining *j, struct kernels *k)
{
	*j = (struct joining){ .k = k, .first_ns = INT64_MAX };
	list_each(kernel, &k->all) {
		if (!kernel->nccl)
			continue;
		*(struct gpu_kernel **)must(list_append(
			&j->device[kernel->device].by_stop)) = kernel;
		j->first_ns = kernel->stop_ns < j->first_ns ? kernel->stop_ns : j->first_ns;
		j->last_ns = kernel->stop_ns > j->last_ns ? kernel->stop_ns : j->last_ns;
		j->nkernels++;
	}
	for (int32_t i = 0; i < KERNELS_DEVICES; i++)
		list_sort(&j->device[i].by_stop, kernel_by_stop);
}

static void joining_deinit(struct joining *j)
{
	for (int32_t i = 0; i < KERNELS_DEVICES; i++)
		list_deinit(&j->device[i].by_stop);
	list_deinit(&j->shifts);
}

static void join_add_shift(struct joining *j, const struct kernels_unit *u,
			   const struct gpu_kernel *kernel)
{
	*(double *)must(list_append(&j->shifts)) = (double)unit_shift_ns(j->k, u, kernel);
}

/* The shifts of all pairs that may be the same, or of some of the operations. */
static void join_collect_shifts(struct joining *j)
{
	struct kernels *k = j->k;
	uint32_t every = k->units.n / (PAIRS / j->nkernels + 1) + 1;

	j->shifts.n = 0;
	for (uint32_t u = 0; u < k->units.n; u += every)
		for (uint32_t d = 0; d < KERNELS_DEVICES; d++)
			for (uint32_t i = 0; i < j->device[d].by_stop.n; i++)
				if (unit_is_like(&k->units.at[u], j->device[d].by_stop.at[i]))
					join_add_shift(j, &k->units.at[u],
						       j->device[d].by_stop.at[i]);
	list_sort(&j->shifts, stat_compare);
}

/* The most shifts that lie together, from the values `from` to before `to`; the middle one. */
static uint32_t join_densest(const struct joining *j, double from, double to, double *middle)
{
	const double *at = j->shifts.at;
	uint32_t most = 0;

	for (uint32_t i = 0, end = 0; i < j->shifts.n; i++) {
		uint32_t n;

		if (at[i] < from || at[i] >= to)
			continue;
		end = end < i ? i : end;
		while (end < j->shifts.n && at[end] < to &&
		       at[end] <= at[i] + 2 * j->together_ns)
			end++;
		n = end - i;
		if (n < most || (n == most && fabs(*middle) <= fabs(at[i + n / 2])))
			continue;
		most = n;
		*middle = at[i + n / 2];
	}
	return most;
}

/* False: none, or several are as good. */
static bool join_find_shift(const struct joining *j, double *shift)
{
	double near = 0, best = 0, other = 0;
	uint32_t nnear = join_densest(j, -NEAR_NS, NEAR_NS, &near);
	uint32_t nbest = join_densest(j, -INFINITY, INFINITY, &best), nbelow, nabove;

	*shift = near;
	if (nnear >= LEAST && nnear * 5 >= nbest * 4)
		return true;
	*shift = best;
	nbelow = join_densest(j, -INFINITY, best - 4 * j->together_ns, &other);
	nabove = join_densest(j, best + 4 * j->together_ns, INFINITY, &other);
	return nbest >= FAR_LEAST && nbelow * 3 <= nbest * 2 && nabove * 3 <= nbest * 2;
}

/* ---- pairs -------------------------------------------------------------------------------- */

/* The kernel that ended next to the operation's end; NULL: none is near, or each has another. */
static struct gpu_kernel *join_nearest(const struct joining *j, uint32_t device,
				       const struct kernels_unit *u, int64_t *distance_ns)
{
	int64_t wanted_ns = (int64_t)u->stop_ns + j->k->offset_ns;
	struct gpu_kernel *nearest = NULL, *const *by_stop = j->device[device].by_stop.at;
	uint32_t low = 0, high = j->device[device].by_stop.n, end = high;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (by_stop[mid]->stop_ns < wanted_ns - (int64_t)j->together_ns)
			low = mid + 1;
		else
			high = mid;
	}
	end = end - low > NEAR_MOST ? low + NEAR_MOST : end;
	for (; low < end && by_stop[low]->stop_ns <= wanted_ns + (int64_t)j->together_ns; low++) {
		struct gpu_kernel *kernel = by_stop[low];
		int64_t off_ns = llabs(unit_shift_ns(j->k, u, kernel)) +
				 llabs(kernel->start_ns - j->k->offset_ns - (int64_t)u->start_ns);

		if (kernel->unit || !unit_is_like(u, kernel) || (nearest && off_ns >= *distance_ns))
			continue;
		nearest = kernel;
		*distance_ns = off_ns;
	}
	return nearest;
}

/* The pairs of one rank with one device's kernels, and how far these are apart. */
struct join_fit {
	uint32_t pairs;
	double apart_ns;
};

/* The device whose kernels fit a rank best. */
static uint32_t fits_best(const struct join_fit fits[KERNELS_DEVICES])
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < KERNELS_DEVICES; i++)
		if (fits[i].pairs > fits[best].pairs || (fits[i].pairs == fits[best].pairs &&
							 fits[i].apart_ns < fits[best].apart_ns))
			best = i;
	return best;
}

static void join_match(struct joining *j)
{
	struct kernels *k = j->k;
	CLEANUP(cleanup_freep) struct join_fit *fits = must(calloc((size_t)j->ngroups *
							   KERNELS_DEVICES, sizeof(*fits)));
	struct gpu_kernel *kernel;
	int64_t distance_ns;

	for (uint32_t i = 0; i < k->units.n; i++)
		for (uint32_t d = 0; d < KERNELS_DEVICES; d++) {
			struct join_fit *fit = &fits[k->units.at[i].group * KERNELS_DEVICES + d];

			if (!join_nearest(j, d, &k->units.at[i], &distance_ns))
				continue;
			fit->pairs++;
			fit->apart_ns += (double)distance_ns;
		}
	list_each(u, &k->units) {
		kernel = join_nearest(j, fits_best(&fits[u->group * KERNELS_DEVICES]), u,
				      &distance_ns);
		if (!kernel)
			continue;
		u->kernel = kernel;
		kernel->unit = u;
	}
}

/* Operations that ended while the file has kernels of NCCL, and what those with one tell. */
static void join_measure(struct joining *j)
{
	struct kernels *k = j->k;
	int64_t middle;

	j->shifts.n = 0;
	list_each(u, &k->units) {
		int64_t stop_ns = (int64_t)u->stop_ns + k->offset_ns;

		k->compared += u->kernel || (stop_ns >= j->first_ns && stop_ns <= j->last_ns);
		k->matched += !!u->kernel;
		if (u->kernel)
			join_add_shift(j, u, u->kernel);
	}
	if (!j->shifts.n)
		return;
	middle = (int64_t)stat_median(j->shifts.at, j->shifts.n);
	k->offset_ns += middle;
	k->shift_ns += middle;
	for (uint32_t i = 0; i < j->shifts.n; i++)
		j->shifts.at[i] = fabs(j->shifts.at[i] - (double)middle);
	k->spread_ns = (uint64_t)stat_quantile(j->shifts.at, j->shifts.n, 0.9);
}

/* ---- all of it ---------------------------------------------------------------------------- */

static void join_undo(struct kernels *k)
{
	for (uint32_t i = 0; i < k->all.n; i++)
		k->all.at[i].unit = NULL;
	for (uint32_t i = 0; i < k->units.n; i++)
		k->units.at[i].kernel = NULL;
	k->matched = k->compared = 0;
}

static int join_try(struct joining *j, int64_t offset_ns, double together_ns,
		    char why[KERNELS_WHY])
{
	struct kernels *k = j->k;
	double shift = 0;

	join_undo(k);
	k->offset_ns = offset_ns;
	j->together_ns = together_ns;
	join_collect_shifts(j);
	if (!join_find_shift(j, &shift)) {
		snprintf(why, KERNELS_WHY, "its NCCL kernels fit too few of the %u operations "
			 "that were timed of pid %d, or several ways as well: it is of another "
			 "time, or of another process", k->units.n, k->host_pid);
		return -1;
	}
	k->shift_ns = (int64_t)shift;
	k->offset_ns += k->shift_ns;
	join_match(j);
	join_measure(j);
	if (k->matched >= LEAST && 2 * k->matched >= k->compared)
		return 0;
	snprintf(why, KERNELS_WHY, "its NCCL kernels fit only %u of the %u operations of pid %d "
		 "at that time: it is of another process", k->matched, k->compared, k->host_pid);
	return -1;
}

/*
 * The clock of a GPU is off by about the same in all its operations, and the ends are close
 * together then.  Those of several GPUs, or of a long time, are as far apart as the error is.
 */
static int join_shift(struct joining *j, char why[KERNELS_WHY])
{
	const struct kernels *k = j->k;
	CLEANUP(cleanup_freep) double *errors = must(calloc(k->units.n, sizeof(*errors)));
	int64_t offset_ns = time_read(member_text(k->units.at[0].row, "gpu_stop_at", "")) -
			    (int64_t)member_number(k->units.at[0].row, "gpu_stop_mono_ns", 0);
	double together_ns;

	if (!join_try(j, offset_ns, TOGETHER_NS, why))
		return 0;
	for (uint32_t i = 0; i < k->units.n; i++)
		errors[i] = (double)member_number(k->units.at[i].row, "gpu_clock_error_ns", 0);
	together_ns = TOGETHER_NS + stat_median(errors, k->units.n);
	if (join_try(j, offset_ns, together_ns < NEAR_NS ? together_ns : NEAR_NS, why))
		return -1;
	*why = '\0';
	return 0;
}

int kernels_join(struct kernels *k, const json_t *processes, const json_t *rows,
		 char why[KERNELS_WHY])
{
	const json_t *process = join_find_process(k, processes, why);
	struct joining j;
	int r = -1;

	if (!process)
		return -1;
	if (!json_array_size(rows)) {
		snprintf(why, KERNELS_WHY, "no operations are remembered there (the snapshots of "
			 "each minute have none)");
		return -1;
	}
	k->host_pid = member_i32(process, "pid");
	joining_init(&j, k);
	j.ngroups = join_take_units(k, process, rows);
	if (k->units.n < LEAST) {
		snprintf(why, KERNELS_WHY, "%u operations of pid %d were timed on the GPU: too few "
			 "to find them in it (ncclinsp level %d kernel --sample all --for 60 "
			 "before the profile)", k->units.n, k->host_pid, k->host_pid);
	} else if (!j.nkernels) {
		snprintf(why, KERNELS_WHY, "there is no kernel of NCCL in it");
	} else {
		r = join_shift(&j, why);
	}
	joining_deinit(&j);
	if (!r && k->rank == UNKNOWN_I32)
		k->rank = member_i32(json_object_get(process, "job"), "rank");
	if (r) {
		join_undo(k);
		list_deinit(&k->units);
		k->host_pid = 0;
	}
	return r;
}

void kernels_tell_join(const struct kernels *k)
{
	char shift[TEXT_MAX], spread[TEXT_MAX];

	text_duration(shift, sizeof(shift), (uint64_t)llabs(k->shift_ns));
	text_duration(spread, sizeof(spread), k->spread_ns);
	fprintf(stderr, "%s: pid %d; %u of %u operations are kernels of it; its clock is %s %s the "
		"time of day that ncclinspd tells, nine in ten ends within %s\n", k->path,
		k->host_pid, k->matched, k->compared, shift,
		k->shift_ns < 0 ? "behind" : "ahead of", spread);
}
