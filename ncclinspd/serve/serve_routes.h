/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SERVE_SERVE_ROUTES_H
#define NCCLINSPD_SERVE_SERVE_ROUTES_H

/*
 * A request; and for each path that serve.c knows the function that answers it, and the tables
 * of its rows, of which the parameter `fields` chooses.
 */

#include <jansson.h>

#include "ncclinspd/serve/serve_query.h"
#include "ncclinspd/serve/server.h"

struct request {
	struct serve *serve;
	struct viewer viewer;
	struct query query;
	struct chosen chosen;
	bool dry_run;		/* a PUT that is to change nothing */
	const char *tail;	/* rest of the path, behind a route that ends in a slash */
	const char *body;	/* not terminated; NULL: none */
	size_t body_bytes;
	const char *accept;	/* types of answers; NULL: any */
	struct serve_client *client;
	char why[256];		/* text: why something cannot be done; "": nothing to add */
};

/* A part of an answer: members of its open object.  Other clients have their turns between two. */
typedef void serve_part(struct request *r, struct json *j);

/* An answer that is made part by part. */
struct making {
	struct request request;
	struct json json;
	serve_part *const *next;	/* ends with NULL */
};

/* Keep in r->why what is wrong; returns `error`. */
int serve_refuse(struct request *r, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * Give each member of the body, which is one JSON object, to `take`, until one returns an error:
 * that one; or 0, or -EINVAL.
 */
typedef int serve_member_fn(struct request *r, const char *key, const json_t *value, void *arg);
int serve_read_body(struct request *r, serve_member_fn *take, void *arg);

extern const struct field_table process_tables[], comm_tables[], op_tables[], summary_tables[];
extern const struct field_table peer_tables[], inflight_tables[], finding_tables[];
extern const struct field_table rank_tables[], queue_tables[];

/* Each adds its members to the answer's open object. */
void serve_status(struct request *r, struct json *j);
void serve_config(struct request *r, struct json *j);
void serve_processes(struct request *r, struct json *j);
void serve_comms(struct request *r, struct json *j);
void serve_inflight(struct request *r, struct json *j);
void serve_findings(struct request *r, struct json *j);
void serve_clocks(struct request *r, struct json *j);
void serve_machine(struct request *r, struct json *j);
void serve_exemplars(struct request *r, struct json *j);
void serve_level(struct request *r, struct json *j);
void serve_overhead(struct request *r, struct json *j);
void serve_phase(struct request *r, struct json *j);

/* The beginning of a snapshot, and its other parts. */
serve_part serve_begin_snapshot;
extern serve_part *const serve_snapshot_parts[];

/*
 * The text (malloc'ed) of the exemplar that r->tail names.  -ENOENT: no such for him;
 * -EAGAIN: its disk is busy, or does not answer.
 */
int serve_exemplar(struct request *r, char **text, size_t *bytes);

/*
 * -EPERM; -EINVAL: the body; -ESRCH: there is no such process here that is his; -ENOSPC:
 * too many wishes; -EIO: jobs cannot be told; -ENOSYS: nothing can be wanted of jobs.
 */
int serve_put_level(struct request *r, struct json *j);

/* PUT /v1/phase has the same errors; -ENOSPC: too many names. */
int serve_put_phase(struct request *r, struct json *j);

/* PUT /v1/findings.  -EPERM; -EINVAL: the body; -ENOENT: no such finding. */
int serve_put_gathered(struct request *r, struct json *j);

/* SERVE_LATER: when it is written; -EPERM, -ENOSYS: no place; or as serve_source.snapshot. */
#define SERVE_LATER	1
int serve_write_snapshot(struct request *r, struct json *j);

/* 0 or -ENOMEM. */
int serve_collectives(struct request *r, struct answer *a);
int serve_summary(struct request *r, struct answer *a);
int serve_metrics(struct request *r, struct answer *a);
int serve_peers(struct request *r, struct answer *a);
int serve_queues(struct request *r, struct answer *a);
int serve_ranks(struct request *r, struct answer *a);

/*
 * An answer without an end, fed by serve_op() and serve_process(), until the client goes.
 * -ENOMEM; -ENOSPC: too many take records.
 */
int stream_open(struct request *r, struct answer *a);

#endif
