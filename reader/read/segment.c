/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header is copied once and checked; from then on offsets come from the
 * checked copy.
 */
#include "reader/read/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reader/base/beneath.h"
#include "reader/base/boot.h"
#include "reader/base/job.h"
#include "reader/base/memory.h"
#include "reader/base/names.h"
#include "reader/base/pool.h"
#include "reader/base/proc.h"
#include "reader/read/life.h"
#include "shmring/clock.h"
#include "util/cleanup.h"
#include "util/utf8.h"

#define MAX_STRINGS	65535
#define MAX_COMMS	4096	/* communicators at a time */
#define MAX_ENTRY	4096	/* bytes of one entry of a table */
#define KEPT_STRINGS	1024
#define AT_ONCE_BYTES	8192	/* bytes of table entries copied in one read */

/* ---- the name -------------------------------------------------------------- */

/* Decimal without leading zeros, up to `end`; false if it is not, or above `max`. */
static bool segment_parse_number(const char **text, char end, uint64_t max, uint64_t *out)
{
	const char *s = *text;
	uint64_t n = 0;

	if (*s == '0' && s[1] != end)
		return false;
	for (; *s >= '0' && *s <= '9'; s++) {
		uint64_t digit = (uint64_t)(*s - '0');

		if (n > (max - digit) / 10)
			return false;
		n = n * 10 + digit;
	}
	if (s == *text || *s != end)
		return false;
	*text = s + (end != 0);
	*out = n;
	return true;
}

bool segment_parse_name(const char *file, struct segment_name *name)
{
	uint64_t uid, pid, start, random;
	const char *dot;

	if (strncmp(file, NCI_FILE_PREFIX, strlen(NCI_FILE_PREFIX)) != 0)
		return false;
	file += strlen(NCI_FILE_PREFIX);
	if (!segment_parse_number(&file, '.', UINT32_MAX - 1, &uid) ||
	    !segment_parse_number(&file, '.', INT32_MAX, &pid) || pid == 0)
		return false;
	dot = strchr(file, '.');
	if (!segment_parse_number(&file, dot ? '.' : '\0', UINT64_MAX / 16, &start) ||
	    (dot && !segment_parse_number(&file, '\0', UINT32_MAX, &random)))
		return false;
	*name = (struct segment_name){ (uid_t)uid, (pid_t)pid, start };
	return true;
}

/* ---- reading --------------------------------------------------------------- */

