/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of snapshots: it checks each file, and keeps only what the commands need of it. */
#include "cli/base/intake.h"
#include "cli/base/member.h"
#include "cli/offline/shots.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/base/must.h"
#include "cli/table/report.h"
#include "util/cleanup.h"
#include "util/unknown.h"
#include "util/zst.h"

#define FORMAT	  "ncclinsp-snapshot"
#define VERSION	  1
#define FILE_MOST (256u << 20)	/* bytes, also when expanded */

/* ---- one file ------------------------------------------------------------------- */

/* NULL: *why tells. */
static char *shot_read_file(const char *path, size_t *bytes, const char **why)
{
	FILE *file = fopen(path, "re");
	struct stat st;
	char *text = NULL;

	*why = strerror(errno);
	if (!file)
		return NULL;
	if (fstat(fileno(file), &st) || !S_ISREG(st.st_mode)) {
		*why = "not a regular file";
	} else if (st.st_size > FILE_MOST) {
		*why = "too large";
	} else {
		text = must(malloc((size_t)st.st_size + 1));
		*bytes = fread(text, 1, (size_t)st.st_size, file);
	}
	fclose(file);
	return text;
}

/* Is it a snapshot that this program knows?  NULL, or why not. */
static const char *shot_refusal(const json_t *root)
{
	if (strcmp(member_text(root, "format", ""), FORMAT))
		return "no snapshot of ncclinspd";
	return json_integer_value(json_object_get(root, "format_version")) == VERSION ? NULL :
	       "of another version of ncclinspd";
}

static json_t *shot_parse(const char *path, const char **why)
{
	CLEANUP(cleanup_freep) char *text = NULL;
	size_t bytes = 0;
	json_t *root;

	text = shot_read_file(path, &bytes, why);
	if (!text)
		return NULL;
	if (zst_is(text, bytes)) {
		char *expanded;

		*why = "damaged, or too large";
		if (zst_expand(text, bytes, FILE_MOST, &expanded, &bytes))
			return NULL;
		free(text);
		text = expanded;
	}
	root = intake_read(text, bytes, NULL);
	*why = shot_refusal(root);
	if (!*why)
		return root;
	json_decref(root);
	return NULL;
}

/* ---- what is kept of it ------------------------------------------------------------ */

const char *shots_text(struct shots *s, const char *text)
{
	if (!json_object_get(s->texts, text))
		json_object_set_new(s->texts, text, json_string(text));
	return json_string_value(json_object_get(s->texts, text));
}

static void shots_add_sample(struct shots *s, const json_t *row)
{
	const char *comm = json_string_value(json_object_get(row, "comm_id"));
	const char *func = json_string_value(json_object_get(row, "func"));
	const json_t *rank = json_object_get(row, "rank");
	const json_t *inside = json_object_get(row, "inside_ns");
	const json_t *before = json_object_get(row, "before_ns");
	struct shots_sample *sample;
	char key[64];

	if (!comm || !func || !json_is_integer(rank) || !json_is_integer(inside) ||
	    json_integer_value(inside) < 0 ||
	    json_integer_value(json_object_get(row, "seq")) < 0)
		return;
	snprintf(key, sizeof(key), "%.20s/%lld", comm,
		 (long long)json_integer_value(json_object_get(row, "nranks")));
	sample = must(list_append(&s->samples));
	*sample = (struct shots_sample){
		.comm = shots_text(s, key), .func = shots_text(s, func),
		.seq = json_integer_value(json_object_get(row, "seq")),
		.rank = json_integer_value(rank), .inside_ns = json_integer_value(inside),
		.bytes = json_integer_value(json_object_get(row, "bytes")),
		.before_ns = json_is_integer(before) ? json_integer_value(before) : -1,
		.done_ns = json_integer_value(json_object_get(row, "done_mono_ns")),
	};
}

static bool root_is_newer(const json_t *root, const json_t *than)
{
	const char *a = member_text(root, "written_at", "");
	const char *b = member_text(than, "written_at", "");

	return strcmp(a, b) > 0;
}

double shots_time(const json_t *root)
{
	const char *text = member_text(root, "written_at", "");
	struct tm tm = { 0 };
	double seconds;
	int n = 0;

	if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%lfZ%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
		   &tm.tm_hour, &tm.tm_min, &seconds, &n) != 6 || !n)
		return 0;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	return (double)timegm(&tm) + seconds;
}

struct shots_clock shots_clock(const json_t *root)
{
	return (struct shots_clock){ (uint64_t)(shots_time(root) * 1e9),
				     member_number(root, "written_mono_ns", UNKNOWN_U64) };
}

uint64_t shots_clock_at(const struct shots_clock *clock, uint64_t mono_ns)
{
	if (clock->mono_ns == UNKNOWN_U64 || mono_ns > clock->mono_ns)
		return 0;
	return clock->written_ns - (clock->mono_ns - mono_ns);
}

