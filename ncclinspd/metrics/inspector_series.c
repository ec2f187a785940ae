/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operations with the same labels are one row, whatever process or communicator they are of, as in
 * Inspector.  A row has two slices, of which the older makes room.
 */
#include "ncclinspd/metrics/inspector_series.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/metrics/exposition.h"
#include "reader/base/job.h"
#include "tables/keyed.h"
#include "util/cleanup.h"
#include "util/utf8.h"

#define SLICE_NS	UINT64_C(15000000000)
#define LEAST_BYTES	8192
#define UNITS		5

/* Texts by the hash of what is shown of them: jobs do not know the seed. */
struct inspector_key {
	uint64_t uid, job, comm_name;
	uint64_t gpu_index, nnodes, nranks, api_version;
	uint64_t func, algo, proto;	/* name_t */
	uint64_t bytes;		/* the least of its size label */
};

struct inspector_slice {
	uint64_t number;	/* now / SLICE_NS */
	uint64_t n, rated;
	double us, log_busbw;	/* sums */
};

struct inspector_row {
	struct keyed_head head;
	struct inspector_key key;
	char job[65], comm_name[97];
	struct inspector_slice slice[2];
};

struct inspector_series {
	const char *host;
	uint64_t seed;
	const struct accounts *accounts;
	struct keyed rows;
};

CLEANUP_DEFINE(inspector_series_free, struct inspector_series)

int inspector_series_new(struct inspector_series **out, const char *host,
			 const struct accounts *accounts, uint64_t seed)
{
	CLEANUP(inspector_series_freep) struct inspector_series *s = calloc(1, sizeof(*s));
	int r = s ? keyed_init(&s->rows, &KEYED_CONFIG(struct inspector_row, key, INSPECTOR_ROWS,
						       .seed = seed))
		  : -ENOMEM;

	if (r < 0)
		return r;
	s->host = host;
	s->accounts = accounts;
	s->seed = seed;
	*out = DISOWN(s);
	return 0;
}

void inspector_series_free(struct inspector_series *s)
{
	if (!s)
		return;
	keyed_deinit(&s->rows);
	free(s);
}

/* ---- operations --------------------------------------------------------------------------- */

/* The share that one rank gives, or gets, of these two. */
static uint64_t op_message_bytes(const struct op *op)
{
	bool parts = !strcmp(op->func, "AllGather") || !strcmp(op->func, "ReduceScatter");

	return parts && op->nranks > 0 ? op->bytes / (uint64_t)op->nranks : op->bytes;
}

static bool op_counts(const struct op *op)
{
	return op->exec_ns != UNKNOWN_U64 && op->source == TIMING_KERNEL_GPU && op->func &&
	       op->bytes != UNKNOWN_U64 && op_message_bytes(op) >= LEAST_BYTES;
}

/* The largest unit of 1024^i that fits in. */
static uint32_t unit_of(uint64_t bytes)
{
	uint32_t unit = 0;

	while (unit < UNITS - 1 && bytes >> 10 * (unit + 1))
		unit++;
	return unit;
}

/* Labels as they are shown: operations that differ in nothing else are one series. */
static void text_take(char *to, size_t size, const char *text)
{
	snprintf(to, size, "%s", text ?: "");
	utf8_clean(to, strlen(to));
}

static uint64_t text_hash(const struct inspector_series *s, const char *text)
{
	char words[104] = "";

	snprintf(words, sizeof(words), "%s", text);
	return index_hash(s->seed, words, sizeof(words));
}

static uint64_t number_key(int32_t value)
{
	return value < 0 ? UNKNOWN_U64 : (uint64_t)value;
}

static struct inspector_key op_key(const struct inspector_series *s, const struct process *p,
				   const struct comm *c, const struct op *op, const char *job,
				   const char *comm_name)
{
	uint64_t bytes = op_message_bytes(op);
	uint32_t shift = 10 * unit_of(bytes);

	return (struct inspector_key){
		.uid = p->uid, .job = text_hash(s, job), .comm_name = text_hash(s, comm_name),
		.gpu_index = number_key(c->has_gpu ? c->gpu_index : UNKNOWN_I32),
		.nnodes = number_key(c->nnodes), .nranks = number_key(c->nranks),
		.api_version = p->api_version, .func = (uintptr_t)op->func,
		.algo = (uintptr_t)op->algo, .proto = (uintptr_t)op->proto,
		.bytes = bytes >> shift << shift,
	};
}

static struct inspector_slice *row_slice(struct inspector_row *row, uint64_t now_ns)
{
	uint64_t number = now_ns / SLICE_NS;
	struct inspector_slice *slice = &row->slice[number % 2];

	if (slice->number != number)
		*slice = (struct inspector_slice){ .number = number };
	return slice;
}

