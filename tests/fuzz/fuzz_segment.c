/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sound segment with some of its bytes overwritten, before it is opened and
 * between two looks at it, read all the way: tables, rings, what is in flight,
 * operations and their aggregates.
 *
 * Input: 4 bytes that cut the file short once it is open (0: not), then patches
 * of 12 bytes: where, and the 8 bytes to put there.  The first half of them is
 * there from the beginning.
 */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ncclinspd/sums/aggregate.h"
#include "ncclinspd/sums/links.h"
#include "ncclinspd/sums/oplog.h"
#include "reader/base/names.h"
#include "reader/join/reconstruct.h"
#include "reader/read/decode.h"
#include "reader/read/segment.h"
#include "reader/read/slots.h"
#include "tests/fixture_daemon.h"

#define PATCHES		16
#define PATCH_BYTES	12
#define RECORDS		48
#define TICKS		UINT64_C(1000000)	/* all there is happened within */
#define NOW_NS		UINT64_C(5000000000)

static char dir[] = "/dev/shm/ncclinsp-fuzz.XXXXXX";
static char name[80];
static int dirfd = -1;
static struct shmring ring;
static size_t file_bytes;
static uint8_t *sound;		/* the file as it was made */

static struct names *names;
static struct reconstruct *recon;
static struct aggregate *aggregate;
static struct links *links;
static struct oplog *oplog;

/* ---- a sound segment ----------------------------------------------------- */

static void remove_dir(void)
{
	unlinkat(dirfd, name, 0);
	rmdir(dir);
}

static void add_names(void)
{
	static const char *const texts[] = {
		"AllReduce", "Send", "ncclFloat32", "RING", "SIMPLE", "",
	};
	const uint32_t n = sizeof(texts) / sizeof(texts[0]);

	for (uint32_t i = 0; i < n; i++) {
		memcpy(ring.strings[i].text, texts[i], strlen(texts[i]));
		atomic_store_explicit(&ring.strings[i].bytes, (uint32_t)strlen(texts[i]) + 1,
				      memory_order_relaxed);
	}
	atomic_store_explicit(&ring.live->strings, n, memory_order_relaxed);
}

static void add_comms(void)
{
	for (uint32_t i = 0; i < 2; i++) {
		struct nci_comm *comm = &ring.comms[i];

		comm->flags = NCI_COMM_HAS_ID | NCI_COMM_HAS_GPU;
		comm->comm_id = 0x1234;
		comm->rank = (int32_t)i;
		comm->nranks = 2;
		comm->nnodes = 1;
		comm->name_bytes = 2;
		memcpy(comm->name, "dp", 2);
		comm->init = ring.header->anchor.ticks;
		atomic_store_explicit(&comm->published, i + 1, memory_order_relaxed);
	}
	atomic_store_explicit(&ring.live->comms, 2, memory_order_relaxed);
}

static const uint8_t lines_of[NCI_EV_END] = {
#define X(id, NAME, name, least, most) [id] = (most),
	NCI_EVENTS(X)
#undef X
};

static const uint8_t types[] = {
#define X(id, NAME, name, least, most) (id),
	NCI_EVENTS(X)
#undef X
};

/* Event n: every type in turn, a child of the one before. */
static void fill(struct nci_record *rec, uint32_t n, uint64_t parent)
{
	uint8_t type = types[n % sizeof(types)];
	uint64_t token = rec->token;

	memset(rec, 0, NCI_SLOT_BYTES);
	rec->token = token;
	rec->type = type;
	rec->form = lines_of[type];
	rec->comm = (uint16_t)(n % 2);
	rec->parent = parent;
	rec->start = ring.header->anchor.ticks + n * 100;
	if (rec->form == 2)
		((struct nci_line *)rec)[1].word[0] = NCI_LINE_CONT;
	if (type == NCI_EV_COLL) {
		struct nci_ev_coll *coll = (struct nci_ev_coll *)(void *)rec;

		*coll = (struct nci_ev_coll){
			.type = type, .form = 2, .comm = rec->comm, .token = token,
			.parent = parent, .start = rec->start, .seq = n, .count = 1024,
			.func = 1, .datatype = 3, .algo = 4, .proto = 5, .cont = NCI_LINE_CONT,
			.channels = 1, .warps = 4, .rank = rec->comm,
		};
	}
}

