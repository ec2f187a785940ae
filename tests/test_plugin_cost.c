/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What each kind of callback costs, in instructions: a figure that other work on the
 * machine does not change.  The processor traps after each one (the trap flag), and what
 * lies outside of this program is the plugin, and what it calls.
 *
 * NCCL's calls for one collective are played several times; of each call the cheapest
 * counts, since now and then one measures itself.  At the end of a group the plugin looks
 * at clocks and control file, 40 times a second at most: that is told apart.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/stream.h"
#include "plugin/level.h"
#include "shmring/clock.h"
#include "tests/fixture.h"
#include "tests/fx_count.h"
#include "tests/plugin_driver.h"
#include "util/nccl_names.h"

#define PLAYS		4
#define GROUPS		100
#define ONE_IN		8
#define USUAL_PLAYS	(4 * ONE_IN)
#define MOST_PLAYS	2000
#define ENOUGH		8	/* calls that measured themselves */
#define DECIDING	4	/* instructions */
#define MOST_CALLS	512
#define MOST_STEPS	4096	/* instructions of a call that are looked at */
#define PLUGIN_BYTES	(1 << 18)	/* its code lies within */
#define REST_US		30000	/* the plugin looks every 25 ms */

#if FX_CAN_COUNT

enum callback { START, STATE, STOP };

static const char *const callback_words[] = { "start", "state", "stop" };

/* `what`: an NCCL_* event, or a state. */
struct kind {
	enum callback callback;
	uint32_t what;
};

enum { TRACE, NET, OPS, LEVELS };

static const struct {
	const char *name;
	bool masked;		/* only what NCCL calls where the mask is the level's */
	uint32_t calls, instructions;
} levels[LEVELS] = {
	[TRACE] = { "trace", false, STREAM_CALLBACKS, 24330 },
	[NET] = { "net", false, 370, 25922 },
	[OPS] = { "ops", true, 10, 1325 },
};

/*
 * The mean of all calls of a kind, as gcc 12 compiles them with -O2; 0: not called.  Whoever
 * makes one higher has a reason for it; whoever makes one lower writes that down here.
 */
static const struct {
	struct kind kind;
	uint32_t most[LEVELS];
} budgets[] = {
	{ { START, NCCL_GROUP_API }, { 192, 186, 186 } },
	{ { START, NCCL_COLL_API }, { 217, 217, 217 } },
	{ { START, NCCL_KERNEL_LAUNCH }, { 91, 23, 0 } },
	{ { START, NCCL_GROUP }, { 90, 90, 90 } },
	{ { START, NCCL_COLL }, { 243, 238, 238 } },
	{ { START, NCCL_PROXY_CTRL }, { 91, 23, 0 } },
	{ { START, NCCL_PROXY_OP }, { 125, 125, 0 } },
	{ { START, NCCL_KERNEL_CH }, { 96, 96, 0 } },
	{ { START, NCCL_PROXY_STEP }, { 80, 80, 0 } },
	{ { STATE, NCCL_GROUP_API_START_STOP }, { 33, 33, 33 } },
	{ { STATE, NCCL_GROUP_API_END_START }, { 33, 33, 33 } },
	{ { STATE, NCCL_CTRL_APPEND }, { 77, 0, 0 } },
	{ { STATE, NCCL_CTRL_APPEND_END }, { 79, 0, 0 } },
	{ { STATE, NCCL_OP_IN_PROGRESS }, { 33, 33, 0 } },
	{ { STATE, NCCL_CTRL_ACTIVE }, { 77, 0, 0 } },
	{ { STATE, NCCL_STEP_RECV_WAIT }, { 33, 33, 0 } },
	{ { STATE, NCCL_STEP_SEND_GPU_WAIT }, { 22, 22, 0 } },
	{ { STATE, NCCL_STEP_RECV_FLUSH_WAIT }, { 41, 41, 0 } },
	{ { STATE, NCCL_STEP_RECV_GPU_WAIT }, { 33, 33, 0 } },
	{ { STATE, NCCL_STEP_SEND_PEER_WAIT }, { 36, 36, 0 } },
	{ { STATE, NCCL_STEP_SEND_WAIT }, { 41, 41, 0 } },
	{ { STATE, NCCL_KERNEL_CH_STOP }, { 38, 38, 0 } },
	{ { STATE, NCCL_CTRL_IDLE }, { 77, 0, 0 } },
	{ { STOP, NCCL_COLL_API }, { 90, 90, 90 } },
	{ { STOP, NCCL_KERNEL_LAUNCH }, { 90, 0, 0 } },
	{ { STOP, NCCL_COLL }, { 110, 110, 110 } },
	{ { STOP, NCCL_GROUP }, { 90, 90, 90 } },
	{ { STOP, NCCL_GROUP_API }, { 238, 238, 238 } },
	{ { STOP, NCCL_PROXY_CTRL }, { 90, 0, 0 } },
	{ { STOP, NCCL_PROXY_STEP }, { 111, 142, 0 } },
	{ { STOP, NCCL_PROXY_OP }, { 123, 199, 0 } },
	{ { STOP, NCCL_KERNEL_CH }, { 90, 90, 0 } },
};

