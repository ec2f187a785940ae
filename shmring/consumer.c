/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every number that comes from a segment is checked before it is used, by
 * subtraction, since a hostile sum wraps.  What is delivered lies in private
 * memory, so what was checked cannot change.
 */
#include "shmring/consumer.h"

#include <errno.h>
#include <string.h>

#define LINES_MAX	(1u << 20)
#define CURSOR_MAX	(UINT64_C(1) << 62)	/* no lane lives that long */

static bool is_power_of_two(uint32_t n)
{
	return n && !(n & (n - 1));
}

int shmring_reader_init(struct shmring_reader *r, const struct nci_lane *line,
			uint64_t segment_bytes)
{
	uint64_t ring, pool;

	if (!is_power_of_two(line->lines) || line->lines > LINES_MAX)
		return -EPROTO;
	if (!is_power_of_two(line->slots) || line->slots > 1u << NCI_TOKEN_SLOT_BITS)
		return -EPROTO;
	ring = (uint64_t)line->lines * NCI_LINE_BYTES;
	pool = (uint64_t)line->slots * NCI_SLOT_BYTES;
	if (line->offset % NCI_LINE_BYTES || line->offset > segment_bytes)
		return -EPROTO;
	if (ring + pool > segment_bytes - line->offset)
		return -EPROTO;

	memset(r, 0, sizeof(*r));
	r->offset = line->offset;
	r->lines = line->lines;
	r->slots = line->slots;
	return 0;
}

static uint64_t consumer_load(const _Atomic uint64_t *p)
{
	return atomic_load_explicit(p, memory_order_relaxed);
}

/* Lines older than this were overwritten, or are being. */
static uint64_t reader_oldest_whole(const struct shmring_reader *r, uint64_t begin)
{
	return begin > r->lines ? begin - r->lines : 0;
}

/* Invariant: next <= to <= end; `end` is a record's end, `to` need not be. */
static void reader_skip_to(struct shmring_reader *r, uint64_t line)
{
	if (r->next < line) {
		r->next = line < r->to ? line : r->to;
		r->resync = true;
	}
}

int shmring_want(struct shmring_reader *r, const struct nci_lane *seen,
		 struct nci_line *buf, uint32_t room, struct shmring_span span[2])
{
	uint64_t end = consumer_load(&seen->end), begin = consumer_load(&seen->begin);
	uint64_t count, at, tail;

	if (end < r->next || end > CURSOR_MAX || begin > CURSOR_MAX)
		return -EPROTO;
	r->to = r->end = end;
	if (begin < end)
		begin = end;	/* the two words need not be of one moment */
	reader_skip_to(r, reader_oldest_whole(r, begin));

	count = r->to - r->next;
	if (count > room) {
		count = room;
		r->to = r->next + count;
	}
	r->first = r->next;
	r->buf = buf;
	if (!count)
		return 0;
	at = r->next & (r->lines - 1);
	tail = r->lines - at;
	span[0] = (struct shmring_span){
		.offset = r->offset + at * NCI_LINE_BYTES,
		.bytes = (count < tail ? count : tail) * NCI_LINE_BYTES,
		.to = buf,
	};
	if (count <= tail)
		return 1;
	span[1] = (struct shmring_span){
		.offset = r->offset,
		.bytes = (count - tail) * NCI_LINE_BYTES,
		.to = buf + tail,
	};
	return 2;
}

unsigned shmring_fill_percent(const struct shmring_reader *r, const struct nci_lane *seen)
{
	uint64_t end = consumer_load(&seen->end);

	if (end <= r->next)
		return 0;
	if (end - r->next >= r->lines)
		return 100;
	return (unsigned)((end - r->next) * 100 / r->lines);
}

int shmring_settle(struct shmring_reader *r, const struct nci_lane *again)
{
	uint64_t begin = consumer_load(&again->begin);

	if (begin < r->to || begin > CURSOR_MAX)
		return -EPROTO;
	reader_skip_to(r, reader_oldest_whole(r, begin));
	return 0;
}

/* Serials start at 1 and wrap, so the gap before the first one is exact below 2^32. */
static void reader_count_gap(struct shmring_reader *r, uint32_t serial)
{
	uint32_t gap = serial - r->serial - 1;

	if (r->met)
		r->lost += gap;
	else
		r->before += gap;
	r->serial = serial;
	r->met = true;
	r->records++;
}

int shmring_next(struct shmring_reader *r, const struct nci_record **out)
{
	while (r->next < r->to) {
		const struct nci_line *line = &r->buf[r->next - r->first];
		const struct nci_record *rec = (const struct nci_record *)line;
		uint32_t lines = NCI_FORM_LINES(rec->form);

		if (rec->type == NCI_LINE_PAD || (rec->type == NCI_LINE_CONT && r->resync)) {
			r->next++;
			continue;
		}
		if (rec->type == NCI_LINE_CONT || rec->type == 0 || lines == 0 ||
		    lines > NCI_RECORD_MAX_LINES)
			return -EPROTO;
		if (lines > r->to - r->next)
			return r->to < r->end ? 0 : -EPROTO;	/* cut by `room`: next time */
		if (lines == 2 && (line[1].word[0] & 0xff) != NCI_LINE_CONT)
			return -EPROTO;
		r->resync = false;
		r->next += lines;
		reader_count_gap(r, rec->serial);
		*out = rec;
		return 1;
	}
	return 0;
}

bool shmring_slot_settled(const struct nci_slot *before, const struct nci_slot *copy,
			  const struct nci_slot *after)
{
	uint64_t token = ((const struct nci_record *)before)->token;

	return token && !(token & NCI_TOKEN_FREE) &&
	       ((const struct nci_record *)copy)->token == token &&
	       ((const struct nci_record *)after)->token == token;
}
