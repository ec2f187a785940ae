/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SERVE_SERVE_IMPL_H
#define NCCLINSPD_SERVE_SERVE_IMPL_H

/*
 * The structs and functions that the server's files share; for serve*.c and stream.c only.
 *
 *   serve.c           routes, methods, errors; the server's life
 *   http.c            bytes -> struct http_request
 *   serve_accept.c    the clients that are let in, and those that have to go for it
 *   serve_client.c    one connection: reading, answering, its deadlines
 *   serve_answer.c    answers and refusals
 *   serve_query.c     parameters -> struct query
 *   serve_fields.c    which fields of a row are wanted
 *   serve_status.c    /v1/status                  serve_processes.c  /v1/processes
 *   serve_comms.c     /v1/comms                   serve_inflight.c   /v1/inflight
 *   serve_listing.c   answers of many rows
 *   serve_ranks.c     /v1/ranks
 *   serve_ops.c       /v1/collectives             serve_summary.c    /v1/summary
 *   serve_findings.c  /v1/findings                serve_peers.c      /v1/peers
 *   serve_clocks.c    /v1/clocks
 *   serve_level.c     GET /v1/level               serve_level_put.c  PUT /v1/level
 *   serve_phase.c     /v1/phase                   serve_target.c     whom a PUT is about
 *   serve_overhead.c  /v1/overhead                serve_metrics.c    /metrics
 *   serve_config.c    /v1/config
 *   serve_snapshot.c  POST /v1/snapshot, and what is written then
 *   serve_exemplars.c /v1/exemplars, one of them, and what is written into one
 *   stream.c          /v1/stream                  stream_records.c   records in it
 */

#include <jansson.h>

#include "ncclinspd/serve/http.h"
#include "ncclinspd/serve/serve.h"
#include "reader/base/process.h"
#include "rows/rows.h"
#include "util/json.h"
#include "util/log.h"

#define SERVE_SPARE		64	/* connections without a place, on their way out */
#define SERVE_BODY_BYTES	65536
#define SERVE_ANSWER_BYTES	(32u << 20)
#define SERVE_BLOCK_BYTES	16384	/* a piece of an answer that is written piece by piece */
#define SERVE_ROWS_DEFAULT	100
#define SERVE_ROWS_MAX		10000
#define SERVE_PIDS_MAX		32
#define SERVE_WHY_BYTES		1536	/* room for why a request was refused */

/* ---- who asks ---------------------------------------------------------- */

struct viewer {
	uid_t uid;
	bool all;	/* root, the daemon's own user, a member of the group */
};

static inline bool viewer_sees(const struct viewer *v, uid_t uid)
{
	return v->all || v->uid == uid;
}

/* Phases, in the order in which clients give up their places. */
enum client_phase {
	CLIENT_IDLE,		/* between two requests */
	CLIENT_READING,		/* connected, or a part of a request has come */
	CLIENT_ANSWERING,
	CLIENT_WAITING,		/* its answer is known when a file has been written */
	CLIENT_STREAMING,
	CLIENT_LEAVING,		/* has its last answer; what it still sends is thrown away */
};

/*
 * An answer is a text, or what `read` gives piece by piece until it says that this was the
 * end.  Whatever it owns goes with it (answer_deinit()).
 */
#define ANSWER_END	(-1)
#define ANSWER_BROKEN	(-2)	/* the part that was sent so far cannot be completed */

struct answer {
	unsigned status;
	const char *type;
	char allow[32];		/* methods, behind a 405; "": does not apply */
	bool closes;		/* the connection, afterwards */
	char *text;
	size_t bytes;
	/* Up to `max` bytes; 0: nothing now, client_wake() follows; or one of the above. */
	ssize_t (*read)(void *arg, char *buf, size_t max);
	void (*free)(void *arg);	/* frees `arg`; NULL: nothing to be freed */
	void *arg;
};

/* One connection; lives from its accept to its close. */
struct serve_client {
	struct serve *serve;
	struct serve_client *next, **prev;
	int fd;
	struct viewer viewer;
	enum client_phase phase;
	bool has_place;		/* false: it is told so when it asks, and goes */
	bool readable, writable;	/* the state as far as is known */
	bool hung_up;		/* sends nothing more, or is gone */
	bool broken;		/* nothing can be sent any more */
	bool asleep;		/* its answer has nothing for it now */
	uint64_t answered;	/* requests so far */
	uint64_t since_ns;	/* start of this phase */
	uint64_t deadline_ns;	/* UINT64_MAX: none */

	char *in;		/* NULL: nothing has come; the head, then what follows it */
	size_t in_bytes;
	bool in_seen;		/* all of that has been looked at */
	size_t head_bytes;	/* 0: not whole */
	struct http_request request;
	struct http_body body_state;
	char *body;		/* its first SERVE_BODY_BYTES at most; NULL: none, or no memory */
	size_t body_bytes;

