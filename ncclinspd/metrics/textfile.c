/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk may be slow or hang, the daemon may not: the text is made here, and another thread writes
 * it to the file.
 */
#include "ncclinspd/metrics/textfile.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/metrics/exposition.h"
#include "ncclinspd/metrics/metrics.h"
#include "util/cleanup.h"

#define TEXT_BYTES (32u << 20)

struct textfile {
	struct writer *writer;
	char dir[PATH_MAX];
	char path[PATH_MAX];
	const char *name;	/* the last part of `path` */
	uint64_t given_ns;	/* when the last one was given to the writer */
	struct textfile_stats stats;
};

CLEANUP_DEFINE(textfile_free, struct textfile)

int textfile_new(struct textfile **tp, const char *path)
{
	/* Everybody may read it, as node_exporter must, and it has no older ones. */
	const struct writer_limits limits = { .mode = 0644, .fleeting = true };
	CLEANUP(textfile_freep) struct textfile *t = calloc(1, sizeof(*t));
	char *slash;
	int r;

	if (!t)
		return -ENOMEM;
	snprintf(t->path, sizeof(t->path), "%s", path);
	snprintf(t->dir, sizeof(t->dir), "%s", path);
	slash = strrchr(t->dir, '/');
	t->name = slash ? t->path + (slash + 1 - t->dir) : t->path;
	if (slash)
		slash[slash == t->dir] = '\0';
	else
		strcpy(t->dir, ".");
	r = writer_open(&t->writer, t->dir, t->name, &limits);
	if (r < 0)
		return r;
	*tp = DISOWN(t);
	return 0;
}

void textfile_free(struct textfile *t)
{
	if (!t)
		return;
	writer_close(t->writer);
	free(t);
}

/* Take over what the writer's thread has come to since. */
static void textfile_take_stats(struct textfile *t)
{
	struct writer_stats now;

	writer_read_stats(t->writer, &now);
	if (now.written > t->stats.written)
		t->stats.last_ns = t->given_ns;
	t->stats.error = now.failing;
	t->stats.written = now.written;
	t->stats.failed = now.failed;
}

static void textfile_make(struct textfile *t, const struct metrics *m, uint64_t now_ns)
{
	CLEANUP(exposition_deinit) struct exposition e;
	size_t bytes;
	char *text;

	exposition_init(&e, false, TEXT_BYTES);
	metrics_write(m, &e, true, 0, now_ns);
	if (e.out.error) {
		writer_miss(t->writer, e.out.error);
		return;
	}
	text = json_steal(&e.out, &bytes);
	if (writer_put(t->writer, t->name, text, bytes) == 0)
		t->given_ns = now_ns;
}

void textfile_write(struct textfile *t, const struct metrics *m, uint64_t now_ns)
{
	textfile_take_stats(t);
	if (writer_is_full(t->writer))
		writer_miss(t->writer, -EBUSY);
	else
		textfile_make(t, m, now_ns);
}

void textfile_read_stats(struct textfile *t, struct textfile_stats *out)
{
	textfile_take_stats(t);
	*out = t->stats;
}

void textfile_watch(struct textfile *t, uint64_t now_ns, struct writer_output *out)
{
	*out = (struct writer_output){ .what = "metrics", .dir = t->dir };
	writer_watch(t->writer, now_ns);
	writer_read_stats(t->writer, &out->stats);
}
