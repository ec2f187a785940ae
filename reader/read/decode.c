/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row per event type, telling which of its fields can lie.  All other bytes
 * are numbers that mean what they mean, whatever they are: addresses, counts,
 * sequence numbers.
 */
#include "reader/read/decode.h"

#include <string.h>

#define SKEW_TICKS	100000	/* 30 us: two CPUs' counters, or a read moved ahead */

/* Offsets in the record; 0 ends a list. */
struct decode_kind {
	uint8_t names[6];	/* u16: string ids, the function's first */
	uint8_t ranks[3];	/* i32: -1 (not known) or more */
};

#define O(name, member) offsetof(struct nci_ev_##name, member)

static const struct decode_kind kinds[NCI_EV_END] = {
	[NCI_EV_COLL] = {
		{ O(coll, func), O(coll, datatype), O(coll, algo), O(coll, proto),
		  O(coll, variant) },
		{ O(coll, rank) },
	},
	[NCI_EV_P2P] = { { O(p2p, func), O(p2p, datatype) }, { O(p2p, peer), O(p2p, rank) } },
	[NCI_EV_PROXY_OP] = { { 0 }, { O(proxy_op, peer), O(proxy_op, rank) } },
	[NCI_EV_COLL_API] = { { O(coll_api, func), O(coll_api, datatype) }, { 0 } },
	[NCI_EV_P2P_API] = { { O(p2p_api, func), O(p2p_api, datatype) }, { 0 } },
	[NCI_EV_CE_COLL] = {
		{ O(ce_coll, func), O(ce_coll, datatype), O(ce_coll, sync) },
		{ O(ce_coll, rank) },
	},
	[NCI_EV_CE_SYNC] = { { 0 }, { O(ce_sync, rank), O(ce_sync, ranks) } },
};

static bool names_fit(const struct process *p, const struct nci_record *rec,
		      const uint8_t *at)
{
	for (; *at; at++) {
		uint16_t id;

		memcpy(&id, (const uint8_t *)rec + *at, sizeof(id));
		if (id > p->nstrings)
			return false;
	}
	return true;
}

static bool ranks_fit(const struct nci_record *rec, const uint8_t *at)
{
	for (; *at; at++) {
		int32_t rank;

		memcpy(&rank, (const uint8_t *)rec + *at, sizeof(rank));
		if (rank < -1)
			return false;
	}
	return true;
}

static bool token_fits(const struct process *p, uint64_t token)
{
	return !(token & NCI_TOKEN_FREE) && nci_token_generation(token) &&
	       nci_token_lane(token) < p->lanes;
}

static bool comm_fits(const struct process *p, const struct nci_record *rec)
{
	return rec->comm < p->ncomms || rec->comm == NCI_COMM_NONE ||
	       rec->form & NCI_FORM_FOREIGN;
}

name_t decode_func(const struct process *p, const struct nci_record *rec)
{
	uint8_t at = rec->type < NCI_EV_END ? kinds[rec->type].names[0] : 0;
	uint16_t id = 0;

	if (at)
		memcpy(&id, (const uint8_t *)rec + at, sizeof(id));
	return process_name(p, id);
}

/* Checks that a record in a ring and one in a slot have in common. */
static enum decode_outcome record_check(const struct process *p, const struct nci_record *rec,
					uint64_t latest_ticks)
{
	if (!nci_lines_fit(rec->type, NCI_FORM_LINES(rec->form)))
		return nci_is_event(rec->type) ? DECODE_REFUSED : DECODE_UNKNOWN;
	if (!token_fits(p, rec->token) || !comm_fits(p, rec))
		return DECODE_REFUSED;
	if (rec->start > latest_ticks || rec->start < p->first_ticks)
		return DECODE_REFUSED;
	if (!names_fit(p, rec, kinds[rec->type].names) ||
	    !ranks_fit(rec, kinds[rec->type].ranks))
		return DECODE_REFUSED;
	return DECODE_OK;
}

static void event_fill_from(const struct process *p, struct nci_record *rec, struct event *event)
{
	struct nci_ev_kernel_ch *kernel = (struct nci_ev_kernel_ch *)(void *)rec;

	if (rec->type == NCI_EV_KERNEL_CH && p->is_rccl)
		kernel->gpu_start = kernel->gpu_stop = 0;
	event->rec = rec;
	event->comm = rec->form & NCI_FORM_FOREIGN ? NULL : process_comm(p, rec->comm);
}

enum decode_outcome decode_record(const struct process *p, struct nci_record *rec,
				  uint64_t latest_ticks, struct event *event)
{
	enum decode_outcome outcome = record_check(p, rec, latest_ticks);

	if (outcome != DECODE_OK)
		return outcome;
	if (rec->stop > latest_ticks)
		return DECODE_REFUSED;
	if (rec->stop < rec->start) {
		if (rec->start - rec->stop > SKEW_TICKS)
			return DECODE_REFUSED;
		rec->stop = rec->start;
	}
	event_fill_from(p, rec, event);
	return DECODE_OK;
}

enum decode_outcome decode_slot(const struct process *p, struct nci_slot *slot,
				uint64_t latest_ticks, struct event *event)
{
	struct nci_record *rec = (struct nci_record *)slot;
	enum decode_outcome outcome = record_check(p, rec, latest_ticks);

	if (outcome != DECODE_OK)
		return outcome;
	if (rec->stop > latest_ticks)
		return DECODE_REFUSED;
	if (NCI_FORM_LINES(rec->form) == 2 && (slot->line[1].word[0] & 0xff) != NCI_LINE_CONT)
		return DECODE_REFUSED;
	event_fill_from(p, rec, event);
	return DECODE_OK;
}
