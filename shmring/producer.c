/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slow half of the writing side: making a segment and its lanes, and what a
 * lane does when its pool runs dry.  Space is allocated before it is mapped: on
 * a full file system the caller is told, and nobody ever meets SIGBUS.
 *
 * Only symbols of glibc 2.17 and older: this is linked into the plugin.
 */
#include "shmring/producer.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shmring/clock.h"

#define LANE_BYTES ((size_t)SHMRING_LINES * NCI_LINE_BYTES + \
		    (size_t)SHMRING_SLOTS * NCI_SLOT_BYTES)
#define SLOW_SLOTS	64	/* slots looked at when the pool is dry */
#define SLOW_EVERY	16	/* calls that one walk must last for */
#define ROOM_SHARE	8	/* parts of what is free for all lanes; one is ours */
#define RETRY_NS	UINT64_C(100000000)	/* from one that found no space to the next try */
#define PROBES		16	/* lanes that a call asks the kernel about */

_Static_assert(SHMRING_SLOTS <= 1 << NCI_TOKEN_SLOT_BITS, "a slot fits a token");
_Static_assert((SHMRING_LINES & (SHMRING_LINES - 1)) == 0, "the ring is a power of two");
_Static_assert(NCI_COMM_NUMBERS % SHMRING_COMMS == 0, "numbers wrap where entries do");
_Static_assert(LANE_BYTES % NCI_PAGE == 0, "lanes are mapped one by one");

static size_t page_up(size_t bytes)
{
	return (bytes + NCI_PAGE - 1) & ~(size_t)(NCI_PAGE - 1);
}

bool shmring_may_have(uint64_t bytes)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_FSIZE, &limit) < 0 || bytes <= limit.rlim_cur;
}

/* posix_fallocate() gives up when a signal arrives; the job's signals are not our fault. */
static int file_allocate(int fd, off_t offset, size_t bytes)
{
	int r = EINTR;

	if (!shmring_may_have((uint64_t)offset + bytes))
		return -EFBIG;
	for (int tries = 0; r == EINTR && tries < 16; tries++)
		r = posix_fallocate(fd, offset, (off_t)bytes);
	return -r;
}

/* The place is `at`, one of ours; NULL: anywhere. */
static void *file_map(int fd, off_t offset, size_t bytes, void *at)
{
	void *p = mmap(at, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_POPULATE | (at ? MAP_FIXED : 0), fd, offset);

	return p == MAP_FAILED ? NULL : p;
}

/* Room for all lanes, each with its pool at a multiple of LANE_STRIDE behind the first one's. */
#define LANE_STRIDE	((size_t)SHMRING_LANE_SLOTS * NCI_SLOT_BYTES)
#define RING_BYTES	((size_t)SHMRING_LINES * NCI_LINE_BYTES)
#define ROOM_BYTES	(LANE_STRIDE * NCI_MAX_LANES)
_Static_assert(LANE_BYTES <= LANE_STRIDE, "lanes do not overlap");

/* A closed ring's only slot, which is empty. */
static struct nci_slot no_slot = { .line = { { .word = { 0, NCI_TOKEN_FREE } } } };

/* Slot 0 of lane 0, while that is not made, is no event for the number 0 either. */
static bool slots_keep_room(struct shmring *ring)
{
	uint8_t *room = mmap(NULL, ROOM_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS |
			     MAP_NORESERVE, -1, 0);
	void *first;

	if (room == MAP_FAILED)
		return false;
	first = mmap(room + RING_BYTES, NCI_PAGE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	if (first == MAP_FAILED) {
		munmap(room, ROOM_BYTES);
		return false;
	}
	*(struct nci_slot *)first = no_slot;
	atomic_thread_fence(memory_order_release);	/* NULL, stopped meanwhile, is no event */
	ring->slots = first;
	ring->slot_mask = (SHMRING_LANE_SLOTS * NCI_MAX_LANES - 1) &
			  ~(SHMRING_LANE_SLOTS - SHMRING_SLOTS);
	return true;
}

static void *slots_room(const struct shmring *ring)
{
	return (uint8_t *)ring->slots - RING_BYTES;
}

static int file_take_lock(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_SETLK, &lock) < 0 ? -errno : 0;
}

