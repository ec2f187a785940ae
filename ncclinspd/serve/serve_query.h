/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SERVE_SERVE_QUERY_H
#define NCCLINSPD_SERVE_SERVE_QUERY_H

/*
 * The parameters of a request, checked (serve_query.c), and the fields that are wanted of rows
 * (serve_fields.c).
 */

#include "ncclinspd/serve/serve_answer.h"
#include "rows/rows.h"

#define SERVE_ROWS_DEFAULT	100
#define SERVE_ROWS_MAX		10000
#define SERVE_PIDS_MAX		32

enum serve_param {
	PARAM_COMM, PARAM_NRANKS, PARAM_RANK, PARAM_FUNC, PARAM_PID, PARAM_SINCE_MONO_NS,
	PARAM_LIMIT, PARAM_WINDOW, PARAM_BY, PARAM_OLDER_THAN_NS, PARAM_KINDS, PARAM_ACTIVE,
	PARAM_GRADE,
	PARAM_LINK_WINDOW,	/* these two are called `window` as well */
	PARAM_ONE_WINDOW,
	PARAM_PEER, PARAM_DIRECTION, PARAM_CHANNELS, PARAM_FIELDS,
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
	int window;			/* enum aggregate_window, where one is all there can be */
	uint32_t by;			/* AGGREGATE_BY_* */
	uint64_t older_than_ns;
	uint32_t kinds;			/* bits of enum stream_kind */
	int active;			/* true, false or QUERY_ANY */
	int grade;			/* enum finding_grade or QUERY_ANY */
	uint32_t link_windows;		/* bits: 1 << enum links_window */
	int32_t peer;			/* UNKNOWN_I32: all */
	int send;			/* true, false or QUERY_ANY */
	int together;			/* true: all channels of a link in one row */
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

/*
 * "pid,local_ranks.rank" -> what is wanted.  False: `why` says which name is none, and
 * which there are.
 */
bool fields_choose(const struct field_table *tables, const char *list, struct chosen *c,
		   char why[SERVE_WHY_BYTES]);

#endif
