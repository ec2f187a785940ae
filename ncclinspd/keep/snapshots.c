/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One daemon knows one node, and now only: files of its state are due at the same moments
 * everywhere, so that tools may put nodes side by side.
 */
#include "ncclinspd/keep/snapshots.h"

#include <errno.h>
#include <stdlib.h>

#include "ncclinspd/keep/archive.h"
#include "util/cleanup.h"
#include "util/json.h"

#define SECOND_NS	UINT64_C(1000000000)
#define FILES		1440
#define BYTES		(UINT64_C(512) << 20)
#define AGE_NS		(48 * 3600 * SECOND_NS)
#define FILE_BYTES	(64u << 20)	/* before it is compressed */

struct snapshots {
	struct archive *archive;
	snapshots_fill_fn *fill;
	void *arg;
	uint64_t given_ns;	/* when the writer took the newest */
	uint64_t last_ns;	/* the same of the newest that is there */
	uint64_t written;	/* files, when last_ns was learnt */
};

uint64_t snapshots_due_ns(uint64_t interval_ns, uint64_t now_ns, uint64_t real_ns)
{
	uint64_t left_ns;

	if (!interval_ns)
		return UINT64_MAX;
	left_ns = interval_ns - real_ns % interval_ns;
	if (left_ns < interval_ns / 16)
		left_ns += interval_ns;	/* the clocks differ: this one is written */
	return now_ns + left_ns;
}

static int snapshot_write(struct snapshots *s, uint64_t now_ns, uint64_t real_ns)
{
	CLEANUP(json_deinit) struct json j;
	char id[ARCHIVE_ID];
	uint64_t bytes;
	int r;

	json_init(&j, FILE_BYTES);
	r = s->fill(s->arg, now_ns, &j);
	if (r < 0) {
		writer_miss(archive_writer(s->archive), r);
		return r;
	}
	archive_make_id(id, real_ns, NULL);
	if (real_ns > AGE_NS)
		archive_expire(s->archive, real_ns - AGE_NS);
	return archive_put(s->archive, id, real_ns, &j, &bytes);
}

void snapshots_write(struct snapshots *s, uint64_t now_ns, uint64_t real_ns)
{
	struct writer *writer = archive_writer(s->archive);
	struct snapshots_stats stats;

	snapshots_read_stats(s, &stats);	/* when the one before was given */
	if (writer_is_full(writer))
		writer_miss(writer, -EBUSY);
	else if (snapshot_write(s, now_ns, real_ns) == 0)
		s->given_ns = now_ns;
}

void snapshots_watch(struct snapshots *s, uint64_t now_ns, struct writer_output *out)
{
	archive_watch(s->archive, now_ns, out);
}

void snapshots_read_stats(struct snapshots *s, struct snapshots_stats *out)
{
	struct writer_stats files;

	writer_read_stats(archive_writer(s->archive), &files);
	if (files.written != s->written) {
		s->written = files.written;
		s->last_ns = s->given_ns;
	}
	*out = (struct snapshots_stats){
		.written = files.written,
		.failed = files.failed,
		.last_ns = s->last_ns,
		.error = files.failing,
	};
}

const char *snapshots_dir(const struct snapshots *s)
{
	return archive_dir(s->archive);
}

CLEANUP_DEFINE(snapshots_free, struct snapshots)

int snapshots_new(struct snapshots **sp, const char *state_dir, const char *host,
		  snapshots_fill_fn *fill, void *arg)
{
	static const struct writer_limits limits = { .files = FILES, .bytes = BYTES,
						     .compressed = true };
	CLEANUP(snapshots_freep) struct snapshots *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	s->fill = fill;
	s->arg = arg;
	r = archive_new(&s->archive, state_dir, "snapshots", host, &limits);
	if (r < 0)
		return r;
	*sp = DISOWN(s);
	return 0;
}

void snapshots_free(struct snapshots *s)
{
	if (!s)
		return;
	archive_free(s->archive);
	free(s);
}