	struct answer answer;
	bool head_only;
	char *out;		/* headers, later pieces of the answer; NULL: nothing is sent */
	size_t out_bytes, out_sent;
	size_t text_sent;
	bool out_last;
	uint64_t ticket;	/* the file's, while waiting */
};

/* serve_client.c: take over a connection.  -ENOMEM, or epoll's errno: it is closed. */
int client_add(struct serve *s, int fd);
void client_close(struct serve_client *c);

/* The group whose members see everything, NULL: of the usual name; -1: there is no such. */
gid_t client_group(const char *name);

/* Go on with all that can: what came is read, answers are sent. */
void clients_run(struct serve *s);

/* The earliest moment at which that has something to do; 0: at once. */
uint64_t clients_due(const struct serve *s);

/* It has something to be told again. */
void client_wake(struct serve_client *c);

/* It loses its place, with a 429 if nothing else is on its way to it. */
void client_dismiss(struct serve_client *c);

/* It is closed, after a 429 unless it has had its answer. */
void client_push_out(struct serve_client *c);

/*
 * serve_accept.c: s->fd, which is read when somebody comes or says something, and whoever
 * waits is let in.  accept_close() closes the listening one too.
 */
int accept_open(struct serve *s);
void accept_close(struct serve *s);
void accept_clients(struct serve *s);
uint64_t accept_deadline(const struct serve *s);

/* ---- answers ----------------------------------------------------------- */

#define SERVE_JSON	"application/json"

/* Takes the text (malloc'ed) over. */
void answer_text(struct answer *a, const char *type, char *text, size_t bytes);

/* Takes the text out of `j`. */
void answer_json(struct answer *a, unsigned status, struct json *j);

