/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_BASE_FINDING_H
#define NCCLINSPD_BASE_FINDING_H

/*
 * A finding, as findings/ hands it on to those that keep it, write it and show it.
 */

#include "reader/base/model.h"

struct field;

/* The texts of `kind` in docs/api.md, for ever. */
#define FINDING_KINDS(X)			\
	X(STALL,         "stall")		\
	X(DESYNC,        "desync")		\
	X(STRAGGLER,     "straggler")		\
	X(SLOW_PEER,     "slow_peer")		\
	X(PROXY_STARVED, "proxy_starved")	\
	X(REGRESSION,    "regression")		\
	X(SLOW_COMPUTE,  "slow_compute")	\
	X(LOSS,          "loss")		\
	X(DIED,          "died")		\
	X(UNWRITTEN,     "unwritten")		\
	X(UNWATCHED,     "unwatched")

enum finding_kind {
#define X(NAME, text) FINDING_##NAME,
	FINDING_KINDS(X)
#undef X
	FINDING_KIND_END
};

#define FINDING_SEVERITIES(X)		\
	X(INFO,     "info")		\
	X(WARNING,  "warning")		\
	X(CRITICAL, "critical")

enum finding_severity {
#define X(NAME, text) FINDING_##NAME,
	FINDING_SEVERITIES(X)
#undef X
	FINDING_SEVERITY_END
};

/*
 * The daemon's certainty, the surest first: `found` is beyond its detector's limits, `suspected`
 * is short of them so far.
 */
#define FINDING_GRADES(X)		\
	X(FOUND,     "found")		\
	X(SUSPECTED, "suspected")

enum finding_grade {
#define X(NAME, text) FINDING_##NAME,
	FINDING_GRADES(X)
#undef X
	FINDING_GRADE_END
};

#define FINDING_RANKS		32
#define FINDING_TEXT		1024
#define FINDING_JOB		65	/* longer ids are cut */
#define FINDING_EVIDENCE	8192
#define FINDING_GATHERED	6	/* lines of what was gathered about it ... */
#define FINDING_LINE		256	/* bytes of a line, the end included */

/* One of a finding's ranks, as the job and the machine call it. */
struct finding_whom {
	int32_t rank;
	int32_t world_rank;	/* UNKNOWN_I32: not told */
	int32_t pid;		/* UNKNOWN_I32, as the GPU: it is not on this node */
	char pci_bus_id[32];	/* "": not told */
	int32_t gpu_index;
};

/* All that diagnose alone sets. */
struct finding_life {
	uint64_t id;		/* 1, 2, ...; never used twice */
	uint64_t found_ns;	/* 0: it is suspected */
	uint64_t seen_ns;	/* its detector last said so ... */
	uint32_t missed;	/* ... so many looks ago */
	uint64_t until_ns;	/* 0: active */
	bool with_job;		/* its process or job ended, and with it the finding */
	uint64_t key;
	bool told;		/* `changed` has had it as found before, */
	bool alarmed;		/* told as critical */
	const struct detector *detector;
	int32_t pid;		/* the pid of process_id; UNKNOWN_I32 */
	char job[FINDING_JOB];	/* job_id(); "": not told, or about no process */
	struct finding_whom whom[FINDING_RANKS];	/* one for each of ranks */
	char gathered[FINDING_GATHERED][FINDING_LINE];	/* diagnose_gather(); "": no line */
};

/* A detector's verdict; `evidence` is one JSON object, or empty: none. */
struct finding {
	enum finding_kind kind;
	enum finding_grade grade;
	enum finding_severity severity;
	name_t verdict;		/* NULL: the kind says it all */
	uid_t uid;		/* the user whose processes it is about */
	uint64_t process_id;	/* the one that it is about, of several the first; 0: none alone */
	bool has_comm_id;
	uint64_t comm_id;
	char comm_name[97];	/* "": none */
	int32_t ranks[FINDING_RANKS];	/* ranks it is about; the first is the worst */
	uint32_t nranks;
	int32_t peer;		/* UNKNOWN_I32: none */
	uint64_t since_ns;	/* when it began, as far as the evidence goes */
	uint64_t due_ns;	/* when it is found if it goes on; 0: it is, or nothing tells */
	char text[FINDING_TEXT];	/* verdict, evidence, next step: for people */
	char evidence[FINDING_EVIDENCE];
	uint32_t evidence_bytes;
	struct finding_life life;
};

name_t finding_kind_name(enum finding_kind kind);
name_t finding_severity_name(enum finding_severity severity);
name_t finding_grade_name(enum finding_grade grade);

/* One more that it is about; those beyond FINDING_RANKS are left out. */
void finding_add_rank(struct finding *f, int32_t rank);

/* Write the row as the evidence; one that became too long is none. */
void finding_set_evidence(struct finding *f, const struct field *fields, const void *row);

#endif