bool shmring_is_held(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(fd, F_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

/*
 * Containers may share a directory and not their process numbers: a file of our
 * name that somebody holds is another process's.
 */
static bool file_is_in_use(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool held = fd >= 0 && shmring_is_held(fd);

	if (fd >= 0)
		close(fd);
	return held;
}

int shmring_move_up(int fd)
{
	int higher, r;

	if (fd > STDERR_FILENO)
		return fd;
	higher = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	r = higher < 0 ? -errno : higher;
	close(fd);
	return r;
}

static int file_open_exclusively(int dirfd, const char *name)
{
	int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
	int fd = openat(dirfd, name, flags, 0600);

	if (fd < 0 && errno == EEXIST) {
		if (file_is_in_use(dirfd, name) || unlinkat(dirfd, name, 0) < 0)
			return -EEXIST;
		fd = openat(dirfd, name, flags, 0600);
	}
	if (fd < 0)
		return -errno;
	return shmring_move_up(fd);
}

bool shmring_stat(int fd, struct stat *st)
{
	return syscall(SYS_fstat, fd, st) == 0;
}

bool shmring_is_file(int fd, dev_t dev, ino_t ino, struct stat *st)
{
	return shmring_stat(fd, st) && st->st_dev == dev && st->st_ino == ino;
}

static bool file_is_still_ours(const struct shmring *ring)
{
	struct stat st;

	return shmring_is_file(ring->fd, ring->dev, ring->ino, &st);
}

static void ring_lay_out(struct shmring *ring, void *base)
{
	struct nci_header *h = base;
	uint8_t *p = base;

	h->magic = NCI_MAGIC;
	h->abi_major = NCI_ABI_MAJOR;
	h->abi_minor = NCI_ABI_MINOR;
	h->lanes = NCI_MAX_LANES;
	h->comms = SHMRING_COMMS;
	h->strings = SHMRING_STRINGS;
	h->live_bytes = sizeof(struct nci_live);
	h->lane_bytes = sizeof(struct nci_lane);
	h->comm_bytes = sizeof(struct nci_comm);
	h->string_bytes = sizeof(struct nci_string);
	h->live_offset = sizeof(*h);
	h->comms_offset = h->live_offset + sizeof(struct nci_live) +
			  NCI_MAX_LANES * sizeof(struct nci_lane);
	h->strings_offset = h->comms_offset + SHMRING_COMMS * sizeof(struct nci_comm);

	ring->header = h;
	ring->live = (struct nci_live *)(p + h->live_offset);
	ring->directory = (struct nci_lane *)(ring->live + 1);
	ring->comms = (struct nci_comm *)(p + h->comms_offset);
	ring->strings = (struct nci_string *)(p + h->strings_offset);
}

static void ring_close(struct shmring *ring)
{
	memset(ring, 0, sizeof(*ring));
	ring->slots = &no_slot;
}

int shmring_create(struct shmring *ring, const char *dir, const char *name)
{
	size_t bytes = page_up(sizeof(struct nci_header) + sizeof(struct nci_live) +
			       NCI_MAX_LANES * sizeof(struct nci_lane) +
			       SHMRING_COMMS * sizeof(struct nci_comm) +
			       SHMRING_STRINGS * sizeof(struct nci_string));
	void *base = NULL;
	struct stat st;
	int dirfd, fd, r;

	dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dirfd < 0)
		return -errno;
	fd = file_open_exclusively(dirfd, name);
	if (fd < 0) {
		r = fd;
		goto close_dir;
	}
	r = file_allocate(fd, 0, bytes);
	if (r)
		goto remove;
	base = file_map(fd, 0, bytes, NULL);
	r = base ? file_take_lock(fd) : -ENOMEM;
	if (!r && !shmring_stat(fd, &st))
		r = -errno;
	if (r)
		goto remove;

	if (!slots_keep_room(ring)) {
		r = -ENOMEM;
		goto remove;
	}
	memset(ring, 0, offsetof(struct shmring, slots));
	memset(ring->lane, 0, sizeof(ring->lane));
	memset(ring->out, 0, sizeof(ring->out));
	ring->fd = fd;
	ring->dev = st.st_dev;
	ring->ino = st.st_ino;
	ring->pid = getpid();
	ring->tables_bytes = bytes;
	ring->most = NCI_MAX_LANES;
	ring_lay_out(ring, base);
	close(dirfd);
	return 0;

remove:
	if (base)
		munmap(base, bytes);
	unlinkat(dirfd, name, 0);
	close(fd);
close_dir:
	close(dirfd);
	return r;
}

void shmring_ready(struct shmring *ring)
{
	atomic_store_explicit(&ring->header->ready, 1, memory_order_release);
}

void shmring_forget(struct shmring *ring)
{
	if (ring->header) {
		munmap(slots_room(ring), ROOM_BYTES);
		munmap(ring->header, ring->tables_bytes);
		if (file_is_still_ours(ring))
			close(ring->fd);
	}
	ring_close(ring);
}

static bool thread_is_gone(pid_t pid, uint32_t tid)
{
	return syscall(SYS_tgkill, pid, (pid_t)tid, 0) < 0 && errno == ESRCH;
}

/* A lane whose thread died inside shmring_publish() is torn for ever. */
static bool lane_is_whole(const struct nci_lane *line)
{
	uint64_t end = atomic_load_explicit(&line->end, memory_order_acquire);

	return atomic_load_explicit(&line->begin, memory_order_relaxed) == end;
}

static bool lane_belongs(const struct shmring *ring, uint32_t i, pid_t tid)
{
	const struct nci_lane *line = &ring->directory[i];

	return atomic_load_explicit(&line->state, memory_order_acquire) == NCI_LANE_READY &&
	       atomic_load_explicit(&line->tid, memory_order_relaxed) == (uint32_t)tid;
}

/*
 * Others may adopt it and die meanwhile, and a new thread have the first one's number and the
 * lane: the owners that were counted tell.  Until a new one is counted, the lane is thread 0's:
 * the kernel calls that invalid, not gone.
 */
static bool lane_adopt(struct shmring *ring, uint32_t i, pid_t tid)
{
	struct nci_lane *line = &ring->directory[i];
	uint32_t owners = atomic_load_explicit(&line->owners, memory_order_acquire);
	uint32_t owner = atomic_load_explicit(&line->tid, memory_order_acquire);
	bool adopted;

	if (atomic_load_explicit(&line->state, memory_order_acquire) != NCI_LANE_READY)
		return false;
	if (owner != (uint32_t)tid && !thread_is_gone(ring->pid, owner))
		return false;
	if (!lane_is_whole(line))
		return false;
	SHMRING_TESTPOINT(adopting);
	if (!atomic_compare_exchange_strong_explicit(&line->tid, &owner, 0,
						     memory_order_acq_rel,
						     memory_order_relaxed))
		return false;
	SHMRING_TESTPOINT(adopted);
	adopted = atomic_load_explicit(&line->owners, memory_order_relaxed) == owners;
	if (adopted)
		atomic_fetch_add_explicit(&line->owners, 1, memory_order_relaxed);
	atomic_store_explicit(&line->tid, adopted ? (uint32_t)tid : owner, memory_order_release);
	return adopted;
}

/* A lane in state MAKING, with all that it needs, has an owner. */
static void lane_give(struct nci_lane *line, pid_t tid)
{
	atomic_store_explicit(&line->tid, (uint32_t)tid, memory_order_relaxed);
	atomic_store_explicit(&line->owners, 1, memory_order_relaxed);
	atomic_store_explicit(&line->state, NCI_LANE_READY, memory_order_release);
}

static bool lane_claim(struct shmring *ring, uint32_t i, pid_t tid)
{
	struct nci_lane *line = &ring->directory[i];
	uint32_t state = NCI_LANE_SPARE;

	if (!atomic_compare_exchange_strong_explicit(&line->state, &state, NCI_LANE_MAKING,
						     memory_order_acq_rel,
						     memory_order_relaxed))
		return false;
	lane_give(line, tid);
	return true;
}

/* Not even while lane 0 is made may the number 0 find an event in its slot 0. */
static bool lane_empty_first_slot(int fd, off_t offset)
{
	return pwrite(fd, &no_slot, sizeof(no_slot), offset + (off_t)RING_BYTES) == sizeof(no_slot);
}

static void lane_init(struct shmring *ring, uint32_t i, uint8_t *base, off_t offset)
{
	struct nci_lane *line = &ring->directory[i];
	struct shmring_lane *lane = &ring->lane[i];

	lane->out = &ring->out[i];
	lane->out->line = line;
	lane->out->ring = (struct nci_line *)base;
	lane->pool = (struct nci_slot *)(base + RING_BYTES);
	lane->index = i;
	for (uint32_t slot = 0; slot < SHMRING_SLOTS; slot++) {
		struct nci_record *rec = shmring_slot(lane->pool, slot);

		atomic_store_explicit(shmring_token(rec),
				      NCI_TOKEN_FREE | nci_token(i, slot, 0),
				      memory_order_relaxed);
	}
	lane->free = SHMRING_NO_SLOT;
	for (uint32_t slot = SHMRING_SLOTS; slot-- > 0;)
		shmring_put(lane, shmring_slot(lane->pool, slot), slot);
	line->offset = (uint64_t)offset;
	line->lines = SHMRING_LINES;
	line->slots = SHMRING_SLOTS;
	SHMRING_TESTPOINT(allocated);
}

/* The number of a lane, in state MAKING: one that found no space before, or a new one. */
static bool lane_begin(struct shmring *ring, uint32_t *number)
{
	uint64_t refused_ns = atomic_load_explicit(&ring->refused_ns, memory_order_relaxed);
	uint32_t most = atomic_load_explicit(&ring->most, memory_order_relaxed);
	uint32_t i = atomic_load_explicit(&ring->live->lanes, memory_order_relaxed);

	if (clock_ns(CLOCK_MONOTONIC_COARSE) - refused_ns < RETRY_NS)
		return false;
	for (*number = 0; *number < i && *number < most; ++*number) {
		uint32_t state = NCI_LANE_REFUSED;

		if (atomic_compare_exchange_strong_explicit(&ring->directory[*number].state,
							    &state, NCI_LANE_MAKING,
							    memory_order_relaxed,
							    memory_order_relaxed))
			return true;
	}
	do {
		if (i >= most)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&ring->live->lanes, &i, i + 1,
							memory_order_relaxed,
							memory_order_relaxed));
	atomic_store_explicit(&ring->directory[i].state, NCI_LANE_MAKING, memory_order_relaxed);
	*number = i;
	return true;
}

