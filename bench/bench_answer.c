/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For how long the largest answers keep the daemon from reading: the time between
 * two turns that the server gives to its source, over a full log, many cells and links.
 * In this thread's own time, since other programs' turns are not the answer's.
 * A lane that is written a million times a second fills a quarter in 1 ms.
 *
 * `--rows N TARGET` asks once for so many rows, to be counted with
 *
 *     valgrind --tool=callgrind --toggle-collect=answer_counted \
 *         build/bench/bench_answer --rows 64 /v1/comms
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/figure.h"
#include "ncclinspd/keep/exemplars.h"
#include "shmring/clock.h"
#include "tests/fixture_serve.h"
#include "util/json.h"

#define ROUNDS	31
#define RANKS	8
#define RANKS_MOST	4096
#define LINKS	4096
#define BOUND_NS	500000

static const struct question {
	const char *name;
	uint32_t cells;		/* 0: there are RANKS_MOST ranks of one process instead */
	const char *target;	/* NULL: nobody asks, an exemplar is written */
} questions[] = {
	{ "collectives, 10,000 rows", 64, "/v1/collectives?limit=10000" },
	{ "collectives, nothing found", 64, "/v1/collectives?func=Reduce" },
	{ "collectives of a communicator", 64, "/v1/collectives?comm=dp&limit=128" },
	{ "summary 60s, 1000 cells, 1000 rows", 1000, "/v1/summary?window=60s&by=rank,tag" },
	{ "summary 60s, 1000 cells, 1 row", 1000, "/v1/summary?window=60s&by=func" },
	{ "summary 60s, 4096 cells, 4096 rows", 4096, "/v1/summary?window=60s&by=rank,tag" },
	{ "summary of all windows, 4096 cells", 4096,
	  "/v1/summary?window=1s,10s,60s,all&by=rank,tag" },
	{ "peers of both windows, 4096 links", 8, "/v1/peers?window=60s,all" },
	{ "communicators, 4096 ranks", 0, "/v1/comms" },
	{ "ranks, 4096 rows", 0, "/v1/ranks" },
	{ "snapshot, 4096 ranks and links", 0, "/v1/snapshot?window=all" },
	{ "exemplar, 2048 rows of each kind", 64, NULL },
};

static uint64_t last_ns, longest_ns;

static void note_turn(void)
{
	uint64_t now_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	if (now_ns - last_ns > longest_ns)
		longest_ns = now_ns - last_ns;
	last_ns = now_ns;
}

/* A minute of operations, so many a second that the log and each cell are full. */
static void answer_fill(uint32_t cells)
{
	struct op op = {
		.has_comm_id = true, .comm_id = FX_COMM_ID, .comm_name = "dp", .nranks = RANKS,
		.func = FX_FUNC, .datatype = "ncclFloat32", .algo = "RING", .proto = "SIMPLE",
		.root = UNKNOWN_I32, .peer = UNKNOWN_I32, .channels = 8, .kernel_stopped = 8,
		.complete = true, .sampled = true, .enqueue_ns = 5000, .source = TIMING_KERNEL_GPU,
		.exec_error_ns = UNKNOWN_U64, .bytes = 1 << 20, .algbw_gbs = 2.5, .busbw_gbs = 3,
	};

	for (uint32_t i = 0; i < cells * 70; i++) {
		fx.now_ns += 60 * FX_SECOND / (cells * 70);
		op.rank = (int32_t)(i % RANKS);
		op.pid = 100 + op.rank;
		op.process_id = (uint64_t)op.rank + 1;
		op.tag = i / RANKS % (cells / RANKS) + 1;
		op.seq = i / cells;
		op.exec_ns = 20000 + fx_random() % 20000;
		op.queue_ns = 5000 + fx_random() % 5000;
		op.enqueued_ns = fx.now_ns - 60000;
		op.done_ns = fx.now_ns;
		oplog_add(fx.oplog, &op);
		aggregate_add(fx.aggregate, &op, fx.now_ns);
	}
	for (uint32_t i = 0; i < OPLOG_DEFAULT; i++)
		oplog_add(fx.oplog, &op);
}

/* So many links, each with five slices of eight sizes. */
static void answer_fill_links(uint32_t n)
{
	static struct comm comm = {
		.ready = true, .has_id = true, .id = FX_COMM_ID, .nranks = 256,
	};
	const struct process p = { .id = 1, .pid = 100, .comms = &comm, .ncomms = 1,
				   .clock = { .ns_per_tick = 1 } };

	for (uint32_t i = 0; i < 5 * 8 * n; i++) {
		uint32_t size = 4096u << i / n % 8;
		const struct nci_ev_proxy_op op = {
			.type = NCI_EV_PROXY_OP, .form = 2 | NCI_FORM_SEND, .rank = 0,
			.peer = (int32_t)(i % n / 16), .channel = i % 16, .steps_done = 4,
			.bytes = 4 * size,
		};
		const struct nci_ev_proxy_sums sums = {
			.start = 1, .stop = 1 + 4 * size, .steps = 4, .bytes = 4 * size,
			.busy = size + fx_random() % size, .covered = 4 * size,
			.point = { { size, size }, { size, size } },
		};
		const struct transfers t = { &p, &p, 0, "dp", NULL, &op, &sums, 0 };

		fx.now_ns += 70 * FX_SECOND / (5 * 8 * n);
		links_add(fx.links, &t, fx.now_ns);
		transferlog_add(fx.transferlog, &t, fx.links);
	}
}

