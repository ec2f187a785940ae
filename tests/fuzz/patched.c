/* SPDX-License-Identifier: Apache-2.0 */
/* The segment is made once; each input changes it, and leaves it as it was. */
#include "tests/fuzz/patched.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fixture_daemon.h"
#include "tests/fuzz/fuzz.h"

#define PATCHES		16
#define PATCH_BYTES	12
#define PUTS		4
#define RECORDS		48

static char dir[] = "/dev/shm/ncclinsp-fuzz.XXXXXX";
static char name[80];
static int dirfd = -1;
static struct shmring ring;
static size_t file_bytes;
static uint8_t *sound;		/* the file as it was made */
static size_t puts_at[PUTS];	/* places of patched_put() */
static size_t nputs;

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

/* ---- from outside -------------------------------------------------------- */

void patched_open(struct patched *file, const uint8_t *data, size_t size)
{
	if (dirfd < 0)
		make_segment();
	*file = (struct patched){ .dirfd = dirfd, .name = name, .patches = data };
	if (size < sizeof(file->cut))
		return;
	memcpy(&file->cut, data, sizeof(file->cut));
	file->cut %= (uint32_t)file_bytes;
	file->patches = data + sizeof(file->cut);
	file->n = (size - sizeof(file->cut)) / PATCH_BYTES;
	if (file->n > PATCHES)
		file->n = PATCHES;
	file->half = (file->n + 1) / 2;
	apply(file->patches, file->half);
}

void patched_go_on(const struct patched *file)
{
	apply(file->patches + file->half * PATCH_BYTES, file->n - file->half);
	if (file->cut)
		demand(ftruncate(ring.fd, file->cut) == 0);
}

void patched_put(size_t at, uint64_t bytes)
{
	demand(nputs < PUTS);
	puts_at[nputs++] = at;
	put(at, (const uint8_t *)&bytes);
}

void patched_close(const struct patched *file)
{
	const uint8_t *patch = file->patches;

	if (file->cut)
		demand(pwrite(ring.fd, sound + file->cut, file_bytes - file->cut,
			      (off_t)file->cut) == (ssize_t)(file_bytes - file->cut));
	for (size_t i = 0; i < file->n; i++, patch += PATCH_BYTES)
		put(patch_place(patch), sound + patch_place(patch));
	for (; nputs; nputs--)
		put(puts_at[nputs - 1], sound + puts_at[nputs - 1]);
}
