/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that hang and jobs that do nothing, as /v1/findings tells them. */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "ncclinspd/findings/stuck.h"
#include "tests/fixture_serve.h"

#define MASK_COLL	NCI_EVENT_BIT(NCI_EV_COLL)

static struct process *first, *second;

/* Ranks 0 and 1 of eight. */
static void setup(void)
{
	fx_serve_open(NULL);
	first = fx_process(10, 0, 0);
	second = fx_process(11, 0, 1);
}

static uint64_t ticks(void)
{
	return fx.now_ns - FX_START_NS + 1000;
}

static uint64_t token_of(const struct process *p, uint64_t seq)
{
	return p->id << 32 | (seq + 1);
}

static void post(struct process *p, uint64_t seq)
{
	fx_post(p, seq, token_of(p, seq), ticks());
}

/* The kernel of one of its two channels, from start to end. */
static void run_channel(struct process *p, uint64_t seq, uint8_t channel)
{
	struct nci_ev_kernel_ch kernel = {
		.type = NCI_EV_KERNEL_CH, .form = 1, .comm = 0, .serial = 2,
		.token = token_of(p, seq) | (UINT64_C(1) << 60) | (uint64_t)channel << 50,
		.parent = token_of(p, seq), .start = ticks(), .stop = ticks() + 10,
		.channel = channel,
	};
	struct event ev = { .rec = (const struct nci_record *)&kernel, .comm = p->comms };

	reconstruct_event(fx.reconstruct, p, &ev, fx.now_ns);
}

static void run(struct process *p, uint64_t seq)
{
	post(p, seq);
	run_channel(p, seq, 0);
	run_channel(p, seq, 1);
}

/* The same, of another size. */
static void post_other_count(struct process *p, uint64_t seq, uint64_t count)
{
	struct nci_ev_coll coll = {
		.type = NCI_EV_COLL, .form = 2 | NCI_FORM_WATCHED, .comm = 0, .serial = 1,
		.token = token_of(p, seq), .start = ticks(), .stop = ticks() + 50, .seq = seq,
		.count = count, .func = 1, .cont = NCI_LINE_CONT, .channels = 2,
		.rank = p->comms[0].rank,
	};
	struct event ev = { .rec = (const struct nci_record *)&coll, .comm = p->comms };

	reconstruct_event(fx.reconstruct, p, &ev, fx.now_ns);
}

/* The clock goes on with a poll and a look each second. */
static void look_for(uint64_t seconds)
{
	while (seconds--) {
		fx.now_ns += FX_SECOND;
		reconstruct_flush(fx.reconstruct, fx.now_ns);
		diagnose_look(fx.diagnose, fx.now_ns);
	}
}

/* A history; the number of the next one. */
static uint64_t both_run(uint64_t seq, int times)
{
	while (times--) {
		run(first, seq);
		run(second, seq++);
		fx.now_ns += FX_SECOND / 1000;
		reconstruct_flush(fx.reconstruct, fx.now_ns);
	}
	return seq;
}

static json_t *findings(void)
{
	return fx_get("/v1/findings?active=true", 200);
}

static size_t count_of(const char *grade)
{
	char target[64];
	size_t n;
	json_t *a;

	snprintf(target, sizeof(target), "/v1/findings?active=true&grade=%s", grade);
	a = fx_get(target, 200);
	n = json_array_size(fx_at(a, "findings"));
	json_decref(a);
	return n;
}

static size_t count(void)
{
	return count_of("found");
}

static void expect_verdict(const char *kind, const char *verdict)
{
	json_t *a = findings();

	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 1);
	ck_assert_str_eq(fx_text(a, "findings.0.grade"), "found");
	ck_assert_str_eq(fx_text(a, "findings.0.kind"), kind);
	ck_assert_str_eq(fx_text(a, "findings.0.verdict"), verdict);
	json_decref(a);
}

TEST(the_first_operation_of_a_communicator_has_a_minute)
{
	first->comms[0].nranks = second->comms[0].nranks = 2;
	post(first, 0);
	post(second, 0);
	look_for(60);
	ck_assert_uint_eq(count(), 0);
	look_for(1);
	expect_verdict("stall", "NOT_RUNNING");
}

