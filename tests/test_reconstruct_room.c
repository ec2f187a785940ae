/* SPDX-License-Identifier: Apache-2.0 */
/* What processes share: no user's communicators or operations take it from the others. */
#include <errno.h>

#include "reader/base/memory.h"
#include "tests/fx_recon.h"

#define COMMS	 6	/* of each process */
#define FOLLOWED 8	/* of all; four of one user */
#define OPS	 16	/* open in one process */
#define FULL	 32	/* processes of a user that may have so many */

static struct fx_recon fx;

struct member {
	struct process p;
	struct comm comms[COMMS];
};

/* The reconstruction points to them until the teardown. */
static struct member member[3 * FULL];
static struct memory memory;

static void setup(void)
{
	const struct reconstruct_limits limits = { .comms = FOLLOWED, .ops = OPS };

	memset(&fx, 0, sizeof(fx));
	fx.now = 1000 * FX_MS;
	ck_assert_int_eq(names_new(&fx.names, 64), 0);
	ck_assert_int_eq(reconstruct_new(&fx.rc, &limits, fx.names, fx_recon_done, &fx), 0);
}

static void teardown(void)
{
	fx_recon_close(&fx);
}

static struct member *join(uint32_t number, uid_t uid)
{
	struct member *m = &member[number];

	*m = (struct member){ .p = {
		.id = number + 1, .pid = 1000 + (pid_t)number, .uid = uid,
		.account = uid, .nonce = 0x5000 + number, .api_version = 6, .mask = FX_MASK_KERNEL,
		.comms = m->comms, .ncomms = COMMS,
		.clock = { .kind = NCI_CLOCK_MONOTONIC, .ns_per_tick = 1 },
	} };
	for (uint32_t i = 0; i < COMMS; i++)
		m->comms[i] = (struct comm){ .ready = true, .has_id = true, .id = 0xc0 + i,
					     .nranks = 4, .nnodes = 1 };
	ck_assert_int_eq(reconstruct_attach(fx.rc, &m->p), 0);
	return m;
}

static void give(struct member *m, const union fx_record *r)
{
	union fx_record given = *r;
	struct event ev = { &given.rec, process_comm(&m->p, r->rec.comm) };

	if (r->rec.type == NCI_EV_COLL)
		given.rec.form |= NCI_FORM_WATCHED;
	reconstruct_event(fx.rc, &m->p, &ev, fx.now);
}

/* Something happens on each of its communicators, on some of them twice. */
static void use_all(struct member *m)
{
	for (uint32_t i = 0; i < 2 * COMMS; i++) {
		union fx_record r = fx_coll_api(0x100 + i, 0, FX_ALLREDUCE, 1, fx.now);

		r.rec.comm = (uint16_t)(i % COMMS);
		give(m, &r);
	}
}

static uint32_t followed(const struct member *m)
{
	struct comm_progress progress;
	uint32_t n = 0;

	for (uint32_t i = 0; i < COMMS; i++)
		n += reconstruct_progress(&m->p, i, &progress);
	return n;
}

TEST(communicators_of_one_user_leave_room_for_others)
{
	struct member *greedy[2] = { join(0, 77), join(1, 77) }, *other;

	use_all(greedy[0]);
	use_all(greedy[1]);
	ck_assert_uint_eq(followed(greedy[0]) + followed(greedy[1]), FOLLOWED / 2);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->comms_refused, 2 * COMMS - FOLLOWED / 2);
	other = join(2, 78);
	use_all(other);
	ck_assert_uint_eq(followed(other), FOLLOWED / 2);
}

TEST(ids_of_one_user_have_no_more_than_he)
{
	struct member *greedy[2] = { join(0, 77), join(1, 77) };

	greedy[1]->p.uid = 100000;	/* of the same account */
	use_all(greedy[0]);
	use_all(greedy[1]);
	ck_assert_uint_eq(followed(greedy[0]) + followed(greedy[1]), FOLLOWED / 2);
}

TEST(room_comes_back_when_a_process_is_forgotten)
{
	struct member *first = join(0, 77), *next;

	use_all(first);
	reconstruct_detach(fx.rc, &first->p);
	next = join(1, 77);
	use_all(next);
	ck_assert_uint_eq(followed(next), FOLLOWED / 2);
}