static struct {
	const struct nccl_profiler_v6 *p;
	uint32_t delivered;	/* events that NCCL calls for */
	uint32_t counted;	/* those of them that are counted in this play ... */
	uint32_t one_in, turn;	/* ... but for all calls save the one_in-th; 0: all */
	uint32_t calls, instructions;
	struct { struct kind kind; uint32_t least, last; } call[MOST_CALLS];
	struct { void *handle; uint32_t event; } open[MOST_CALLS];
} play;

static uint32_t over;		/* kinds that cost more than their budget */

/* What was run of the plugin in this call; in calls that did not measure themselves. */
static struct {
	uintptr_t base;		/* 0: not looked at */
	uint32_t n, measured, strange;	/* strange: measured calls that went a way of their own */
	uintptr_t pc[MOST_STEPS];
	bool usual[PLUGIN_BYTES];
} way;

extern const char __executable_start, etext;	/* from the linker */

static void on_trap(int signal, siginfo_t *info, void *arg)
{
	const ucontext_t *context = arg;
	uintptr_t pc = (uintptr_t)context->uc_mcontext.gregs[REG_RIP];

	(void)signal;
	(void)info;
	play.instructions += pc < (uintptr_t)&__executable_start || pc >= (uintptr_t)&etext;
	if (pc - way.base < PLUGIN_BYTES && way.n < MOST_STEPS)
		way.pc[way.n++] = pc;
}

static bool pc_is_at_clock(uintptr_t pc)
{
	return memcmp((const void *)pc, "\x0f\x31", 2) == 0;	/* rdtsc */
}

/*
 * A call that looks at the clock twice measures itself: until the second look it is to run
 * what others run too, and what makes up its mind.
 */
static void way_end(void)
{
	uint32_t clocks = 0, strange = 0, n = way.n;

	way.n = 0;
	for (uint32_t i = 0; i < n; i++)
		clocks += pc_is_at_clock(way.pc[i]);
	for (uint32_t i = 0; clocks == 1 && i < n; i++)
		way.usual[way.pc[i] - way.base] = true;
	if (clocks != 2)
		return;
	for (uint32_t i = 0; !pc_is_at_clock(way.pc[i]) || --clocks; i++)
		strange += !way.usual[way.pc[i] - way.base];
	way.measured++;
	way.strange += strange > DECIDING;
}

static void call_begin(uint32_t event)
{
	bool skipped = play.one_in && (play.calls + play.turn) % play.one_in;

	play.instructions = 0;
	fx_trap(play.counted & event && !skipped);
}

static void call_end(enum callback callback, uint32_t what)
{
	uint32_t i = play.calls;

	fx_trap(false);
	play.call[i].last = play.instructions;
	if (play.instructions && (!play.call[i].least || play.instructions < play.call[i].least))
		play.call[i].least = play.instructions;
	play.call[i].kind = (struct kind){ callback, what };
	way_end();
	play.calls += i < MOST_CALLS - 1;
}

static uint32_t event_of(void *handle)
{
	uint32_t i = 0;

	while (play.open[i].handle != handle)
		i++;
	return play.open[i].event;
}

static void event_note(void *handle, uint32_t event)
{
	uint32_t i = 0;

	while (play.open[i].handle && play.open[i].handle != handle)
		i++;
	play.open[i].handle = handle;
	play.open[i].event = event;
}

