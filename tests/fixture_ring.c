/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/fixture_ring.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fixture.h"

void fx_lane_open(struct fx_lane *fx)
{
	char path[128];

	memset(fx, 0, sizeof(*fx));
	ck_assert_int_eq(shmring_create(&fx->ring, fx_tmpdir(), "segment"), 0);
	shmring_ready(&fx->ring);
	fx->lane = shmring_lane_new(&fx->ring, gettid());
	ck_assert_ptr_nonnull(fx->lane);
	snprintf(path, sizeof(path), "%s/segment", fx_tmpdir());
	fx->fd = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(fx->fd, 0);
	fx->room = SHMRING_LINES;
	fx_lane_attach(fx, fx->lane->index);
}

void fx_lane_close(struct fx_lane *fx)
{
	close(fx->fd);
	shmring_forget(&fx->ring);
}

struct shmring_lane *fx_lane_more(struct shmring *ring)
{
	struct shmring_lane *lane = shmring_lane_new(ring, INT32_MAX);

	if (lane)
		atomic_store_explicit(&lane->out->line->tid, (uint32_t)gettid(),
				      memory_order_relaxed);
	return lane;
}

void fx_lane_attach(struct fx_lane *fx, uint32_t lane)
{
	struct nci_lane line;
	struct stat st;

	memcpy(&line, &fx->ring.directory[lane], sizeof(line));
	ck_assert_int_eq(fstat(fx->fd, &st), 0);
	ck_assert_int_eq(shmring_reader_init(&fx->reader, &line, (uint64_t)st.st_size), 0);
	fx->lane = &fx->ring.lane[lane];
}

uint64_t fx_mix(uint64_t n)
{
	n += UINT64_C(0x9e3779b97f4a7c15);
	n = (n ^ (n >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	n = (n ^ (n >> 27)) * UINT64_C(0x94d049bb133111eb);
	return n ^ (n >> 31);
}

uint32_t fx_lines(uint64_t n)
{
	return 1 + (uint32_t)(fx_mix(n) & 1);
}

void fx_fill(struct nci_record *rec, uint64_t n, uint32_t lines)
{
	uint64_t *word = (uint64_t *)rec;

	rec->type = (uint8_t)(1 + n % 15);
	rec->form = (uint8_t)(lines | NCI_FORM_SEND);
	rec->comm = (uint16_t)n;
	rec->serial = 0;
	rec->parent = n;
	rec->start = fx_mix(n);
	rec->stop = 0;
	for (uint32_t i = 5; i < lines * 8; i++)
		word[i] = fx_mix(n * 16 + i);
	if (lines == 2)
		word[8] = (word[8] & ~UINT64_C(0xff)) | NCI_LINE_CONT;
}

uint64_t fx_start(struct shmring_lane *lane, uint64_t n, uint32_t lines)
{
	uint64_t token;
	struct nci_record *rec = shmring_take(lane, &token);

	if (!rec)
		return 0;
	fx_fill(rec, n, lines);
	shmring_open(rec, token);
	return token;
}

/* Everything but token, serial and stop. */
static bool is_filled(const struct nci_record *rec, uint64_t n)
{
	struct nci_slot want;
	struct nci_record *w = (struct nci_record *)&want;
	uint32_t lines = NCI_FORM_LINES(rec->form);

	if (lines != 1 && lines != 2)
		return false;
	fx_fill(w, n, lines);
	w->serial = rec->serial;
	w->token = rec->token;
	w->stop = rec->stop;
	return memcmp(w, rec, (size_t)lines * NCI_LINE_BYTES) == 0;
}

uint64_t fx_number(const struct nci_record *rec)
{
	uint64_t n = rec->parent;

	return is_filled(rec, n) && rec->stop == n + 7 ? n : FX_TORN;
}

uint64_t fx_live_number(const struct nci_record *rec)
{
	return is_filled(rec, rec->parent) && rec->stop == 0 ? rec->parent : FX_TORN;
}

void fx_publish(struct shmring_lane *lane, uint64_t n, uint32_t lines)
{
	struct nci_slot slot;
	struct nci_record *rec = (struct nci_record *)&slot;

	fx_fill(rec, n, lines);
	rec->token = n + 1;
	shmring_publish(lane, rec, n + 7);
}

void fx_publish_many(struct shmring_lane *lane, uint64_t from, uint64_t to, uint32_t lines)
{
	for (uint64_t n = from; n < to; n++)
		fx_publish(lane, n, lines);
}

/* Stands for pread(): whatever it meets half-written is for the reader to find out. */
__attribute__((no_sanitize("thread"), noinline))
static void copy_words(const uint64_t *from, uint64_t *to, size_t words)
{
	atomic_signal_fence(memory_order_seq_cst);
	for (size_t i = 0; i < words; i++)
		to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
	atomic_thread_fence(memory_order_acquire);
}

static void copy_mapped(struct fx_lane *fx, uint64_t offset, void *to, size_t bytes)
{
	const uint8_t *from = (const uint8_t *)fx->lane->out->ring + (offset - fx->reader.offset);

	if (fx->copy == FX_PLAIN)
		memcpy(to, from, bytes);
	else
		copy_words((const uint64_t *)from, to, bytes / sizeof(uint64_t));
}

void fx_copy_bytes(struct fx_lane *fx, uint64_t offset, void *to, size_t bytes)
{
	if (fx->copy == FX_PREAD)
		ck_assert_int_eq(pread(fx->fd, to, bytes, (off_t)offset), (ssize_t)bytes);
	else
		copy_mapped(fx, offset, to, bytes);
}

void fx_copy_line(struct fx_lane *fx, struct nci_lane *line)
{
	const struct nci_lane *at = fx->lane->out->line;

	if (fx->copy == FX_PREAD) {
		fx_copy_bytes(fx, fx->ring.header->live_offset + sizeof(struct nci_live) +
			      fx->lane->index * sizeof(*line), line, sizeof(*line));
		return;
	}
	atomic_init(&line->end, atomic_load_explicit(&at->end, memory_order_acquire));
	atomic_init(&line->begin, atomic_load_explicit(&at->begin, memory_order_acquire));
}

int fx_lane_copy(struct fx_lane *fx)
{
	struct shmring_span span[2];
	struct nci_lane seen;
	int n;

	fx_copy_line(fx, &seen);
	n = shmring_want(&fx->reader, &seen, fx->buf, fx->room, span);
	for (int i = 0; i < n; i++)
		fx_copy_bytes(fx, span[i].offset, span[i].to, span[i].bytes);
	return n;
}

int fx_lane_settle(struct fx_lane *fx)
{
	struct nci_lane again;

	fx_copy_line(fx, &again);
	return shmring_settle(&fx->reader, &again);
}

const struct nci_record *fx_lane_next(struct fx_lane *fx)
{
	const struct nci_record *rec;
	int r;

	while ((r = shmring_next(&fx->reader, &rec)) == 0) {
		r = fx_lane_copy(fx);
		ck_assert_int_ge(r, 0);
		if (r == 0)
			return NULL;
		ck_assert_int_eq(fx_lane_settle(fx), 0);
	}
	ck_assert_int_eq(r, 1);
	return rec;
}

uint64_t fx_lane_drain(struct fx_lane *fx, uint64_t *last)
{
	const struct nci_record *rec;
	uint64_t count = 0;

	while ((rec = fx_lane_next(fx))) {
		uint64_t n = fx_number(rec);

		ck_assert_msg(n != FX_TORN, "a torn record after %lu", (unsigned long)*last);
		ck_assert_uint_eq((uint32_t)(n + 1), rec->serial);
		*last = n;
		count++;
	}
	return count;
}
