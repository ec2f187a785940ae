/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The baselines in memory and their file.  They lie in the order of their use, in both, so
 * that the place of one says which makes room.
 */
#include "ncclinspd/findings/baseline.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/keep/writer.h"
#include "reader/base/accounts.h"
#include "reader/base/pool.h"
#include "util/cleanup.h"
#include "util/list.h"
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
	const char *state_dir;	/* the caller's */
	const struct accounts *accounts;
	bool unread;		/* the file of earlier jobs: its disk has not answered yet */
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

/* Entries learned meanwhile are newer than those in `bytes`.  0 or a negative errno. */
static int take_earlier(struct baselines *b, const char *bytes, size_t n)
{
	CLEANUP(cleanup_freep) struct baseline *earlier = calloc(1, sizeof(b->at));
	uint32_t count = b->n;
	int r;

	if (!earlier)
		return -ENOMEM;
	r = baselines_parse(bytes, n, earlier);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < BASELINES; i++) {	/* they change places */
		struct baseline mine = b->at[i];

		b->at[i] = earlier[i];
		earlier[i] = mine;
	}
	b->n = (uint32_t)r;
	for (uint32_t i = 0; i < count; i++)
		baselines_put(b, &earlier[i]);
	return 0;
}

static void read_earlier(struct baselines *b)
{
	CLEANUP(cleanup_freep) char *bytes = NULL;
	size_t n = 0;
	int r;

	if (!b->unread)
		return;
	r = writer_read(b->writer, NAME, FILE_BYTES + 1, &bytes, &n);
	if (r == -EAGAIN)
		return;
	b->unread = false;
	if (r == 0)
		r = take_earlier(b, bytes, n);
	if (r < 0 && r != -ENOENT)
		log_say(LOG_WARN, "baselines of earlier jobs ignored file=%s/" NAME " error=\"%s\"",
			b->state_dir, strerror(-r));
}

static void start_file(struct baselines *b)
{
	const struct writer_limits limits = { .files = 1, .bytes = 2 * FILE_BYTES };
	int r = writer_open(&b->writer, b->state_dir, NAME, &limits);

	b->unread = r == 0;
	read_earlier(b);
	if (r < 0)
		log_say(LOG_WARN, "baselines will not be kept state-dir=%s error=\"%s\"",
			b->state_dir, strerror(-r));
}

void baselines_save(struct baselines *b)
{
	struct header h = { .magic = BASELINE_MAGIC, .version = BASELINE_VERSION };
	size_t bytes;
	char *text;

	read_earlier(b);
	if (!b->writer || !b->changed || b->unread)
		return;
	bytes = sizeof(h) + b->n * sizeof(*b->at);
	text = malloc(bytes);
	if (!text)
		return;		/* the next time may have more */
	h.count = b->n;
	h.checksum = index_hash(0, b->at, bytes - sizeof(h));
	memcpy(text, &h, sizeof(h));
	memcpy(text + sizeof(h), b->at, bytes - sizeof(h));
	b->changed = writer_put(b->writer, NAME, text, bytes) < 0;
}

/* ---- the table -------------------------------------------------------------- */

int baselines_new(struct baselines **bp, const char *state_dir, const struct accounts *accounts)
{
	struct baselines *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	b->state_dir = state_dir;
	b->accounts = accounts;
	if (state_dir)
		start_file(b);
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

static struct baseline *find(struct baselines *b, uint64_t key, uint32_t uid)
{
	for (uint32_t i = 0; i < b->n; i++) {
		struct baseline found = b->at[i], *moved;

		if (found.key != key || found.uid != uid)
			continue;
		array_remove(b->at, &b->n, i);
		moved = array_must_add(b->at, &b->n);
		*moved = found;
		return moved;
	}
	return NULL;
}

const struct baseline *baselines_find(struct baselines *b, uint64_t key, uint32_t uid)
{
	read_earlier(b);
	return find(b, key, uid);
}

/* The one that was not used for longest of the user with most, the new one's among them. */
static uint32_t first_to_go(const struct baselines *b, uint32_t uid)
{
	struct accounts_tally t = { 0 };
	uint32_t i = 0;
	uid_t most;

	*accounts_count(&t, accounts_of(b->accounts, uid)) = 1;
	for (uint32_t k = 0; k < b->n; k++)
		++*accounts_count(&t, accounts_of(b->accounts, b->at[k].uid));
	most = accounts_most(&t);
	while (!accounts_are_same(accounts_of(b->accounts, b->at[i].uid), most))
		i++;
	return i;
}

void baselines_put(struct baselines *b, const struct baseline *baseline)
{
	if (!is_sound(baseline))
		return;
	if (find(b, baseline->key, baseline->uid))
		b->n--;
	else if (b->n == BASELINES)
		array_remove(b->at, &b->n, first_to_go(b, baseline->uid));
	*array_must_add(b->at, &b->n) = *baseline;
	b->changed = true;
}
