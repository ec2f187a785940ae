/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace is made of: rows, arrows, steps that wait, the file, and its memory. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <zlib.h>

#include "cli/trace/trace_steps.h"
#include "tests/fx_trace.h"
#include "util/zst.h"

/* ---- rows ------------------------------------------------------------------------ */

#define DRAWN 400

struct drawn {
	struct trace_at at;
	uint64_t start_ns, stop_ns;
};

static void assert_nests(const struct drawn *a, const struct drawn *b)
{
	bool apart = a->stop_ns <= b->start_ns || b->stop_ns <= a->start_ns;
	bool inside = (a->start_ns >= b->start_ns && a->stop_ns <= b->stop_ns) ||
		      (b->start_ns >= a->start_ns && b->stop_ns <= a->stop_ns);

	ck_assert_msg(a->at.async || b->at.async || a->at.tid != b->at.tid || apart || inside,
		      "%" PRIu64 "-%" PRIu64 " and %" PRIu64 "-%" PRIu64 " overlap on %u",
		      a->start_ns, a->stop_ns, b->start_ns, b->stop_ns, a->at.tid);
}

/* In the order of their ends more or less, as records come, or in none at all. */
TEST(whatever_comes_nests_on_its_row)
{
	for (int turn = 0; turn < 24; turn++) {
		struct trace_rows *rows = trace_rows_new();
		uint32_t track = trace_rows_track(rows, 1, TRACE_NET, 5, "net");
		struct drawn drawn[DRAWN];

		for (uint64_t i = 0; i < DRAWN; i++) {
			uint64_t stop_ns = turn % 2 ? i * 10 + fx_random() % 30
						    : fx_random() % 5000;
			uint64_t length_ns = fx_random() % (turn % 3 ? 40 : 600);
			uint64_t start_ns = stop_ns > length_ns ? stop_ns - length_ns : 0;

			drawn[i] = (struct drawn){
				trace_rows_place(rows, track, start_ns, stop_ns), start_ns, stop_ns,
			};
			for (uint64_t k = 0; k < i; k++)
				assert_nests(&drawn[k], &drawn[i]);
		}
		trace_rows_free(rows);
	}
}

TEST(calls_within_calls_share_a_row)
{
	struct trace_rows *rows = trace_rows_new();
	uint32_t track = trace_rows_track(rows, 1, TRACE_LANE, 0, "lane 0");

	for (uint64_t i = 0; i < 1000; i++) {
		uint64_t at = i * 100;

		ck_assert_uint_eq(trace_rows_place(rows, track, at + 20, at + 40).tid, 1);
		ck_assert_uint_eq(trace_rows_place(rows, track, at + 10, at + 50).tid, 1);
		ck_assert_uint_eq(trace_rows_place(rows, track, at, at + 90).tid, 1);
	}
	ck_assert_uint_eq(trace_rows_track(rows, 1, TRACE_LANE, 0, "another name"), track);
	ck_assert_uint_ne(trace_rows_track(rows, 2, TRACE_LANE, 0, "lane 0"), track);
	trace_rows_free(rows);
}

TEST(more_tracks_than_there_may_be_are_drawn_without_one)
{
	struct trace_rows *rows = trace_rows_new();

	for (uint64_t i = 0; i < TRACE_TRACKS; i++)
		ck_assert(!trace_rows_place(rows, trace_rows_track(rows, 1, TRACE_NET, i, "x"), 1,
					    2).async);
	ck_assert(trace_rows_place(rows, trace_rows_track(rows, 1, TRACE_NET, TRACE_TRACKS, "x"), 1,
				   2).async);
	trace_rows_free(rows);
}

/* ---- heads and steps ------------------------------------------------------------- */

#define MANY (TRACE_HEADS + 2000)

TEST(of_many_heads_the_newest_are_known)
{
	struct trace_heads *heads;
	const struct trace_head head = {
		.at = { .pid = 1, .tid = 1 }, .start_ns = 5, .stop_ns = 9,
	};
	const struct trace_at child = { .pid = 1, .tid = 2 };

	fx_trace_begin(true);
	heads = trace_heads_new(&fx_t.w);
	for (uint64_t token = 1; token <= MANY; token++) {
		trace_heads_child(heads, 0, token, child, 10, 20);	/* it waits */
		if (token % 2)
			trace_heads_add(heads, 0, token, &head);
	}
	ck_assert_uint_eq(fx_t.w.counts.arrows, MANY / 2);
	ck_assert_ptr_null(trace_heads_find(heads, 0, 1));
	ck_assert_ptr_null(trace_heads_find(heads, 0, MANY));
	ck_assert_ptr_nonnull(trace_heads_find(heads, 0, MANY - 1));
	ck_assert_ptr_null(trace_heads_find(heads, 1, MANY - 1));
	trace_heads_free(heads);
	json_decref(fx_trace_end());
}

