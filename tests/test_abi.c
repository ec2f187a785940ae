/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The manual page and the headers tell the same story: every row of every table
 * in nci-abi(7) is looked up here, and no byte of a struct goes untold.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nci/control.h"
#include "nci/events.h"
#include "nci/segment.h"
#include "plugin/nccl_profiler.h"
#include "tests/fixture.h"

#define PAGE "man/nci-abi.7.scd"

struct field {
	const char *owner, *name;
	size_t offset, size;
};

#define F(s, f) { #s, #f, offsetof(struct s, f), sizeof(((struct s *)0)->f) },
#define PICK(_1, _2, _3, _4, _5, _6, _7, _8, NAME, ...) NAME
#define F1(s, a) F(s, a)
#define F2(s, a, ...) F(s, a) F1(s, __VA_ARGS__)
#define F3(s, a, ...) F(s, a) F2(s, __VA_ARGS__)
#define F4(s, a, ...) F(s, a) F3(s, __VA_ARGS__)
#define F5(s, a, ...) F(s, a) F4(s, __VA_ARGS__)
#define F6(s, a, ...) F(s, a) F5(s, __VA_ARGS__)
#define F7(s, a, ...) F(s, a) F6(s, __VA_ARGS__)
#define F8(s, a, ...) F(s, a) F7(s, __VA_ARGS__)
#define FIELDS(s, ...) PICK(__VA_ARGS__, F8, F7, F6, F5, F4, F3, F2, F1)(s, __VA_ARGS__)

static const struct field fields[] = {
	FIELDS(nci_header, magic, abi_major, abi_minor, ready, live_offset, comms_offset)
	FIELDS(nci_header, strings_offset, lanes, comms, strings, pid, start_time, uid, nonce)
	FIELDS(nci_header, instance, boot_id, clock, zero, anchor, plugin_version, command)
	FIELDS(nci_header, env_bytes, env, steer, zero1)
	FIELDS(nci_anchor, ticks, mono_ns, real_ns)
	FIELDS(nci_steer, sequence, since, until_mono_ns, source, wish, sample, kernels)
	FIELDS(nci_steer, budget_ppm, kernel_cost_ns, burst_period_ms, burst_length_ms, bursts)
	FIELDS(nci_steer, burst_ticks, burst_start, groups_inside, groups_outside, ops_inside)
	FIELDS(nci_steer, ops_outside, switches, control_reads, control_refused, clock_ticks)
	FIELDS(nci_steer, timed, settles_mono_ns, zero)
	FIELDS(nci_timed, count, ticks)
	FIELDS(nci_control, magic, version, entries, sequence, checksum, written_mono_ns)
	FIELDS(nci_control, boot_id, zero, entry)
	FIELDS(nci_control_entry, instance, until_mono_ns, level, sample, wish, budget_ppm)
	FIELDS(nci_control_entry, kernel_cost_ns, zero)
	FIELDS(nci_live, lanes, comms, strings, flags, api_version, level, mask, reason)
	FIELDS(nci_live, comms_open, zero, no_lane, no_comm, no_string, unknown_event)
	FIELDS(nci_live, unknown_state, foreign, closed_comm, bad_context, zero1)
	FIELDS(nci_lane, begin, end, offset, pool_full, stale, tid, state, lines)
	FIELDS(nci_lane, slots, reclaimed, owners)
	FIELDS(nci_comm, ready, flags, comm_id, rank, nranks, nnodes, name_bytes, init)
	FIELDS(nci_comm, finalize, gpu_uuid, pci_bus_id, name)
	FIELDS(nci_string, bytes, text)
	FIELDS(nci_record, type, form, comm, serial, token, parent, start, stop)
	FIELDS(nci_record, body)
	FIELDS(nci_marks, first_span, last_span, first, last, count)
	FIELDS(nci_ev_group, zero)
	FIELDS(nci_ev_coll, seq, count, func, datatype, algo, proto, cont, channels)
	FIELDS(nci_ev_coll, warps, flags, rank, group, send_buff, recv_buff, comm_hash, traffic)
	FIELDS(nci_ev_coll, tag, root, red_op)
	FIELDS(nci_ev_p2p, count, peer, rank, func, datatype, channels, zero, cont)
	FIELDS(nci_ev_p2p, zero1, group, buff, comm_hash, tag, zero2)
	FIELDS(nci_ev_proxy_op, peer, rank, steps, chunk_bytes, pid, channel, zero, cont)
	FIELDS(nci_ev_proxy_op, has_total, sums, progress_span, origin, state_span, bytes)
	FIELDS(nci_ev_proxy_op, steps_done, last_total, open_step)
	FIELDS(nci_ev_proxy_step, step, bytes, span, repeats)
	FIELDS(nci_ev_proxy_sums, ticks, cont, zero, steps, bytes, busy, covered, longest)
	FIELDS(nci_ev_proxy_sums, repeats, point)
	FIELDS(nci_point, bytes, span)
	FIELDS(nci_ev_proxy_ctrl, marks, appended, zero)
	FIELDS(nci_ev_kernel_ch, gpu_start, gpu_stop, stop_span, channel, zero)
	FIELDS(nci_ev_net_plugin, id, marks, zero)
	FIELDS(nci_ev_group_api, depth, begin_span, end_span, zero)
	FIELDS(nci_ev_coll_api, count, stream, func, datatype, root)
	FIELDS(nci_ev_p2p_api, count, stream, func, datatype, zero)
	FIELDS(nci_ev_kernel_launch, stream, zero)
	FIELDS(nci_ev_ce_coll, seq, count, func, datatype, sync, intra_sync, zero, cont)
	FIELDS(nci_ev_ce_coll, zero1, rank, send_buff, recv_buff, stream, root, batch_size, batches)
	FIELDS(nci_ev_ce_coll, ce_seq, marks, zero2)
	FIELDS(nci_ev_ce_sync, marks, rank, ranks, complete, zero)
	FIELDS(nci_ev_ce_batch, bytes, marks, ops_sync)
};
#define NFIELDS FX_COUNT(fields)

