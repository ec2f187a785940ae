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

/*
 * Spans are told apart as they are: a coarse one is more than any other.  False: that point is
 * of another size.
 */
static inline bool nci_sums_least(struct nci_point *point, uint32_t bytes, uint32_t span)
{
	if (point->bytes != bytes)
		return false;
	if (span < point->span)
		point->span = span;
	return true;
}

/* A transfer that found the network idle. */
static inline void nci_sums_point(struct nci_point point[2], uint32_t bytes, uint32_t span)
{
	if (!bytes)
		return;
	if (!nci_sums_least(&point[0], bytes, span) &&
	    (bytes < point[0].bytes || !point[0].bytes))
		point[0] = (struct nci_point){ bytes, span };
	if (!nci_sums_least(&point[1], bytes, span) && bytes > point[1].bytes)
		point[1] = (struct nci_point){ bytes, span };
}

static inline uint64_t nci_sums_later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline void nci_sums_stay(struct nci_ev_proxy_sums *sums, int state, uint64_t ticks,
				 uint32_t span)
{
	sums->ticks[state] += ticks;
	if (span > sums->longest[state])
		sums->longest[state] = span;
}

/* A stay as a span; one that took no time is 0. */
static inline uint32_t nci_sums_span(uint64_t ticks)
{
	return ticks ? nci_span(0, ticks) : 0;
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
static inline void nci_sums_count(struct nci_ev_proxy_sums *sums, uint32_t bytes,
				  uint32_t repeats)
{
	sums->steps++;
	sums->bytes += bytes;
	sums->repeats += repeats;
}

static inline struct nci_sums_times nci_sums_enter(struct nci_ev_proxy_sums *sums,
						   const struct nci_ev_proxy_step *step)
{
	struct nci_sums_times times = nci_sums_times(step);
	uint64_t first = times.covered - step->start - nci_span_ticks(step->span[0]);
	uint64_t second = times.busy - times.covered;

	nci_sums_stay(sums, 0, first, nci_sums_span(first));
	nci_sums_stay(sums, 1, second, nci_sums_span(second));
	nci_sums_count(sums, step->bytes, step->repeats);
	return times;
}

/* `span`: its stay in state 2. */
static inline void nci_sums_end(struct nci_ev_proxy_sums *sums,
				const struct nci_ev_proxy_step *step,
				struct nci_sums_times times, uint64_t stop, uint32_t span)
{
	uint64_t done = sums->stop, passed = stop - times.busy;

	nci_sums_stay(sums, 2, passed, span);
	if (times.busy >= done) {
		sums->busy += passed;
		sums->covered += stop - nci_sums_later(times.covered, done);
		if (step->form & NCI_FORM_SEND)
			nci_sums_point(sums->point, step->bytes, span + !span);
	} else if (stop > done) {
		sums->busy += stop - done;
		sums->covered += stop - done;
	} else {
		return;
	}
	sums->stop = stop;
}

static inline void nci_sums_leave(struct nci_ev_proxy_sums *sums,
				  const struct nci_ev_proxy_step *step,
				  struct nci_sums_times times, uint64_t stop)
{
	stop = nci_sums_later(stop, times.busy);
	nci_sums_end(sums, step, times, stop, nci_sums_span(stop - times.busy));
}

/* A plain step: it counts, but perhaps for its form, and its spans are exact and in order. */
struct nci_sums_plain {
	uint32_t stay[2];	/* ticks in states 0 and 1 */
	uint32_t bytes;
};

/* Nearly each step is plain, and needs no care. */
static inline bool nci_sums_is_plain(const struct nci_ev_proxy_step *step,
				     struct nci_sums_plain *plain)
{
	uint32_t first = step->span[0], second = step->span[1], third = step->span[2];

	*plain = (struct nci_sums_plain){ { second - first, third - second }, step->bytes };
	return plain->bytes != NCI_BYTES_UNKNOWN &&
	       !(((first - 1) | second | third | plain->stay[0] | plain->stay[1]) &
		 NCI_SPAN_COARSE);
}

static inline void nci_sums_enter_plain(struct nci_ev_proxy_sums *sums,
					const struct nci_ev_proxy_step *step,
					const struct nci_sums_plain *plain)
{
	for (int i = 0; i < 2; i++)
		nci_sums_stay(sums, i, plain->stay[i], plain->stay[i]);
	nci_sums_count(sums, plain->bytes, step->repeats);
}

/* False, and nothing is added: it did not stop within a span that is exact. */
static inline bool nci_sums_leave_plain(struct nci_ev_proxy_sums *sums,
					const struct nci_ev_proxy_step *step, uint64_t stop)
{
	struct nci_sums_times times = { step->start + step->span[1], step->start + step->span[2] };
	uint64_t passed = stop - times.busy;

	if (passed >= NCI_SPAN_COARSE)
		return false;
	nci_sums_end(sums, step, times, stop, (uint32_t)passed);
	return true;
}

#endif