TEST(steps_wait_by_transfer_and_come_in_order)
{
	struct trace_steps *steps = trace_steps_new();
	struct nci_record rec = { .type = NCI_EV_PROXY_STEP, .form = 1 };
	const struct nci_record *out;
	uint64_t token;
	uint32_t source;

	for (uint64_t i = 0; i < TRACE_STEPS; i++) {
		ck_assert(!trace_steps_is_full(steps));
		rec.parent = 1 + i % 3;
		rec.start = (i * 7919) % 1000;
		trace_steps_add(steps, 4, &rec);
	}
	ck_assert(trace_steps_is_full(steps));
	ck_assert_uint_eq(trace_steps_take(steps, 5, 2, &out), 0);
	ck_assert_uint_eq(trace_steps_take(steps, 4, 2, &out), TRACE_STEPS / 3 + 1);
	for (uint64_t i = 1; i < TRACE_STEPS / 3; i++)
		ck_assert_uint_le(out[i - 1].start, out[i].start);
	ck_assert(!trace_steps_is_full(steps));
	ck_assert_uint_gt(trace_steps_take_oldest(steps, &source, &token, &out), 0);
	ck_assert_uint_eq(token, 1);
	ck_assert_uint_gt(trace_steps_take_oldest(steps, &source, &token, &out), 0);
	ck_assert_uint_eq(token, 3);
	ck_assert_uint_eq(source, 4);
	ck_assert_uint_eq(trace_steps_take_oldest(steps, &source, &token, &out), 0);
	trace_steps_free(steps);
}

/* ---- the file -------------------------------------------------------------------- */

#define TEXT_BYTES 300000	/* more than is written in one go */

static void fill_text(char *text)
{
	for (size_t i = 0; i < TEXT_BYTES; i++)
		text[i] = (char)('a' + fx_random() % 20);
}

static struct trace_out *open_at(const char *name)
{
	struct trace_out *o;

	snprintf(fx_path, sizeof(fx_path), "%s/%s", fx_tmpdir(), name);
	ck_assert_int_eq(trace_out_open(&o, fx_path), 0);
	return o;
}

static char *read_all(size_t *n)
{
	FILE *file = fopen(fx_path, "re");
	char *text = malloc(2 * TEXT_BYTES);

	ck_assert_ptr_nonnull(file);
	*n = fread(text, 1, 2 * TEXT_BYTES, file);
	fclose(file);
	return text;
}