void inspector_series_op(struct inspector_series *s, const struct process *p, const struct op *op,
			 uint64_t now_ns)
{
	const struct comm *c = process_comm(p, (uint16_t)op->comm_index);
	struct inspector_slice *slice;
	struct inspector_row *row;
	char job[sizeof(row->job)], comm_name[sizeof(row->comm_name)];
	struct inspector_key key;
	bool made;

	if (!c || !op_counts(op))
		return;
	text_take(job, sizeof(job), job_id(p));
	text_take(comm_name, sizeof(comm_name), c->name);
	key = op_key(s, p, c, op, job, comm_name);
	row = keyed_use(&s->rows, &key, accounts_of(s->accounts, p->uid), &made);
	if (!row)
		return;
	if (made) {
		memcpy(row->job, job, sizeof(job));
		memcpy(row->comm_name, comm_name, sizeof(comm_name));
	}
	slice = row_slice(row, now_ns);
	slice->n++;
	slice->us += (double)op->exec_ns * 1e-3;
	if (op->busbw_gbs > 0) {
		slice->rated++;
		slice->log_busbw += log(op->busbw_gbs);
	}
}

/* ---- as text ------------------------------------------------------------------------------ */

static struct inspector_slice row_add_up(const struct inspector_row *row, uint64_t now_ns)
{
	struct inspector_slice sum = { 0 };

	for (int i = 0; i < 2; i++) {
		if (row->slice[i].number + 1 < now_ns / SLICE_NS)
			continue;
		sum.n += row->slice[i].n;
		sum.rated += row->slice[i].rated;
		sum.us += row->slice[i].us;
		sum.log_busbw += row->slice[i].log_busbw;
	}
	return sum;
}

static void label_number(struct exposition *e, const char *name, const char *before,
			 uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%s%" PRIu64, before, value);
	exposition_label(e, name, value == UNKNOWN_U64 ? "unknown" : text);
}

/* "4-5MB": whole numbers of the largest unit. */
static void label_size(struct exposition *e, uint64_t bytes)
{
	static const char *const units[UNITS] = { "B", "KB", "MB", "GB", "TB" };
	uint32_t unit = unit_of(bytes);
	uint64_t least = bytes >> 10 * unit;
	char text[64];

	snprintf(text, sizeof(text), "%" PRIu64 "-%" PRIu64 "%s", least, least + 1, units[unit]);
	exposition_label(e, "message_size", text);
}

static bool name_is_p2p(name_t func)
{
	return !strcmp(func, "Send") || !strcmp(func, "Recv");
}

static void row_label(const struct inspector_series *s, const struct inspector_row *row,
		      struct exposition *e)
{
	const struct inspector_key *k = &row->key;
	name_t func = (name_t)(uintptr_t)k->func, algo = (name_t)(uintptr_t)k->algo;
	name_t proto = (name_t)(uintptr_t)k->proto;
	char text[64];

	snprintf(text, sizeof(text), "v%" PRIu64 ".1", k->api_version);
	exposition_label(e, "version", text);
	exposition_label(e, "slurm_job_id", *row->job ? row->job : "unknown");
	exposition_label(e, "node", s->host);
	label_number(e, "uid", "", k->uid);	/* not Inspector's: users may have all else alike */
	label_number(e, "gpu", "GPU", k->gpu_index);
	exposition_label(e, "comm_name", *row->comm_name ? row->comm_name : "unknown");
	label_number(e, "n_nodes", "", k->nnodes);
	label_number(e, "nranks", "", k->nranks);
	exposition_label(e, name_is_p2p(func) ? "p2p_operation" : "collective", func);
	label_size(e, k->bytes);
	if (name_is_p2p(func))
		return;
	snprintf(text, sizeof(text), "%s_%s", algo ?: "unknown", proto ?: "unknown");
	exposition_label(e, "algo_proto", text);
}

static double mean_busbw_gbs(const struct inspector_slice *sum)
{
	return sum->rated ? exp(sum->log_busbw / (double)sum->rated) : NAN;
}

static double mean_us(const struct inspector_slice *sum)
{
	return sum->us / (double)sum->n;
}

static const struct {
	bool p2p;
	const char *name, *help;
	double (*value)(const struct inspector_slice *sum);
} families[] = {
	{ false, "nccl_bus_bandwidth_gbs",
	  "Bus bandwidth of collectives, GB/s, geometric mean, as NCCL Inspector has it.",
	  mean_busbw_gbs },
	{ false, "nccl_collective_exec_time_microseconds",
	  "Time of collectives, mean, as NCCL Inspector has it.", mean_us },
	{ true, "nccl_p2p_bus_bandwidth_gbs",
	  "Bus bandwidth of sends and receives, GB/s, geometric mean, as NCCL Inspector has it.",
	  mean_busbw_gbs },
	{ true, "nccl_p2p_exec_time_microseconds",
	  "Time of sends and receives, mean, as NCCL Inspector has it.", mean_us },
};

void inspector_series_write(const struct inspector_series *s, struct exposition *e, bool all,
			    uid_t uid, uint64_t now_ns)
{
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		exposition_family(e, families[i].name, EXPOSITION_GAUGE, families[i].help);
		for (struct inspector_row *row = NULL; (row = keyed_next(&s->rows, row));) {
			struct inspector_slice sum = row_add_up(row, now_ns);
			size_t before = e->label_bytes;

			if (!sum.n || !(all || row->key.uid == uid) ||
			    name_is_p2p((name_t)(uintptr_t)row->key.func) != families[i].p2p)
				continue;
			row_label(s, row, e);
			exposition_sample(e, "", families[i].value(&sum));
			exposition_unlabel(e, before);
		}
	}
}
