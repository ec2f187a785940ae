/* SPDX-License-Identifier: Apache-2.0 */
/* The baselines in memory and their file, in both in the order of their use. */
#include "ncclinspd/findings/baseline.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/keep/writer.h"
#include "reader/base/accounts.h"
#include "tables/keyed.h"
#include "util/cleanup.h"
#include "util/log.h"

#define NAME	"baselines"
#define LARGEST	100.0

struct baseline_header {
	uint64_t magic;
	uint32_t version;
	uint32_t count;
	uint64_t checksum;
};
_Static_assert(sizeof(struct baseline_header) == 24, "the file has no padding");

#define FILE_BYTES (sizeof(struct baseline_header) + BASELINES * sizeof(struct baseline))

struct baseline_key {
	uint64_t key;
	uint64_t uid;
};

struct baseline_entry {
	struct keyed_head head;
	struct baseline_key key;
	struct baseline value;
};

struct baselines {
	struct writer *writer;	/* NULL: no place to write to */
	const char *state_dir;	/* the caller's */
	const struct accounts *accounts;
	bool unread;		/* the file of earlier jobs: its disk has not answered yet */
	bool changed;
	struct keyed table;
};

/* ---- the file ------------------------------------------------------------- */

/* The one used last at the end. */
static void list_entries(const struct baselines *b, struct baseline *at)
{
	for (const struct baseline_entry *e = NULL; (e = keyed_next(&b->table, e)); at++)
		*at = e->value;
}

static bool baseline_is_sound(const struct baseline *b)
{
	return isfinite(b->mean) && fabs(b->mean) <= LARGEST && b->sigma > 0 && b->sigma <= LARGEST;
}

int baselines_parse(const void *bytes, size_t n, struct baseline *out)
{
	struct baseline_header h;

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
		if (!baseline_is_sound(&out[i]))
			return -EPROTO;
	return (int)h.count;
}

/* Entries learned meanwhile are newer than those in `bytes`.  0 or a negative errno. */
static int take_earlier(struct baselines *b, const char *bytes, size_t n)
{
	CLEANUP(cleanup_freep) struct baseline *at = calloc(BASELINES, 2 * sizeof(*at));
	uint32_t mine = keyed_count(&b->table);
	bool changed = b->changed;
	int r;

	if (!at)
		return -ENOMEM;
	r = baselines_parse(bytes, n, at);
	if (r < 0)
		return r;
	list_entries(b, at + r);
	for (uint32_t i = 0; i < (uint32_t)r + mine; i++)
		baselines_put(b, &at[i]);
	b->changed = changed;
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
	struct baseline_header h = { .magic = BASELINE_MAGIC, .version = BASELINE_VERSION };
	struct baseline *at;
	size_t bytes;
	char *text;

	read_earlier(b);
	if (!b->writer || !b->changed || b->unread)
		return;
	h.count = keyed_count(&b->table);
	bytes = sizeof(h) + h.count * sizeof(*at);
	text = malloc(bytes);
	if (!text)
		return;		/* the next time may have more */
	at = (struct baseline *)(text + sizeof(h));
	list_entries(b, at);
	h.checksum = index_hash(0, at, bytes - sizeof(h));
	memcpy(text, &h, sizeof(h));
	b->changed = writer_put(b->writer, NAME, text, bytes) < 0;
}

/* ---- the table -------------------------------------------------------------- */

int baselines_new(struct baselines **bp, const char *state_dir, const struct accounts *accounts)
{
	struct baselines *b = calloc(1, sizeof(*b));

	if (!b || keyed_init(&b->table, &KEYED_CONFIG(struct baseline_entry, key, BASELINES))) {
		baselines_free(b);
		return -ENOMEM;
	}
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
	keyed_deinit(&b->table);
	free(b);
}

const struct baseline *baselines_find(struct baselines *b, uint64_t key, uint32_t uid)
{
	const struct baseline_key k = { key, uid };
	struct baseline_entry *e;

	read_earlier(b);
	e = keyed_find(&b->table, &k);
	if (!e)
		return NULL;
	keyed_touch(&b->table, e);
	return &e->value;
}

void baselines_put(struct baselines *b, const struct baseline *baseline)
{
	const struct baseline_key key = { baseline->key, baseline->uid };
	struct baseline_entry *e;
	bool made;

	if (!baseline_is_sound(baseline))
		return;
	e = keyed_use(&b->table, &key, accounts_of(b->accounts, baseline->uid), &made);
	if (!e)
		return;
	e->value = *baseline;
	b->changed = true;
}