static size_t count_files(void)
{
	DIR *dir = opendir(fx_tmpdir());
	size_t n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

TEST(a_file_is_there_whole_or_not_at_all)
{
	static char text[TEXT_BYTES];
	struct trace_out *o = open_at("whole.json");
	size_t n, before = count_files();
	char *got;

	fill_text(text);
	trace_out_put(o, text, TEXT_BYTES);
	ck_assert_int_ne(access(fx_path, F_OK), 0);
	ck_assert_uint_eq(trace_out_bytes(o), TEXT_BYTES);
	ck_assert_int_eq(trace_out_close(o), 0);
	got = read_all(&n);
	ck_assert_uint_eq(n, TEXT_BYTES);
	ck_assert_mem_eq(got, text, n);
	free(got);
	ck_assert_uint_eq(count_files(), before);

	o = open_at("whole.json");	/* the one that is there stays until the new one is whole */
	trace_out_put(o, "x", 1);
	trace_out_drop(o);
	got = read_all(&n);
	ck_assert_uint_eq(n, TEXT_BYTES);
	free(got);
	ck_assert_uint_eq(count_files(), before);
}

TEST(a_name_decides_how_it_is_compressed)
{
	static char text[TEXT_BYTES], back[TEXT_BYTES + 1];
	struct trace_out *o = open_at("x.json.gz");
	char *got, *expanded;
	size_t n, m;
	gzFile gz;

	fill_text(text);
	trace_out_put(o, text, TEXT_BYTES);
	ck_assert_int_eq(trace_out_close(o), 0);
	gz = gzopen(fx_path, "rb");
	ck_assert_int_eq(gzread(gz, back, TEXT_BYTES + 1), TEXT_BYTES);
	ck_assert_int_eq(gzclose(gz), Z_OK);
	ck_assert_mem_eq(back, text, TEXT_BYTES);

	o = open_at("x.json.zst");
	trace_out_put(o, text, TEXT_BYTES);
	ck_assert_int_eq(trace_out_close(o), 0);
	got = read_all(&n);
	ck_assert_uint_lt(n, TEXT_BYTES);
	ck_assert_int_eq(zst_expand(got, n, TEXT_BYTES, &expanded, &m), 0);
	ck_assert_uint_eq(m, TEXT_BYTES);
	ck_assert_mem_eq(expanded, text, m);
	free(expanded);
	free(got);
}

TEST(what_cannot_be_written_is_told_and_leaves_nothing)
{
	static char text[TEXT_BYTES];
	struct trace_out *o;
	size_t before = count_files();

	ck_assert_int_eq(trace_out_open(&o, "/nonexistent/x.json"), -ENOENT);
	ck_assert_int_eq(trace_out_open(&o, "/dev/full"), 0);	/* stays what it is */
	trace_out_put(o, text, TEXT_BYTES);
	ck_assert_int_eq(trace_out_error(o), -ENOSPC);
	ck_assert_int_eq(trace_out_close(o), -ENOSPC);
	ck_assert_int_eq(access("/dev/full", F_OK), 0);
	ck_assert_uint_eq(count_files(), before);
}

TEST(a_link_stays_one)
{
	char target[160];
	struct trace_out *o;
	struct stat st;
	size_t n;

	snprintf(target, sizeof(target), "%s/target", fx_tmpdir());
	snprintf(fx_path, sizeof(fx_path), "%s/link", fx_tmpdir());
	ck_assert_int_eq(close(creat(target, 0600)), 0);
	ck_assert_int_eq(symlink(target, fx_path), 0);
	o = open_at("link");
	trace_out_put(o, "x", 1);
	ck_assert_int_eq(trace_out_close(o), 0);
	ck_assert_int_eq(lstat(fx_path, &st), 0);
	ck_assert(S_ISLNK(st.st_mode));
	free(read_all(&n));
	ck_assert_uint_eq(n, 1);
}

/* ---- memory ---------------------------------------------------------------------- */

#define MEMORY_KB   (64 * 1024)
#define SHORT_BYTES (UINT64_C(12) << 20)
#define LONG_BYTES  (UINT64_C(500) << 20)	/* with LONG set */

/* One transfer of eight steps, as a batch of its own. */
static void take_transfer(uint64_t i)
{
	struct {
		struct nci_ev_proxy_step step[8];
		struct nci_ev_proxy_op op;
	} r;
	uint64_t op = nci_token(1, i % 4096, 1 + i / 4096), at = 1000 + i * 400;

	memset(&r, 0, sizeof(r));
	for (unsigned k = 0; k < 8; k++)
		r.step[k] = (struct nci_ev_proxy_step){
			.type = NCI_EV_PROXY_STEP, .form = 1 | NCI_FORM_SEND,
			.token = nci_token(2, k, i + 1), .parent = op, .start = at + k * 10,
			.stop = at + k * 10 + 60, .step = (int)k, .bytes = 4096,
			.span = { 1, 10, 20 },
		};
	r.op = (struct nci_ev_proxy_op){
		.type = NCI_EV_PROXY_OP, .form = 2 | NCI_FORM_SEND, .token = op,
		.parent = nci_token(0, i % 4096, 1 + i / 4096), .start = at, .stop = at + 200,
		.peer = (int)(i % 5), .channel = i % 32, .cont = NCI_LINE_CONT, .bytes = 4096,
	};
	fx_records(7, 9 * i, 9, 0, &r, sizeof(r), NULL);
}

TEST(memory_does_not_grow_with_the_trace)
{
	uint64_t bytes = getenv("LONG") ? LONG_BYTES : SHORT_BYTES;
	struct rusage usage;
	uint64_t i = 0;

	ck_assert_int_eq(trace_out_open(&fx_out, "/dev/null"), 0);
	trace_init(&fx_t, fx_out, true);
	fx_source(7, 0);
	for (; trace_out_bytes(fx_out) < bytes; i++)
		take_transfer(i);
	trace_finish(&fx_t, "test");
	ck_assert_int_eq(trace_out_close(fx_out), 0);
	ck_assert_uint_eq(fx_t.nrecords, 9 * i);
	ck_assert_uint_eq(fx_t.w.counts.overlapping, 0);
	getrusage(RUSAGE_SELF, &usage);
#ifdef __SANITIZE_ADDRESS__
	fx_skip("the sanitizer's own memory counts as well");
#else
	ck_assert_int_lt(usage.ru_maxrss, MEMORY_KB);
#endif
	if (getenv("LONG"))
		printf("# %" PRIu64 " bytes, %" PRIu64 " slices: %ld KiB at most\n", bytes,
		       fx_t.w.counts.slices, usage.ru_maxrss);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
