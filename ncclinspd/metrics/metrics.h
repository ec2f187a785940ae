/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_METRICS_METRICS_H
#define NCCLINSPD_METRICS_METRICS_H

/*
 * Finished operations, and a look at everything once a second -> the series that
 * Prometheus collects (ncclinsp-metrics(7)).
 *
 *     metrics_new(&m, &config, &source)
 *     as things happen: metrics_op(), metrics_moved(), metrics_ended(), metrics_forgotten()
 *     once a second:    metrics_look()
 *     to answer:        metrics_write()
 *
 * A counter never goes back while its labels are known, whatever other stages let go: it
 * adds up how much theirs have grown.  Series are bounded: labels that find no room are
 * counted under "other".  What had no use for ten minutes
 * makes room where it is wanted, then what a user has beyond a fair share, and what no job
 * uses any more goes after an hour.
 *
 * Times are CLOCK_MONOTONIC ns.
 */

#include "reader/base/model.h"

#define METRICS_SERIES_FULL	2000	/* the most, by profile, where nothing is said */
#define METRICS_SERIES_FLEET	150
#define METRICS_SERIES_LEAST	200
#define METRICS_SERIES_MOST	100000

struct exposition;
struct links_row;
struct metrics;

struct metrics_config {
	const char *host;	/* copied */
	bool fleet;		/* the profile: only families for thousands of nodes, else all */
	uint32_t series;	/* the most there may be; 0: the profile's default */
	bool peers;		/* series of each link */
	bool inspector;		/* series by the names of NCCL Inspector as well */
	const struct accounts *accounts;	/* NULL: each uid is one */
	uint64_t seed;
};

/*
 * The same as in struct serve_source.  `links`, `steer`, `straggler`, `diagnose` and `otlp` may
 * be NULL.
 */
struct metrics_source {
	void *arg;
	size_t (*processes)(void *arg, struct process *const **list);
	struct reconstruct *reconstruct;
	struct links *links;
	const struct straggler *straggler;
	const struct steer *steer;
	const struct diagnose *diagnose;
	struct otlp *otlp;
};

/* 0 or -ENOMEM. */
int metrics_new(struct metrics **mp, const struct metrics_config *config,
		const struct metrics_source *source);
void metrics_free(struct metrics *m);

void metrics_op(struct metrics *m, const struct op *op, uint64_t now_ns);

/* Add what a network transfer brought: links_last(). */
void metrics_moved(struct metrics *m, const struct links_row *row, uint64_t now_ns);

void metrics_ended(struct metrics *m, const struct process *p, uint64_t now_ns);
void metrics_forgotten(struct metrics *m, const struct process *p);
void metrics_look(struct metrics *m, uint64_t now_ns);

/* All that `uid` may see, or everything. */
void metrics_write(const struct metrics *m, struct exposition *e, bool all, uid_t uid,
		   uint64_t now_ns);

#endif