TEST(communicators_that_are_over_make_room_for_new_ones)
{
	struct member *m = join(0, 77);
	struct comm_progress progress;
	union fx_record r = fx_coll(0x900, 0, 1, 1, fx.now);

	give(m, &r);			/* in flight on the first */
	for (uint32_t i = 0; i < COMMS; i++) {
		union fx_record call = fx_coll_api(0x100 + i, 0, FX_ALLREDUCE, 1, fx.now);

		call.rec.comm = (uint16_t)i;
		give(m, &call);
		m->comms[i].finalize_ticks = fx.now;
	}
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->comms_refused, 0);
	ck_assert_uint_eq(followed(m), FOLLOWED / 2);
	ck_assert(reconstruct_progress(&m->p, 0, &progress));
	ck_assert_uint_eq(progress.in_flight, 1);
	ck_assert(reconstruct_progress(&m->p, COMMS - 1, &progress));
}

static void call(struct member *m, uint64_t token, uint16_t comm)
{
	union fx_record r = fx_coll_api(token, 0, FX_ALLREDUCE, 1, fx.now);

	r.rec.comm = comm;
	give(m, &r);
}

/* An older call, which is pushed out, wants room for its own communicator, which is over, too. */
TEST(call_on_a_communicator_that_is_over_finds_it_when_it_is_kept)
{
	const struct reconstruct_limits limits = { .comms = FOLLOWED, .apis = 1 };
	struct comm_progress progress;
	struct member *m;

	reconstruct_free(fx.rc);
	ck_assert_int_eq(reconstruct_new(&fx.rc, &limits, fx.names, fx_recon_done, &fx), 0);
	m = join(0, 77);
	call(m, 0x100, 0);
	for (uint16_t i = 2; i < 2 + FOLLOWED / 2 - 1; i++) {
		union fx_record r = fx_coll(0x900 + i, 0, 1, 1, fx.now);

		r.rec.comm = i;
		give(m, &r);
	}
	m->comms[0].finalize_ticks = fx.now;
	call(m, 0x101, 1);
	m->comms[1].finalize_ticks = fx.now;
	call(m, 0x102, 1);
	ck_assert_uint_eq(fx.ndone, 1);
	ck_assert(reconstruct_progress(&m->p, 1, &progress));
	ck_assert_uint_eq(progress.calls, 1);
	ck_assert(!reconstruct_progress(&m->p, 0, &progress));
}

static uint64_t pushed_out(struct member *m)
{
	for (uint32_t i = 0; i < OPS; i++) {
		union fx_record r = fx_coll(0x100 + i, 0, i + 1, 1, fx.now);

		give(m, &r);
	}
	return m->p.loss.evicted;
}

/* Its further children would push out one operation after another, and complete none. */
TEST(operation_that_was_pushed_out_is_not_begun_again)
{
	enum { MORE = 4 };
	struct member *m = join(0, 77);

	for (uint32_t i = 0; i < 3 * (OPS + MORE); i++) {
		union fx_record r = fx_kernel(0x900, nci_token(1, i % (OPS + MORE), 2),
					      (uint8_t)(i / (OPS + MORE)), 100, 200);

		give(m, &r);
	}
	ck_assert_uint_eq(m->p.loss.evicted, MORE);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->orphans, MORE);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->late, 2 * MORE);
}

TEST(first_processes_of_a_user_have_more_room_than_the_next)
{
	struct member *other;

	for (uint32_t i = 0; i <= FULL; i++)
		join(i, 77);
	other = join(FULL + 1, 78);
	ck_assert_uint_eq(pushed_out(&member[FULL - 1]), 0);
	ck_assert_uint_eq(pushed_out(&member[FULL]), OPS - OPS / 8);
	ck_assert_uint_eq(pushed_out(other), 0);
}

TEST(a_few_users_together_have_no_more_than_the_node_can_give)
{
	for (uint32_t i = 0; i < 3 * FULL; i++)
		join(i, 77 + i / FULL);
	ck_assert_uint_eq(pushed_out(&member[2 * FULL - 1]), 0);
	ck_assert_uint_eq(pushed_out(&member[2 * FULL]), OPS - OPS / 8);
}

