/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/findings/baseline.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ncclinspd/keep/writer.h"
#include "ncclinspd/pool.h"
#include "util/cleanup.h"
#include "util/log.h"

#define NAME	"baselines"
#define LARGEST	100.0

struct header {
	uint64_t magic;
	uint32_t version;
	uint32_t count;
	uint64_t checksum;
};
_Static_assert(sizeof(struct header) == 24, "the file has no padding");

#define FILE_BYTES (sizeof(struct header) + BASELINES * sizeof(struct baseline))

struct baselines {
	struct writer *writer;	/* NULL: no place to write to */
	bool changed;
	uint32_t n;
	struct baseline at[BASELINES];	/* the one used last at the end */
};

/* ---- the file ------------------------------------------------------------- */

static bool is_sound(const struct baseline *b)
{
	return isfinite(b->mean) && fabs(b->mean) <= LARGEST && b->sigma > 0 && b->sigma <= LARGEST;
}

int baselines_parse(const void *bytes, size_t n, struct baseline *out)
{
	struct header h;

	if (n < sizeof(h))
		return -EPROTO;
	memcpy(&h, bytes, sizeof(h));
	if (h.magic != BASELINE_MAGIC || h.version != BASELINE_VERSION)
		return -EPROTONOSUPPORT;
	if (h.count > BASELINES || n != sizeof(h) + h.count * sizeof(*out))
		return -EPROTO;
	memcpy(out, (const char *)bytes + sizeof(h), h.count * sizeof(*out));
	if (index_hash(0, out, h.count * sizeof(*out)) != h.checksum)
		return -EPROTO;
	for (uint32_t i = 0; i < h.count; i++)
		if (!is_sound(&out[i]))
			return -EPROTO;
	return (int)h.count;
}

/* How many there are, 0: none yet, or a negative errno. */
static int read_file(struct baselines *b, const char *state_dir)
{
	CLEANUP(cleanup_closep) int fd = -1;
	CLEANUP(cleanup_freep) char *bytes = malloc(FILE_BYTES + 1);
	char path[PATH_MAX + sizeof(NAME) + 1];
	ssize_t n;

	snprintf(path, sizeof(path), "%s/" NAME, state_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	n = bytes ? read(fd, bytes, FILE_BYTES + 1) : -1;
	if (n < 0)
		return bytes ? -errno : -ENOMEM;
	return baselines_parse(bytes, (size_t)n, b->at);
}

static void start_file(struct baselines *b, const char *state_dir)
{
	const struct writer_limits limits = { .files = 1, .bytes = 2 * FILE_BYTES };
	int n = read_file(b, state_dir);

	if (n >= 0)
		b->n = (uint32_t)n;
	else
		log_say(LOG_WARN, "baselines of earlier jobs ignored file=%s/" NAME " error=\"%s\"",
			state_dir, strerror(-n));
	n = writer_open(&b->writer, state_dir, NAME, &limits);
	if (n < 0)
		log_say(LOG_WARN, "baselines will not be kept state-dir=%s error=\"%s\"", state_dir,
			strerror(-n));
}

void baselines_save(struct baselines *b)
{
	size_t bytes = sizeof(struct header) + b->n * sizeof(*b->at);
	struct header h = {
		.magic = BASELINE_MAGIC,
		.version = BASELINE_VERSION,
		.count = b->n,
		.checksum = index_hash(0, b->at, b->n * sizeof(*b->at)),
	};
	char *text;

	if (!b->writer || !b->changed)
		return;
	text = malloc(bytes);
	if (!text)
		return;		/* the next time may have more */
	memcpy(text, &h, sizeof(h));
	memcpy(text + sizeof(h), b->at, bytes - sizeof(h));
	b->changed = writer_put(b->writer, NAME, text, bytes) < 0;
}

/* ---- the table -------------------------------------------------------------- */

int baselines_new(struct baselines **bp, const char *state_dir)
{
	struct baselines *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	if (state_dir)
		start_file(b, state_dir);
	*bp = b;
	return 0;
}

void baselines_free(struct baselines *b)
{
	if (!b)
		return;
	baselines_save(b);
	writer_close(b->writer);
	free(b);
}

static void remove_at(struct baselines *b, uint32_t i)
{
	memmove(&b->at[i], &b->at[i + 1], (--b->n - i) * sizeof(*b->at));
}

const struct baseline *baselines_find(struct baselines *b, uint64_t key)
{
	for (uint32_t i = 0; i < b->n; i++) {
		struct baseline found = b->at[i];

		if (found.key != key)
			continue;
		remove_at(b, i);
		b->at[b->n] = found;
		return &b->at[b->n++];
	}
	return NULL;
}

void baselines_put(struct baselines *b, const struct baseline *baseline)
{
	if (!is_sound(baseline))
		return;
	if (baselines_find(b, baseline->key))
		b->n--;
	else if (b->n == BASELINES)
		remove_at(b, 0);
	b->at[b->n++] = *baseline;
	b->changed = true;
}