int32_t shots_i32(const json_t *row, const char *key)
{
	uint64_t number = member_number(row, key, UNKNOWN_U64);

	return number <= INT32_MAX ? (int32_t)number : UNKNOWN_I32;
}

struct whom shots_whom(const json_t *row, const char *host)
{
	return (struct whom){
		.rank = shots_i32(row, "rank"), .world_rank = shots_i32(row, "world_rank"),
		.pid = (int32_t)member_number(row, "pid", 0), .host = host,
		.command = member_text(row, "command", NULL),
		.pci_bus_id = member_text(row, "pci_bus_id", NULL),
	};
}

/* Compared as far as `until` goes: a day is to its end. */
static bool shots_is_later(const struct shots *s, const json_t *root)
{
	const char *at = member_text(root, "written_at", "");

	return s->until && strncmp(at, s->until, strlen(s->until)) > 0;
}

static void shots_keep_node(struct shots *s, const json_t *root)
{
	const char *host = json_string_value(report_get(root, "status.host")) ?: "?";
	json_t *node;

	if (!root_is_newer(root, json_object_get(s->nodes, host)))
		return;
	node = json_object();
	for (const char *const *name = s->members; *name; name++)
		json_object_set(node, *name, json_object_get(root, *name));
	json_object_set_new(s->nodes, host, node);
	if (s->newest)
		s->newest(s->newest_arg, shots_text(s, host), root);
}

static void shots_keep(struct shots *s, const char *path, const json_t *root)
{
	json_t *row;
	size_t i;

	if (shots_is_later(s, root)) {
		s->later++;
		return;
	}
	s->files++;
	shots_keep_node(s, root);
	if (s->each)
		s->each(s->each_arg, path, root);
	json_array_foreach(s->wants_samples ? json_object_get(root, "samples") : NULL, i, row)
		shots_add_sample(s, row);
}

static void shots_add_file(struct shots *s, const char *path)
{
	const char *why;
	json_t *root = shot_parse(path, &why);

	if (!root) {
		fprintf(stderr, "ncclinsp: %s: %s\n", path, why);
		s->refused++;
		s->denied += access(path, R_OK) && errno == EACCES;
		return;
	}
	shots_keep(s, path, root);
	json_decref(root);
}

/* ---- from outside -------------------------------------------------------------------- */

static bool name_ends_with(const char *name, const char *end)
{
	size_t n = strlen(name), m = strlen(end);

	return n > m && *name != '.' && !strcmp(name + n - m, end);
}

static void shots_begin(struct shots *s)
{
	if (!s->nodes)
		s->nodes = json_object();
	if (!s->texts)
		s->texts = json_object();
}

void shots_add_answer(struct shots *s, const char *name, const json_t *root, const char *why)
{
	shots_begin(s);
	why = root ? shot_refusal(root) : why;
	if (!why) {
		shots_keep(s, name, root);
		return;
	}
	s->silent = s->silent ?: json_object();
	json_object_set_new(s->silent, name, json_string(why));
}

void shots_add(struct shots *s, const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;

	shots_begin(s);
	if (!dir) {
		shots_add_file(s, path);
		return;
	}
	while ((entry = readdir(dir))) {
		char name[4096];

		if (!name_ends_with(entry->d_name, ".json" ZST_SUFFIX) &&
		    !name_ends_with(entry->d_name, ".json"))
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		shots_add_file(s, name);
	}
	closedir(dir);
}

static int shots_order(int64_t a, int64_t b)
{
	return (a > b) - (a < b);
}

static int samples_by_place(const void *left, const void *right)
{
	const struct shots_sample *a = left, *b = right;
	int r = strcmp(a->comm, b->comm);

	if (!r)
		r = strcmp(a->func, b->func);
	if (!r)
		r = shots_order(a->seq, b->seq);
	return r ? r : shots_order(a->rank, b->rank);
}

enum cli_exit shots_tell_none(const struct shots *s, const char *option)
{
	if (s->denied && !s->later)
		fprintf(stderr, "ncclinsp: %sno snapshot can be read: they are for their owner and "
			"group (ls -l); become one of these, or root\n", option);
	else
		fprintf(stderr, "ncclinsp: %sno snapshot is there%s\n", option,
			s->later ? ", or none that early" : "");
	return s->denied && !s->later ? CLI_NO_RIGHT : CLI_NOTHING;
}

void shots_sort(struct shots *s)
{
	struct shots_sample *at = s->samples.at;
	uint32_t n = 0;

	list_sort(&s->samples, samples_by_place);
	for (uint32_t i = 0; i < s->samples.n; i++)
		if (!n || samples_by_place(&at[n - 1], &at[i]))
			at[n++] = at[i];
	s->samples.n = n;
}

void shots_deinit(struct shots *s)
{
	json_decref(s->nodes);
	json_decref(s->silent);
	json_decref(s->texts);
	list_deinit(&s->samples);
}