static int cost_start(void *context, void **handle, struct nccl_descr_v6 *d)
{
	*handle = NULL;
	if (!(play.delivered & d->type))
		return NCCL_SUCCESS;
	call_begin((uint32_t)d->type);
	play.p->startEvent(context, handle, d);
	call_end(START, (uint32_t)d->type);
	event_note(*handle, (uint32_t)d->type);
	return NCCL_SUCCESS;
}

static int cost_state(void *handle, int state, union nccl_args_v4 *args)
{
	call_begin(event_of(handle));
	play.p->recordEventState(handle, state, args);
	call_end(STATE, (uint32_t)state);
	return NCCL_SUCCESS;
}

static int cost_stop(void *handle)
{
	uint32_t event = event_of(handle);

	call_begin(event);
	play.p->stopEvent(handle);
	call_end(STOP, event);
	return NCCL_SUCCESS;
}

static const struct nccl_profiler_v6 cost_plugin = {
	"cost", NULL, cost_start, cost_stop, cost_state, NULL,
};

static void play_collective(void *context, uint32_t counted)
{
	static uint64_t seq;

	play.calls = 0;
	play.counted = counted;
	for (uint32_t i = 0; i < MOST_CALLS; i++)
		play.open[i].handle = NULL;
	stream_play(&cost_plugin, context, seq++);
}

#define BY_NETWORK	(NCCL_PROXY_OP | NCCL_PROXY_STEP | NCCL_PROXY_CTRL | NCCL_KERNEL_CH)

/*
 * What is counted takes long: a kernel is not to run for longer than a span tells, and a
 * group is to end soon after one that has looked, on a machine that is busy otherwise.
 */
static void play_all(void *context)
{
	static const uint32_t parts[] = {
		NCCL_PROXY_STEP, BY_NETWORK & ~NCCL_PROXY_STEP, NCCL_EVENTS_V6 & ~BY_NETWORK,
	};

	for (uint32_t i = 0; i < PLAYS * FX_COUNT(parts); i++)
		play_collective(context, parts[i % FX_COUNT(parts)]);
	for (uint32_t i = 0; i < GROUPS; i++) {
		play_collective(context, 0);
		play_collective(context, NCCL_GROUP_API);
	}
}

static uint32_t instructions_of_a_look(void *context)
{
	usleep(REST_US);
	play_collective(context, NCCL_GROUP_API);
	for (uint32_t i = 0; i < play.calls; i++)
		if (play.call[i].kind.callback == STOP && play.call[i].kind.what == NCCL_GROUP_API)
			return play.call[i].last;
	return 0;
}

static bool kinds_are_one(struct kind a, struct kind b)
{
	return a.callback == b.callback && a.what == b.what;
}

static const char *kind_name(struct kind kind)
{
	return kind.callback == STATE ? nccl_state_name(kind.what) :
	       nccl_event_name((uint32_t)__builtin_ctz(kind.what) + 1);
}

static void kind_check(struct kind kind, uint32_t calls, uint32_t sum, uint32_t budget)
{
	uint32_t mean = (sum + calls - 1) / calls;

	printf("# %-8s%-18s%4u calls %6u instructions each (%u)\n", callback_words[kind.callback],
	       kind_name(kind), calls, mean, budget);
	fflush(stdout);
	over += mean > budget + (budget * FX_TOLERATED_PERCENT(3) + 99) / 100;
}

/* Every kind that was called, once. */
static void kinds_check(int level)
{
	for (uint32_t i = 0; i < play.calls; i++) {
		struct kind kind = play.call[i].kind;
		uint32_t calls = 0, sum = 0, budget = 0;

		for (uint32_t k = 0; k < play.calls; k++) {
			if (!kinds_are_one(kind, play.call[k].kind))
				continue;
			if (k < i)
				break;
			calls++;
			sum += play.call[k].least;
		}
		for (uint32_t k = 0; k < FX_COUNT(budgets); k++)
			if (kinds_are_one(kind, budgets[k].kind))
				budget = budgets[k].most[level];
		if (calls)
			kind_check(kind, calls, sum, budget);
	}
}

static bool has_counter(void)
{
	char source[32] = "";
	FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r");

	if (!f)
		return false;
	if (fscanf(f, "%31s", source) != 1)
		source[0] = '\0';
	fclose(f);
	return clock_kind(source) == NCI_CLOCK_TSC;
}