TEST(with_ranks_elsewhere_kernels_that_nobody_told_of_accuse_no_gpu)
{
	uint64_t seq = both_run(0, 20);
	json_t *a;

	post(first, seq);
	post(second, seq);
	look_for(13);
	expect_verdict("stall", "UNKNOWN");
	a = findings();
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings.0.ranks")), 0);
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"),
				     "AllReduce #20 on dp hangs; ranks 0-1 wait there; nothing "
				     "tells whether the GPUs of ranks 0-1 have begun it."));
	json_decref(a);
	run_channel(first, seq, 0);	/* this one is told of */
	look_for(10);
	expect_verdict("stall", "NOT_RUNNING");
	a = findings();
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 1);
	json_decref(a);
}

/* Nothing like it was seen before, and its limit would be a minute. */
TEST(what_the_rows_prove_is_found_within_three_seconds)
{
	json_t *a;

	post(first, 0);
	post_other_count(second, 0, 2048);
	look_for(1);
	ck_assert_uint_eq(count(), 0);	/* at one look, half of it may not be read yet */
	look_for(1);
	expect_verdict("desync", "METADATA_MISMATCH");
	a = findings();
	ck_assert_str_eq(fx_text(a, "findings.0.severity"), "critical");
	ck_assert_str_eq(fx_text(a, "findings.0.evidence.limit_reason"), "proof");
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.limit_ns"), 0);
	ck_assert_ptr_null(strstr(fx_text(a, "findings.0.text"), "limit"));
	json_decref(a);
}

static void expect_severity(const char *grade, const char *severity)
{
	json_t *a = findings();

	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 1);
	ck_assert_str_eq(fx_text(a, "findings.0.verdict"), "NOT_JOINED");
	ck_assert_str_eq(fx_text(a, "findings.0.grade"), grade);
	ck_assert_str_eq(fx_text(a, "findings.0.severity"), severity);
	json_decref(a);
}

TEST(who_stays_away_is_a_warning_before_it_is_critical)
{
	uint64_t seq = both_run(0, 20);
	json_t *a;

	post(first, seq);
	look_for(8);
	expect_severity("suspected", "warning");
	look_for(4);
	expect_severity("found", "warning");
	a = findings();
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), " It stays a warning until it "
				     "has lasted for 5m00s, because a checkpoint looks the same."));
	json_decref(a);
	look_for(287);
	expect_severity("found", "warning");
	look_for(3);
	expect_severity("found", "critical");
}

static void both_end(uint64_t seq)
{
	run(second, seq);
	run_channel(first, seq, 0);
	run_channel(first, seq, 1);
	look_for(5);
}

TEST(who_comes_at_last_has_its_own_time)
{
	uint64_t seq;

	first->comms[0].nranks = second->comms[0].nranks = 2;
	seq = both_run(0, 20);
	post(first, seq);
	look_for(30);
	expect_severity("found", "warning");
	post(second, seq);
	look_for(4);
	ck_assert_uint_eq(count(), 0);
	look_for(6);
	ck_assert_uint_eq(count(), 0);
	look_for(2);
	expect_verdict("stall", "NOT_RUNNING");
}

/* A checkpoint of 30 s: the next may take 45 s before anybody is told, and 90 s to be critical. */
TEST(who_came_late_before_has_longer_the_next_time)
{
	uint64_t seq = both_run(0, 20);

	post(first, seq);
	look_for(30);
	expect_severity("found", "warning");
	both_end(seq++);
	seq = both_run(seq, 20);
	ck_assert_uint_eq(count(), 0);
	post(first, seq);
	look_for(44);
	expect_severity("suspected", "warning");
	look_for(3);
	expect_severity("found", "warning");
	look_for(42);
	expect_severity("found", "warning");
	look_for(3);
	expect_severity("found", "critical");
}

/* As the daemon's clock does: the ticks of a posting come to other nanoseconds each time. */
static void measure_clocks(int look)
{
	first->clock.mono_ns += look % 2 ? 3 : -3;
	second->clock.mono_ns += look % 2 ? -5 : 5;
}

TEST(one_hang_is_one_finding_however_often_the_clock_is_measured)
{
	uint64_t seq = both_run(0, 20);
	json_t *a;

	post(first, seq);
	look_for(13);
	for (int i = 0; i < 30; i++) {
		measure_clocks(i);
		look_for(1);
		fx.now_ns += (uint64_t)(i % 5) * FX_SECOND;
	}
	a = fx_get("/v1/findings", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 1);
	ck_assert_uint_eq(fx_number(a, "findings.0.id"), 1);
	json_decref(a);
	expect_verdict("desync", "NOT_JOINED");
}

