/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_DIAGNOSE_H
#define NCCLINSPD_FINDINGS_DIAGNOSE_H

/*
 * Operations and what is in flight -> findings: verdicts with evidence.
 *
 * This file keeps them: each has an id, begins, may change, ends, and is kept for
 * a while after that, all in fixed memory.  What finds them are detectors, one
 * finding_<kind>.c and one row of the table in diagnose.c each.
 *
 *     diagnose_new(&dg, &config, &source)
 *     as things happen: diagnose_ops(), diagnose_ended(), diagnose_forgotten()
 *     once a second:    diagnose_look()
 *     to answer:        diagnose_visit()
 *
 * Times are CLOCK_MONOTONIC ns.
 */

#include "judge/whom.h"
#include "ncclinspd/base/finding.h"
#include "ncclinspd/keep/writer.h"

struct diagnose;

/* A finding began, changed its kind, verdict, severity or grade, or ended (until_ns). */
typedef void diagnose_changed_fn(void *arg, const struct finding *f, uint64_t now_ns);

/* Settings that may change while the daemon runs; 0: the default. */
struct diagnose_times {
	uint64_t stall_min_ns;	/* no limit is below (10 s) ... */
	uint64_t stall_max_ns;	/* the longest limit, with few exceptions (60 s) */
	uint64_t not_joined_critical_ns;	/* HANG_NOT_JOINED_NS */
};

struct diagnose_config {
	struct diagnose_times times;
	uint64_t keep_ns;	/* time for which an ended finding stays listed; 0: 1 h */
	uint32_t findings;	/* kept at most; 0: 128 */
	const char *state_dir;	/* the directory of the baselines; NULL: none is kept */
	const struct accounts *accounts;	/* NULL: each uid is one */
	bool ras;		/* NCCL's RAS is asked where this node does not show a cause */
};

/* Things that a bound keeps the daemon from watching. */
enum unwatched_thing {
	UNWATCHED_PROCESSES,
	UNWATCHED_FILES,
	UNWATCHED_CONTAINERS,
	UNWATCHED_COMMUNICATORS,
	UNWATCHED_END
};

struct unwatched {
	enum unwatched_thing thing;
	uid_t uid;		/* the owner; the daemon's user, where they are of all users */
	uint64_t count;		/* now of processes, since the start of all others */
	uint32_t limit;		/* the bound that they met */
};

/*
 * The input of the detectors, as in struct serve_source.  `changed`, `gathered`, `meanwhile`,
 * `outputs`, `unwatched`, `waited_ns`, `links` and `queues` may be NULL.
 */
struct diagnose_source {
	void *arg;
	const char *host;	/* the node, as sentences name it; NULL: they do not */
	size_t (*processes)(void *arg, struct process *const **list);
	int (*slots)(void *arg, struct process *p, const struct live_slot **slots);
	diagnose_changed_fn *changed;
	diagnose_changed_fn *gathered;	/* diagnose_gather() */
	void (*meanwhile)(void *arg);
	size_t (*outputs)(void *arg, const struct writer_output **list);
	size_t (*unwatched)(void *arg, const struct unwatched **list);
	uint64_t (*waited_ns)(void *arg);	/* time that the daemon waited for a CPU so far */
	struct reconstruct *reconstruct;
	struct links *links;
	struct queues *queues;
	const struct straggler *straggler;	/* NULL: nobody compares ranks */
	struct sensors *sensors;	/* NULL: nothing is known about the machine */
	struct nics *nics;		/* NULL: nothing is known about interfaces */
	const struct probelink *probe;	/* NULL: nothing more is known of how processes ended */
};

/* 0 or -ENOMEM. */
int diagnose_new(struct diagnose **dgp, const struct diagnose_config *config,
		 const struct diagnose_source *source);
void diagnose_free(struct diagnose *dg);

/* They hold from the next look on. */
void diagnose_set_times(struct diagnose *dg, const struct diagnose_times *times);

/* Operations finished: one, or that of several ranks which were compared (ranks.h). */
void diagnose_ops(struct diagnose *dg, const struct op *const *ops, uint32_t n, uint64_t now_ns);
/* A process ended; a process will be gone after this call. */
void diagnose_ended(struct diagnose *dg, struct process *p, uint64_t now_ns);
void diagnose_forgotten(struct diagnose *dg, const struct process *p);

/* Let every detector look, and end what none of them has seen for a while. */
void diagnose_look(struct diagnose *dg, uint64_t now_ns);

/* Newest first.  `visit` returns false to stop. */
typedef bool diagnose_visit_fn(const struct finding *f, void *arg);
void diagnose_visit(const struct diagnose *dg, diagnose_visit_fn *visit, void *arg);

