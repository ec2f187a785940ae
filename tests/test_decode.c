/* SPDX-License-Identifier: Apache-2.0 */
#include "reader/read/decode.h"

#include <stdlib.h>
#include <string.h>

#include "tests/fixture.h"

#define LATEST	UINT64_C(1000000)
#define STRINGS	9
#define COMMS	4
#define LANES	3

static struct comm comms[COMMS];
static name_t strings[STRINGS];
static struct process process;
static struct nci_slot slot;
static struct nci_record *const rec = (struct nci_record *)&slot;
static struct event event;

static const uint8_t lines_of[NCI_EV_END] = {
#define X(id, NAME, name, least, most) [id] = (most),
	NCI_EVENTS(X)
#undef X
};

static void make(uint8_t type)
{
	memset(&slot, 0, sizeof(slot));
	rec->type = type;
	rec->form = lines_of[type];
	rec->comm = 1;
	rec->token = nci_token(2, 7, 1);
	rec->start = 5000;
	rec->stop = 6000;
	if (rec->form == 2)
		slot.line[1].word[0] = NCI_LINE_CONT;
}

static void setup(void)
{
	for (int i = 0; i < COMMS; i++)
		comms[i].ready = i != 3;
	process = (struct process){
		.comms = comms, .ncomms = COMMS,
		.strings = strings, .nstrings = STRINGS,
		.lanes = LANES, .first_ticks = 1000,
	};
}

static int decode(void)
{
	return (int)decode_record(&process, rec, LATEST, &event);
}

TEST_LOOP(sound_record_of_every_type_passes, 1, NCI_EV_END)
{
	if (!lines_of[_i])
		return;		/* a number that no event has */
	make((uint8_t)_i);
	ck_assert_int_eq(decode(), DECODE_OK);
	ck_assert_ptr_eq(event.rec, rec);
	ck_assert_ptr_eq(event.comm, &comms[1]);
	rec->serial = 24;
	rec->stop = 0;		/* in a slot: no state yet */
	ck_assert_int_eq(decode_slot(&process, &slot, LATEST, &event), DECODE_OK);
}

TEST(type_of_a_newer_plugin_is_unknown_not_refused)
{
	static const uint8_t types[] = { 0, 16, NCI_EV_END, 100, NCI_LINE_PAD, NCI_LINE_CONT };

	for (size_t i = 0; i < sizeof(types); i++) {
		make(NCI_EV_GROUP);
		rec->type = types[i];
		ck_assert_int_eq(decode(), DECODE_UNKNOWN);
	}
}

TEST_LOOP(record_of_another_size_than_its_type_is_refused, 1, NCI_EV_END)
{
	if (!lines_of[_i])
		return;
	for (uint8_t form = 0; form < 16; form++) {
		bool may_be_shorter = _i == NCI_EV_KERNEL_CH || _i == NCI_EV_COLL_API ||
				      _i == NCI_EV_P2P_API || _i == NCI_EV_NET_PLUGIN;

		make((uint8_t)_i);
		rec->form = form;
		ck_assert_int_eq(decode(), form == lines_of[_i] || (form == 1 && may_be_shorter) ?
				 DECODE_OK : DECODE_REFUSED);
	}
}

TEST(communicator_must_have_been_begun)
{
	make(NCI_EV_GROUP);
	rec->comm = COMMS;
	ck_assert_int_eq(decode(), DECODE_REFUSED);
	rec->comm = 3;		/* begun, and not ready yet */
	ck_assert_int_eq(decode(), DECODE_OK);
	ck_assert_ptr_null(event.comm);
	rec->comm = NCI_COMM_NONE;
	ck_assert_int_eq(decode(), DECODE_OK);
	ck_assert_ptr_null(event.comm);
}

TEST(communicator_of_a_foreign_event_is_not_looked_up_here)
{
	make(NCI_EV_PROXY_OP);
	rec->form |= NCI_FORM_FOREIGN;
	ck_assert_int_eq(decode(), DECODE_OK);
	ck_assert_ptr_null(event.comm);
	rec->comm = 500;
	ck_assert_int_eq(decode(), DECODE_OK);
}

TEST(token_must_be_one_that_can_exist)
{
	static const uint64_t tokens[] = {
		0, NCI_TOKEN_FREE | 1 << 20, 5, (uint64_t)1 << 20 | LANES << 12,
	};

	for (int i = 0; i < FX_COUNT(tokens); i++) {
		make(NCI_EV_GROUP);
		rec->token = tokens[i];
		ck_assert_int_eq(decode(), DECODE_REFUSED);
	}
}