TEST(who_has_not_come_is_named_with_evidence_and_forgotten_when_it_comes)
{
	uint64_t seq = both_run(0, 20);
	json_t *a;

	post(first, seq);
	look_for(10);
	ck_assert_uint_eq(count(), 0);
	look_for(3);
	a = findings();
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 1);
	ck_assert_str_eq(fx_text(a, "findings.0.kind"), "desync");
	ck_assert_str_eq(fx_text(a, "findings.0.verdict"), "NOT_JOINED");
	ck_assert_str_eq(fx_text(a, "findings.0.severity"), "warning");
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 1);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.seq"), 20);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.limit_ns"), 10 * FX_SECOND);
	ck_assert_str_eq(fx_text(a, "findings.0.evidence.limit_reason"), "minimum");
	ck_assert_str_eq(fx_text(a, "findings.0.evidence.flight_recorder"),
			 "COLLECTIVE_STATE_MISMATCH");
	ck_assert(json_is_true(fx_at(a, "findings.0.evidence.ranks.0.posted")));
	ck_assert(json_is_false(fx_at(a, "findings.0.evidence.ranks.1.posted")));
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.ranks.1.last_seq"), 19);
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"),
				     "rank 1 (pid 11, node7) has not come to AllReduce #20 on dp"));
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"),
				     "6 of its 8 ranks are not on this node"));
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), "py-spy dump -p 11"));
	json_decref(a);

	run(second, seq);
	run_channel(first, seq, 0);
	run_channel(first, seq, 1);
	look_for(5);
	ck_assert_uint_eq(count(), 0);
}

TEST(what_hangs_is_suspected_from_five_seconds_on_and_found_as_the_same)
{
	uint64_t seq = both_run(0, 20), since_ns;
	json_t *a;

	post(first, seq);
	look_for(4);
	ck_assert_uint_eq(count_of("suspected"), 0);
	look_for(1);
	a = findings();
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 1);
	ck_assert_str_eq(fx_text(a, "findings.0.grade"), "suspected");
	ck_assert_str_eq(fx_text(a, "findings.0.verdict"), "NOT_JOINED");
	ck_assert_str_eq(fx_text(a, "findings.0.severity"), "warning");
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 1);
	ck_assert(json_is_null(fx_at(a, "findings.0.found_mono_ns")));
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), ". It is suspected, "
				     "and will be found if it lasts for 10s."));
	since_ns = fx_number(a, "findings.0.since_mono_ns");
	ck_assert_uint_eq(fx_number(a, "findings.0.due_mono_ns"), since_ns + 10 * FX_SECOND);
	json_decref(a);
	look_for(5);
	ck_assert_uint_eq(count(), 0);
	look_for(1);
	expect_verdict("desync", "NOT_JOINED");
	a = findings();
	ck_assert_uint_eq(fx_number(a, "findings.0.id"), 1);
	ck_assert_uint_eq(fx_number(a, "findings.0.since_mono_ns"), since_ns);
	ck_assert_uint_eq(fx_number(a, "findings.0.found_mono_ns"), fx.now_ns);
	ck_assert(json_is_null(fx_at(a, "findings.0.due_mono_ns")));
	json_decref(a);
}

/* Twenty of them took eight seconds each: nobody looks twice at that. */
TEST(what_takes_as_long_as_ever_is_not_suspected)
{
	uint64_t seq = 0;

	while (seq < 20) {
		post(first, seq);
		post(second, seq);
		fx.now_ns += 8 * FX_SECOND;
		for (uint8_t channel = 0; channel < 2; channel++) {
			run_channel(first, seq, channel);
			run_channel(second, seq, channel);
		}
		seq++;
		reconstruct_flush(fx.reconstruct, fx.now_ns);
	}
	post(first, seq);
	look_for(7);
	ck_assert_uint_eq(count_of("suspected"), 0);
	look_for(6);
	ck_assert_uint_eq(count_of("suspected"), 1);
}

TEST(what_moves_is_not_suspected)
{
	uint64_t seq;

	first->comms[0].nranks = second->comms[0].nranks = 2;
	seq = both_run(0, 20);
	post(first, seq);
	post(second, seq);
	look_for(4);
	run_channel(first, seq, 0);
	look_for(4);
	ck_assert_uint_eq(count_of("suspected"), 0);
	look_for(2);
	ck_assert_uint_eq(count_of("suspected"), 1);
}

