/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of what a process wrote that was lost, over the same windows as all else.
 * Processes are numbered as they come, so that the newest AGGREGATE_TALLIES of them have
 * places of their own.
 */
#include "ncclinspd/sums/aggregate_impl.h"

static struct tally *tally_of(const struct aggregate *agg, uint64_t process_id)
{
	return &agg->tallies[process_id % AGGREGATE_TALLIES];
}

static void add_to_slice(struct tally_slice *slice, uint64_t period, uint64_t records,
			 uint64_t lost)
{
	if (slice->period != period)
		*slice = (struct tally_slice){ .period = period };
	slice->records += records;
	slice->lost += lost;
}

void aggregate_account(struct aggregate *agg, uint64_t process_id, uint64_t records,
		       uint64_t lost, uint64_t now_ns)
{
	struct tally *t = tally_of(agg, process_id);

	if (t->process_id > process_id || agg->hold.holding)
		return;		/* counters only grow: what is held up now comes with the next */
	if (t->process_id != process_id)
		*t = (struct tally){ .process_id = process_id };
	if (records == t->records && lost == t->lost)
		return;
	aggregate_advance(agg, now_ns);
	for (int w = 0; w < AGGREGATE_SLIDING; w++) {
		const struct window *window = &agg->window[w];

		add_to_slice(&t->slice[w][window->period % window->slices], window->period,
			     records - t->records, lost - t->lost);
	}
	t->records = records;
	t->lost = lost;
}

void aggregate_tally(const struct aggregate *agg, uint64_t process_id,
		     enum aggregate_window window, uint64_t *records, uint64_t *lost)
{
	const struct tally *t = tally_of(agg, process_id);
	const struct window *w = &agg->window[window];

	if (t->process_id != process_id)
		return;
	if (window == AGGREGATE_ALL) {
		*records += t->records;
		*lost += t->lost;
		return;
	}
	for (uint32_t i = 0; i < w->slices; i++) {
		if (t->slice[window][i].period + w->slices <= w->period)
			continue;
		*records += t->slice[window][i].records;
		*lost += t->slice[window][i].lost;
	}
}
