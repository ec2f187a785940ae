/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of nci-abi(7) come from the headers by man/abi.awk: the compiler reads
 * these as that does.
 */
#include <string.h>

#include "nci/control.h"
#include "nci/events.h"
#include "nci/segment.h"
#include "nccl/profiler.h"
#include "tests/fixture.h"

/* The head of an event stands under its first field. */
TEST(every_field_lies_where_the_page_says_and_no_byte_is_left_out)
{
	size_t told = 0;

#define FIELD(owner, name, offset, size)							\
	ck_assert_msg(offsetof(struct owner, name) == (offset) && told == (offset),		\
		      #owner "." #name " is told at " #offset ", behind byte %zu", told);	\
	told += (size);
#define WHOLE(owner, size)									\
	ck_assert_msg(sizeof(struct owner) == (size) && told == (size),				\
		      #owner " is told up to byte %zu", told);					\
	told = 0;
#define EVENT(id, NAME, lines, owner)								\
	ck_assert_uint_eq(NCI_EV_##NAME, (id));							\
	ck_assert_uint_eq(sizeof(struct owner), (lines) * NCI_LINE_BYTES);			\
	told |= NCI_EVENT_BIT(id);
#include "tests/abi_fields.h"
	ck_assert_uint_eq(told, NCCL_EVENTS_V6 | NCI_EVENT_BIT(NCI_EV_PROXY_SUMS));
}

TEST(event_numbers_are_nccls_bits_plus_one)
{
	ck_assert_uint_eq(NCI_EVENT_BIT(NCI_EV_GROUP), NCCL_GROUP);
	ck_assert_uint_eq(NCI_EVENT_BIT(NCI_EV_COLL), NCCL_COLL);
	ck_assert_uint_eq(NCI_EVENT_BIT(NCI_EV_P2P), NCCL_P2P);
	ck_assert_uint_eq(NCI_EVENT_BIT(NCI_EV_PROXY_OP), NCCL_PROXY_OP);
	ck_assert_uint_eq(NCI_EVENT_BIT(NCI_EV_PROXY_STEP), NCCL_PROXY_STEP);
	ck_assert_uint_eq(NCI_EVENT_BIT(NCI_EV_PROXY_CTRL), NCCL_PROXY_CTRL);
	ck_assert_uint_eq(NCI_EVENT_BIT(NCI_EV_KERNEL_CH), NCCL_KERNEL_CH);
	ck_assert_uint_eq(NCI_EVENT_BIT(NCI_EV_NET_PLUGIN), NCCL_NET_PLUGIN);
	ck_assert_uint_eq(NCI_EVENT_BIT(NCI_EV_GROUP_API), NCCL_GROUP_API);
	ck_assert_uint_eq(NCI_EVENT_BIT(NCI_EV_COLL_API), NCCL_COLL_API);
	ck_assert_uint_eq(NCI_EVENT_BIT(NCI_EV_P2P_API), NCCL_P2P_API);
	ck_assert_uint_eq(NCI_EVENT_BIT(NCI_EV_KERNEL_LAUNCH), NCCL_KERNEL_LAUNCH);
	ck_assert_uint_eq(NCI_EVENT_BIT(NCI_EV_CE_COLL), NCCL_CE_COLL);
	ck_assert_uint_eq(NCI_EVENT_BIT(NCI_EV_CE_SYNC), NCCL_CE_SYNC);
	ck_assert_uint_eq(NCI_EVENT_BIT(NCI_EV_CE_BATCH), NCCL_CE_BATCH);
}

TEST(token_keeps_its_three_parts_apart)
{
	const uint64_t generation = (UINT64_C(1) << 42) - 1;
	uint64_t token = nci_token(NCI_MAX_LANES - 1, 4095, generation);

	ck_assert_uint_eq(nci_token_lane(token), NCI_MAX_LANES - 1);
	ck_assert_uint_eq(nci_token_slot(token), 4095);
	ck_assert_uint_eq(nci_token_generation(token), generation);
	ck_assert_uint_eq(token & NCI_TOKEN_FREE, 0);
	ck_assert_uint_eq(nci_token_generation(token | NCI_TOKEN_FREE), generation);
	ck_assert_uint_eq(nci_token_lane(nci_token(3, 0, 0)), 3);
	ck_assert_uint_eq(nci_token_slot(nci_token(3, 0, 0)), 0);
}

TEST(context_carries_nonce_and_communicator_and_is_never_0)
{
	uint64_t context = nci_context(0xdeadbeef, 0);

	ck_assert_uint_ne(context, 0);
	ck_assert_uint_eq(nci_context_nonce(context), 0xdeadbeef);
	ck_assert_uint_eq(nci_context_comm(context), 0);
	ck_assert_uint_eq(nci_context_comm(nci_context(1, NCI_COMM_NONE)), NCI_COMM_NONE);
}

static struct nci_control control;

static void write_control(void)
{
	memset(&control, 0, sizeof(control));
	control.magic = NCI_CONTROL_MAGIC;
	control.version = NCI_CONTROL_VERSION;
	control.sequence = 7;
	control.entries = 1;
	control.entry[0].level = NCI_CONTROL_KEEP;
	control.entry[0].sample = NCI_SAMPLE_ALL;
	control.checksum = nci_control_checksum(&control);
}

/* The checksum as nci-abi(7) tells it, for the reader's own program. */
TEST(checksum_of_the_control_file_is_the_one_that_the_page_tells)
{
	uint64_t sum = UINT64_C(0xcbf29ce484222325), word;

	write_control();
	for (size_t at = 0; at < sizeof(control); at += sizeof(word)) {
		memcpy(&word, (const char *)&control + at, sizeof(word));
		sum = (sum ^ (at == 24 ? 0 : word)) * UINT64_C(0x100000001b3);
		sum ^= sum >> 32;
	}
	ck_assert_uint_eq(control.checksum, sum);
	ck_assert(nci_control_is_whole(&control));
}

TEST(control_file_with_any_bit_changed_is_not_whole)
{
	uint8_t *byte = (uint8_t *)&control;

	write_control();
	for (size_t i = 0; i < 8 * sizeof(control); i++) {
		byte[i / 8] ^= (uint8_t)(1u << i % 8);
		ck_assert_msg(!nci_control_is_whole(&control), "bit %zu", i);
		byte[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	/* The same bit of two words: what a sum without carry from above would miss. */
	byte[103] ^= 0x80;
	byte[111] ^= 0x80;
	ck_assert(!nci_control_is_whole(&control));
}

TEST(control_file_of_zeros_or_of_too_many_entries_is_not_whole)
{
	write_control();
	control.entries = NCI_CONTROL_ENTRIES + 1;
	control.checksum = nci_control_checksum(&control);
	ck_assert(!nci_control_is_whole(&control));
	memset(&control, 0, sizeof(control));
	ck_assert(!nci_control_is_whole(&control));
	control.checksum = nci_control_checksum(&control);
	ck_assert(!nci_control_is_whole(&control));
}

int main(void)
{
	return fx_run(NULL, NULL);
}