TEST(a_suspicion_that_proves_wrong_leaves_nothing)
{
	uint64_t seq = both_run(0, 20);
	json_t *a;

	post(first, seq);
	look_for(6);
	ck_assert_uint_eq(count_of("suspected"), 1);
	run(second, seq);
	run_channel(first, seq, 0);
	run_channel(first, seq, 1);
	look_for(5);
	a = fx_get("/v1/findings", 200);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 1);
	ck_assert_str_eq(fx_text(a, "findings.0.verdict"), "OUTSIDE");	/* it posts nothing more */
	json_decref(a);
}

TEST(who_claims_another_users_communicator_is_none_of_its_ranks)
{
	struct process *stranger = fx_process(12, 101, 2);
	uint64_t seq = both_run(0, 20);
	json_t *a;

	post(first, seq);
	look_for(13);
	a = findings();
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 1);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings.0.ranks")), 1);
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 1);
	json_decref(a);
	stranger->state = PROCESS_DIED;
	look_for(2);
	expect_verdict("desync", "NOT_JOINED");
}

#define MANY 5000

/* Communicators that are all the same one. */
static void first_has_many(void)
{
	struct comm one = first->comms[0];

	first->comms = realloc(first->comms, MANY * sizeof(one));
	first->ncomms = MANY;
	for (int i = 0; i < MANY; i++)
		first->comms[i] = one;
}

/* A job may make up as many as its table has room for. */
TEST(communicators_that_are_too_many_are_left_out_and_counted)
{
	json_t *a;

	first_has_many();
	first->comms[MANY - 1].id++;	/* the newest, which is looked at */
	first->comms[MANY - 1].rank = 1;
	second->comms[0].id = first->comms[MANY - 1].id;
	fx_post(second, 1, token_of(second, 1), ticks());
	look_for(70);
	a = findings();
	ck_assert_uint_eq(fx_number(a, "left_out"), MANY - STUCK_RANKS / 2);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 1);
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings.0.evidence.ranks")), 2);
	json_decref(a);
}

/* Two processes of one user, six of another. */
TEST(processes_of_one_user_leave_communicators_of_others_to_be_looked_at)
{
	json_t *a;

	first_has_many();
	for (int i = 0; i < 6; i++)
		fx_process(20 + i, 0, 0)->account = 7;
	look_for(1);
	a = findings();
	ck_assert_uint_eq(fx_number(a, "left_out"), MANY - STUCK_RANKS / 2 / 2);
	json_decref(a);
}

TEST(hang_of_one_user_is_found_beside_many_of_another)
{
	enum { OF_FIRST = 400 };
	struct comm one = first->comms[0];
	int of_second = 0;
	json_t *a;

	first->comms = realloc(first->comms, OF_FIRST * sizeof(one));
	first->ncomms = OF_FIRST;
	for (uint32_t i = 0; i < OF_FIRST; i++) {
		struct nci_ev_coll coll = {
			.type = NCI_EV_COLL, .form = 2, .comm = (uint16_t)i, .serial = 1,
			.token = token_of(first, i), .start = ticks(), .stop = ticks() + 50,
			.seq = 3, .count = 1024, .func = 1, .cont = NCI_LINE_CONT, .channels = 2,
		};
		struct event ev = { .rec = (const struct nci_record *)&coll,
				    .comm = &first->comms[i] };

		first->comms[i] = one;
		first->comms[i].id = 0x1000 + i;
		reconstruct_event(fx.reconstruct, first, &ev, fx.now_ns);
	}
	second->uid = 77;
	second->comms[0].id = 0xffff;
	post(second, 3);
	look_for(70);
	a = findings();
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 128);
	for (size_t i = 0; i < json_array_size(fx_at(a, "findings")); i++)
		of_second += !strcmp("0x000000000000ffff", json_string_value(json_object_get(
			json_array_get(fx_at(a, "findings"), i), "comm_id")));
	ck_assert_int_eq(of_second, 1);
	json_decref(a);
}

TEST(what_still_moves_is_slow_until_it_stops_moving)
{
	uint64_t seq;

	first->comms[0].nranks = second->comms[0].nranks = 2;
	seq = both_run(0, 20);
	post(first, seq);
	post(second, seq);
	look_for(12);
	run_channel(first, seq, 0);
	look_for(2);
	expect_verdict("stall", "SLOW");
	look_for(6);
	expect_verdict("stall", "NOT_RUNNING");
}