static const struct {
	uint64_t start, stop;
	int outcome;
} times[] = {
	{ 1000, 1000, DECODE_OK },
	{ 999, 1000, DECODE_REFUSED },		/* before the segment was made */
	{ LATEST, LATEST, DECODE_OK },
	{ LATEST + 1, LATEST + 1, DECODE_REFUSED },
	{ 5000, LATEST + 1, DECODE_REFUSED },
	{ 500000, 499000, DECODE_OK },		/* skew between two CPUs */
	{ 500000, 300000, DECODE_REFUSED },
	{ 5000, 0, DECODE_OK },			/* 5000 ticks: skew as well */
	{ 500000, 0, DECODE_REFUSED },
	{ UINT64_MAX, UINT64_MAX, DECODE_REFUSED },
};

TEST_LOOP(times_must_have_happened_and_not_run_backwards, 0, FX_COUNT(times))
{
	make(NCI_EV_GROUP);
	rec->start = times[_i].start;
	rec->stop = times[_i].stop;
	ck_assert_int_eq(decode(), times[_i].outcome);
	if (times[_i].outcome == DECODE_OK)
		ck_assert_uint_ge(rec->stop, rec->start);
}

#define NAME(TYPE, name, member) \
	{ NCI_EV_##TYPE, offsetof(struct nci_ev_##name, member) }

static const struct {
	uint8_t type;
	size_t offset;
} names[] = {
	NAME(COLL, coll, func), NAME(COLL, coll, datatype),
	NAME(COLL, coll, algo), NAME(COLL, coll, proto),
	NAME(P2P, p2p, func), NAME(P2P, p2p, datatype),
	NAME(COLL_API, coll_api, func), NAME(COLL_API, coll_api, datatype),
	NAME(P2P_API, p2p_api, func), NAME(P2P_API, p2p_api, datatype),
	NAME(CE_COLL, ce_coll, func), NAME(CE_COLL, ce_coll, datatype),
	NAME(CE_COLL, ce_coll, sync),
};

TEST_LOOP(name_must_be_in_the_table, 0, FX_COUNT(names))
{
	uint16_t *id;

	make(names[_i].type);
	id = (uint16_t *)((uint8_t *)rec + names[_i].offset);
	*id = STRINGS;
	ck_assert_int_eq(decode(), DECODE_OK);
	*id = STRINGS + 1;
	ck_assert_int_eq(decode(), DECODE_REFUSED);
	ck_assert_int_eq(decode_slot(&process, &slot, LATEST, &event), DECODE_REFUSED);
}

static const struct {
	uint8_t type;
	size_t offset;
} ranks[] = {
	NAME(COLL, coll, rank), NAME(P2P, p2p, peer), NAME(P2P, p2p, rank),
	NAME(PROXY_OP, proxy_op, peer), NAME(PROXY_OP, proxy_op, rank),
	NAME(CE_COLL, ce_coll, rank), NAME(CE_SYNC, ce_sync, rank),
};

TEST_LOOP(rank_below_not_known_is_refused, 0, FX_COUNT(ranks))
{
	int32_t *rank;

	make(ranks[_i].type);
	rank = (int32_t *)((uint8_t *)rec + ranks[_i].offset);
	*rank = -1;
	ck_assert_int_eq(decode(), DECODE_OK);
	*rank = -2;
	ck_assert_int_eq(decode(), DECODE_REFUSED);
}

TEST(slot_of_two_lines_must_show_its_second)
{
	make(NCI_EV_COLL);
	slot.line[1].word[0] = 0;
	ck_assert_int_eq(decode_slot(&process, &slot, LATEST, &event), DECODE_REFUSED);
}

TEST(slot_cannot_be_ahead_of_time)
{
	make(NCI_EV_GROUP);
	rec->start = LATEST + 1;
	rec->stop = 0;
	ck_assert_int_eq(decode_slot(&process, &slot, LATEST, &event), DECODE_REFUSED);
	rec->start = 5000;
	rec->stop = LATEST + 1;
	ck_assert_int_eq(decode_slot(&process, &slot, LATEST, &event), DECODE_REFUSED);
	rec->stop = LATEST;
	ck_assert_int_eq(decode_slot(&process, &slot, LATEST, &event), DECODE_OK);
}

TEST(any_bytes_are_judged_without_harm)
{
	for (int i = 0; i < 200000; i++) {
		make((uint8_t)(1 + i % (NCI_EV_END - 1)));
		for (int k = 0; k < 3; k++) {
			uint64_t x = fx_random();

			((uint8_t *)&slot)[x % sizeof(slot)] = (uint8_t)(x >> 32);
		}
		if (decode() == DECODE_OK) {
			ck_assert_uint_le(rec->start, rec->stop);
			ck_assert_uint_lt(rec->type, NCI_EV_END);
		}
	}
}


int main(void)
{
	return fx_run(setup, NULL);
}
