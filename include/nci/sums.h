/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCI_SUMS_H
#define NCI_SUMS_H

/*
 * The arithmetic of nci_ev_proxy_sums, for the plugin and for a reader that has the
 * records of the steps instead.
 */

#include <stdbool.h>

#include "nci/events.h"

/* It stopped, and told all states and its size: else it has no place in the sums. */
static inline bool nci_sums_counts(const struct nci_ev_proxy_step *step)
{
	return step->span[0] && step->span[1] && step->span[2] &&
	       step->bytes != NCI_BYTES_UNKNOWN && !(step->form & NCI_FORM_UNSTOPPED);
}

/* Spans are told apart as they are: a coarse one is more than any other. */
static inline void nci_sums_least(struct nci_point *point, uint32_t bytes, uint32_t span)
{
	if (point->bytes != bytes || span < point->span)
		*point = (struct nci_point){ bytes, span };
}

/* A transfer that found the network idle. */
static inline void nci_sums_point(struct nci_point point[2], uint32_t bytes, uint32_t span)
{
	if (!bytes)
		return;
	if (bytes <= point[0].bytes || !point[0].bytes)
		nci_sums_least(&point[0], bytes, span);
	if (bytes >= point[1].bytes)
		nci_sums_least(&point[1], bytes, span);
}

static inline uint64_t nci_sums_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/*
 * A step that counts, but perhaps for its size, is plain if its spans are exact and in order:
 * nearly each one is, and needs no care.
 */
static inline bool nci_sums_are_plain(const struct nci_ev_proxy_step *step)
{
	uint32_t first = step->span[0], second = step->span[1], third = step->span[2];

	return !(((first - 1) | second | third | (second - first) | (third - second)) &
		 NCI_SPAN_COARSE);
}

static inline void nci_sums_stay(struct nci_ev_proxy_sums *sums, int state, uint64_t ticks,
				 bool plain)
{
	uint32_t span = plain || ticks < NCI_SPAN_COARSE ? (uint32_t)ticks : nci_span(0, ticks);

	sums->ticks[state] += ticks;
	if (span > sums->longest[state])
		sums->longest[state] = span;
}

/* The times when a step entered states 1 and 2. */
struct nci_sums_times {
	uint64_t covered, busy;
};

static inline struct nci_sums_times nci_sums_times(const struct nci_ev_proxy_step *step)
{
	uint64_t first = nci_span_ticks(step->span[0]);
	uint64_t second = nci_sums_later(nci_span_ticks(step->span[1]), first);
	uint64_t third = nci_sums_later(nci_span_ticks(step->span[2]), second);

	return (struct nci_sums_times){ step->start + second, step->start + third };
}

/*
 * Add a step that counts, in two halves: the second one takes what the clock says.
 * sums->stop is the latest stop so far, 0 at first: steps end in order, so that
 * unions need no more memory than that.
 */
static inline void nci_sums_begin(struct nci_ev_proxy_sums *sums,
				  const struct nci_ev_proxy_step *step, uint64_t first,
				  struct nci_sums_times times, bool plain)
{
	nci_sums_stay(sums, 0, times.covered - first, plain);
	nci_sums_stay(sums, 1, times.busy - times.covered, plain);
	sums->steps++;
	sums->bytes += step->bytes;
	sums->repeats += step->repeats;
}

static inline void nci_sums_end(struct nci_ev_proxy_sums *sums,
				const struct nci_ev_proxy_step *step,
				struct nci_sums_times times, uint64_t stop, bool plain)
{
	uint64_t done = sums->stop, passed = stop - times.busy;

	nci_sums_stay(sums, 2, passed, plain);
	if (times.busy >= done) {
		sums->busy += passed;
		sums->covered += stop - nci_sums_later(times.covered, done);
		if (step->form & NCI_FORM_SEND)
			nci_sums_point(sums->point, step->bytes,
				       plain ? (uint32_t)passed + !passed :
				       nci_span(times.busy, stop));
	} else if (stop > done) {
		sums->busy += stop - done;
		sums->covered += stop - done;
	} else {
		return;
	}
	sums->stop = stop;
}

static inline struct nci_sums_times nci_sums_enter(struct nci_ev_proxy_sums *sums,
						   const struct nci_ev_proxy_step *step)
{
	struct nci_sums_times times = nci_sums_times(step);

	nci_sums_begin(sums, step, step->start + nci_span_ticks(step->span[0]), times, false);
	return times;
}

static inline void nci_sums_leave(struct nci_ev_proxy_sums *sums,
				  const struct nci_ev_proxy_step *step,
				  struct nci_sums_times times, uint64_t stop)
{
	nci_sums_end(sums, step, times, nci_sums_later(stop, times.busy), false);
}

/* The same of a plain step. */
static inline struct nci_sums_times nci_sums_enter_plain(struct nci_ev_proxy_sums *sums,
							 const struct nci_ev_proxy_step *step)
{
	uint64_t start = step->start;
	struct nci_sums_times times = { start + step->span[1], start + step->span[2] };

	nci_sums_begin(sums, step, start + step->span[0], times, true);
	return times;
}

/* False, and nothing is added: it did not stop within a span that is exact. */
static inline bool nci_sums_leave_plain(struct nci_ev_proxy_sums *sums,
					const struct nci_ev_proxy_step *step,
					struct nci_sums_times times, uint64_t stop)
{
	if (stop - times.busy >= NCI_SPAN_COARSE)
		return false;
	nci_sums_end(sums, step, times, stop, true);
	return true;
}

#endif