static void add_events(struct shmring_lane *lane)
{
	uint64_t parent = 0, token;

	for (uint32_t n = 0; n < RECORDS; n++) {
		struct nci_record *rec = shmring_take(lane, &token);

		demand(rec);
		fill(rec, n, parent);
		shmring_open(rec, token);
		parent = token;
		if (n % 8)
			shmring_close(lane, rec, token, rec->start + 50);
	}
}

static void make_segment(void)
{
	struct shmring_lane *lane;

	demand(mkdtemp(dir));
	dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	demand(dirfd >= 0);
	fx_job_open(&ring, dir, name);
	atexit(remove_dir);
	lane = shmring_lane_new(&ring, getpid());
	demand(lane);
	add_names();
	add_comms();
	add_events(lane);
	file_bytes = (size_t)lseek(ring.fd, 0, SEEK_END);
	sound = malloc(file_bytes);
	demand(sound && pread(ring.fd, sound, file_bytes, 0) == (ssize_t)file_bytes);
}

/* ---- patches ------------------------------------------------------------- */

/* Most of the file is empty: the upper bits choose a place where something is. */
static size_t place(uint32_t where)
{
	const struct nci_header *h = (const struct nci_header *)(void *)sound;
	const size_t lane = ring.tables_bytes;
	const struct { size_t at, bytes; } places[8] = {
		{ 0, 256 },
		{ h->live_offset, sizeof(struct nci_live) },
		{ h->live_offset + sizeof(struct nci_live), 4 * sizeof(struct nci_lane) },
		{ h->comms_offset, 3 * sizeof(struct nci_comm) },
		{ h->strings_offset, 8 * sizeof(struct nci_string) },
		{ lane, 2 * RECORDS * NCI_LINE_BYTES },
		{ lane + SHMRING_LINES * NCI_LINE_BYTES, 16 * NCI_SLOT_BYTES },
		{ 0, file_bytes - 8 },
	};

	return places[where >> 29].at + (where & 0x1fffffff) % places[where >> 29].bytes;
}

static void put(size_t at, const uint8_t *bytes)
{
	demand(pwrite(ring.fd, bytes, 8, (off_t)at) == 8);
}

static size_t patch_place(const uint8_t *patch)
{
	uint32_t where;

	memcpy(&where, patch, sizeof(where));
	return place(where);
}

static void apply(const uint8_t *patches, size_t n)
{
	for (size_t i = 0; i < n; i++, patches += PATCH_BYTES)
		put(patch_place(patches), patches + 4);
}

/* `cut`: where the file ends now; 0: at its end. */
static void undo(const uint8_t *patches, size_t n, size_t cut)
{
	if (cut)
		demand(pwrite(ring.fd, sound + cut, file_bytes - cut, (off_t)cut) ==
		       (ssize_t)(file_bytes - cut));
	for (size_t i = 0; i < n; i++, patches += PATCH_BYTES)
		put(patch_place(patches), sound + patch_place(patches));
}

/* ---- reading it ---------------------------------------------------------- */

static void on_op(const struct op *op, uint64_t now_ns, void *arg)
{
	(void)arg;
	aggregate_add(aggregate, op, now_ns);
	oplog_add(oplog, op);
}

static void on_moved(const struct transfers *t, uint64_t now_ns, void *arg)
{
	(void)arg;
	links_add(links, t, now_ns);
}

static bool look_at_link(const struct links_row *row, void *arg)
{
	struct fit_line line;

	(void)arg;
	links_bound(row);
	fit_line(&row->sums.fit, &line);
	return true;
}

static void look_at_links(void)
{
	const struct links_query query = { .windows = ~0u, .all_users = true };

	links_visit(links, &query, NOW_NS, look_at_link, NULL);
}

static void make_stages(void)
{
	const struct reconstruct_limits limits = {
		.ops = 16, .apis = 8, .proxies = 8, .plans = 8, .spans = 16, .groups = 4,
		.parts = 16, .finished = 8, .processes = 2, .seed = 1,
	};
	const struct links_limits few = { .links = 4, .seed = 1 };
	const struct aggregate_limits cells = {
		.cells = 16, .slices = 64, .chunks = 256, .seed = 1,
	};

	demand(names_new(&names, 64) == 0);
	demand(reconstruct_new(&recon, &limits, names, on_op, NULL) == 0);
	demand(aggregate_new(&aggregate, &cells, NOW_NS) == 0);
	demand(links_new(&links, &few, NOW_NS) == 0);
	demand(oplog_new(&oplog, 16) == 0);
	reconstruct_tell_moved(recon, on_moved);
}

