/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random streams: the same records in any order give the same operations, what
 * is missing is missing and no more, and no stream makes it take more memory.
 */
#include "tests/fx_recon.h"

#define OPS 200

static struct fx_recon fx;

static void teardown(void)
{
	fx_recon_close(&fx);
}

static uint32_t random_below(uint32_t n)
{
	return (uint32_t)(fx_random() % n);
}

/* What the obvious model knows of an operation. */
struct expected {
	uint32_t channels, stamps_lost;
	uint64_t gpu_start, gpu_stop;
	uint64_t count;
	bool head_lost, api_lost;
};

/* A lane is in order; lanes are read in any order, a piece at a time. */
enum { CALLS, HEADS, KERNELS, LANES };

struct lane {
	union fx_record record[OPS * 64];
	uint32_t n, next;
};

struct stream {
	struct lane lane[LANES];
	struct expected op[OPS];
};

/* As a plugin gives them: a few slots, over and over.  These four share their places (recon.c). */
static uint32_t op_slots = 1;

static uint64_t op_token(uint32_t i)
{
	return nci_token(0, 3 + 1024 * (i % op_slots), 1 + i / op_slots);
}

static uint64_t api_token(uint32_t i)
{
	return 200000 + i;
}

static void add(struct stream *s, int lane, union fx_record r)
{
	s->lane[lane].record[s->lane[lane].n++] = r;
}

/* Operation i runs in GPU time [i, i + 1) x 100 us. */
static void add_op(struct stream *s, uint32_t i, uint32_t lose_percent)
{
	struct expected *e = &s->op[i];
	uint64_t at = 1000000 + 100000 * (uint64_t)i;

	*e = (struct expected){
		.channels = 1 + random_below(64),
		.count = 1 + random_below(1 << 20),
		.gpu_start = UINT64_MAX,
		.head_lost = random_below(100) < lose_percent,
		.api_lost = random_below(100) < lose_percent,
	};
	if (!e->api_lost)
		add(s, CALLS, fx_coll_api(api_token(i), 0, FX_ALLREDUCE, e->count, at));
	if (!e->head_lost)
		add(s, HEADS, fx_coll(op_token(i), api_token(i), i, (uint8_t)e->channels, at + 10));
	for (uint32_t c = 0; c < e->channels; c++) {
		uint64_t start = at + 100 + random_below(1000);
		uint64_t stop = start + 1 + random_below(90000);

		if (random_below(100) < lose_percent) {
			e->stamps_lost++;
			continue;
		}
		if (start < e->gpu_start)
			e->gpu_start = start;
		if (stop > e->gpu_stop)
			e->gpu_stop = stop;
		add(s, KERNELS,
		    fx_kernel(300000 + i * 64 + c, op_token(i), (uint8_t)c, start, stop));
	}
}

static void play(struct stream *s, uint32_t piece)
{
	uint32_t left = s->lane[CALLS].n + s->lane[HEADS].n + s->lane[KERNELS].n;

	while (left) {
		struct lane *lane = &s->lane[random_below(LANES)];

		for (uint32_t n = random_below(piece) + 1; n && lane->next < lane->n; n--, left--)
			fx_give(&fx, &fx.a, &lane->record[lane->next++]);
		if (random_below(100) == 0)
			fx_wait(&fx, FX_MS / 8);
	}
}

static void settle_and_end(void)
{
	for (int i = 0; i < 50; i++) {
		fx_wait(&fx, 60 * FX_MS);
		fx_look(&fx, NULL, 0);
	}
	fx.now++;
	reconstruct_end(fx.rc, &fx.a.p, fx.now);
}

static const struct op *find_done(uint32_t i)
{
	const struct op *found = NULL;

	for (uint32_t k = 0; k < fx.ndone; k++) {
		if (fx.done[k].token != op_token(i))
			continue;
		ck_assert_ptr_null(found);	/* handed on once */
		found = &fx.done[k];
	}
	return found;
}

static void check(const struct expected *e, const struct op *op)
{
	ck_assert(!op == e->head_lost);
	if (!op)
		return;
	ck_assert(op->complete == !e->stamps_lost);
	ck_assert_uint_eq(op->kernel_stopped, e->channels - e->stamps_lost);
	ck_assert(op->has_graph == !e->api_lost);
	if (!e->api_lost)
		ck_assert_uint_eq(op->bytes, 4 * e->count);
	if (op->complete) {
		ck_assert_uint_eq(op->exec_ns, e->gpu_stop - e->gpu_start);
		ck_assert_int_eq(op->source, TIMING_KERNEL_GPU);
	}
}

