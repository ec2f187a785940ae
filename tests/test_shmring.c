/* SPDX-License-Identifier: Apache-2.0 */
/* One lane's ring, writer and reader taking turns. */
#include <errno.h>
#include <string.h>

#include "tests/fixture.h"
#include "tests/fixture_ring.h"

static struct fx_lane fx;

static void setup(void)
{
	fx_lane_open(&fx);
}

static void teardown(void)
{
	fx_lane_close(&fx);
}

static void cursors_are(uint64_t line)
{
	ck_assert_uint_eq(atomic_load_explicit(&fx.lane->out->line->begin, memory_order_relaxed),
			  line);
	ck_assert_uint_eq(atomic_load_explicit(&fx.lane->out->line->end, memory_order_relaxed),
			  line);
}

TEST(new_ring_has_nothing_to_read)
{
	struct shmring_span span[2];

	ck_assert_int_eq(shmring_want(&fx.reader, fx.lane->out->line, fx.buf, 16, span), 0);
	ck_assert_ptr_null(fx_lane_next(&fx));
	ck_assert_uint_eq(fx.reader.records + fx.reader.lost + fx.reader.before, 0);
}

TEST(record_arrives_as_it_was_published)
{
	const struct nci_record *rec;

	fx_publish(fx.lane, 41, 2);
	rec = fx_lane_next(&fx);
	ck_assert_ptr_nonnull(rec);
	ck_assert_uint_eq(fx_number(rec), 41);
	ck_assert_uint_eq(rec->token, 42);
	ck_assert_uint_eq(rec->serial, 1);
	ck_assert_ptr_null(fx_lane_next(&fx));
	cursors_are(2);
}

TEST(serials_count_records_and_cursors_count_lines)
{
	uint64_t last = 0;

	fx_publish(fx.lane, 0, 1);
	fx_publish(fx.lane, 1, 2);
	fx_publish(fx.lane, 2, 1);
	cursors_are(4);
	ck_assert_uint_eq(fx_lane_drain(&fx, &last), 3);
	ck_assert_uint_eq(last, 2);
}

TEST(two_lines_at_the_rings_end_are_padded_not_wrapped)
{
	uint64_t last = 0;

	fx_publish_many(fx.lane, 0, SHMRING_LINES - 1, 1);
	fx_publish(fx.lane, SHMRING_LINES - 1, 2);
	cursors_are(SHMRING_LINES + 2);
	ck_assert_uint_eq(fx.lane->out->ring[SHMRING_LINES - 1].word[0], NCI_LINE_PAD);
	fx_lane_drain(&fx, &last);
	ck_assert_uint_eq(last, SHMRING_LINES - 1);
	ck_assert_uint_eq(fx.reader.records + fx.reader.lost + fx.reader.before, SHMRING_LINES);
}

TEST(two_lines_that_just_fit_are_not_padded)
{
	fx_publish_many(fx.lane, 0, SHMRING_LINES - 2, 1);
	fx_publish(fx.lane, SHMRING_LINES - 2, 2);
	cursors_are(SHMRING_LINES);
}

TEST(full_ring_is_read_to_the_last_record)
{
	uint64_t last = 0;

	fx_publish_many(fx.lane, 0, SHMRING_LINES, 1);
	ck_assert_uint_eq(fx_lane_drain(&fx, &last), SHMRING_LINES);
	ck_assert_uint_eq(fx.reader.lost + fx.reader.before, 0);
}

TEST(lapped_reader_counts_what_it_missed)
{
	uint64_t last = 0;

	fx_publish(fx.lane, 0, 1);
	fx_lane_drain(&fx, &last);
	fx_publish_many(fx.lane, 1, SHMRING_LINES + 6, 1);
	ck_assert_uint_eq(fx_lane_drain(&fx, &last), SHMRING_LINES);
	ck_assert_uint_eq(last, SHMRING_LINES + 5);
	ck_assert_uint_eq(fx.reader.lost, 5);
}

TEST(reader_that_comes_late_was_not_there_before)
{
	uint64_t last = 0;

	fx_publish_many(fx.lane, 0, SHMRING_LINES + 100, 1);
	fx_lane_attach(&fx, 0);
	ck_assert_uint_eq(fx_lane_drain(&fx, &last), SHMRING_LINES);
	ck_assert_uint_eq(fx.reader.before, 100);
	ck_assert_uint_eq(fx.reader.lost, 0);
}

TEST(reader_lapped_during_its_copy_drops_what_was_overwritten)
{
	uint64_t last = 0;

	fx_publish(fx.lane, 0, 1);
	fx_lane_drain(&fx, &last);
	fx_publish_many(fx.lane, 1, 101, 1);
	ck_assert_int_ge(fx_lane_copy(&fx), 1);
	fx_publish_many(fx.lane, 101, SHMRING_LINES + 51, 1);
	ck_assert_int_eq(fx_lane_settle(&fx), 0);
	fx_lane_drain(&fx, &last);
	ck_assert_uint_eq(fx.reader.lost, 50);
	ck_assert_uint_eq(last, SHMRING_LINES + 50);
	ck_assert_uint_eq(fx.reader.records + fx.reader.lost, SHMRING_LINES + 51);
}