static void free_stages(void)
{
	oplog_free(oplog);
	links_free(links);
	aggregate_free(aggregate);
	reconstruct_free(recon);
	names_free(names);
}

static int read_line(struct segment *seg, uint32_t i, struct nci_lane *line)
{
	return segment_read(seg, line, sizeof(*line),
			    seg->live_offset + seg->live_bytes + i * seg->lane_bytes);
}

static void deliver(struct segment *seg, uint64_t latest)
{
	struct shmring_reader *r = &seg->lane[0].reader;
	const struct nci_record *rec;
	struct event event;

	while (shmring_next(r, &rec) > 0)
		if (decode_record(&seg->process, (struct nci_record *)(uintptr_t)rec, latest,
				  &event) == DECODE_OK)
			reconstruct_event(recon, &seg->process, &event, NOW_NS);
}

static void read_ring(struct segment *seg, struct nci_lane *line, uint64_t latest)
{
	static struct nci_line buf[256];
	struct shmring_span span[2];
	int n = shmring_want(&seg->lane[0].reader, line, buf, 256, span);

	for (int i = 0; i < n; i++)
		if (segment_read(seg, span[i].to, span[i].bytes, span[i].offset) < 0)
			return;
	if (n > 0 && read_line(seg, 0, line) == 0 &&
	    shmring_settle(&seg->lane[0].reader, line) == 0)
		deliver(seg, latest);
}

static void read_live(struct segment *seg, const struct nci_lane *line, uint64_t latest)
{
	static _Alignas(NCI_LINE_BYTES) uint8_t look[2 * 4096];	/* entries are no longer */
	const struct attached a = { .seg = seg, .look = look, .latest_ticks = latest };
	struct slots slots = { 0 };

	*look_lane(&a, 0) = *line;
	seg->nlanes = 1;
	if (slots_copy(&slots, &a) == 0)
		reconstruct_settle(recon, &seg->process, slots.at, slots.n, NOW_NS);
	slots_deinit(&slots);
}

static void read_segment(struct segment *seg)
{
	uint64_t latest = seg->process.first_ticks + TICKS;
	struct nci_live live;
	struct nci_lane line;

	if (segment_read(seg, &live, sizeof(live), seg->live_offset) < 0 ||
	    segment_tables(seg, &live, TABLES_ALL) < 0 || read_line(seg, 0, &line) < 0)
		return;
	seg->process.lanes = 1;
	if (!seg->lane[0].open && segment_lane_open(seg, 0, &line) < 0)
		return;
	if (!seg->lane[0].open)
		return;
	read_ring(seg, &line, latest);
	read_live(seg, &line, latest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t patches = size < 4 ? 0 : (size - 4) / PATCH_BYTES, half;
	struct segment *seg = NULL;
	uint32_t cut = 0;

	if (dirfd < 0)
		make_segment();
	if (patches > PATCHES)
		patches = PATCHES;
	half = (patches + 1) / 2;
	if (size >= 4)
		memcpy(&cut, data, sizeof(cut));
	cut %= (uint32_t)file_bytes;
	if (fuzz_begins_anew()) {
		free_stages();
		make_stages();
	}
	apply(data + 4, half);
	demand(segment_open(&seg, dirfd, name, names) == 0);
	if (segment_check(seg) == SEGMENT_OK) {
		seg->process.id = 1;
		seg->process.clock = (struct tick_clock){ NCI_CLOCK_MONOTONIC, 0, 0, 1, 0 };
		demand(reconstruct_attach(recon, &seg->process) == 0);
		read_segment(seg);
		apply(data + 4 + half * PATCH_BYTES, patches - half);
		if (cut)
			demand(ftruncate(ring.fd, cut) == 0);
		read_segment(seg);
		reconstruct_flush(recon, NOW_NS);
		reconstruct_end(recon, &seg->process, NOW_NS);
		reconstruct_detach(recon, &seg->process);
		look_at_links();
	}
	segment_free(seg);
	undo(data + 4, patches, cut);
	return 0;
}