/* A lane in state MAKING; or NULL. */
static struct shmring_lane *lane_make(struct shmring *ring)
{
	uint8_t *base = NULL;
	off_t offset;
	uint32_t i;

	if (!lane_begin(ring, &i))
		return NULL;
	offset = (off_t)(ring->tables_bytes + (size_t)i * LANE_BYTES);
	if (file_is_still_ours(ring) && file_allocate(ring->fd, offset, LANE_BYTES) == 0 &&
	    lane_empty_first_slot(ring->fd, offset))
		base = file_map(ring->fd, offset, LANE_BYTES,
				(uint8_t *)slots_room(ring) + i * LANE_STRIDE);
	if (!base) {
		atomic_store_explicit(&ring->refused_ns, clock_ns(CLOCK_MONOTONIC_COARSE),
				      memory_order_relaxed);
		atomic_store_explicit(&ring->directory[i].state, NCI_LANE_REFUSED,
				      memory_order_release);
		return NULL;
	}
	lane_init(ring, i, base, offset);
	return &ring->lane[i];
}

void shmring_prepare(struct shmring *ring, uint64_t room, uint32_t lanes)
{
	uint32_t n = atomic_load_explicit(&ring->live->lanes, memory_order_relaxed);
	uint64_t most = (room / LANE_BYTES + n) / ROOM_SHARE;
	struct shmring_lane *lane;

	atomic_store_explicit(&ring->most, most < NCI_MAX_LANES ? (uint32_t)most : NCI_MAX_LANES,
			      memory_order_relaxed);
	for (; n < lanes; n++) {
		lane = lane_make(ring);
		if (!lane)
			return;
		atomic_store_explicit(&lane->out->line->state, NCI_LANE_SPARE,
				      memory_order_release);
	}
}

