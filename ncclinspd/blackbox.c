/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/blackbox.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ncclinspd/instance.h"
#include "ncclinspd/writer.h"
#include "util/cleanup.h"
#include "util/json.h"
#include "util/log.h"

#define SECOND_NS	UINT64_C(1000000000)
#define TOGETHER_NS	SECOND_NS
#define APART_NS	(10 * SECOND_NS)
#define FILES		32
#define BYTES		(UINT64_C(256) << 20)
#define FILE_BYTES	(16u << 20)
#define PREFIX		"blackbox-"
#define DIRECTORY	"/blackbox"

struct blackbox {
	char dir[PATH_MAX];
	struct writer *writer;
	blackbox_fill_fn *fill;
	void *arg;
	uint64_t last_id;	/* the newest finding that asked */
	uint64_t due_ns;	/* 0: nothing asks */
	uint64_t written_ns;	/* 0: never */
	char reason[16];	/* of what is due */
	uint64_t failed;	/* as told on the log */
};

static void make_name(char *name, size_t size, const char *reason, uint64_t real_ns)
{
	time_t seconds = (time_t)(real_ns / SECOND_NS);
	struct tm tm;
	char stamp[32];

	gmtime_r(&seconds, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%S", &tm);
	snprintf(name, size, PREFIX "%s.%09" PRIu64 "Z-%s.json", stamp, real_ns % SECOND_NS,
		 reason);
}

int blackbox_write(struct blackbox *b, const char *reason, uint64_t now_ns, uint64_t real_ns,
		   char *path, uint64_t *bytes)
{
	CLEANUP(json_deinit) struct json j;
	char name[96], *text;
	size_t size;
	int r;

	json_init(&j, FILE_BYTES);
	r = b->fill(b->arg, reason, now_ns, &j);
	if (r < 0)
		return r;
	make_name(name, sizeof(name), reason, real_ns);
	text = json_steal(&j, &size);
	r = writer_put(b->writer, name, text, size);
	if (r < 0)
		return r;
	snprintf(path, PATH_MAX, "%.*s/%s", (int)(PATH_MAX - sizeof(name) - 2), b->dir, name);
	*bytes = size;
	return 0;
}

void blackbox_note(struct blackbox *b, const struct finding *f, uint64_t now_ns)
{
	uint64_t earliest_ns = b->written_ns ? b->written_ns + APART_NS : 0;

	if (f->severity != FINDING_CRITICAL || f->life.until_ns || f->life.id <= b->last_id)
		return;
	b->last_id = f->life.id;
	if (b->due_ns)
		return;
	b->due_ns = now_ns + TOGETHER_NS > earliest_ns ? now_ns + TOGETHER_NS : earliest_ns;
	snprintf(b->reason, sizeof(b->reason), "%s", finding_kind_name(f->kind));
}

static void tell_failures(struct blackbox *b)
{
	struct writer_stats stats;

	writer_read_stats(b->writer, &stats);
	if (stats.failed == b->failed)
		return;
	b->failed = stats.failed;
	log_say(LOG_WARN, "black box not written dir=%s error=\"%s\"", b->dir,
		strerror(-stats.error));
}

void blackbox_tick(struct blackbox *b, uint64_t now_ns, uint64_t real_ns)
{
	char path[PATH_MAX];
	uint64_t bytes;
	int r;

	tell_failures(b);
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

static void blackbox_freep(struct blackbox **bp)
{
	blackbox_free(*bp);
}

int blackbox_new(struct blackbox **bp, const char *state_dir, blackbox_fill_fn *fill, void *arg)
{
	static const struct writer_limits limits = { FILES, BYTES };
	CLEANUP(blackbox_freep) struct blackbox *b = calloc(1, sizeof(*b));
	int r;

	if (!b)
		return -ENOMEM;
	b->fill = fill;
	b->arg = arg;
	if (snprintf(b->dir, sizeof(b->dir), "%s" DIRECTORY, state_dir) >= (int)sizeof(b->dir))
		return -ENAMETOOLONG;
	r = instance_make_dir(b->dir, 0700);
	if (r == 0)
		r = writer_new(&b->writer, b->dir, PREFIX, &limits);
	if (r < 0)
		return r;
	*bp = b;
	b = NULL;
	return 0;
}

void blackbox_free(struct blackbox *b)
{
	if (!b)
		return;
	writer_free(b->writer);
	free(b);
}