/* All that is told of a communicator that only broadcasts, or within a node without kernels. */
static void call(struct process *p, uint64_t number)
{
	struct nci_ev_coll_api api = {
		.type = NCI_EV_COLL_API, .form = 1, .comm = 0, .serial = 1,
		.token = token_of(p, number), .start = ticks(), .stop = ticks() + 5, .count = 1024,
		.func = 1,
	};
	struct event ev = { .rec = (const struct nci_record *)&api, .comm = p->comms };

	reconstruct_event(fx.reconstruct, p, &ev, fx.now_ns);
}

TEST(what_an_absence_was_before_counts_also_where_only_calls_are_told)
{
	json_t *a;

	first->mask = second->mask = MASK_COLL;
	call(first, 0);
	call(second, 0);
	call(first, 1);
	look_for(40);
	a = findings();
	ck_assert_str_eq(fx_text(a, "findings.0.verdict"), "NOT_JOINED");
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), "it has lasted for 5m00s"));
	json_decref(a);
	call(second, 1);
	call(first, 2);
	look_for(10);
	a = findings();
	ck_assert_str_eq(fx_text(a, "findings.0.verdict"), "NOT_JOINED");
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), "it has lasted for 2m00s"));
	json_decref(a);
}

TEST(where_no_end_is_watched_counters_tell_who_is_behind)
{
	json_t *a;

	first->mask = MASK_COLL;
	second->mask = MASK_COLL;
	for (uint64_t seq = 0; seq < 5; seq++) {
		post(first, seq);
		if (seq < 4)
			post(second, seq);
	}
	look_for(60);
	ck_assert_uint_eq(count(), 0);
	look_for(4);
	expect_verdict("desync", "NOT_JOINED");
	a = findings();
	ck_assert(json_is_false(fx_at(a, "findings.0.evidence.watched")));
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 1);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.seq"), 4);
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), "NCCLINSP_KERNELS=always "
				     "watches every end from NCCL 2.28 on."));
	json_decref(a);
}

TEST(who_is_not_watched_at_all_is_not_accused)
{
	uint64_t seq = both_run(0, 20);

	second->mask = NCI_EVENT_BIT(NCI_EV_GROUP_API);	/* level off */
	post(first, seq);
	run_channel(first, seq, 0);
	look_for(30);
	expect_verdict("stall", "UNKNOWN");
}

static void second_dies(void)
{
	second->state = PROCESS_DIED;
	second->ended_ns = fx.now_ns;
	reconstruct_end(fx.reconstruct, second, fx.now_ns);
}

/* It had ended by itself, as far as anybody knows. */
TEST(the_dead_are_named_within_three_seconds_by_those_who_wait_for_them)
{
	uint64_t seq = both_run(0, 20);
	json_t *a;

	post(first, seq);
	second_dies();
	look_for(2);
	expect_verdict("stall", "RANK_DEAD");
	a = findings();
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 1);
	json_decref(a);
}

TEST(one_death_is_one_finding_which_tells_who_waits)
{
	uint64_t seq = both_run(0, 20);
	json_t *a;

	post(first, seq);
	second_dies();
	diagnose_ended(fx.diagnose, second, fx.now_ns);
	a = findings();
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 1);
	ck_assert(json_is_null(fx_at(a, "findings.0.verdict")));
	ck_assert_str_eq(fx_text(a, "findings.0.severity"), "warning");	/* it was in no operation */
	json_decref(a);
	look_for(13);
	expect_verdict("died", "RANK_DEAD");
	a = findings();
	ck_assert_uint_eq(fx_number(a, "findings.0.id"), 1);
	ck_assert_str_eq(fx_text(a, "findings.0.severity"), "critical");
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings.0.ranks")), 1);
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 1);
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), ") died with no operation "
				     "known to be in flight; rank 0 waits in AllReduce #20 on dp. "
				     "It did not end by itself: "));
	json_decref(a);
}

/* One operation each 50 ms, all of them over. */
static void iterate(void)
{
	for (uint64_t i = 0; i < 200; i++) {
		run(first, i);
		run(second, i);
		fx.now_ns += FX_SECOND / 20;
		reconstruct_flush(fx.reconstruct, fx.now_ns);
	}
}

