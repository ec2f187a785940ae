/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLUGIN_FILL_H
#define PLUGIN_FILL_H

/* One row per event type: how its descriptor becomes a record. */

#include "nci/events.h"
#include "plugin/adapt.h"
#include "plugin/cost.h"
#include "plugin/process.h"

/*
 * Writes every byte of the record behind its stop (a slot holds the remains of another
 * event), then its head, as begun in `head`: lines, and the NCI_FORM_* that the descriptor
 * tells are added.  With its token the event is live.  Returns NCCL_SUCCESS.
 */
typedef int fill_fn(struct nci_record *rec, const struct nccl_descr_v6 *d,
		    const struct adapt_extra *extra, uint64_t head, uint64_t token);

/* A head's first word; its serial is 0.  The machine is little-endian. */
static inline uint64_t fill_head(uint32_t type, uint32_t form, uint64_t comm)
{
	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "type, form, comm, serial");
	return type | form << 8 | comm << 16;
}

/* The functions by NCI_EV_*. */
extern fill_fn *const fill_events[NCI_EV_END];

INLINE void fill_open(struct nci_record *rec, uint64_t head, uint32_t form, uint64_t token)
{
	*(uint64_t *)rec = head | (uint64_t)form << 8;
	shmring_open(rec, token);
}

/* The same, and with it the callback ends that began when the event did. */
INLINE int fill_end(struct nci_record *rec, uint64_t head, uint32_t form, uint64_t token)
{
	fill_open(rec, head, form, token);
	return cost_end((uint8_t)head, rec->start);
}

/* Zeros, but for what says that the line is a record's second one.  A loop would begin slowly. */
INLINE void fill_second_line(struct nci_record *rec)
{
	uint64_t *word = ((struct nci_slot *)rec)->line[1].word;

	memset(word, 0, NCI_LINE_BYTES / 2);
	memset(word + 4, 0, NCI_LINE_BYTES / 2);
	word[0] = NCI_LINE_CONT;
}

/* No descriptor tells of it: steps.c opens it for an operation's first step. */
INLINE void fill_sums(struct nci_record *rec, uint64_t head, uint64_t token)
{
	struct nci_ev_proxy_sums *ev = (struct nci_ev_proxy_sums *)rec;

	memset(ev->ticks, 0, sizeof(ev->ticks));
	fill_second_line(rec);
	fill_open(rec, head, 2, token);
}

INLINE void fill_step(struct nci_record *rec, int step)
{
	struct nci_ev_proxy_step *ev = (struct nci_ev_proxy_step *)rec;

	ev->step = step;
	ev->bytes = NCI_BYTES_UNKNOWN;
	ev->span[0] = ev->span[1] = ev->span[2] = 0;
	ev->repeats = 0;
}

#endif
