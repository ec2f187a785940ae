/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SUMS_FIT_H
#define NCCLINSPD_SUMS_FIT_H

/*
 * The time that a network takes for a transfer: t = latency + size / rate.  What delays a
 * transfer or its end being seen only adds time, so the line is sought below the points and
 * not through their middle.  A thread that is late to see a begin makes a transfer look short:
 * the least time of thousands is such a one.
 *
 * Kept is a low quantile of the times of each of FIT_SIZES sizes.  Where there are more, the
 * one goes that stands highest above its neighbours: it says least about what is below.
 */

#include <stdbool.h>
#include <stdint.h>

#define FIT_SIZES	12
#define FIT_LEAST_SIZES	3	/* a line through fewer proves nothing */
#define FIT_LEAST_R2	0.8	/* a line that explains less is none */
#define FIT_SPREAD	4	/* the largest size must be so many times the smallest */
#define FIT_KEPT	8	/* times of a size, the least ones */
#define FIT_LOW		16	/* one in so many times is shorter than the low one */

struct fit_size {
	uint64_t bytes;
	uint64_t n;		/* transfers of that size */
	uint32_t kept_ns[FIT_KEPT];	/* the least of `seen` times, in order */
	uint32_t kept;
	uint32_t seen;		/* halved, with what is kept, before more than FIT_KEPT are low */
};

/* Zeroed storage has no points. */
struct fit {
	uint32_t sizes;
	uint64_t n;		/* transfers, of sizes that were given up too */
	double bytes;		/* bytes of them all */
	struct fit_size size[FIT_SIZES + 1];	/* points by bytes; one more while one is added */
};

/* The methods, in the order of trust. */
#define FIT_METHODS(X)			\
	X(HULL,          "hull")	\
	X(LEAST_SQUARES, "least_squares")	\
	X(THEIL_SEN,     "theil_sen")

enum fit_method {
#define X(NAME, text) FIT_##NAME,
	FIT_METHODS(X)
#undef X
	FIT_METHOD_END
};

struct fit_line {
	enum fit_method method;
	double latency_ns;	/* >= 0 */
	double ns_per_byte;	/* > 0 */
	double r2;		/* FIT_LEAST_R2 to 1: part of the spread in time that it explains */
};

/* A transfer of that size took so long.  0 bytes: ignored. */
void fit_add(struct fit *fit, uint64_t bytes, uint64_t ns);
void fit_merge(struct fit *to, const struct fit *from);

/* The time of that size: one in FIT_LOW takes less. */
uint64_t fit_low(const struct fit_size *size);

/* Reasons why there is no line. */
#define FIT_OUTCOMES(X)				\
	X(FOUND,       NULL)			\
	X(NO_TIMES,    "no_times")		\
	X(FEW_SIZES,   "few_sizes")		\
	X(CLOSE_SIZES, "close_sizes")		\
	X(NO_LINE,     "no_line")		\
	X(TOO_FAST,    "too_fast")

enum fit_outcome {
#define X(NAME, text) FIT_##NAME,
	FIT_OUTCOMES(X)
#undef X
	FIT_OUTCOME_END
};

/*
 * The line of the first method that gives one with latency >= 0 and a rate > 0, along which
 * the points lie:
 *
 *   hull           the edge of the points' lower convex hull over their mean size
 *   least_squares  over the low times, each as heavy as its transfers
 *   theil_sen      the median of the slopes of all pairs
 *
 * FIT_TOO_FAST is for callers who know more.
 */
enum fit_outcome fit_line(const struct fit *fit, struct fit_line *line);

const char *fit_method_text(enum fit_method method);
const char *fit_outcome_text(enum fit_outcome outcome);	/* NULL: found */

#endif
