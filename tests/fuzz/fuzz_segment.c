/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sound segment with some of its bytes overwritten (patched.h), before it is opened and
 * between two looks at it, read all the way: tables, rings, what is in flight, operations and
 * their aggregates.
 */
#include "tests/fuzz/fuzz.h"

#include "ncclinspd/sums/aggregate.h"
#include "ncclinspd/sums/links.h"
#include "ncclinspd/sums/oplog.h"
#include "reader/base/names.h"
#include "reader/join/reconstruct.h"
#include "reader/read/decode.h"
#include "reader/read/segment.h"
#include "reader/read/slots.h"
#include "tests/fuzz/patched.h"

#define TICKS		UINT64_C(1000000)	/* all there is happened within */
#define NOW_NS		UINT64_C(5000000000)

static struct names *names;
static struct reconstruct *recon;
static struct aggregate *aggregate;
static struct links *links;
static struct oplog *oplog;

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
		.parts = 16, .ended = 8, .processes = 2, .seed = 1,
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
	struct segment *seg = NULL;
	struct patched file;

	if (fuzz_begins_anew()) {
		free_stages();
		make_stages();
	}
	patched_open(&file, data, size);
	demand(segment_open(&seg, file.dirfd, file.name, names) == 0);
	if (segment_check(seg) == SEGMENT_OK) {
		seg->process.id = 1;
		seg->process.clock = (struct tick_clock){ NCI_CLOCK_MONOTONIC, 0, 0, 1, 0 };
		demand(reconstruct_attach(recon, &seg->process) == 0);
		read_segment(seg);
		patched_go_on(&file);
		read_segment(seg);
		reconstruct_flush(recon, NOW_NS);
		reconstruct_end(recon, &seg->process, NOW_NS);
		reconstruct_detach(recon, &seg->process);
		look_at_links();
	}
	segment_free(seg);
	patched_close(&file);
	return 0;
}
