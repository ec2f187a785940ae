/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/late.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report.h"

#define OPS_MOST      128	/* per communicator; of each function, a third is plenty */
#define OPS_LEAST     5
#define CLEAR_NS      20000	/* below, scheduling noise explains it */
#define CLEAR_SHARE   0.1	/* of the time inside */
#define MAJORITY      0.8

/* One operation as every local rank saw it. */
struct joint_op {
	const char *func;
	int64_t seq;
	int seen;
	bool twice;	/* a rank came twice: an id was used again, so nothing fits */
	uint64_t inside_ns[LATE_RANKS];	/* UINT64_MAX: not seen */
};

/* Everybody needs everybody's data: who is in first must wait for the last. */
static const char *const joint_funcs[] = { "AllReduce", "AllGather", "ReduceScatter", NULL };

static const char *joint_func(const json_t *row)
{
	const char *func = json_string_value(report_get(row, "func"));

	for (size_t i = 0; func && joint_funcs[i]; i++)
		if (!strcmp(func, joint_funcs[i]))
			return joint_funcs[i];
	return NULL;
}

static bool is_in(const json_t *member, const char *const *states)
{
	const char *state = json_string_value(report_get(member, "state"));

	while (state && *states && strcmp(state, *states))
		states++;
	return state && *states;
}

/* The ranks in one of the states; 0 when they cannot be compared. */
static int list_members(const json_t *comm, const char *const *states, struct late *late)
{
	json_t *member;
	size_t i;

	late->ranks = 0;
	json_array_foreach(json_object_get(comm, "local_ranks"), i, member) {
		const json_t *rank = report_get(member, "rank");

		if (!is_in(member, states))
			continue;
		if (!json_is_integer(rank) || late->ranks == LATE_RANKS)
			return 0;
		late->each[late->ranks].rank = json_integer_value(rank);
		late->each[late->ranks++].pid = json_integer_value(report_get(member, "pid"));
	}
	return late->ranks;
}

static const char *const alive[] = { "live", "finalized", NULL };
static const char *const ended[] = { "exited", "died", NULL };

bool late_comparable(const json_t *comm, bool over)
{
	json_t *member;
	int n = 0;
	size_t i;

	json_array_foreach(json_object_get(comm, "local_ranks"), i, member)
		n += is_in(member, over ? ended : alive);
	return n >= 2 && report_get(comm, "comm_id");
}

/* Those that are alive; of a job that is over, those that were. */
static int list_ranks(const json_t *comm, struct late *late)
{
	return list_members(comm, alive, late) ?: list_members(comm, ended, late);
}

static int index_of(const struct late *late, int64_t rank, int64_t pid)
{
	for (int i = 0; i < late->ranks; i++)
		if (late->each[i].rank == rank && late->each[i].pid == pid)
			return i;
	return -1;
}

static struct joint_op *find_op(struct joint_op *ops, int *n, const char *func, int64_t seq)
{
	for (int i = 0; i < *n; i++)
		if (ops[i].func == func && ops[i].seq == seq)
			return &ops[i];
	if (*n == OPS_MOST)
		return NULL;
	memset(&ops[*n], 0, sizeof(ops[*n]));
	ops[*n].func = func;
	ops[*n].seq = seq;
	for (int i = 0; i < LATE_RANKS; i++)
		ops[*n].inside_ns[i] = UINT64_MAX;
	return &ops[(*n)++];
}

/* Only the GPU's own clock is good enough: the host sees a kernel when it looks. */
static bool is_timed(const json_t *row)
{
	const char *source = json_string_value(report_get(row, "timing_source"));

	return source && !strcmp(source, "kernel_gpu") &&
	       json_is_true(report_get(row, "complete")) &&
	       json_is_integer(report_get(row, "exec_ns"));
}

static void take_row(struct late *late, struct joint_op *ops, int *n, const json_t *row)
{
	const json_t *rank = report_get(row, "rank"), *seq = report_get(row, "seq");
	const char *func = joint_func(row);
	struct joint_op *op;
	int i;

	if (!func || !json_is_integer(rank) || !json_is_integer(seq) || !is_timed(row))
		return;
	i = index_of(late, json_integer_value(rank), json_integer_value(report_get(row, "pid")));
	op = i < 0 ? NULL : find_op(ops, n, func, json_integer_value(seq));
	if (!op)
		return;
	op->twice = op->twice || op->inside_ns[i] != UINT64_MAX;
	op->inside_ns[i] = (uint64_t)json_integer_value(report_get(row, "exec_ns"));
	op->seen++;
}

/* Drop what not every local rank has finished: a comparison needs them all. */
static int keep_whole(const struct late *late, struct joint_op *ops, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++)
		if (ops[i].seen == late->ranks && !ops[i].twice)
			ops[kept++] = ops[i];
	return kept;
}

static int compare_u64(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return (a > b) - (a < b);
}