TEST(begun_lines_are_torn_though_nothing_is_complete)
{
	uint64_t last = 0, next;

	fx_publish_many(fx.lane, 0, SHMRING_LINES, 1);
	ck_assert_int_ge(fx_lane_copy(&fx), 1);
	next = shmring_begin(fx.lane->out, 2);
	ck_assert_int_eq(fx_lane_settle(&fx), 0);
	ck_assert_uint_eq(fx_lane_drain(&fx, &last), SHMRING_LINES - 2);
	ck_assert_uint_eq(fx.reader.before, 2);
	shmring_end(fx.lane->out, next);
}

/* Every distance by which a reader may be lapped, in the midst of a record too. */
TEST(no_record_is_lost_uncounted_wherever_the_lap_falls)
{
	uint64_t n = 0, last = 0;

	for (uint32_t ahead = SHMRING_LINES / 2; ahead < SHMRING_LINES * 3 / 2; ahead += 13) {
		for (uint32_t i = 0; i < ahead; i++, n++)
			fx_publish(fx.lane, n, fx_lines(n));
		fx_lane_drain(&fx, &last);
		ck_assert_uint_eq(last, n - 1);
		ck_assert_uint_eq(fx.reader.records + fx.reader.lost + fx.reader.before, n);
	}
	ck_assert_uint_gt(fx.reader.lost, 0);
	ck_assert_uint_gt(fx.reader.records, fx.reader.lost);
}

TEST(small_room_only_means_more_rounds)
{
	uint64_t n = 0, last = 0;

	for (fx.room = 2; fx.room < 40; fx.room++) {
		for (uint32_t i = 0; i < 900; i++, n++)
			fx_publish(fx.lane, n, fx_lines(n));
		ck_assert_uint_eq(fx_lane_drain(&fx, &last), 900);
	}
	ck_assert_uint_eq(fx.reader.lost + fx.reader.before, 0);
}

TEST(small_room_and_laps_together_lose_nothing_uncounted)
{
	uint64_t n = 0, last = 0;

	for (fx.room = 2; fx.room < 200; fx.room += 3) {
		const struct nci_record *rec;

		for (uint64_t end = n + fx_mix(n) % 3000; n < end; n++)
			fx_publish(fx.lane, n, fx_lines(n));
		for (int i = 0; i < 300 && (rec = fx_lane_next(&fx)); i++)
			ck_assert_uint_eq(fx_number(rec) + 1, rec->serial);
	}
	ck_assert_uint_gt(fx.reader.lost, 0);
	fx_lane_drain(&fx, &last);
	ck_assert_uint_eq(last, n - 1);
	ck_assert_uint_eq(fx.reader.records + fx.reader.lost + fx.reader.before, n);
}

TEST(serial_wraps_without_a_gap)
{
	fx.lane->out->serial = UINT32_MAX - 2;
	fx_publish(fx.lane, 0, 1);
	ck_assert_uint_eq(fx_lane_next(&fx)->serial, UINT32_MAX - 1);
	for (int i = 0; i < 5; i++) {
		fx_publish(fx.lane, 0, 1);
		ck_assert_uint_eq(fx_lane_next(&fx)->serial, (uint32_t)(UINT32_MAX + i));
	}
	ck_assert_uint_eq(fx.reader.lost, 0);
}

TEST(unknown_type_is_delivered_for_the_caller_to_count)
{
	struct nci_slot slot;
	struct nci_record *rec = (struct nci_record *)&slot;

	fx_fill(rec, 0, 2);
	rec->type = 200;
	shmring_publish(fx.lane, rec, 1);
	ck_assert_uint_eq(fx_lane_next(&fx)->type, 200);
}

TEST(fill_tells_how_near_a_lap_is)
{
	uint64_t read = 0;

	ck_assert_uint_eq(shmring_fill_percent(&fx.reader, fx.lane->out->line), 0);
	fx_publish_many(fx.lane, 0, SHMRING_LINES / 4, 1);
	ck_assert_uint_eq(shmring_fill_percent(&fx.reader, fx.lane->out->line), 25);
	fx_publish_many(fx.lane, 0, SHMRING_LINES, 1);
	ck_assert_uint_eq(shmring_fill_percent(&fx.reader, fx.lane->out->line), 100);
	while (fx_lane_next(&fx))
		read++;
	ck_assert_uint_eq(read, SHMRING_LINES);
	ck_assert_uint_eq(shmring_fill_percent(&fx.reader, fx.lane->out->line), 0);
}

TEST(span_keeps_short_times_exact_and_long_times_in_order)
{
	ck_assert_uint_eq(nci_span(100, 99), 1);
	ck_assert_uint_eq(nci_span(100, 100), 1);
	ck_assert_uint_eq(nci_span_ticks(nci_span(100, 100 + 12345)), 12345);
	ck_assert_uint_eq(nci_span_ticks(nci_span(0, 0x7fffffff)), 0x7fffffff);
	ck_assert_uint_eq(nci_span_ticks(nci_span(0, UINT64_C(0x80000000))), UINT64_C(0x80000000));
	ck_assert_uint_eq(nci_span_ticks(nci_span(0, UINT64_C(0x80100001))), UINT64_C(0x80100000));
	ck_assert_uint_eq(nci_span(0, INT64_MAX), UINT32_MAX);
}

int main(void)
{
	return fx_run(setup, teardown);
}
