/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A segment that lies: its lane's line, its cursors that change between any two
 * reads, its ring.  Whatever it says, the reader stays inside the file and its
 * own buffer, delivers whole records only, and comes to an end.
 *
 * Input: the room for copies, one lane's line, then any number of rounds, each two
 * cursors as first seen and two as seen again; the rest is the file's content,
 * over and over.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "shmring/consumer.h"

#define SEGMENT_BYTES	(UINT64_C(1) << 26)
#define ROUNDS		16
#define ROOM_MAX	512

struct bytes {
	const uint8_t *at;
	size_t left;
};

static bool take(struct bytes *in, void *to, size_t size)
{
	if (in->left < size)
		return false;
	memcpy(to, in->at, size);
	in->at += size;
	in->left -= size;
	return true;
}

/* The file repeats what is left of the input. */
static void copy_span(const struct shmring_span *span, const struct bytes *file)
{
	uint8_t *to = span->to;

	demand(span->offset <= SEGMENT_BYTES && span->bytes <= SEGMENT_BYTES - span->offset);
	for (size_t i = 0; i < span->bytes; i++)
		to[i] = file->left ? file->at[(span->offset + i) % file->left] : 0;
}

static void cursors(struct nci_lane *line, const uint64_t cursor[2])
{
	atomic_init(&line->begin, cursor[0]);
	atomic_init(&line->end, cursor[1]);
}

static bool deliver_all(struct shmring_reader *r, const struct nci_line *buf, uint32_t room)
{
	const struct nci_record *rec;
	uint32_t delivered = 0;
	int got;

	while ((got = shmring_next(r, &rec)) > 0) {
		const struct nci_line *line = (const struct nci_line *)rec;
		uint32_t lines = NCI_FORM_LINES(rec->form);

		demand(lines == 1 || lines == 2);
		demand(line >= buf && lines <= room - (uint32_t)(line - buf));
		demand(++delivered <= room);
	}
	return got == 0;
}

/* False: the segment was found lying. */
static bool read_round(struct shmring_reader *r, struct nci_lane *line, const uint64_t cursor[4],
		       uint32_t room, const struct bytes *file)
{
	struct nci_line *buf = aligned_alloc(NCI_LINE_BYTES, room * sizeof(*buf));
	struct shmring_span span[2];
	bool honest = false;
	int n;

	demand(buf);
	cursors(line, cursor);
	demand(shmring_fill_percent(r, line) <= 100);
	n = shmring_want(r, line, buf, room, span);
	for (int i = 0; i < n; i++)
		copy_span(&span[i], file);
	cursors(line, cursor + 2);
	if (n > 0 && shmring_settle(r, line) == 0)
		honest = deliver_all(r, buf, room);
	free(buf);
	return honest || n == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes in = { data, size };
	uint64_t cursor[ROUNDS][4];
	struct shmring_reader r;
	struct nci_lane line;
	uint32_t rounds = 0;
	uint16_t room;
	uint8_t count;

	if (!take(&in, &room, sizeof(room)) || !take(&in, &count, sizeof(count)) ||
	    !take(&in, &line, sizeof(line)))
		return 0;
	while (rounds < count % (ROUNDS + 1) && take(&in, cursor[rounds], sizeof(cursor[0])))
		rounds++;
	if (shmring_reader_init(&r, &line, SEGMENT_BYTES) < 0)
		return 0;
	for (uint32_t i = 0; i < rounds; i++)
		if (!read_round(&r, &line, cursor[i], 2 + room % ROOM_MAX, &in))
			break;
	return 0;
}