struct owner {
	const char *name;
	size_t from, size;	/* what its table tells: [from, size) */
	size_t told;
};

static struct owner owners[] = {
#define WHOLE(s) { #s, 0, sizeof(struct s), 0 },
	WHOLE(nci_header) WHOLE(nci_anchor) WHOLE(nci_live) WHOLE(nci_lane) WHOLE(nci_comm)
	WHOLE(nci_steer) WHOLE(nci_timed) WHOLE(nci_control) WHOLE(nci_control_entry)
	WHOLE(nci_string) WHOLE(nci_record) WHOLE(nci_marks) WHOLE(nci_point)
#define X(id, NAME, name, lines) \
	{ "nci_ev_" #name, offsetof(struct nci_record, body), sizeof(struct nci_ev_##name), 0 },
	NCI_EVENTS(X)
#undef X
};
#define NOWNERS FX_COUNT(owners)

static struct owner *find_owner(const char *name)
{
	for (size_t i = 0; i < NOWNERS; i++)
		if (strcmp(owners[i].name, name) == 0)
			return &owners[i];
	ck_abort_msg(PAGE ": struct %s is not in the headers", name);
	return NULL;
}

static const struct field *find_field(const struct owner *o, const char *name)
{
	for (size_t i = 0; i < NFIELDS; i++)
		if (strcmp(fields[i].owner, o->name) == 0 && strcmp(fields[i].name, name) == 0)
			return &fields[i];
	ck_abort_msg(PAGE ": %s has no field %s", o->name, name);
	return NULL;
}

static void check_row(struct owner *o, size_t offset, size_t size, const char *name)
{
	const struct field *f = find_field(o, name);

	ck_assert_msg(f->offset == offset && f->size == size,
		      PAGE ": %s.%s is told at %zu, %zu bytes, and lies at %zu, %zu bytes",
		      o->name, name, offset, size, f->offset, f->size);
	ck_assert_msg(offset == (o->told ? o->told : o->from),
		      PAGE ": %s has a gap before %s", o->name, name);
	o->told = offset + size;
}

static FILE *open_page(void)
{
	FILE *page = fopen(PAGE, "r");

	ck_assert_msg(page, PAGE ": %s (run from the top of the source)", strerror(errno));
	return page;
}

START_TEST(page_tells_every_byte_of_every_struct)
{
	FILE *page = open_page();
	struct owner *o = NULL;
	char text[256], name[32];
	size_t offset, size;

	while (fgets(text, sizeof(text), page)) {
		if (sscanf(text, "struct %31[a-z0-9_]", name) == 1 && !strchr(text, ';'))
			o = find_owner(name);
		else if (*text == '\n' || *text == '`')
			o = NULL;
		else if (o && sscanf(text, " %zu %zu %31s", &offset, &size, name) == 3)
			check_row(o, offset, size, name);
	}
	fclose(page);
	for (size_t i = 0; i < NOWNERS; i++)
		ck_assert_msg(owners[i].told == owners[i].size, PAGE ": %s is told up to byte %zu",
			      owners[i].name, owners[i].told);
}
END_TEST

START_TEST(page_tells_every_event)
{
	static const struct {
		unsigned int lines;
		const char *owner;
	} events[NCI_EV_END] = {
#define X(id, NAME, name, n) [id] = { n, "nci_ev_" #name },
		NCI_EVENTS(X)
#undef X
	};
	FILE *page = open_page();
	uint32_t told = 0, there = 0;
	unsigned int id, lines;
	char text[256], name[32], owner[32];

	while (fgets(text, sizeof(text), page)) {
		if (sscanf(text, " %u %31s %u nci_ev_%31s", &id, name, &lines, owner) != 4)
			continue;
		ck_assert_uint_lt(id, NCI_EV_END);
		ck_assert_uint_eq(lines, events[id].lines);
		ck_assert_str_eq(owner, events[id].owner + strlen("nci_ev_"));
		told |= NCI_EVENT_BIT(id);
	}
	fclose(page);
	for (id = 1; id < NCI_EV_END; id++)
		there |= events[id].owner ? NCI_EVENT_BIT(id) : 0;
	ck_assert_uint_eq(told, there);
}
END_TEST

START_TEST(event_numbers_are_nccls_bits_plus_one)
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
END_TEST

START_TEST(token_keeps_its_three_parts_apart)
{
	const uint64_t generation = (UINT64_C(1) << 43) - 1;
	uint64_t token = nci_token(NCI_MAX_LANES - 1, 4095, generation);

	ck_assert_uint_eq(nci_token_lane(token), NCI_MAX_LANES - 1);
	ck_assert_uint_eq(nci_token_slot(token), 4095);
	ck_assert_uint_eq(nci_token_generation(token), generation);
	ck_assert_uint_eq(token & NCI_TOKEN_FREE, 0);
	ck_assert_uint_eq(nci_token_generation(token | NCI_TOKEN_FREE), generation);
	ck_assert_uint_eq(nci_token_lane(nci_token(3, 0, 0)), 3);
	ck_assert_uint_eq(nci_token_slot(nci_token(3, 0, 0)), 0);
}
END_TEST

START_TEST(context_carries_nonce_and_communicator_and_is_never_0)
{
	uint64_t context = nci_context(0xdeadbeef, 0);

	ck_assert_uint_ne(context, 0);
	ck_assert_uint_eq(nci_context_nonce(context), 0xdeadbeef);
	ck_assert_uint_eq(nci_context_comm(context), 0);
	ck_assert_uint_eq(nci_context_comm(nci_context(1, NCI_COMM_NONE)), NCI_COMM_NONE);
}
END_TEST

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
START_TEST(checksum_of_the_control_file_is_the_one_that_the_page_tells)
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
END_TEST

START_TEST(control_file_with_any_bit_changed_is_not_whole)
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
END_TEST

START_TEST(control_file_of_zeros_or_of_too_many_entries_is_not_whole)
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
END_TEST

int main(void)
{
	const struct fx_test tests[] = {
		FX_TEST(page_tells_every_byte_of_every_struct),
		FX_TEST(page_tells_every_event),
		FX_TEST(event_numbers_are_nccls_bits_plus_one),
		FX_TEST(token_keeps_its_three_parts_apart),
		FX_TEST(context_carries_nonce_and_communicator_and_is_never_0),
		FX_TEST(checksum_of_the_control_file_is_the_one_that_the_page_tells),
		FX_TEST(control_file_with_any_bit_changed_is_not_whole),
		FX_TEST(control_file_of_zeros_or_of_too_many_entries_is_not_whole),
	};

	return fx_run(NULL, NULL, tests, FX_COUNT(tests));
}
