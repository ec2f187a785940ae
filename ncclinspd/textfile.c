/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/textfile.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ncclinspd/exposition.h"
#include "ncclinspd/metrics.h"
#include "ncclinspd/writer.h"
#include "util/cleanup.h"

#define TEXT_BYTES (32u << 20)

struct textfile {
	struct writer_dir *dir;
	char path[PATH_MAX];
	const char *name;	/* in `path` */
	uint64_t given_ns;	/* when the last one was given to the writer */
	struct textfile_stats stats;
};

static void freep(struct textfile **tp)
{
	textfile_free(*tp);
}

int textfile_new(struct textfile **tp, struct writer *writer, const char *path)
{
	/* Everybody may read it, as node_exporter must, and it has no older ones. */
	const struct writer_limits limits = { .mode = 0644 };
	CLEANUP(freep) struct textfile *t = calloc(1, sizeof(*t));
	char dir[PATH_MAX];
	char *slash;
	int r;

	if (!t)
		return -ENOMEM;
	snprintf(dir, sizeof(dir), "%s", path);
	slash = strrchr(dir, '/');
	t->name = slash ? t->path + (slash + 1 - dir) : t->path;
	if (slash)
		slash[slash == dir] = '\0';
	r = writer_open_dir(&t->dir, writer, slash ? dir : ".", path + (t->name - t->path),
			    &limits);
	if (r < 0)
		return r;
	snprintf(t->path, sizeof(t->path), "%s", path);
	*tp = t;
	t = NULL;
	return 0;
}

void textfile_free(struct textfile *t)
{
	if (!t)
		return;
	writer_close_dir(t->dir);
	if (*t->path)
		unlink(t->path);
	free(t);
}

/* What the writer's thread has come to since. */
static void take_stats(struct textfile *t)
{
	struct writer_stats now;

	writer_read_stats(t->dir, &now);
	if (now.failed > t->stats.failed)
		t->stats.error = now.error;
	if (now.written > t->stats.written) {
		t->stats.last_ns = t->given_ns;
		t->stats.error = 0;
	}
	t->stats.written = now.written;
	t->stats.failed = now.failed;
}

void textfile_write(struct textfile *t, const struct metrics *m, uint64_t now_ns)
{
	CLEANUP(exposition_deinit) struct exposition e;
	size_t bytes;
	char *text;

	take_stats(t);
	exposition_init(&e, false, TEXT_BYTES);
	metrics_write(m, &e, true, 0, now_ns);
	if (e.error)
		return;
	text = exposition_steal(&e, &bytes);
	if (writer_put(t->dir, t->name, text, bytes) == 0)
		t->given_ns = now_ns;
}

void textfile_read_stats(struct textfile *t, struct textfile_stats *out)
{
	take_stats(t);
	*out = t->stats;
}
