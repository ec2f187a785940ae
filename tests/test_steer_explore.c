/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code of steer.c itself in every interleaving of a few threads, up to a number of
 * preemptions: whatever they post, no Send is watched whose Recv is not, which NCCL
 * would wait for in vain.
 *
 * Threads are coroutines.  One goes on to another at each point where memory is shared:
 * around NCCL's look at the mask, between calls, and at every STEER_POINT().  A schedule
 * is a list of choices; the next one is the last with its last choice changed that can be,
 * so that all are tried, each from the beginning.
 *
 * What no plugin can see: NCCL has read the mask for a thread's first send ever, and has
 * not told of it yet.  If KernelCh changes in that moment, the schedule proves nothing;
 * how many these are is printed.  (Nothing changes in a process's first half minute.)
 */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "plugin/process.h"
#include "tests/fixture.h"

static void let_go_on(void);
static struct process_thread *fx_thread;
static uint64_t fx_real_ns;

#define STEER_POINT()	let_go_on()
#define STEER_SELF	fx_thread
#define clock_ns(id)	((id) == CLOCK_MONOTONIC ? UINT64_C(1) << 50 : fx_real_ns)
#include "plugin/steer.c"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PREEMPTIONS	1	/* they look at every switch of a stack */
#else
#define PREEMPTIONS	(getenv("LONG") ? 4 : 3)	/* nine million schedules, or half of one */
#endif
#define THREADS		3
#define CHOICES		400
#define STACK_BYTES	65536

struct scenario {
	const char *name;
	bool on, wants;			/* KernelCh at the begin; as the time of day wants it */
	bool sender;			/* thread 0 has sent before */
	const char *program[THREADS];	/* groups: c collective, s send, r receive, | its end,
					   / an inner end, at which NCCL stops its GroupApi */
};

static const struct scenario scenarios[] = {
	{ "two first sends while a third thread switches off", true, false, false,
	  { "c|c|", "sr|", "sr|" } },
	{ "... and on", false, true, false, { "c|c|", "rs|", "rs|" } },
	{ "a second sender beside the first, which switches off", true, false, true,
	  { "sr|sr|", "sr|sr|", "c|" } },
	{ "... and on", false, true, true, { "rs|sr|", "rs|rs|", "c|" } },
	{ "two that come to it late, in either order", true, false, true,
	  { "c|", "c|sr|", "crs|" } },
	{ "inner ends, beside collectives", true, false, true, { "s/r|s/r|", "c|c/c|", "c|" } },
	{ "... and the other way round", false, true, true, { "r/s|sr/c|", "c|c/c|", "c|" } },
	{ "nobody has sent, and all do", false, true, false, { "sr|c|", "rs|c|", "csr|" } },
};

static struct {
	struct process_thread thread;
	jmp_buf at;		/* where it goes on */
	ucontext_t context;	/* how its stack came to be */
	char stack[STACK_BYTES];
	bool done;
	bool unseen;		/* it changed before that was told */
	bool bad;
} threads[THREADS];

static const struct scenario *scenario;
static jmp_buf explorer;
static int running;
static struct plugin_steer first_state;	/* as each schedule begins */
static struct nci_header header;
static struct nci_live live;
static int mask;
static struct {
	uint32_t changes;
	int mask;
} seen;

/* ---- schedules -------------------------------------------------------------------------- */

static struct {
	uint8_t choice[CHOICES], of[CHOICES];
	int n, at, preemptions, most_preemptions;
} schedule;

static int choose(int options)
{
	int i = schedule.at++;

	if (i == CHOICES)
		abort();
	if (i == schedule.n) {
		schedule.choice[i] = 0;
		schedule.n++;
	}
	schedule.of[i] = (uint8_t)options;
	return schedule.choice[i];
}

static bool next_schedule(void)
{
	schedule.n = schedule.at;
	while (schedule.n && schedule.choice[schedule.n - 1] + 1 == schedule.of[schedule.n - 1])
		schedule.n--;
	if (!schedule.n)
		return false;
	schedule.choice[schedule.n - 1]++;
	schedule.at = schedule.preemptions = 0;
	return true;
}

/* The how many-th thread that can go on, `running` being the first if it can. */
static int nth_runnable(int nth)
{
	for (int i = 0; i < THREADS; i++) {
		int t = (running + i) % THREADS;

		if (!threads[t].done && nth-- == 0)
			return t;
	}
	return -1;
}

static int count_runnable(void)
{
	int n = 0;

	for (int t = 0; t < THREADS; t++)
		n += !threads[t].done;
	return n;
}

/* Of KernelCh in NCCL's mask, as far as looked: each point looks. */
static uint32_t changes(void)
{
	seen.changes += ((seen.mask ^ mask) & NCCL_KERNEL_CH) != 0;
	seen.mask = mask;
	return seen.changes;
}

/* Without a system call, of which there would be millions. */
static void go_on(int to)
{
	running = to;
	_longjmp(threads[to].at, 1);
}

static void let_go_on(void)
{
	volatile int from = running, to;

	changes();
	if (schedule.preemptions == schedule.most_preemptions || count_runnable() == 1)
		return;
	to = nth_runnable(choose(count_runnable()));
	if (to == from)
		return;
	schedule.preemptions++;
	if (!_setjmp(threads[from].at))
		go_on(to);
	fx_thread = &threads[running].thread;
}

/* ---- NCCL ---------------------------------------------------------------------------------- */

/* What it has posted with, of one group. */
struct group {
	bool open, sent, send_watched, recv_watched;
};

static void call(struct group *g, char kind)
{
	struct nccl_descr_v6 d = { .type = NCCL_GROUP_API };
	bool first_send = kind != 'c' && !fx_thread->steer.sends;
	uint32_t before;
	bool watched;

	let_go_on();
	before = changes();
	watched = __atomic_load_n(&mask, __ATOMIC_RELAXED) & NCCL_KERNEL_CH;
	let_go_on();
	if (!g->open) {
		d.groupApi.groupDepth = 2;
		steer_started(0, &d, SURE_TICKS * 2);
		g->open = true;
	}
	let_go_on();
	d = (struct nccl_descr_v6){ .type = kind == 'c' ? NCCL_COLL_API : NCCL_P2P_API };
	steer_started(0, &d, SURE_TICKS * 2);
	if (first_send && changes() != before)
		threads[running].unseen = true;
	if (kind == 's')
		g->send_watched = watched;
	if (kind == 'r')
		g->recv_watched = watched;
	g->sent |= kind != 'c';
}

static void end_inner(struct group *g)
{
	let_go_on();
	g->open = false;
	steer_stopped(0);
}

static void end(struct group *g)
{
	let_go_on();
	threads[running].bad |= g->sent && g->send_watched && !g->recv_watched;
	steer_launched(SURE_TICKS * 2);
	steer_stopped(0);
	*g = (struct group){ .open = false };
}

static void play_program(void)
{
	struct group g = { .open = false };

	fx_thread = &threads[running].thread;
	for (const char *p = scenario->program[running]; *p; p++) {
		if (*p == '|')
			end(&g);
		else if (*p == '/')
			end_inner(&g);
		else
			call(&g, *p);
	}
}

/* Once in each schedule. */
static void run_thread(int self)
{
	for (;;) {
		if (!_setjmp(threads[self].at)) {
			if (!count_runnable())
				_longjmp(explorer, 1);
			go_on(nth_runnable(choose(count_runnable())));
		}
		play_program();
		threads[self].done = true;
	}
}

/* Each has its stack, and waits for the first schedule. */
static void make_threads(void)
{
	for (int t = 0; t < THREADS; t++) {
		threads[t].done = true;
		getcontext(&threads[t].context);
		threads[t].context.uc_stack.ss_sp = threads[t].stack;
		threads[t].context.uc_stack.ss_size = STACK_BYTES;
		makecontext(&threads[t].context, (void (*)(void))run_thread, 1, t);
	}
	for (volatile int t = 0; t < THREADS; t++)
		if (!_setjmp(explorer))
			setcontext(&threads[t].context);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void play_schedule(void)
{
	process_self.steer = first_state;
	mask = scenario->on ? 0x161e | NCCL_KERNEL_CH : 0x161e;
	for (int t = 0; t < THREADS; t++) {
		threads[t].thread = (struct process_thread){ .usual = 0 };
		threads[t].done = threads[t].unseen = threads[t].bad = false;
	}
	if (scenario->sender) {
		threads[0].thread.steer.sends = true;
		SET(process_self.steer.sender, &threads[0].thread);
		mask |= NCCL_GROUP;
	}
	seen.changes = 0;
	seen.mask = mask;
	if (!_setjmp(explorer))
		go_on(choose(THREADS));
}

static void prepare(void)
{
	struct plugin_steer *s = &process_self.steer;

	process_self.ring.header = &header;
	process_self.ring.live = &live;
	memset(s, 0, sizeof(*s));
	s->version = 6;
	level_take(&s->start, 6, NCI_LEVEL_NET);
	s->now = s->start;
	s->mode = NCI_MODE_BURST;
	s->sample = NCI_SAMPLE_BUDGET;
	s->period_ns = SECOND_NS;
	s->length_ns = SECOND_NS / 2;
	s->looked_ns = s->decided_ns = clock_ns(CLOCK_MONOTONIC);
	s->orders.fd = -1;
	SET(s->value, scenario->on ? 0x161e | NCCL_KERNEL_CH : 0x161e);
	s->before = GET(s->value);
	SET(s->mask, &mask);
	fx_real_ns = 1700000000 * SECOND_NS + (scenario->wants ? 1 : SECOND_NS - QUIET_NS);
	first_state = *s;
}

TEST_LOOP(no_send_is_watched_without_its_receive, 0, FX_COUNT(scenarios))
{
	uint64_t schedules = 0, unseen = 0, switched = 0;

	scenario = &scenarios[_i];
	prepare();
	make_threads();
	schedule.n = schedule.at = schedule.preemptions = 0;
	schedule.most_preemptions = PREEMPTIONS;
	do {
		play_schedule();
		schedules++;
		switched += changes() > 0;
		for (int t = 0; t < THREADS; t++) {
			unseen += threads[t].unseen;
			if (threads[t].bad && !threads[t].unseen)	/* each time: slow */
				ck_abort_msg("%s: thread %d, schedule %lu", scenario->name, t,
					     schedules);
		}
	} while (next_schedule());
	printf("# %s: %lu schedules, KernelCh changed in %lu, unseen in %lu\n", scenario->name,
	       schedules, switched, unseen);
	if (PREEMPTIONS > 1)	/* else some scenarios are over before it is due */
		ck_assert_uint_gt(switched, 0);
}

/* In the middle of another thread's store: its mask is there, what is in force is not yet. */
TEST(first_send_adds_nothing_to_a_mask_that_has_just_become_another)
{
	static struct process_thread thread;
	static struct plugin_steer s;

	mask = NCCL_GROUP_API;		/* level off */
	atomic_store(&s.mask, &mask);
	atomic_store(&s.value, level_events(6));
	fx_thread = &thread;
	steer_begin_to_send(&s, &thread.steer);
	ck_assert_uint_eq(level_essence((uint32_t)mask), NCCL_GROUP_API);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
