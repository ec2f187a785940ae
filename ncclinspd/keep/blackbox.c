/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An accident is over before anybody looks: the daemon writes down all it knows by
 * itself, once for findings that come together.
 */
#include "ncclinspd/keep/blackbox.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/keep/archive.h"
#include "util/cleanup.h"
#include "util/json.h"
#include "util/log.h"

#define SECOND_NS	UINT64_C(1000000000)
#define TOGETHER_NS	SECOND_NS
#define APART_NS	(10 * SECOND_NS)
#define FILES		32
#define BYTES		(UINT64_C(256) << 20)
#define FILE_BYTES	(64u << 20)

struct blackbox {
	struct archive *archive;
	blackbox_fill_fn *fill;
	void *arg;
	uint64_t due_ns;	/* 0: nothing asks */
	uint64_t written_ns;	/* 0: never */
	char reason[16];	/* reason of the one that is due */
};

int blackbox_write(struct blackbox *b, const char *reason, uint64_t now_ns, uint64_t real_ns,
		   char *path, uint64_t *bytes)
{
	CLEANUP(json_deinit) struct json j;
	char id[ARCHIVE_ID];
	int r;

	json_init(&j, FILE_BYTES);
	r = b->fill(b->arg, reason, now_ns, &j);
	if (r < 0) {
		writer_miss(archive_writer(b->archive), r);
		return r;
	}
	archive_make_id(id, real_ns, reason);
	r = archive_put(b->archive, id, real_ns, &j, bytes);
	if (r == 0)
		archive_path(b->archive, id, path);
	return r;
}

struct writer *blackbox_writer(struct blackbox *b)
{
	return archive_writer(b->archive);
}

void blackbox_ask(struct blackbox *b, const struct finding *f, uint64_t now_ns)
{
	uint64_t earliest_ns = b->written_ns ? b->written_ns + APART_NS : 0;

	if (f->grade != FINDING_FOUND || f->severity != FINDING_CRITICAL || f->life.until_ns ||
	    b->due_ns)
		return;
	b->due_ns = now_ns + TOGETHER_NS > earliest_ns ? now_ns + TOGETHER_NS : earliest_ns;
	snprintf(b->reason, sizeof(b->reason), "%s", finding_kind_name(f->kind));
}

void blackbox_note(struct blackbox *b, const struct finding *f, uint64_t now_ns)
{
	if (!f->life.alarmed)
		blackbox_ask(b, f, now_ns);
}

void blackbox_tick(struct blackbox *b, uint64_t now_ns, uint64_t real_ns)
{
	char path[PATH_MAX];
	uint64_t bytes;
	int r;

	if (!b->due_ns || now_ns < b->due_ns)
		return;
	b->due_ns = 0;
	b->written_ns = now_ns;
	r = blackbox_write(b, b->reason, now_ns, real_ns, path, &bytes);
	if (r < 0)
		log_say(LOG_WARN, "black box not written reason=%s error=\"%s\"", b->reason,
			strerror(-r));
	else
		log_say(LOG_INFO, "black box reason=%s path=%s bytes=%" PRIu64, b->reason, path,
			bytes);
}

void blackbox_watch(struct blackbox *b, uint64_t now_ns, struct writer_output *out)
{
	archive_watch(b->archive, now_ns, out);
	out->what = "black boxes";
}

CLEANUP_DEFINE(blackbox_free, struct blackbox)

int blackbox_new(struct blackbox **bp, const char *state_dir, blackbox_fill_fn *fill, void *arg)
{
	static const struct writer_limits limits = { .files = FILES, .bytes = BYTES };
	CLEANUP(blackbox_freep) struct blackbox *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return -ENOMEM;
	b->fill = fill;
	b->arg = arg;
	r = archive_new(&b->archive, state_dir, "blackbox", "blackbox", &limits);
	if (r < 0)
		return r;
	*bp = DISOWN(b);
	return 0;
}

void blackbox_free(struct blackbox *b)
{
	if (!b)
		return;
	archive_free(b->archive);
	free(b);
}