TEST(a_job_that_posts_nothing_is_a_note_at_once)
{
	json_t *a;

	iterate();
	look_for(2);
	ck_assert_uint_eq(count_of("suspected"), 0);
	look_for(1);
	a = findings();
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings")), 1);
	ck_assert_str_eq(fx_text(a, "findings.0.grade"), "suspected");
	ck_assert_str_eq(fx_text(a, "findings.0.severity"), "info");
	ck_assert_str_eq(fx_text(a, "findings.0.verdict"), "OUTSIDE");
	ck_assert_uint_eq(fx_number(a, "findings.0.due_mono_ns"),
			  fx_number(a, "findings.0.since_mono_ns") + 120 * FX_SECOND);
	json_decref(a);
	run(first, 200);
	run(second, 200);
	look_for(2);
	post(first, 201);
	look_for(3);
	ck_assert_uint_eq(count_of("suspected"), 0);
}

/* Each of ten iterations takes more than the least that a note waits for. */
TEST(a_job_with_long_iterations_has_ten_of_them_before_it_is_a_note)
{
	for (uint64_t i = 0; i < 40; i++) {
		run(first, i);
		run(second, i);
		look_for(1);
	}
	look_for(8);
	ck_assert_uint_eq(count_of("suspected"), 0);
	look_for(2);
	ck_assert_uint_eq(count_of("suspected"), 1);
}

/* A process of the kernel's that is stopped; it ends with this one. */
static pid_t start_stopped(void)
{
	pid_t pid = fork();
	int status;

	ck_assert_int_ge(pid, 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		raise(SIGSTOP);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	ck_assert(WIFSTOPPED(status));
	return pid;
}

static void expect_kill(pid_t pid)
{
	json_t *a = findings();
	char advice[64];

	snprintf(advice, sizeof(advice), "kill -CONT %d lets it continue.", (int)pid);
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), advice));
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings.0.ranks")), 1);
	ck_assert_uint_eq(fx_number(a, "findings.0.ranks.0"), 1);
	json_decref(a);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST(who_is_stopped_is_found_within_three_seconds)
{
	uint64_t seq = both_run(0, 20);

	second->pid = start_stopped();
	post(first, seq);
	look_for(2);
	ck_assert_uint_eq(count(), 0);		/* the number may be another process's */
	second->proven = true;
	look_for(2);
	expect_verdict("stall", "STOPPED");
	expect_kill(second->pid);
}

TEST(who_is_stopped_with_nothing_in_flight_is_told_so_too)
{
	json_t *a;

	iterate();
	second->pid = start_stopped();
	second->proven = true;
	look_for(2);
	expect_verdict("stall", "STOPPED");
	a = findings();
	ck_assert_ptr_nonnull(strstr(fx_text(a, "findings.0.text"), " is stopped by a signal "
				     "(state T), and nothing is in flight on dp. kill -CONT "));
	json_decref(a);
	expect_kill(second->pid);
}

TEST(a_job_that_has_stopped_posting_is_outside_nccl)
{
	json_t *a;

	iterate();
	look_for(119);
	ck_assert_uint_eq(count(), 0);
	look_for(3);
	expect_verdict("stall", "OUTSIDE");
	a = findings();
	ck_assert_str_eq(fx_text(a, "findings.0.severity"), "warning");
	ck_assert_uint_eq(json_array_size(fx_at(a, "findings.0.ranks")), 2);
	ck_assert_uint_eq(fx_number(a, "findings.0.evidence.period_ns"), FX_SECOND / 20);
	json_decref(a);
	run(first, 200);
	run(second, 200);
	look_for(5);
	ck_assert_uint_eq(count(), 0);
}

TEST(a_pause_it_has_made_before_is_none_to_speak_of)
{
	iterate();
	look_for(100);
	run(first, 200);
	run(second, 200);
	look_for(198);
	ck_assert_uint_eq(count(), 0);
	look_for(4);
	expect_verdict("stall", "OUTSIDE");
}

TEST(without_a_watched_end_nobody_says_that_it_is_outside)
{
	first->mask = MASK_COLL;
	second->mask = MASK_COLL;
	iterate();
	look_for(59);
	ck_assert_uint_eq(count(), 0);
	look_for(3);
	expect_verdict("stall", "UNKNOWN");
}

TEST(a_process_without_a_communicator_may_do_what_it_likes)
{
	iterate();
	first->comms[0].finalize_ticks = 1;
	second->comms[0].finalize_ticks = 1;
	look_for(100);
	ck_assert_uint_eq(count(), 0);
}

int main(void)
{
	return fx_run(setup, fx_serve_close);
}
