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

static inline void nci_sums_least(struct nci_point *point, uint32_t bytes, uint32_t span)
{
	if (point->bytes != bytes || nci_span_ticks(span) < nci_span_ticks(point->span))
		*point = (struct nci_point){ bytes, span };
}

/* A transfer that found the network idle. */
static inline void nci_sums_point(struct nci_point point[2], uint32_t bytes, uint32_t span)
{
	if (!bytes)
		return;
	if (!point[0].bytes || bytes <= point[0].bytes)
		nci_sums_least(&point[0], bytes, span);
	if (bytes >= point[1].bytes)
		nci_sums_least(&point[1], bytes, span);
}

static inline uint64_t nci_sums_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline void nci_sums_stay(struct nci_ev_proxy_sums *sums, int state, uint64_t ticks)
{
	uint32_t span = ticks < NCI_SPAN_COARSE ? (uint32_t)ticks : nci_span(0, ticks);

	sums->ticks[state] += ticks;
	if (span > sums->longest[state])
		sums->longest[state] = span;
}

/* The times when a step entered states 1 and 2. */
struct nci_sums_times {
	uint64_t covered, busy;
};

/*
 * Add a step that counts, in two halves: the second one takes what the clock says.
 * sums->stop is the latest stop so far, 0 at first: steps end in order, so that
 * unions need no more memory than that.
 */
static inline struct nci_sums_times nci_sums_enter(struct nci_ev_proxy_sums *sums,
						   const struct nci_ev_proxy_step *step)
{
	uint64_t first = nci_span_ticks(step->span[0]);
	uint64_t second = nci_sums_later(nci_span_ticks(step->span[1]), first);
	uint64_t third = nci_sums_later(nci_span_ticks(step->span[2]), second);

	nci_sums_stay(sums, 0, second - first);
	nci_sums_stay(sums, 1, third - second);
	sums->steps++;
	sums->bytes += step->bytes;
	sums->repeats += step->repeats;
	return (struct nci_sums_times){ step->start + second, step->start + third };
}

static inline void nci_sums_leave(struct nci_ev_proxy_sums *sums,
				  const struct nci_ev_proxy_step *step,
				  struct nci_sums_times times, uint64_t stop)
{
	uint64_t done = sums->stop;

	stop = nci_sums_later(stop, times.busy);
	nci_sums_stay(sums, 2, stop - times.busy);
	if (step->form & NCI_FORM_SEND && times.busy >= done)
		nci_sums_point(sums->point, step->bytes, nci_span(times.busy, stop));
	if (stop <= done)
		return;
	sums->busy += stop - nci_sums_later(times.busy, done);
	sums->covered += stop - nci_sums_later(times.covered, done);
	sums->stop = stop;
}

#endif