static void run(uint32_t lose_percent, uint32_t piece)
{
	struct stream *s = calloc(1, sizeof(*s));

	fx_recon_open(&fx, 6, FX_MASK_KERNEL);
	for (uint32_t i = 0; i < OPS; i++)
		add_op(s, i, lose_percent);
	play(s, piece);
	settle_and_end();
	for (uint32_t i = 0; i < OPS; i++)
		check(&s->op[i], find_done(i));
	free(s);
}

TEST_LOOP(any_order_gives_the_same_operations, 0, 16)
{
	fx_seed((uint64_t)_i);
	op_slots = 1 + (uint32_t)_i % 4;
	run(0, 1u << _i);
}

TEST_LOOP(lost_records_cost_their_own_operation_only, 0, 16)
{
	fx_seed((uint64_t)_i);
	op_slots = 1 + (uint32_t)_i % 4;
	run(1 + (uint32_t)_i, 100);
}

static union fx_record random_record(void)
{
	static const uint8_t types[] = {
		NCI_EV_COLL, NCI_EV_P2P, NCI_EV_KERNEL_CH, NCI_EV_PROXY_OP, NCI_EV_PROXY_STEP,
		NCI_EV_COLL_API, NCI_EV_P2P_API, NCI_EV_GROUP_API, NCI_EV_CE_COLL,
		NCI_EV_PROXY_CTRL,
	};
	union fx_record r;

	for (size_t i = 0; i < sizeof(r) / 8; i++)
		((uint64_t *)&r)[i] = fx_random();
	r.rec.type = types[random_below(sizeof(types))];
	r.rec.comm = random_below(8) ? (uint16_t)random_below(2) : NCI_COMM_NONE;
	if (random_below(4))
		r.rec.token = random_below(3000);
	if (random_below(4))
		r.rec.parent = random_below(3000);
	if (r.rec.type == NCI_EV_PROXY_OP && random_below(2))
		r.proxy.origin = nci_context(fx.a.p.nonce + random_below(3), 0);
	return r;
}

TEST_LOOP(hostile_streams_stay_within_their_pools, 0, 4)
{
	const struct reconstruct_limits limits = {
		.ops = 64, .apis = 32, .proxies = 16, .ended = 128,
	};
	uint64_t given = 0;

	fx_seed((uint64_t)_i);
	fx_recon_open_with(&fx, 6, FX_MASK_NET, &limits);
	for (int i = 0; i < 200000; i++) {
		union fx_record r = random_record();

		fx_give(&fx, random_below(2) ? &fx.a : &fx.b, &r);
		given++;
		if (random_below(100) == 0) {
			fx_wait(&fx, random_below(400) * FX_MS);
			fx_look(&fx, &r, 1);
		}
	}
	fx.now++;
	reconstruct_end(fx.rc, &fx.a.p, fx.now);
	reconstruct_end(fx.rc, &fx.b.p, fx.now);
	ck_assert_uint_eq(reconstruct_stats(fx.rc)->records, given);
	ck_assert_uint_gt(fx.a.p.loss.evicted, 0);
	ck_assert_uint_le(fx.ndone, given);
}

TEST(full_pool_pushes_out_the_oldest_and_counts_it)
{
	const struct reconstruct_limits limits = { .ops = 8 };

	fx_recon_open_with(&fx, 4, FX_MASK_KERNEL, &limits);
	for (uint32_t i = 0; i < 20; i++) {
		union fx_record r = fx_coll(op_token(i), 0, i, 1, 100 + i);

		fx_give(&fx, &fx.a, &r);
	}
	ck_assert_uint_eq(fx.a.p.loss.evicted, 12);
	ck_assert_uint_eq(fx.ndone, 12);
	for (uint32_t i = 0; i < 12; i++) {
		ck_assert_uint_eq(fx.done[i].token, op_token(i));
		ck_assert(!fx.done[i].complete);
	}
}

int main(void)
{
	return fx_run(NULL, teardown);
}
