/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything in one object: what /v1/ would answer at this moment, with sums, to root in files
 * and to whoever asks by GET /v1/snapshot; black boxes have the newest operations of each rank
 * too.  And POST /v1/snapshot, which has it written.
 */
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/serve/serve_client.h"
#include "ncclinspd/serve/serve_parts.h"
#include "ncclinspd/sums/aggregate.h"
#include "util/cleanup.h"

#define FORMAT		"ncclinsp-snapshot"
#define VERSION		1
/* The most of all users, who have equal shares. */
#define KINDS		512	/* kinds of operations, by process, communicator and function */
#define KEPT		32	/* the most operations of each kind */
#define ROWS		4096

/* The part of a kind that is in the file. */
struct snapshot_kind {
	uint64_t process_id;
	pid_t pid;
	uint32_t comm_index;
	bool has_comm_id;
	uint64_t comm_id;
	int32_t rank;
	name_t func;
	uint32_t rows;
	uint64_t first_seq;	/* UNKNOWN_U64: none had a number */
};

#include "schema/snapshot.h"

static void snapshot_put_ticks(struct request *r, struct json *j)
{
	struct process *p;

	json_begin_member(j, "host_clocks", '[');
	for (size_t i = 0; (p = serve_next_process(r->serve, &r->viewer, &i));)
		rows_put_object(&r->serve->writer, j, host_clock_fields, p);
	json_end(j, ']');
}

struct ops {
	const struct request *request;
	struct json *json;
	struct snapshot_kind *kinds;
	uint32_t users;
	struct accounts_tally kinds_of, rows_of;
};

/* NULL: no room for one more kind. */
static struct snapshot_kind *kinds_find(struct ops *o, const struct op *op)
{
	for (uint32_t i = 0; i < KINDS; i++) {
		struct snapshot_kind *k = &o->kinds[i];

		if (!k->rows && (*accounts_count(&o->kinds_of, op->account))++ >= KINDS / o->users)
			return NULL;
		if (!k->rows)
			*k = (struct snapshot_kind){
				.process_id = op->process_id, .pid = op->pid,
				.comm_index = op->comm_index, .has_comm_id = op->has_comm_id,
				.comm_id = op->comm_id, .rank = op->rank, .func = op->func,
				.first_seq = UNKNOWN_U64,
			};
		if (k->process_id == op->process_id && k->comm_index == op->comm_index &&
		    k->func == op->func)
			return k;
	}
	return NULL;
}

static bool snapshot_put_op(const struct op *op, void *arg)
{
	struct ops *o = arg;
	struct snapshot_kind *k = kinds_find(o, op);

	if (!k || k->rows == KEPT ||
	    (*accounts_count(&o->rows_of, op->account))++ >= ROWS / o->users)
		return true;
	k->rows++;
	if (op->seq != UNKNOWN_U64)
		k->first_seq = op->seq;
	rows_put_object(&o->request->serve->writer, o->json, op_fields, op);
	return true;
}

static void snapshot_put_ops(struct request *r, struct json *j, struct snapshot_kind *kinds)
{
	struct ops ops = { .request = r, .json = j, .kinds = kinds,
			   .users = serve_count_users(r->serve, &r->viewer) };

	json_begin_member(j, "collectives", '[');
	serve_visit_ops(r, snapshot_put_op, &ops);
	json_end(j, ']');
}

#include "schema/kept.h"

static void snapshot_put_kinds(const struct request *r, struct json *j,
			       const struct snapshot_kind *kinds)
{
	json_begin_member(j, "kept", '[');
	for (uint32_t i = 0; i < KINDS && kinds[i].rows; i++)
		rows_put_object(&r->serve->writer, j, kept_fields, &kinds[i]);
	json_end(j, ']');
}

static void snapshot_put_status(struct request *r, struct json *j)
{
	json_begin_member(j, "status", '{');
	serve_status(r, j);
	json_end(j, '}');
}

#define STATE_PARTS	7	/* the first parts: all but sums and samples */

serve_part *const serve_snapshot_parts[] = {
	snapshot_put_status, serve_findings, serve_inflight, serve_processes, serve_comms,
	serve_clocks, snapshot_put_ticks, serve_put_sums, serve_put_links, serve_put_ranks,
	serve_samples, NULL
};

static void snapshot_put_parts(struct request *r, struct json *j, size_t most)
{
	for (size_t i = 0; i < most && serve_snapshot_parts[i]; i++) {
		serve_meanwhile(r->serve);
		serve_snapshot_parts[i](r, j);
	}
}

void serve_state(struct request *r, struct json *j)
{
	snapshot_put_parts(r, j, STATE_PARTS);
}

static void snapshot_put_header(struct request *r, struct json *j, const char *reason)
{
	json_member_string(j, "format", FORMAT);
	json_member_u64(j, "format_version", VERSION);
	json_member_string(j, "reason", reason ? reason : "interval");
	rows_put_time(&r->serve->writer, j, "written", r->serve->now_ns);
}

static void snapshot_put_newest(struct request *r, struct json *j)
{
	CLEANUP(cleanup_freep) struct snapshot_kind *kinds = calloc(KINDS, sizeof(*kinds));

	if (!kinds) {
		json_fail(j, -ENOMEM);
		return;
	}
	snapshot_put_ops(r, j, kinds);
	snapshot_put_kinds(r, j, kinds);
}

int serve_snapshot(struct serve *s, const char *reason, uint64_t now_ns, struct json *j)
{
	struct request r = { .serve = s, .viewer = { .all = true } };

	query_init(&r.query);
	r.query.window = AGGREGATE_ALL;
	s->now_ns = now_ns;
	json_begin(j, '{');
	snapshot_put_header(&r, j, reason);
	snapshot_put_parts(&r, j, SIZE_MAX);
	if (reason)
		snapshot_put_newest(&r, j);
	else if (!json_error(j))
		serve_keep_sums(s);
	json_end(j, '}');
	json_newline(j);
	return json_error(j);
}

void serve_begin_snapshot(struct request *r, struct json *j)
{
	snapshot_put_header(r, j, "request");
}

/* ---- POST /v1/snapshot ------------------------------------------------------------ */

int serve_write_snapshot(struct request *r, struct json *j)
{
	struct serve *s = r->serve;
	char path[PATH_MAX];
	uint64_t bytes;
	int error;

	if (!r->viewer.all)
		return -EPERM;
	if (!s->source.snapshot)
		return -ENOSYS;
	error = s->source.snapshot(s->source.arg, s->now_ns, path, &bytes, &r->client->ticket);
	if (error < 0)
		return error;
	json_member_string(j, "path", path);
	json_member_u64(j, "size_bytes", bytes);
	return SERVE_LATER;
}

bool serve_later(struct serve_client *c)
{
	const struct serve_source *source = &c->serve->source;
	char why[128];
	int error = source->snapshot_outcome(source->arg, c->ticket);

	if (error == -EAGAIN)
		return false;
	if (error < 0) {
		snprintf(why, sizeof(why), "the snapshot could not be written: %s",
			 strerror(-error));
		answer_deinit(&c->answer);
		answer_failure(&c->answer, -EIO, why);
	}
	return true;
}
