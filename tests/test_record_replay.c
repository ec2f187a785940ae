/* SPDX-License-Identifier: Apache-2.0 */
/* Reading recordings, damaged ones too, and making their calls again. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/fx_record.h"
#include "tests/sim/player.h"

/* ---- there and back ---- */

static const char *const scenarios[] = {
	"nodes 2\ncomm w ranks 0,1 channels 2\nloop 2\nAllReduce w 1Mi float32\n"
	"AllGather w 64Ki bfloat16\nBroadcast w 4Ki int8 root 1\n"
	"group\nSend w 128 float16 from 0 to 1\nSend w 128 float16 from 1 to 0\nend\nend\n",
	"gpus 2\nthreads process\ncomm w ranks 0,1 channels 2\nAllReduce w 1Mi float32 algo tree\n"
	"AllGather w 1Ki int8 ce\nAllReduce w 1Ki float32 symmetric\n"
	"graph g\nAllReduce w 1Ki float32\nend\nreplay g 3\n",
	"nodes 2\nnetplugin ib\ncomm w ranks 0,1 channels 1\nAllReduce w 1Mi float32\n",
};

static const char *played;

static void play(int version)
{
	struct scenario *scn = fx_scenario(played);
	struct player_plugin plugin = { tables[version], version };
	struct pace pace = { .factor = 0 };

	scn->hold_ns = 0;
	scn->release = releases[version];
	if (player_run(scn, 0, &plugin, &pace, &PLAYER_ALONE))
		abort();
	scenario_free(scn);
}

static char first[300];

static void replay(int version)
{
	struct recording *rec = load(first);
	struct api api;

	api_bind(&api, tables[version], version, releases[version]);
	if (replay_run(rec, &api, 0, 0) < 0)
		abort();
	recording_free(rec);
}

/* The first line that differs, since both in full are too long for a message. */
static void check_same_text(const char *a, const char *b)
{
	size_t at = 0, line;

	while (a[at] && a[at] == b[at])
		at++;
	for (line = at; line && a[line - 1] != '\n'; line--)
		;
	ck_assert_msg(a[at] == b[at], "\"%.*s\" became \"%.*s\"",
		      (int)strcspn(a + line, "\n"), a + line,
		      (int)strcspn(b + line, "\n"), b + line);
}

TEST_LOOP(a_replay_makes_the_recorded_calls_in_every_version, 0,
	  FX_COUNT(scenarios) * NCCL_PROFILER_VERSIONS)
{
	int version = 1 + _i % NCCL_PROFILER_VERSIONS;
	char *once, *again;

	played = scenarios[_i / NCCL_PROFILER_VERSIONS];
	use_file("first.rec");
	strcpy(first, path);
	in_child(play, version, 0);
	use_file("again.rec");
	in_child(replay, version, 0);
	once = text_of(first);
	again = text_of(path);
	ck_assert_ptr_nonnull(strstr(once, "start"));
	check_same_text(once, again);
	free(once);
	free(again);
}

/* ---- damaged files ---- */

static const struct { long at; const char *bytes; int size; const char *why; } damages[] = {
	{ 0, "x", 1, "" },
	{ 4, "x", 1, "no recording" },
	{ 8, "\x02", 1, "another version" },
	{ 12, "\x08", 1, "another version" },
	{ 19, "\xff", 1, "makes no sense" },
	{ 20, "\x08", 1, "makes no sense" },
	{ 256, "\x09", 1, "impossible size" },
	{ 256, "\x08", 1, "impossible size" },
	{ 256, "\xf8\xff", 2, "impossible size" },
	{ 256, "\x00\x00", 2, "no communicator" },
};

TEST_LOOP(a_damaged_recording_is_refused, 0, FX_COUNT(damages))
{
	struct recording *rec;
	char err[300] = "";
	FILE *f;

	init();
	v6->finalize(context);
	f = fopen(path, "r+e");
	fseek(f, damages[_i].at, SEEK_SET);
	fwrite(damages[_i].bytes, 1, damages[_i].size, f);
	fclose(f);
	ck_assert_int_eq(recording_load(&rec, path, err, sizeof(err)), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err, damages[_i].why));
}

TEST(a_name_ends_at_a_nul)
{
	struct recording *rec = recording_new();
	const char *name = recording_intern(rec->names, "a\0bcdefgh", 9);

	ck_assert_str_eq(name, "a");
	ck_assert_ptr_eq((void *)recording_intern(rec->names, "a\0xyzuvwx", 9), (void *)name);
	recording_free(rec);
}

/* Where a copy may have ended; at the end of a record it is a shorter recording. */
TEST(a_recording_that_is_cut_off_is_refused)
{
	struct recording *rec;
	char err[300] = "";
	struct stat st;

	init();
	v6->stopEvent(start(NCCL_PROXY_OP, NULL));
	v6->finalize(context);
	ck_assert_int_eq(stat(path, &st), 0);
	for (off_t size = st.st_size - 1; size > st.st_size - 24; size--) {
		ck_assert_int_eq(truncate(path, size), 0);
		ck_assert_int_eq(recording_load(&rec, path, err, sizeof(err)), -EINVAL);
		ck_assert_ptr_nonnull(strstr(err, "cut off"));
	}
}

int main(void)
{
	return fx_run(setup, NULL);
}