int segment_read(const struct segment *seg, void *buf, size_t bytes, uint64_t offset)
{
	uint8_t *to = buf;

	while (bytes) {
		ssize_t n = pread(seg->fd, to, bytes, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EPROTO;
		to += n;
		offset += (uint64_t)n;
		bytes -= (size_t)n;
	}
	return 0;
}

static int read_size(struct segment *seg)
{
	struct stat st;

	if (fstat(seg->fd, &st) < 0)
		return -errno;
	seg->bytes = (uint64_t)st.st_size;
	return 0;
}

/* ---- the header ------------------------------------------------------------ */

static bool table_fits(const struct segment *seg, uint64_t offset, uint64_t bytes)
{
	return offset % NCI_LINE_BYTES == 0 && offset >= sizeof(struct nci_header) &&
	       offset <= seg->bytes && bytes <= seg->bytes - offset;
}

/* An entry may be longer than the one that we know, which it begins with. */
static bool entry_fits(uint32_t bytes, size_t known)
{
	return bytes >= known && bytes <= MAX_ENTRY && bytes % NCI_LINE_BYTES == 0;
}

static bool layout_fits(const struct segment *seg, const struct nci_header *h)
{
	if (h->lanes == 0 || h->lanes > SEGMENT_MAX_LANES || h->comms == 0 ||
	    h->comms > MAX_COMMS || NCI_COMM_NUMBERS % h->comms || h->strings > MAX_STRINGS ||
	    h->env_bytes > sizeof(h->env))
		return false;
	if (!entry_fits(h->live_bytes, sizeof(struct nci_live)) ||
	    !entry_fits(h->lane_bytes, sizeof(struct nci_lane)) ||
	    !entry_fits(h->comm_bytes, sizeof(struct nci_comm)) ||
	    !entry_fits(h->string_bytes, sizeof(struct nci_string)))
		return false;
	return table_fits(seg, h->live_offset, h->live_bytes + h->lanes * h->lane_bytes) &&
	       table_fits(seg, h->comms_offset, (uint64_t)h->comms * h->comm_bytes) &&
	       table_fits(seg, h->strings_offset, (uint64_t)h->strings * h->string_bytes);
}

/* The identity is told twice, by the file and in it. */
static bool identity_fits(const struct nci_header *h, const struct segment_name *name)
{
	return h->uid == name->uid && h->pid == (uint32_t)name->pid &&
	       h->start_time == name->start_time && h->nonce;
}

static bool clock_fits(const struct nci_header *h)
{
	return h->clock == NCI_CLOCK_MONOTONIC || h->clock == clock_kind(
		h->clock == NCI_CLOCK_TSC ? "tsc" : "arch_sys_counter");
}

/*
 * Ticks of an earlier boot mean nothing now.  Zeros: the writer could not tell.  Some
 * containers have an id of their own: who holds a lock runs, whatever it was told.
 */
static bool header_is_of_this_boot(const struct segment *seg, const struct nci_header *h)
{
	static const uint8_t none[16];
	uint8_t id[16] = { 0 };

	return memcmp(h->boot_id, none, sizeof(none)) == 0 || !boot_id_read(id) ||
	       memcmp(h->boot_id, id, sizeof(id)) == 0 || life_is_held(seg);
}

static void copy_text(char *to, size_t room, const char *from, size_t bytes)
{
	size_t n = strnlen(from, bytes < room - 1 ? bytes : room - 1);

	memcpy(to, from, n);
	to[n] = '\0';
	utf8_clean(to, n);
}

static void segment_take_header(struct segment *seg, const struct nci_header *h)
{
	struct process *p = &seg->process;

	seg->live_offset = h->live_offset;
	seg->comms_offset = h->comms_offset;
	seg->strings_offset = h->strings_offset;
	seg->max_lanes = h->lanes;
	seg->live_bytes = h->live_bytes;
	seg->lane_bytes = h->lane_bytes;
	seg->comm_bytes = h->comm_bytes;
	seg->string_bytes = h->string_bytes;
	seg->max_comms = h->comms;
	seg->max_strings = h->strings < KEPT_STRINGS ? h->strings : KEPT_STRINGS;
	seg->clock = h->clock;
	seg->start_time = h->start_time;
	p->first_ticks = h->anchor.ticks;
	p->first_mono_ns = h->anchor.mono_ns;
	p->instance = h->instance;
	p->nonce = h->nonce;
	p->pid = p->ns_pid = (pid_t)h->pid;
	p->clock.kind = h->clock;
	copy_text(p->command, sizeof(p->command), h->command, sizeof(h->command));
	copy_text(p->plugin_version, sizeof(p->plugin_version), h->plugin_version,
		  sizeof(h->plugin_version));
	memcpy(p->env, h->env, h->env_bytes);
	p->env_bytes = h->env_bytes;
	if (p->env_bytes)
		p->env[p->env_bytes - 1] = '\0';
	utf8_clean(p->env, p->env_bytes);
}

static void tables_free(struct segment *seg)
{
	pages_give(seg->tables, seg->tables_bytes);
	seg->tables = NULL;
	seg->lane = NULL;
	seg->process.comms = NULL;
	seg->process.strings = NULL;
	seg->process.tags = NULL;
}

/*
 * The tables lie in pages of their own, those that begin to be used first in front: most
 * stay empty.
 */
static int tables_make(struct segment *seg)
{
	size_t strings = (seg->max_strings + 1) * sizeof(name_t);
	size_t lanes = seg->max_lanes * sizeof(*seg->lane);
	size_t comms = NCI_COMM_NUMBERS * sizeof(struct comm);
	size_t tags = (seg->max_strings + 1) * sizeof(uint64_t);

	tables_free(seg);	/* tables of an attempt that came to nothing */
	seg->tables_bytes = strings + tags + lanes + comms;
	seg->tables = pages_take(seg->tables_bytes);
	if (!seg->tables)
		return -ENOMEM;
	seg->process.strings = seg->tables;
	seg->process.tags = (void *)((char *)seg->tables + strings);
	seg->lane = (void *)((char *)seg->tables + strings + tags);
	seg->process.comms = (void *)((char *)seg->tables + strings + tags + lanes);
	return 0;
}

/*
 * Only the magic and the version of another format can be read; the rest is in the name,
 * which is told of where the kernel confirms it.
 */
static void segment_take_foreign(struct segment *seg, const struct nci_header *h,
				 const struct segment_name *name)
{
	seg->process.pid = seg->process.ns_pid = name->pid;
	seg->start_time = name->start_time;
	if (life_find_owner(seg) || !seg->process.proven)
		return;
	seg->foreign = (struct foreign){
		.pid = seg->process.pid,
		.host_pid = seg->host_pid,
		.uid = seg->process.uid,
		.start_time = name->start_time,
		.abi_major = h->abi_major,
		.abi_minor = h->abi_minor,
	};
	snprintf(seg->foreign.file, sizeof(seg->foreign.file), "%.63s", seg->process.file);
}

int segment_check(struct segment *seg)
{
	struct segment_name name;
	struct nci_header h;
	int r = read_size(seg);

	if (r < 0)
		return r;
	if (seg->bytes < sizeof(h))
		return SEGMENT_NOT_READY;
	r = segment_read(seg, &h, sizeof(h), 0);
	if (r < 0)
		return r;
	if (!atomic_load_explicit(&h.ready, memory_order_relaxed))
		return SEGMENT_NOT_READY;
	atomic_thread_fence(memory_order_acquire);
	r = segment_read(seg, &h, sizeof(h), 0);	/* all of it is from after `ready` */
	if (r < 0)
		return r;
	if (h.magic != NCI_MAGIC)
		return -EPROTO;
	if (seg->chosen)
		name = (struct segment_name){ h.uid, (pid_t)h.pid, h.start_time };
	else if (!segment_parse_name(seg->process.file, &name))
		return -EINVAL;
	if (h.abi_major != NCI_ABI_MAJOR) {
		if (!seg->chosen)
			segment_take_foreign(seg, &h, &name);
		return SEGMENT_FOREIGN;
	}
	if (!header_is_of_this_boot(seg, &h))
		return SEGMENT_STALE;
	if (!layout_fits(seg, &h) || !identity_fits(&h, &name) || !clock_fits(&h))
		return -EPROTO;
	segment_take_header(seg, &h);
	r = life_find_owner(seg);
	return r ? r : tables_make(seg);
}

bool segment_is_passing(int outcome)
{
	return outcome == SEGMENT_NOT_READY || outcome == -EMFILE || outcome == -ENFILE ||
	       outcome == -ENOMEM;
}

const char *segment_reason(int outcome)
{
	if (outcome == SEGMENT_FOREIGN)
		return "its format is another version's, restart the older: job or daemon";
	if (outcome == SEGMENT_STALE)
		return "another boot";
	if (outcome == SEGMENT_STRANGER)
		return "it names a process of another user";
	return outcome == SEGMENT_NOT_READY ? "was never ready" : strerror(-outcome);
}

/* ---- open and close -------------------------------------------------------- */

/*
 * The file says whose it is, not its name: in a user namespace a process calls itself by
 * another number, and anybody may give a file any name.
 */
static int segment_check_file(struct segment *seg)
{
	struct stat st;

	if (fstat(seg->fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || (!seg->chosen && st.st_mode & (S_IWGRP | S_IWOTH)))
		return -EPERM;
	seg->ino = st.st_ino;
	seg->process.uid = seg->process.account = st.st_uid;
	return 0;
}

CLEANUP_DEFINE(segment_free, struct segment)

/* Takes the descriptor; a negative one is the errno of its open. */
static int segment_new(struct segment **out, int fd, bool chosen, const char *file,
		       struct names *names)
{
	CLEANUP(segment_freep) struct segment *seg = fd < 0 ? NULL : calloc(1, sizeof(*seg));
	int r;

	if (fd < 0)
		return fd;
	if (!seg) {
		close(fd);
		return -ENOMEM;
	}
	seg->fd = fd;
	seg->chosen = chosen;
	seg->names = names;
	snprintf(seg->process.file, sizeof(seg->process.file), "%s", file);
	r = segment_check_file(seg);
	if (r < 0)
		return r;
	*out = DISOWN(seg);
	return 0;
}

int segment_open(struct segment **out, int dirfd, const char *file, struct names *names)
{
	struct segment_name name;

	if (!segment_parse_name(file, &name))
		return -EINVAL;
	return segment_new(out, beneath_open(dirfd, file), false, file, names);
}

int segment_open_chosen(struct segment **out, int fd, const char *name, struct names *names)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	return segment_new(out, own < 0 ? -errno : own, true, name, names);
}

void segment_close(struct segment *seg)
{
	if (seg->fd >= 0)
		close(seg->fd);
	seg->fd = -1;
}

void segment_free(struct segment *seg)
{
	if (!seg)
		return;
	segment_close(seg);
	tables_free(seg);
	memory_give(seg->memory, seg->process.account, seg->taken);
	free(seg->process.last_slots);
	free(seg);
}

/* ---- tables ---------------------------------------------------------------- */

static void segment_take_comm(struct comm *to, const struct nci_comm *from)
{
	size_t name_bytes = from->name_bytes < sizeof(from->name) ? from->name_bytes
								   : sizeof(from->name);

	if (to->init_ticks != from->init)
		*to = (struct comm){ .init_ticks = from->init };	/* numbers have wrapped */
	to->finalize_ticks = atomic_load_explicit(&from->finalize, memory_order_relaxed);
	to->drift_ticks = atomic_load_explicit(&from->drift, memory_order_relaxed);
	if (to->ready)
		return;		/* the rest never changes */
	to->has_id = from->flags & NCI_COMM_HAS_ID;
	to->id = from->comm_id;
	to->rank = to->has_id && from->rank >= 0 ? from->rank : UNKNOWN_I32;
	to->nranks = to->has_id && from->nranks > 0 ? from->nranks : UNKNOWN_I32;
	to->nnodes = to->has_id && from->nnodes > 0 ? from->nnodes : UNKNOWN_I32;
	to->has_gpu = from->flags & NCI_COMM_HAS_GPU;
	memcpy(to->gpu_uuid, from->gpu_uuid, sizeof(to->gpu_uuid));
	copy_text(to->pci_bus_id, sizeof(to->pci_bus_id), from->pci_bus_id,
		  sizeof(from->pci_bus_id));
	to->gpu_index = to->has_gpu ? proc_gpu_index(PROC_GPUS, to->pci_bus_id) : UNKNOWN_I32;
	copy_text(to->name, sizeof(to->name), from->name, name_bytes);
	to->ready = true;
}

static void segment_take_string(struct segment *seg, uint32_t i, const struct nci_string *from)
{
	uint32_t bytes = atomic_load_explicit(&from->bytes, memory_order_relaxed);
	bool is_tag = bytes & NCI_STRING_TAG;
	char text[sizeof(from->text)];

	bytes = (bytes & ~NCI_STRING_TAG) - 1;
	bytes = bytes < sizeof(text) ? bytes : sizeof(text);
	memcpy(text, from->text, bytes);
	seg->process.tags[i] = nci_tag_of_name(text, bytes);
	utf8_clean(text, bytes);
	seg->process.strings[i] = (is_tag ? names_intern_tag : names_intern)
		(seg->names, seg->process.account, text, bytes);
}

/* A table in the segment; what begins an entry tells that it is published, and as what. */
struct table {
	uint64_t offset;
	uint32_t bytes;		/* size of an entry */
	void (*take)(struct segment *seg, uint32_t i, const void *entry);
};

static uint32_t entry_is_published(const void *entry)
{
	return atomic_load_explicit((const _Atomic uint32_t *)entry, memory_order_relaxed);
}

static void take_comm_entry(struct segment *seg, uint32_t i, const void *entry)
{
	uint32_t number = entry_is_published(entry) - 1;

	if (number < NCI_COMM_NUMBERS && number % seg->max_comms == i)
		segment_take_comm(&seg->process.comms[number], entry);
}

static void take_string_entry(struct segment *seg, uint32_t i, const void *entry)
{
	segment_take_string(seg, i, entry);
}

/*
 * Entries are copied three times.  What the first copy shows as published is whole in the
 * second, since in one copy a text may be older than the number beside it; and what the
 * third one still shows was not taken for another communicator meanwhile.
 */
static int read_entries(struct segment *seg, const struct table *t, uint32_t from, uint32_t n)
{
	_Alignas(NCI_LINE_BYTES) uint8_t copy[3][AT_ONCE_BYTES];

	for (int k = 0; k < 3; k++) {
		int r = segment_read(seg, copy[k], n * t->bytes,
				     t->offset + (uint64_t)from * t->bytes);

		if (r < 0)
			return r;
		atomic_thread_fence(memory_order_acquire);
	}
	for (uint32_t at = 0; at < n * t->bytes; at += t->bytes)
		if (entry_is_published(copy[0] + at) &&
		    entry_is_published(copy[1] + at) == entry_is_published(copy[0] + at) &&
		    entry_is_published(copy[2] + at) == entry_is_published(copy[0] + at))
			t->take(seg, from + at / t->bytes, copy[1] + at);
	return 0;
}

static int read_table(struct segment *seg, const struct table *t, uint32_t from, uint32_t to)
{
	uint32_t at_once = AT_ONCE_BYTES / t->bytes;
	int r = 0;

	while (r == 0 && from < to) {
		uint32_t n = to - from < at_once ? to - from : at_once;

		r = read_entries(seg, t, from, n);
		from += n;
	}
	return r;
}

/* Entries of the numbers [from, to), or all that were ever used. */
static int read_comms(struct segment *seg, uint32_t from, uint32_t to, bool all)
{
	const struct table t = { seg->comms_offset, seg->comm_bytes, take_comm_entry };
	uint32_t capacity = seg->max_comms, first = from % capacity, n = to - from;
	int r;

	if (all || n >= capacity)
		return read_table(seg, &t, 0, to < capacity ? to : capacity);
	if (first + n <= capacity)
		return read_table(seg, &t, first, first + n);
	r = read_table(seg, &t, first, capacity);
	return r < 0 ? r : read_table(seg, &t, 0, first + n - capacity);
}

static int read_strings(struct segment *seg, uint32_t from, uint32_t to)
{
	const struct table t = { seg->strings_offset, seg->string_bytes, take_string_entry };

	return read_table(seg, &t, from, to);
}

static uint32_t table_count(const _Atomic uint32_t *begun, uint32_t room)
{
	uint32_t n = atomic_load_explicit(begun, memory_order_relaxed);

	return n < room ? n : room;
}

/* Whether there is memory for so many communicators. */
static bool segment_afford(struct segment *seg, uint32_t comms)
{
	const struct process *p = &seg->process;
	uint64_t bytes = (comms - p->ncomms) * sizeof(struct comm);

	if (!memory_take(seg->memory, p->account, bytes))
		return false;
	seg->taken += bytes;
	return true;
}

int segment_tables(struct segment *seg, const struct nci_live *live, enum segment_tables which)
{
	uint32_t comms = atomic_load_explicit(&live->comms, memory_order_relaxed);
	uint32_t strings = table_count(&live->strings, seg->max_strings);
	uint32_t ended = atomic_load_explicit(&live->comms_ended, memory_order_relaxed);
	uint32_t drifted = atomic_load_explicit(&live->comms_drifted, memory_order_relaxed);
	bool all = which == TABLES_ALL || drifted != seg->comms_drifted ||
		   (which == TABLES_CHANGED && ended != seg->comms_ended);
	uint32_t known = comms < NCI_COMM_NUMBERS ? comms : NCI_COMM_NUMBERS;
	struct process *p = &seg->process;
	bool room;
	int r = 0;

	if (comms < seg->comms_begun || known < p->ncomms || strings < p->nstrings)
		return -EPROTO;
	room = segment_afford(seg, known);
	if (!room)
		comms = seg->comms_begun;
	if (all || seg->comms_begun < comms)
		r = read_comms(seg, seg->comms_begun, comms, all);
	if (r == 0 && seg->strings_ready < strings)
		r = read_strings(seg, seg->strings_ready, strings);
	if (r < 0)
		return r;
	if (all) {
		seg->comms_ended = ended;
		seg->comms_drifted = drifted;
	}
	if (room)
		p->ncomms = known;
	p->nstrings = strings;
	if (all || seg->comms_begun < comms)
		job_find_world(p);
	if (comms > seg->comms_begun)	/* inits come one after another: the last may be at work */
		seg->comms_begun = comms - !p->comms[(comms - 1) % NCI_COMM_NUMBERS].ready;
	while (seg->strings_ready < strings && p->strings[seg->strings_ready])
		seg->strings_ready++;
	seg->settled = room && seg->comms_begun == comms && seg->strings_ready == strings;
	return 0;
}

int segment_lane_open(struct segment *seg, uint32_t i, const struct nci_lane *line)
{
	struct segment_lane *lane = &seg->lane[i];
	int r = shmring_reader_init(&lane->reader, line, seg->bytes);

	if (r == -EPROTO) {		/* the file grows with each lane */
		r = read_size(seg);
		if (r == 0)
			r = shmring_reader_init(&lane->reader, line, seg->bytes);
	}
	lane->open = r == 0;
	return r;
}