/* A process with a rank of each of so many communicators, which have had some operations. */
static void answer_fill_communicators(uint32_t n)
{
	struct process *p = fx_process(100, 0, 0);
	struct comm first = p->comms[0];
	struct op op = {
		.process_id = p->id, .pid = p->pid, .has_comm_id = true, .comm_name = "dp",
		.nranks = RANKS, .func = FX_FUNC, .bytes = 1 << 20, .busbw_gbs = 12,
		.algbw_gbs = 6, .root = UNKNOWN_I32, .peer = UNKNOWN_I32, .complete = true,
		.sampled = true, .exec_ns = 2000000, .source = TIMING_KERNEL_GPU,
	};

	p->comms = realloc(p->comms, n * sizeof(*p->comms));
	p->ncomms = n;
	for (uint32_t i = 0; i < n; i++) {
		p->comms[i] = first;
		op.comm_index = i;
		op.comm_id = p->comms[i].id += i;
		aggregate_add(fx.aggregate, &op, fx.now_ns);
		metrics_op(fx.metrics, &op, fx.now_ns);
	}
	fx.now_ns += FX_SECOND;
}

static int bytes_by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Of all that the logs hold. */
static void write_exemplar(void)
{
	struct exemplar *e = calloc(1, sizeof(*e));
	struct json j;

	e->op = *oplog_at(fx.oplog, oplog_newest(fx.oplog) - OPLOG_DEFAULT / 2);
	e->to_ns = UINT64_MAX;
	json_init(&j, 64u << 20);
	ck_assert_int_eq(serve_exemplar_fill(fx.serve, e, fx.now_ns, &j), 0);
	fx_turn();
	json_deinit(&j);
	free(e);
}

static void question_measure(const struct question *q)
{
	uint64_t hold[ROUNDS], total = 0;

	fx_serve_open(NULL);
	answer_fill_links(LINKS);
	if (q->cells)
		answer_fill(q->cells);
	else
		answer_fill_communicators(RANKS_MOST);
	fx.turn = note_turn;
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t from = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		int fd = q->target ? fx_connect() : -1;

		last_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		longest_ns = 0;
		if (q->target)
			free(fx_ask_over(fd, "GET", q->target));
		else
			write_exemplar();
		hold[i] = longest_ns;
		total += clock_ns(CLOCK_THREAD_CPUTIME_ID) - from;
	}
	fx_serve_close();
	qsort(hold, ROUNDS, sizeof(*hold), bytes_by_value);
	figure_say("%-38s %9.0f %9.0f %11.1f %s\n", q->name, (double)hold[ROUNDS / 2] / 1e3,
		   (double)hold[ROUNDS - 1] / 1e3, (double)total / ROUNDS / 1e6,
		   hold[ROUNDS / 2] <= BOUND_NS ? "ok" : "too long");
	figure_tell((double)hold[ROUNDS / 2] / 1e3, "us", "%s: longest without reading", q->name);
	figure_tell((double)total / ROUNDS / 1e6, "ms", "%s: answer", q->name);
}

/* ---- one answer of so many rows, to be counted ---------------------------------------------- */

/* What is counted, and nothing else. */
static __attribute__((noinline)) void answer_counted(const char *target)
{
	free(fx_ask_over(fx_connect(), "GET", target));
	__asm__ volatile("" ::: "memory");	/* no tail call: it ends here */
}

static const char *counted_target;
static uint32_t counted_rows;

START_TEST(counted)
{
	fx_serve_open(NULL);
	answer_fill_links(counted_rows);
	answer_fill_communicators(counted_rows);
	answer_counted(counted_target);
	fx_serve_close();
}
END_TEST

START_TEST(answers)
{
	question_measure(&questions[_i]);
}
END_TEST

/* As a test, because the fixture asserts. */
int main(int argc, char **argv)
{
	SRunner *runner = srunner_create(suite_create("answer"));
	Suite *suite = suite_create("answers");
	TCase *tcase = tcase_create("answers");
	int failed;

	if (argc == 4 && !strcmp(argv[1], "--rows")) {
		counted_rows = (uint32_t)atoi(argv[2]);
		counted_target = argv[3];
	}
	figure_start("answer", &argc, argv);
	if (!counted_target)
		figure_say("%-38s %9s %9s %11s  bound: %d us\n", "longest time without reading",
			   "median us", "worst us", "answer ms", BOUND_NS / 1000);
	if (counted_target)
		tcase_add_test(tcase, counted);
	else
		tcase_add_loop_test(tcase, answers, 0, FX_COUNT(questions));
	suite_add_tcase(suite, tcase);
	srunner_add_suite(runner, suite);
	srunner_set_fork_status(runner, CK_NOFORK);
	srunner_run_all(runner, CK_SILENT);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
