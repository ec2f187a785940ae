/* SPDX-License-Identifier: Apache-2.0 */
/* Segments that lie, one lie at a time; fuzz_consumer tries them together. */
#include <errno.h>
#include <string.h>

#include "nci/events.h"
#include "shmring/consumer.h"
#include "tests/fixture.h"

#define LINES	16u
#define SLOTS	4u
#define OFFSET	4096u
#define BYTES	(OFFSET + LINES * NCI_LINE_BYTES + SLOTS * NCI_SLOT_BYTES)

static struct shmring_reader reader;
static struct nci_lane line;
static struct nci_line buf[LINES];

static void setup(void)
{
	memset(&line, 0, sizeof(line));
	line.offset = OFFSET;
	line.lines = LINES;
	line.slots = SLOTS;
	ck_assert_int_eq(shmring_reader_init(&reader, &line, BYTES), 0);
}

static void cursors(uint64_t begin, uint64_t end)
{
	atomic_store_explicit(&line.begin, begin, memory_order_relaxed);
	atomic_store_explicit(&line.end, end, memory_order_relaxed);
}

/* A copy of `n` lines that was not lapped; the test fills buf itself. */
static void copied(uint32_t n)
{
	struct shmring_span span[2];

	cursors(n, n);
	ck_assert_int_eq(shmring_want(&reader, &line, buf, LINES, span), 1);
	ck_assert_int_eq(shmring_settle(&reader, &line), 0);
}

static void put(uint32_t i, uint8_t type, uint8_t form)
{
	struct nci_record *rec = (struct nci_record *)&buf[i];

	memset(rec, 0, sizeof(*rec));
	rec->type = type;
	rec->form = form;
	rec->serial = i + 1;
}

static int next_record(void)
{
	const struct nci_record *rec;

	return shmring_next(&reader, &rec);
}

TEST(lane_outside_the_file_is_refused)
{
	static const struct {
		uint64_t offset, bytes;
		uint32_t lines, slots;
	} lies[] = {
		{ OFFSET, BYTES - 1, LINES, SLOTS },
		{ OFFSET + 64, BYTES, LINES, SLOTS },
		{ OFFSET + 1, BYTES + 64, LINES, SLOTS },
		{ UINT64_MAX - 63, BYTES, LINES, SLOTS },
		{ UINT64_MAX & ~UINT64_C(63), UINT64_MAX, LINES, SLOTS },
		{ OFFSET, OFFSET - 1, LINES, SLOTS },
		{ OFFSET, 0, LINES, SLOTS },
		{ OFFSET, BYTES, 0, SLOTS },
		{ OFFSET, BYTES, LINES, 0 },
		{ OFFSET, BYTES, LINES - 1, SLOTS },
		{ OFFSET, BYTES, LINES, SLOTS - 1 },
		{ OFFSET, UINT64_MAX, 1u << 31, SLOTS },
		{ OFFSET, UINT64_MAX, LINES, 1u << 31 },
		{ OFFSET, UINT64_MAX, LINES, 2 << NCI_TOKEN_SLOT_BITS },
	};

	for (int i = 0; i < FX_COUNT(lies); i++) {
		line.offset = lies[i].offset;
		line.lines = lies[i].lines;
		line.slots = lies[i].slots;
		ck_assert_msg(shmring_reader_init(&reader, &line, lies[i].bytes) == -EPROTO,
			      "lie %d was believed", i);
	}
}

TEST(cursors_that_go_back_or_too_far_are_refused)
{
	struct shmring_span span[2];

	copied(8);
	reader.next = 8;
	cursors(7, 7);
	ck_assert_int_eq(shmring_want(&reader, &line, buf, LINES, span), -EPROTO);
	cursors(8, UINT64_MAX);
	ck_assert_int_eq(shmring_want(&reader, &line, buf, LINES, span), -EPROTO);
	cursors(UINT64_MAX, 8);
	ck_assert_int_eq(shmring_want(&reader, &line, buf, LINES, span), -EPROTO);
}

TEST(begin_that_goes_back_or_too_far_during_the_copy_is_refused)
{
	copied(8);
	cursors(7, 8);
	ck_assert_int_eq(shmring_settle(&reader, &line), -EPROTO);
	cursors(UINT64_MAX, 8);
	ck_assert_int_eq(shmring_settle(&reader, &line), -EPROTO);
}

TEST(spans_stay_inside_the_ring_wherever_the_cursors_are)
{
	for (uint64_t from = 0; from < 3 * LINES; from++) {
		for (uint64_t n = 1; n < 2 * LINES; n++) {
			struct shmring_span span[2];
			size_t bytes = 0;
			int spans;

			reader.next = from;
			cursors(from + n, from + n);
			spans = shmring_want(&reader, &line, buf, LINES, span);
			for (int i = 0; i < spans; i++) {
				ck_assert_ptr_eq(span[i].to, (uint8_t *)buf + bytes);
				ck_assert_uint_ge(span[i].offset, OFFSET);
				ck_assert_uint_le(span[i].offset + span[i].bytes,
						  OFFSET + LINES * NCI_LINE_BYTES);
				bytes += span[i].bytes;
			}
			ck_assert_uint_eq(bytes, (n < LINES ? n : LINES) * NCI_LINE_BYTES);
		}
	}
}

TEST(line_that_begins_no_record_is_refused)
{
	static const struct { uint8_t type, form; } lies[] = {
		{ 0, 1 }, { NCI_EV_GROUP, 0 }, { NCI_EV_GROUP, 3 }, { NCI_EV_GROUP, 15 },
		{ NCI_LINE_CONT, 1 },
	};

	for (int i = 0; i < FX_COUNT(lies); i++) {
		setup();
		copied(4);
		put(0, lies[i].type, lies[i].form);
		ck_assert_msg(next_record() == -EPROTO, "lie %d was believed", i);
	}
}

TEST(second_line_must_say_that_it_is_one)
{
	copied(4);
	put(0, NCI_EV_COLL, 2);
	put(1, NCI_EV_COLL, 2);
	ck_assert_int_eq(next_record(), -EPROTO);
}

TEST(record_that_ends_behind_the_cursor_is_refused)
{
	copied(1);
	put(0, NCI_EV_COLL, 2);
	ck_assert_int_eq(next_record(), -EPROTO);
}

TEST(line_inside_a_record_is_skipped_only_after_a_lap)
{
	struct shmring_span span[2];

	cursors(2 * LINES + 1, 2 * LINES + 1);
	ck_assert_int_ge(shmring_want(&reader, &line, buf, LINES, span), 1);
	ck_assert_int_eq(shmring_settle(&reader, &line), 0);
	for (uint32_t i = 0; i < LINES; i++)
		put(i, NCI_EV_GROUP, 1);
	put(0, NCI_LINE_CONT, 0);
	put(1, NCI_LINE_CONT, 0);
	put(5, NCI_LINE_CONT, 0);
	for (int i = 2; i < 5; i++)
		ck_assert_int_eq(next_record(), 1);
	ck_assert_int_eq(next_record(), -EPROTO);
}

int main(void)
{
	return fx_run(setup, NULL);
}