static uint64_t median(uint64_t *values, int n)
{
	qsort(values, (size_t)n, sizeof(*values), compare_u64);
	return n ? values[(n - 1) / 2] : 0;
}

/* Who was inside for clearly the least time, or -1. */
static int last_of(const struct late *late, const struct joint_op *op)
{
	uint64_t sorted[LATE_RANKS];
	double gap;
	int last = 0;

	memcpy(sorted, op->inside_ns, sizeof(sorted));
	qsort(sorted, (size_t)late->ranks, sizeof(sorted[0]), compare_u64);
	gap = (double)(sorted[1] - sorted[0]);
	if (gap < CLEAR_NS || gap < CLEAR_SHARE * (double)sorted[1])
		return -1;
	while (op->inside_ns[last] != sorted[0])
		last++;
	return last;
}

static uint64_t longest(const struct late *late, const struct joint_op *op)
{
	uint64_t most = 0;

	for (int i = 0; i < late->ranks; i++)
		most = op->inside_ns[i] > most ? op->inside_ns[i] : most;
	return most;
}

static void measure_ranks(struct late *late, const struct joint_op *ops, int n)
{
	uint64_t values[OPS_MOST];

	for (int r = 0; r < late->ranks; r++) {
		for (int i = 0; i < n; i++)
			values[i] = longest(late, &ops[i]) - ops[i].inside_ns[r];
		late->each[r].late_ns = median(values, n);
	}
}

/* The others' waiting in one operation: the median over them. */
static uint64_t waiting(const struct late *late, const struct joint_op *op, int last)
{
	uint64_t waits[LATE_RANKS];
	int n = 0;

	for (int r = 0; r < late->ranks; r++)
		if (r != last)
			waits[n++] = op->inside_ns[r] - op->inside_ns[last];
	return median(waits, n);
}

/* The index of the rank that is last in a clear majority, or -1; *times: how often. */
static int usual_last(const struct late *late, const struct joint_op *ops, int n, int *times)
{
	int count[LATE_RANKS] = { 0 }, most = 0;

	for (int i = 0; i < n; i++) {
		int last = last_of(late, &ops[i]);

		if (last >= 0)
			count[last]++;
	}
	for (int r = 1; r < late->ranks; r++)
		most = count[r] > count[most] ? r : most;
	*times = count[most];
	return count[most] >= MAJORITY * n ? most : -1;
}

/* Judge the operations of one function; keep what is worse than what is known. */
static void judge(struct late *late, const struct joint_op *ops, int n, const char *func)
{
	uint64_t waits[OPS_MOST], wait_ns;
	int waited = 0, times, last;

	if (n < OPS_LEAST)
		return;
	last = usual_last(late, ops, n, &times);
	for (int i = 0; i < n && last >= 0; i++)
		if (last_of(late, &ops[i]) == last)
			waits[waited++] = waiting(late, &ops[i], last);
	wait_ns = last < 0 ? 0 : median(waits, waited);
	if (last < 0 || (late->func && wait_ns <= late->wait_ns))
		return;
	measure_ranks(late, ops, n);
	late->rank = late->each[last].rank;
	late->pid = late->each[last].pid;
	late->func = func;
	late->ops = n;
	late->times = times;
	late->late_ns = late->each[last].late_ns;
	late->wait_ns = wait_ns;
}

static void judge_each(struct late *late, const struct joint_op *ops, int n)
{
	struct joint_op some[OPS_MOST];

	for (size_t f = 0; joint_funcs[f]; f++) {
		int count = 0;

		for (int i = 0; i < n; i++)
			if (ops[i].func == joint_funcs[f])
				some[count++] = ops[i];
		judge(late, some, count, joint_funcs[f]);
	}
}

bool late_find(const json_t *comm, const json_t *collectives, struct late *late)
{
	const char *id = json_string_value(report_get(comm, "comm_id"));
	const json_t *nranks = report_get(comm, "nranks");
	struct joint_op ops[OPS_MOST];
	json_t *row;
	size_t i;
	int n = 0;

	memset(late, 0, sizeof(*late));
	late->rank = LATE_NONE;
	if (!id || list_ranks(comm, late) < 2)
		return false;

	snprintf(late->comm_id, sizeof(late->comm_id), "%s", id);
	snprintf(late->name, sizeof(late->name), "%s",
		 json_string_value(report_get(comm, "comm_label|name|comm_id")));
	late->whole = json_integer_value(nranks) == late->ranks;
	json_array_foreach((json_t *)collectives, i, row) {
		const char *of = json_string_value(report_get(row, "comm_id"));

		if (of && !strcmp(of, id))
			take_row(late, ops, &n, row);
	}
	late->ops = keep_whole(late, ops, n);
	if (late->ops < OPS_LEAST)
		return false;
	measure_ranks(late, ops, late->ops);
	judge_each(late, ops, late->ops);
	return true;
}