/* One that is free without a call of the system. */
static struct shmring_lane *lane_at_hand(struct shmring *ring, uint32_t lanes, pid_t tid)
{
	for (uint32_t i = 0; i < lanes; i++)
		if (lane_belongs(ring, i, tid) && lane_adopt(ring, i, tid))
			return &ring->lane[i];
	for (uint32_t i = 0; i < lanes; i++)
		if (lane_claim(ring, i, tid))
			return &ring->lane[i];
	return NULL;
}

static struct shmring_lane *lane_of_the_dead(struct shmring *ring, uint32_t lanes, pid_t tid)
{
	uint32_t probes = lanes < PROBES ? lanes : PROBES;
	uint32_t first = atomic_fetch_add_explicit(&ring->probe, probes, memory_order_relaxed);

	for (uint32_t i = 0; i < probes; i++)
		if (lane_adopt(ring, (first + i) % lanes, tid))
			return &ring->lane[(first + i) % lanes];
	return NULL;
}

struct shmring_lane *shmring_lane_new(struct shmring *ring, pid_t tid)
{
	uint32_t begun = atomic_load_explicit(&ring->live->lanes, memory_order_relaxed);
	uint32_t lanes = begun < NCI_MAX_LANES ? begun : NCI_MAX_LANES;
	struct shmring_lane *lane = lane_at_hand(ring, lanes, tid);