void answer_refuse(struct answer *a, unsigned status, const char *code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
/* A negative errno of what was to be done; `why` in words, "": those that fit the errno. */
void answer_failure(struct answer *a, int error, const char *why);
void answer_deinit(struct answer *a);

/* The request of `c` is complete: fill in c->answer.  Returns the phase in which that is. */
enum client_phase serve_request(struct serve_client *c);

/* Complete the answer of a client that waits.  False: it goes on waiting. */
bool serve_later(struct serve_client *c);

/* ---- what is asked ----------------------------------------------------- */

#define SERVE_PARAMS(X)			\
	X(COMM,          comm)		\
	X(NRANKS,        nranks)	\
	X(RANK,          rank)		\
	X(FUNC,          func)		\
	X(PID,           pid)		\
	X(SINCE_MONO_NS, since_mono_ns)	\
	X(LIMIT,         limit)		\
	X(WINDOW,        window)	\
	X(BY,            by)		\
	X(OLDER_THAN_NS, older_than_ns)	\
	X(KINDS,         kinds)		\
	X(ACTIVE,        active)	\
	X(GRADE,         grade)		\
	X(LINK_WINDOW,   window)	\
	X(ONE_WINDOW,    window)	\
	X(PEER,          peer)		\
	X(DIRECTION,     direction)	\
	X(FIELDS,        fields)

enum serve_param {
#define X(NAME, name) PARAM_##NAME,
	SERVE_PARAMS(X)
#undef X
	PARAM_END
};

#define PARAM_BIT(name)	(1u << PARAM_##name)

enum stream_kind {
	STREAM_COLLECTIVE,
	STREAM_PROCESS,
	STREAM_FINDING,
	STREAM_RECORD,
};

#define QUERY_ANY	(-1)

/* Parsed and checked; what was not given has its default. */
struct query {
	char comm[128];			/* "": all; matches a name */
	bool comm_may_be_id;		/* `comm` also reads as an id */
	uint64_t comm_id;
	int32_t nranks, rank;		/* UNKNOWN_I32: all */
	char func[64];			/* "": all */
	uint32_t npids;			/* 0: all */
	pid_t pid[SERVE_PIDS_MAX];
	uint64_t since_mono_ns;
	uint32_t limit;			/* the most rows; 0: as many as without it */
	uint32_t windows;		/* bits: 1 << enum aggregate_window */
	uint32_t window;		/* enum aggregate_window, where one is all there can be */
	uint32_t by;			/* AGGREGATE_BY_* */
	uint64_t older_than_ns;
	uint32_t kinds;			/* bits of enum stream_kind */
	int active;			/* true, false or QUERY_ANY */
	int grade;			/* enum finding_grade or QUERY_ANY */
	uint32_t link_windows;		/* bits: 1 << enum links_window */
	int32_t peer;			/* UNKNOWN_I32: all */
	int send;			/* true, false or QUERY_ANY */
	const char *fields;		/* text as it was given, the request's; NULL: all */
};

/* Nothing asked for in particular. */
void query_init(struct query *q);

/*
 * All parameters of a request; `allowed` are bits of enum serve_param.  False: `why`
 * says what is wrong and what is allowed.  `text`, NULL: none, is changed, and pointed to.
 */
bool query_read(struct query *q, char *text, unsigned allowed, char why[SERVE_WHY_BYTES]);

/* A rank of a communicator in a process, as parameters choose them. */
struct query_rank {
	bool has_comm_id;
	uint64_t comm_id;
	const char *comm_name;	/* NULL or "": none */
	int32_t nranks, rank;
	pid_t pid;
};

/* Does it pass comm, nranks, rank and pid? */
bool query_wants(const struct query *q, const struct query_rank *rank);

/* Digits of `base` and nothing else, at most `max`. */
bool query_number(const char *text, int base, uint64_t max, uint64_t *out);

/* ---- rows -------------------------------------------------------------- */

/*
 * "pid,local_ranks.rank" -> what is wanted.  False: `why` says which name is none, and
 * which there are.
 */
bool fields_choose(const struct field_table *tables, const char *list, struct chosen *c,
		   char why[SERVE_WHY_BYTES]);

extern const struct field_table process_tables[], comm_tables[], op_tables[], summary_tables[];
extern const struct field_table peer_tables[], inflight_tables[], finding_tables[];
extern const struct field_table rank_tables[];

extern const struct field process_fields[];
extern const struct field control_fields[];	/* a struct control's */
extern const struct field steering_fields[];	/* a struct process's */
extern const struct field target_fields[];	/* a struct wish's */

/* A FIELD_PUT, the row is a struct process: the container that it is in, or null. */
field_put_fn serve_put_container;
extern const struct field op_fields[];
extern const struct field lately_fields[];	/* of struct straggler_lately */
extern const struct field finding_line_fields[];	/* of a stream: `kind` is `finding` */
extern const struct field transfer_fields[];

/* ---- the server -------------------------------------------------------- */

#define SERVE_USERS	64

/* A line of /etc/passwd, as of a moment ago; an empty name: there was none. */
struct user {
	uid_t uid;
	char name[40];
	uint64_t until_ns;	/* 0: unused */
};

struct serve {
	struct rows_writer writer;
	struct serve_config config;
	struct serve_source source;
	char host[256];
	char boot_id[40];
	char loop[16];
	int fd;			/* an epoll set: config.listen_fd and the clients */
	bool listening;		/* false: nothing to make a connection of */
	uint64_t listen_again_ns;
	struct log_rate accept_rate;
	gid_t group;		/* its members see everything; -1: there is no such group */
	uint64_t now_ns;
	struct serve_client *clients;
	uint32_t nclients;
	struct stream *streams;
	uint32_t tracing;	/* streams that take records */
	uint64_t collected, collected_ns;	/* answers of /metrics, and when the last was */
	struct json line;	/* scratch of the streams */
	struct user *users;	/* SERVE_USERS of them, by uid */
	struct serve_sums *sums;	/* the snapshot before's; NULL: none was asked for yet */
};

/* The server of a field's function. */
static inline const struct serve *serve_of(const struct rows_writer *w)
{
	return (const struct serve *)((const char *)w - offsetof(struct serve, writer));
}

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

/* Each adds its members to the answer's open object. */
void serve_status(struct request *r, struct json *j);
void serve_config(struct request *r, struct json *j);
void serve_processes(struct request *r, struct json *j);
void serve_comms(struct request *r, struct json *j);
void serve_inflight(struct request *r, struct json *j);
void serve_findings(struct request *r, struct json *j);
void serve_clocks(struct request *r, struct json *j);

void serve_exemplars(struct request *r, struct json *j);

/*
 * The members that a snapshot and an exemplar have in common: status, findings, inflight,
 * processes, comms, clocks, host_clocks.
 */
void serve_state(struct request *r, struct json *j);

/*
 * The text (malloc'ed) of the exemplar that r->tail names.  -ENOENT: no such for him;
 * -EAGAIN: its disk is busy, or does not answer.
 */
int serve_exemplar(struct request *r, char **text, size_t *bytes);
void serve_level(struct request *r, struct json *j);
void serve_overhead(struct request *r, struct json *j);

/*
 * -EPERM; -EINVAL: the body; -ESRCH: there is no such process here that is his; -ENOSPC:
 * too many wishes; -EIO: jobs cannot be told; -ENOSYS: nothing can be wanted of jobs.
 */
int serve_put_level(struct request *r, struct json *j);

/* PUT /v1/phase has the same errors; -ENOSPC: too many names. */
void serve_phase(struct request *r, struct json *j);
int serve_put_phase(struct request *r, struct json *j);

/* Keep in r->why what is wrong; returns `error`. */
int serve_refuse(struct request *r, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/*
 * The target of a PUT is a wish: its kind, pid, job, id, uid and everybody.
 * target_read() takes these and dry_run from the body and gives all other members to `other`;
 * target_find() sees to it that there are such processes, and that they may be changed.
 * 0, or -EINVAL, -ESRCH, -EPERM, or what `other` returned.
 */
struct wish;
typedef int target_member_fn(struct request *r, const char *key, const json_t *value, void *arg);
int target_read(struct request *r, struct wish *w, target_member_fn *other, void *arg);
int target_find(struct request *r, struct wish *w);

/* The live ones: step from *i = 0 until NULL. */
struct process *target_next(const struct request *r, const struct wish *w, size_t *i);

/* The answer to a wish: its members, and whom it is about. */
void serve_put_outcome(struct request *r, struct json *j, const struct wish *w);

/* The most that watching costs any process; < 0: not known. */
double serve_overhead_share(const struct request *r);

/* The cost of the daemon itself, as a member of the open object. */
void serve_put_daemon_cost(const struct serve *s, struct json *j);

/* A FIELD_PUT; the row is a struct process. */
field_put_fn serve_put_wanted;

/* SERVE_LATER: when it is written; -EPERM, -ENOSYS: no place; or as serve_source.snapshot. */
#define SERVE_LATER	1
int serve_write_snapshot(struct request *r, struct json *j);

/* The user's name; NULL: the local files have none. */
const char *serve_user_name(const struct serve *s, uid_t uid);

/* Texts for the API; NULL: not known.  Equal texts are one pointer. */
const char *process_sampling(const struct process *p);

/* Let the source do what cannot wait; before anything that takes a while. */
static inline void serve_meanwhile(const struct serve *s)
{
	if (s->source.meanwhile)
		s->source.meanwhile(s->source.arg);
}

/* All processes that `v` sees: step from *i = 0 until NULL. */
struct process *serve_next_process(const struct serve *s, const struct viewer *v, size_t *i);

/*
 * An answer of many rows, {"name":[...]}: they are put in first, and become text as
 * the client takes it.
 */
struct sent_listing;
typedef void listing_put(const struct serve *s, struct json *j, const void *row,
			 const struct chosen *chosen);

/* `put` writes those of a row's members that are wanted; NULL: all.  NULL: no memory. */
struct sent_listing *listing_new(const struct serve *s, const char *name, size_t row_bytes,
				 listing_put *put, const struct chosen *chosen);
void listing_free(struct sent_listing *l);

/* The answer's open object, for members that stand before the rows; before listing_open(). */
struct json *listing_head(struct sent_listing *l);

/* Room for another row.  NULL: no memory. */
void *listing_add(struct sent_listing *l);
void listing_clear(struct sent_listing *l);

/* All rows as an array, and none left. */
void listing_put_all(struct sent_listing *l, struct json *j);

/* The answer; the listing is its own from then on. */
void listing_open(struct sent_listing *l, struct answer *a);

/*
 * Put in what the query asks for: the number of rows, or -ENOMEM.  The summary's are
 * struct aggregate_row, which serve_put_summary_row() writes.
 */
int serve_take_summary(struct request *r, struct sent_listing *l);
int serve_take_peers(struct request *r, struct sent_listing *l);
int serve_take_ranks(struct request *r, struct sent_listing *l);
/* NULL: no memory. */
struct sent_listing *serve_new_peers(const struct serve *s, const struct chosen *chosen);
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
 * The members of a snapshot that sum up: rows, peers, and what is since the one before,
 * which `keeps` makes this one be for the next.
 */
void serve_sums(struct request *r, struct json *j, bool keeps);
void serve_free_sums(struct serve *s);

/* The member of a snapshot by which ranks of several nodes are compared: samples. */
void serve_samples(struct request *r, struct json *j);

/*
 * The log's operations that the client may see, newest first and piece by piece: what is
 * added meanwhile is not visited.  `visit` returns false to stop.
 */
typedef bool serve_op_fn(const struct op *op, void *arg);
void serve_visit_ops(const struct request *r, serve_op_fn *visit, void *arg);

/* 0 or -ENOMEM. */
int serve_collectives(struct request *r, struct answer *a);
int serve_summary(struct request *r, struct answer *a);
int serve_metrics(struct request *r, struct answer *a);
int serve_peers(struct request *r, struct answer *a);
int serve_ranks(struct request *r, struct answer *a);

/*
 * An answer without an end, fed by serve_op() and serve_process(), until the client goes.
 * -ENOMEM; -ENOSPC: too many take records.
 */
int stream_open(struct request *r, struct answer *a);

#endif
