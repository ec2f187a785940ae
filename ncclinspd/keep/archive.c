/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Black boxes, exemplars and snapshots are kept alike: this is the part that they share,
 * from the name of a file to the log that tells of failures.
 */
#include "ncclinspd/keep/archive.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "util/cleanup.h"
#include "util/json.h"
#include "util/log.h"
#include "util/zst.h"

#define SECOND_NS	UINT64_C(1000000000)
#define AHEAD_NS	(3600 * SECOND_NS)
#define SUFFIX		".json"
#define HOST		64	/* bytes of a prefix */

struct archive {
	const char *name;
	char prefix[HOST + 2];	/* prefix and its hyphen */
	const char *suffix;
	char dir[PATH_MAX];
	struct writer *files;
	int told;	/* on the log: why files are not written; 0: they are */
};

void archive_make_id(char id[ARCHIVE_ID], uint64_t real_ns, const char *word)
{
	time_t seconds = (time_t)(real_ns / SECOND_NS);
	char stamp[24];
	struct tm tm;

	gmtime_r(&seconds, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%S", &tm);
	snprintf(id, ARCHIVE_ID, "%s.%09" PRIu64 "Z%s%s", stamp, real_ns % SECOND_NS,
		 word ? "-" : "", word ? word : "");
}

static void name_make(const struct archive *a, const char *id, char name[NAME_MAX + 1])
{
	snprintf(name, NAME_MAX + 1, "%s%s%s", a->prefix, id, a->suffix);
}

/* False: a name that we do not give. */
static bool name_read(const struct archive *a, const char *name, char id[ARCHIVE_ID])
{
	size_t prefix = strlen(a->prefix), suffix = strlen(a->suffix), bytes = strlen(name);

	if (bytes <= prefix + suffix || strcmp(name + bytes - suffix, a->suffix) ||
	    bytes - prefix - suffix >= ARCHIVE_ID)
		return false;
	snprintf(id, ARCHIVE_ID, "%.*s", (int)(bytes - prefix - suffix), name + prefix);
	return true;
}

static void archive_distrust(struct archive *a, uint64_t real_ns)
{
	char id[ARCHIVE_ID], name[NAME_MAX + 1];

	archive_make_id(id, real_ns, NULL);
	name_make(a, id, name);
	writer_distrust(a->files, name);
}

int archive_put(struct archive *a, const char *id, uint64_t real_ns, struct json *j,
		uint64_t *bytes)
{
	char name[NAME_MAX + 1], *text;
	size_t size;
	int r;

	archive_distrust(a, real_ns + AHEAD_NS);
	name_make(a, id, name);
	text = json_steal(j, &size);
	r = writer_put(a->files, name, text, size);
	if (r == 0)
		*bytes = size;
	return r;
}

struct writer *archive_writer(struct archive *a)
{
	return a->files;
}

void archive_expire(struct archive *a, uint64_t real_ns)
{
	char id[ARCHIVE_ID], name[NAME_MAX + 1];

	archive_make_id(id, real_ns, NULL);
	name_make(a, id, name);
	writer_expire(a->files, name);
}

const char *archive_dir(const struct archive *a)
{
	return a->dir;
}

void archive_path(const struct archive *a, const char *id, char path[PATH_MAX])
{
	char name[NAME_MAX + 1];

	name_make(a, id, name);
	snprintf(path, PATH_MAX, "%.*s/%s", (int)(PATH_MAX - sizeof(name) - 2), a->dir, name);
}

/* ---- what is there ------------------------------------------------------------------ */

struct visit {
	const struct archive *archive;
	writer_visit_fn *visit;
	void *arg;
};

static void archive_visit_file(void *arg, const char *name, uint64_t bytes)
{
	const struct visit *v = arg;
	char id[ARCHIVE_ID];

	if (name_read(v->archive, name, id))
		v->visit(v->arg, id, bytes);
}

void archive_visit(struct archive *a, writer_visit_fn *visit, void *arg)
{
	struct visit v = { a, visit, arg };

	writer_visit(a->files, archive_visit_file, &v);
}

struct archive_search {
	const char *id;
	uint64_t bytes;
};

static void search_compare(void *arg, const char *id, uint64_t bytes)
{
	struct archive_search *s = arg;

	if (!strcmp(s->id, id))
		s->bytes = bytes;
}

uint64_t archive_holds(struct archive *a, const char *id)
{
	struct archive_search s = { .id = id };

	archive_visit(a, search_compare, &s);
	return s.bytes;
}

/* Nothing but what the directory was seen to hold: an id may come from a client. */
int archive_read(struct archive *a, const char *id, size_t most, char **text, size_t *bytes)
{
	char name[NAME_MAX + 1];

	if (!archive_holds(a, id))
		return -ENOENT;
	name_make(a, id, name);
	return writer_read(a->files, name, most, text, bytes);
}

/* ---- what is not ---------------------------------------------------------------------- */

void archive_watch(struct archive *a, uint64_t now_ns, struct writer_output *out)
{
	*out = (struct writer_output){ .what = a->name, .dir = a->dir };
	writer_watch(a->files, now_ns);
	writer_read_stats(a->files, &out->stats);
	if (out->stats.failing == a->told)
		return;
	a->told = out->stats.failing;
	if (a->told)
		log_say(LOG_WARN, "%s not written dir=%s error=\"%s\"", a->name, a->dir,
			strerror(-a->told));
	else
		log_say(LOG_INFO, "%s written again dir=%s", a->name, a->dir);
}

/* ---- life --------------------------------------------------------------------------- */

CLEANUP_DEFINE(archive_free, struct archive)

int archive_new(struct archive **ap, const char *state_dir, const char *name,
		const char *prefix, const struct writer_limits *limits)
{
	CLEANUP(archive_freep) struct archive *a = calloc(1, sizeof(*a));
	struct writer_limits made = *limits;
	int r;

	if (!a)
		return -ENOMEM;
	a->name = name;
	a->suffix = limits->compressed ? SUFFIX ZST_SUFFIX : SUFFIX;
	snprintf(a->prefix, sizeof(a->prefix), "%.*s-", HOST, prefix);
	if (snprintf(a->dir, sizeof(a->dir), "%s/%s", state_dir, name) >= (int)sizeof(a->dir))
		return -ENAMETOOLONG;
	made.made = 0700;
	made.stamped = true;
	r = writer_open(&a->files, a->dir, a->prefix, &made);
	if (r < 0)
		return r;
	*ap = DISOWN(a);
	return 0;
}

void archive_free(struct archive *a)
{
	if (!a)
		return;
	writer_close(a->files);
	free(a);
}