	if (!lane)
		lane = lane_of_the_dead(ring, lanes, tid);
	if (lane)
		return lane;
	lane = lane_make(ring);
	if (lane)
		lane_give(lane->out->line, tid);
	return lane;
}

/* The owner has it again: empty it was, or given up by all. */
static bool slot_regain(struct shmring_lane *lane, uint32_t slot,
			bool (*abandoned)(const struct nci_record *, void *), void *arg)
{
	struct nci_record *rec = shmring_slot(lane->pool, slot);
	uint64_t seen = atomic_load_explicit(shmring_token(rec), memory_order_acquire);

	if (!(seen & NCI_TOKEN_NO_EVENT)) {
		if (!abandoned(rec, arg) ||
		    !atomic_compare_exchange_strong_explicit(shmring_token(rec), &seen,
							     seen | NCI_TOKEN_FREE,
							     memory_order_acq_rel,
							     memory_order_relaxed))
			return false;
		atomic_fetch_add_explicit(&lane->out->line->reclaimed, 1, memory_order_relaxed);
	} else if (!(seen & NCI_TOKEN_FREE)) {	/* out of generations: the next ones begin */
		atomic_store_explicit(shmring_token(rec), seen ^ NCI_TOKEN_NO_EVENT,
				      memory_order_release);
	}
	shmring_put(lane, rec, slot);
	return true;
}

/*
 * Walks SLOW_SLOTS slots from where the last walk ended.  What a walk did not
 * find is made up by refusing: at most SLOW_SLOTS / SLOW_EVERY slots are looked
 * at per call in the long run, and none is refused while many are empty.
 */
struct nci_record *shmring_take_slowly(struct shmring_lane *lane, uint64_t *token,
				       bool (*abandoned)(const struct nci_record *, void *),
				       void *arg)
{
	uint32_t found = 0;

	if (lane->out->refuse) {
		lane->out->refuse--;
	} else {
		lane->free = SHMRING_NO_SLOT;	/* a list in disorder has ended early */
		for (uint32_t i = 0; i < SLOW_SLOTS; i++, lane->out->look++)
			found += slot_regain(lane, lane->out->look % SHMRING_SLOTS, abandoned, arg);
		lane->out->refuse = found < SLOW_EVERY ? SLOW_EVERY - found : 0;
	}
	if (found)
		return shmring_take(lane, token);
	shmring_count(&lane->out->line->pool_full);
	return NULL;
}

/* The slot may get a new event meanwhile; whoever copies finds out by its token. */
__attribute__((no_sanitize("thread")))
static void slot_copy(struct nci_slot *copy, const struct nci_record *rec)
{
	*copy = *(const struct nci_slot *)rec;
}

bool shmring_close_elsewhere(struct shmring_lane *lane, struct nci_record *rec,
			     uint64_t token, uint64_t stop)
{
	struct nci_slot copy;

	slot_copy(&copy, rec);
	if (!shmring_empty_elsewhere(rec, token))
		return false;
	((struct nci_record *)&copy)->token = token;
	shmring_publish(lane, (const struct nci_record *)&copy, stop);
	return true;
}
