/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SERVE_SERVE_PARTS_H
#define NCCLINSPD_SERVE_SERVE_PARTS_H

/* Parts of answers that others have as well: fields of objects, and rows for snapshots. */

#include "ncclinspd/serve/serve_listing.h"
#include "ncclinspd/serve/serve_routes.h"

extern const struct field process_fields[];
extern const struct field control_fields[];	/* a struct control's */
extern const struct field steering_fields[];	/* a struct process's */
extern const struct field target_fields[];	/* a struct wish's */

extern const struct field op_fields[];
extern const struct field lately_fields[];	/* fields of struct straggler_lately */
extern const struct field finding_line_fields[];	/* a stream's: `kind` is `finding` */
extern const struct field transfer_fields[];
extern const struct field machine_source_fields[];	/* fields of struct sensors_source */

/* A FIELD_PUT, the row is a struct process: the container that it is in, or null. */
field_put_fn serve_put_container;

/* A FIELD_PUT of any row: the sources of what is known about the machine. */
field_put_fn serve_put_sources;

/* The most that watching costs any process; < 0: not known. */
double serve_overhead_share(const struct request *r);

/* The cost of the daemon itself, as a member of the open object. */
void serve_put_daemon_cost(const struct serve *s, struct json *j);

/* A FIELD_PUT; the row is a struct process. */
field_put_fn serve_put_wanted;

/* Texts for the API; NULL: not known.  Equal texts are one pointer. */
const char *process_sampling(const struct process *p);

/*
 * The members that a snapshot and an exemplar have in common: status, findings, inflight,
 * processes, comms, clocks, host_clocks.
 */
void serve_state(struct request *r, struct json *j);

/*
 * Put in what the query asks for: the number of rows, or -ENOMEM.  The summary's are
 * struct aggregate_row, which serve_put_summary_row() writes.
 */
int serve_take_summary(struct request *r, struct sent_listing *l);
int serve_take_peers(struct request *r, struct sent_listing *l);
int serve_take_queues(struct request *r, struct sent_listing *l);
int serve_take_ranks(struct request *r, struct sent_listing *l);

/* Add what is in flight in a process. */
struct inflights;
void serve_collect_inflight(const struct request *r, struct process *p, struct inflights *rows);

/* Open operations of one communicator. */
struct open_ops {
	uint32_t n;
	uint64_t oldest_ns;	/* UNKNOWN_U64 */
};

/*
 * Open operations by the communicators of a process, as /v1/inflight tells them; parts of them do
 * not count.  Room for all of its communicators.  0 or -ENOMEM.
 */
int serve_count_open(const struct request *r, struct process *p, struct open_ops *open);

/* NULL: no memory. */
struct sent_listing *serve_new_peers(const struct serve *s, const struct chosen *chosen);
struct sent_listing *serve_new_queues(const struct serve *s, const struct chosen *chosen);
struct sent_listing *serve_new_ranks(const struct serve *s, const struct chosen *chosen);

/*
 * Visit the summary's rows by r->query.by as aggregate_query() does.  `restart`: it begins
 * once more, so that all that was visited is void.
 */
struct aggregate_row;
int serve_visit_sums(struct request *r, bool visit(const struct aggregate_row *row, void *arg),
		     void restart(void *arg), void *arg);
listing_put serve_put_summary_row;

/*
 * The members of a snapshot that sum up: rows with what is since the one before, peers and queues,
 * ranks.  serve_keep_sums(): the next one's rows are compared with those of the last.
 */
serve_part serve_put_sums, serve_put_links, serve_put_ranks;
void serve_keep_sums(struct serve *s);
void serve_free_sums(struct serve *s);

/* The member of a snapshot by which ranks of several nodes are compared: samples. */
serve_part serve_samples;

/*
 * The log's operations that the client may see, newest first and piece by piece: what is
 * added meanwhile is not visited.  `visit` returns false to stop.
 */
typedef bool serve_op_fn(const struct op *op, void *arg);
void serve_visit_ops(const struct request *r, serve_op_fn *visit, void *arg);

#endif