/*
 * Somebody looked at what it is about, and saw this, in place of what was gathered before.  It is
 * no change that is told: who asks for the finding has it.  NULL: there is none of that id.
 */
const struct finding *diagnose_gather(struct diagnose *dg, uint64_t id,
				      const char lines[FINDING_GATHERED][FINDING_LINE],
				      uint64_t now_ns);

/*
 * Found ones that found no room, because all that are kept are active, or that gave theirs
 * to a user who has fewer.
 */
uint64_t diagnose_refused(const struct diagnose *dg);

/* Open communicators of processes that the last look left out: they are too many. */
uint32_t diagnose_left_out(const struct diagnose *dg);

/* ---- for detectors ------------------------------------------------------- */

/* A process of this node in its communicator `c`, or NULL, whose texts they keep. */
struct whom diagnose_whom(const struct diagnose *dg, const struct process *p,
			  const struct comm *c);

/*
 * Each row of the table.  `state` is what `init` made (state_bytes, zeroed); the
 * functions may be NULL.
 */
struct detector {
	const char *name;
	size_t state_bytes;
	uint64_t hold_ns;	/* a finding ends when not seen for so long, and in two looks */
	bool of_living;		/* it ends with its process too, else with its communicator */
	int (*init)(struct diagnose *dg, void *state);
	void (*deinit)(void *state);
	void (*ops)(struct diagnose *dg, void *state, const struct op *const *ops, uint32_t n,
		    uint64_t now_ns);
	void (*ended)(struct diagnose *dg, void *state, struct process *p, uint64_t now_ns);
	void (*forgotten)(struct diagnose *dg, void *state, const struct process *p);
	void (*look)(struct diagnose *dg, void *state, uint64_t now_ns);
};

extern const struct detector finding_stall;
extern const struct detector finding_straggler;
extern const struct detector finding_died;
extern const struct detector finding_loss;
extern const struct detector finding_slow_peer;
extern const struct detector finding_proxy_starved;
extern const struct detector finding_regression;
extern const struct detector finding_slow_compute;
extern const struct detector finding_unwritten;
extern const struct detector finding_unwatched;

/*
 * Say it, and say it again at each look for as long as it holds.  `key` tells the
 * findings of one detector apart: while one with that key is active it is brought
 * up to date, and keeps its id and the earlier since_ns.  A suspected one becomes a found
 * one so; to suspect what is found already says nothing.
 */
void diagnose_report(struct diagnose *dg, const struct detector *detector, uint64_t key,
		     const struct finding *f, uint64_t now_ns);

/* Every active finding with that key is seen again, as it is.  False: there is none. */
bool diagnose_renew(struct diagnose *dg, const struct detector *detector, uint64_t key,
		    uint64_t now_ns);

/* The state that a detector's `init` made, for what one tells another; NULL: not in the table. */
void *diagnose_state(const struct diagnose *dg, const struct detector *detector);

/* Others wait for a process that died: its finding says so.  False: none is known of it. */
bool died_tell_waiting(struct diagnose *dg, uint64_t process_id, const char *waiting,
		       uint64_t now_ns);

/* The part of wall time for which that process's progress threads were away, lately. */
double proxy_starved_share(const struct diagnose *dg, uint64_t process_id, uint64_t now_ns);

/* The part of its time for which one of them could have run and got no CPU; < 0: not known. */
double proxy_cpu_share(const struct process *process, uint64_t now_ns);

/* The process's iterations of the last 10 s, or its last one: the mean. */
struct diagnose_step {
	uint64_t step_ns;	/* 0: it has none that are known */
	double nccl;		/* the part of it with an operation in flight; < 0: not known */
	double exposed;		/* the part of it in which all that is in flight waits for ranks */
};

struct diagnose_step diagnose_step(const struct diagnose *dg, uint64_t process_id,
				   uint64_t now_ns);

/* The baseline of a kind of operations: without the wait for other ranks of this node. */
struct diagnose_usual {
	uint64_t ns;
	double busbw_gbs;	/* < 0: not known */
};

/*
 * The baseline of the kind that ran most of a row by communicator, function, size, algorithm and
 * protocol.  False: of another row, or nothing is known yet.
 */
struct aggregate_row;
bool diagnose_usual(const struct diagnose *dg, const struct aggregate_row *row,
		    struct diagnose_usual *out);

void diagnose_leave_out(struct diagnose *dg, uint32_t comms);

/* Let the source do what cannot wait; now and then in what takes long. */
void diagnose_meanwhile(const struct diagnose *dg);

const struct diagnose_config *diagnose_settings(const struct diagnose *dg);
const struct diagnose_source *diagnose_source(const struct diagnose *dg);

#endif