/* From now on there is so much for one user. */
static void open_with(uint64_t bytes)
{
	const struct reconstruct_limits limits = { .memory = &memory };

	reconstruct_free(fx.rc);
	memory_init(&memory, MEMORY_OWN + bytes / 3 * 4);
	ck_assert_int_eq(reconstruct_new(&fx.rc, &limits, fx.names, fx_recon_done, &fx), 0);
}

static void post(struct member *m, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		union fx_record r = fx_coll(0x100 + i, 0, i + 1, 1, fx.now);

		give(m, &r);
	}
}

static bool count_open(const struct op *op, void *arg)
{
	uint64_t *seen = arg;		/* how many, and the first of them */

	seen[0]++;
	seen[1] = op->seq < seen[1] ? op->seq : seen[1];
	return true;
}

#define POSTED 8000	/* fewer than a process may have open: memory is the bound */

TEST(oldest_operations_make_room_where_memory_is_short)
{
	uint64_t seen[2] = { 0, UINT64_MAX };
	struct member *m;

	open_with(3 << 20);
	m = join(0, 77);
	post(m, POSTED);
	reconstruct_open(fx.rc, &m->p, count_open, seen);
	ck_assert_uint_gt(seen[0], 1000);
	ck_assert_uint_eq(seen[0], POSTED - m->p.loss.evicted);
	ck_assert_uint_eq(seen[1], m->p.loss.evicted + 1);	/* the newest are there */
	ck_assert_uint_le(memory.taken, (3 << 20) / 8 * 9);	/* with places in the index */
	reconstruct_detach(fx.rc, &m->p);
	ck_assert_uint_eq(memory.taken, 0);
}

TEST(tables_of_a_process_count_once_it_has_operations)
{
	union fx_record elsewhere = fx_coll(nci_token(5, 0, 1), 0, 9, 1, fx.now);
	struct member *m;
	uint64_t none, one;

	open_with(3 << 20);
	m = join(0, 77);
	none = memory.taken;
	post(m, 1);
	one = memory.taken - none;
	post(m, 2);
	ck_assert_uint_ge(one, (8 + 4) << 10);	/* its places, and the slots of a page */
	ck_assert_uint_lt(memory.taken - none - one, 4 << 10);
	one = memory.taken;
	give(m, &elsewhere);
	ck_assert_uint_ge(memory.taken - one, 4 << 10);
}

TEST(ids_of_one_user_have_the_memory_of_one)
{
	struct member *m[2];

	open_with(3 << 20);
	m[0] = join(0, 77);
	m[1] = join(1, 77);
	m[1]->p.uid = 100000;		/* of the same account */
	post(m[0], POSTED);
	post(m[1], POSTED);
	ck_assert_uint_gt(memory.refused, 0);
	ck_assert_uint_le(memory.taken, (3 << 20) / 8 * 9);
}

TEST(empty_tables_are_given_back_where_memory_is_tight)
{
	struct member *idle, *busy;
	uint64_t one;

	open_with(3 << 20);
	idle = join(0, 77);
	busy = join(1, 77);
	post(idle, 1000);
	one = memory.taken;
	idle->comms[0].finalize_ticks = fx.now;
	fx.now += 2000 * FX_MS;
	reconstruct_settle(fx.rc, &idle->p, NULL, 0, fx.now);
	reconstruct_flush(fx.rc, fx.now);
	ck_assert_uint_eq(memory.taken, one);	/* nobody needs it */
	post(busy, POSTED);
	ck_assert(memory.tight);
	one = memory.taken;
	reconstruct_flush(fx.rc, fx.now);
	ck_assert_uint_lt(memory.taken, one - 1000 * sizeof(struct op));
	post(busy, 1);
	ck_assert_uint_eq(memory.refused, 0);
}

TEST(process_that_there_is_no_memory_for_is_not_followed)
{
	struct process p = { .id = 1, .uid = 77 };

	open_with(3000);
	ck_assert_int_eq(reconstruct_attach(fx.rc, &p), -ENOMEM);
	ck_assert_uint_eq(memory.refused, 1);
	ck_assert_uint_eq(memory.taken, 0);
}

int main(void)
{
	return fx_run(setup, teardown);
}