/* A communicator whose first plays are over, and the trap set; `masked`: as in levels. */
static void *play_open(const char *name, bool masked)
{
	const struct sigaction action = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO };
	static struct pd pd;
	struct level level;
	void *context;

	setenv("NCCLINSP_KERNELS", "always", 1);
	pd_open(&pd, name);
	context = pd_init(&pd);
	play.p = pd.v6;
	level_take_mask(&level, 6, masked ? (uint32_t)pd.mask : NCCL_EVENTS_V6);
	play.delivered = level.wanted;
	for (int i = 0; i < 2; i++)	/* a lane, the names */
		play_collective(context, 0);
	ck_assert_int_eq(sigaction(SIGTRAP, &action, NULL), 0);
	return context;
}

TEST_LOOP(callbacks_of_a_collective_keep_to_their_budgets, 0, LEVELS)
{
	uint32_t sum = 0, most = levels[_i].instructions;
	void *context;

	if (!has_counter())
		return fx_skip("other instructions where the clock is no counter of the processor");
	context = play_open(levels[_i].name, levels[_i].masked);
	play_all(context);
	for (uint32_t i = 0; i < play.calls; i++)
		sum += play.call[i].least;
	printf("# level %s: %u callbacks, %u instructions (%u); a look takes %u\n",
	       levels[_i].name, play.calls, sum, most, instructions_of_a_look(context));
	kinds_check(_i);
	ck_assert_uint_eq(play.calls, levels[_i].calls);
	ck_assert_msg(sum <= most + most / 100 * FX_TOLERATED_PERCENT(3),
		      "level %s: %u instructions, %u are allowed", levels[_i].name, sum, most);
	ck_assert_uint_eq(over, 0);
}

/* A request of NCCL's InfiniBand transport, which only level trace asks for. */
TEST(a_request_of_the_network_plugin_keeps_to_its_budget)
{
	struct nccl_net_ib_v1 ib = { NCCL_NET_TYPE, { 0, 1, 1, 257, 65536 } };
	struct nccl_descr_v6 d = { .type = NCCL_PROXY_OP,
				   .proxyOp = { getpid(), 0, 1, 8, 65536, 1 } };
	void *context, *op, *step, *request;

	if (!has_counter())
		return fx_skip("other instructions where the clock is no counter of the processor");
	context = play_open("trace", false);
	play.p->startEvent(context, &op, &d);
	d = (struct nccl_descr_v6){ .type = NCCL_PROXY_STEP, .parentObj = op };
	play.p->startEvent(context, &step, &d);
	d = (struct nccl_descr_v6){ .type = NCCL_NET_PLUGIN, .parentObj = step,
				    .netPlugin = { NCI_NET_IB_V1, &ib } };
	for (int i = 0; i < PLAYS; i++) {
		play.calls = 0;
		play.counted = NCCL_NET_PLUGIN;
		cost_start(context, &request, &d);
		cost_stop(request);
	}
	for (uint32_t i = 0; i < play.calls; i++)
		kind_check(play.call[i].kind, 1, play.call[i].least, i ? 110 : 196);
	ck_assert_uint_eq(play.calls, 2);
	ck_assert_uint_eq(over, 0);
}

/* What is run once in 256 calls lies in no cache: it would be most of what is told. */
TEST(what_measures_itself_goes_the_usual_way)
{
	void *context;

	if (!has_counter())
		return fx_skip("other instructions where the clock is no counter of the processor");
	context = play_open("net", false);
	way.base = ((uintptr_t)play.p->startEvent & ~UINT64_C(0xfff)) - PLUGIN_BYTES / 2;
	play.one_in = ONE_IN;		/* a step that took long would go another way */
	for (; play.turn < USUAL_PLAYS; play.turn++)
		play_collective(context, BY_NETWORK);
	way.measured = way.strange = 0;
	for (; play.turn < MOST_PLAYS && way.measured < ENOUGH; play.turn++)
		play_collective(context, BY_NETWORK);
	printf("# %u measured themselves, %u of them on a way of their own\n", way.measured,
	       way.strange);
	ck_assert_uint_ge(way.measured, ENOUGH);
	ck_assert_uint_lt(2 * way.strange, way.measured);	/* a few were kept from the CPU */
}

#endif

int main(void)
{
#if FX_CAN_COUNT
	return fx_run(NULL, NULL);
#else
	printf("1..0 # SKIP only optimized code for x86-64 is counted\n");
	return EXIT_SUCCESS;
#endif
}
