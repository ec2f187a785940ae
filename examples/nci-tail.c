/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Proof that nci-abi(7) suffices: a reader of one segment, written from that
 * page alone.  It prints the records as they come and counts what it missed.
 */
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static _Alignas(64) struct {
	uint64_t magic;
	uint16_t major, minor;
	uint32_t ready;
	uint64_t live_at, comms_at, names_at;
	uint32_t lanes, comms, names;
	uint16_t live_bytes, lane_bytes, comm_bytes, name_bytes;
	uint64_t start_time, instance, boot_id[2];	/* a hole lies before */
	uint32_t pid, uid, nonce, clock;
	uint64_t anchor_ticks, anchor_ns;
} head;
static _Alignas(64) struct { uint32_t lanes, rest[15]; } live;
static _Alignas(64) struct name { uint32_t bytes; char text[60]; } name;
static const struct name unnamed = { 2, "-" };
static _Alignas(64) struct {
	uint64_t begin, end, ring, refused[2];
	uint32_t tid, state, lines, rest[3];
} lane;
static _Alignas(64) union line {
	struct { uint8_t type, form; uint16_t comm; uint32_t serial; };
	struct { uint64_t word, token, parent, start, stop; };
	char bytes[64];
} copied[1024];
static const char *const events[256] = {
	[1] = "Group", "Coll", "P2p", "ProxyOp", "ProxyStep", "ProxyCtrl", "KernelCh",
	"NetPlugin", "GroupApi", "CollApi", "P2pApi", "KernelLaunch", "CeColl", "CeSync",
	"CeBatch", [32] = "ProxySums",
};
static const uint8_t func_at[256] = { [2] = 56, 56, [10] = 56, 56, [13] = 56 };
static const uint8_t rank_at[256] = { [2] = 68, 52, 44, [13] = 68, 52 };
static struct { uint64_t next; uint32_t serial, torn; } *mine;	/* one for each lane */
static uint64_t records, missed, unknown;
static double rate = 1;			/* ns of a tick */
static const char *file;
static int fd;

static void check(int good, const char *why)
{
	if (!good)
		errx(1, "%s: %s", file, why);
}

/* A copy of whole words, complete before what is read next. */
static void copy(void *to, size_t size, uint64_t at)
{
	check(at % 64 == 0 && pread(fd, to, size, at) == (ssize_t)size,
	      "too short for a segment, or an offset in it is wrong");
	atomic_thread_fence(memory_order_acquire);	/* R2 */
}

/* The lock says that the process lives; without it /proc has the last word. */
static int is_alive(void)
{
	struct flock lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	char text[1024] = "", *field;
	int stat;

	if (!fcntl(fd, F_GETLK, &lock) && lock.l_type != F_UNLCK)
		return 1;
	snprintf(text, sizeof(text), "/proc/%" PRIu32 "/stat", head.pid);
	stat = open(text, O_RDONLY | O_CLOEXEC);
	if (stat < 0 || read(stat, text, sizeof(text) - 1) < 0 || close(stat))
		return 0;
	field = strrchr(text, ')');	/* the end of field 2 */
	if (!field || field[2] == 'Z')
		return 0;		/* dead, though nobody has waited for it */
	for (int i = 2; field && i < 22; i++)
		field = strchr(field + 1, ' ');
	return field && strtoull(field, NULL, 10) == head.start_time;
}

/* The anchor is one pair of both clocks, now is the other. */
static void pair_clocks(void)
{
	struct timespec now;
	uint64_t ticks = 0;

	if (head.clock == 3)		/* ticks are ns already */
		return;
#ifdef __x86_64__
	ticks = __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(ticks));
#endif
	clock_gettime(CLOCK_MONOTONIC, &now);
	check(ticks > head.anchor_ticks, "its clock is not of this machine");
	rate = (now.tv_sec * 1000000000 + now.tv_nsec - head.anchor_ns) /
	       (double)(ticks - head.anchor_ticks);
}

static void print_record(uint32_t i, const union line *r)
{
	int64_t begin = (int64_t)(r->start - head.anchor_ticks) * rate;
	int64_t took = (int64_t)(r->stop - r->start) * rate;
	int32_t rank = -1;		/* not known, as in records */
	uint16_t func = 0;

	if (func_at[r->type])
		memcpy(&func, r->bytes + func_at[r->type], sizeof(func));
	if (rank_at[r->type])
		memcpy(&rank, r[rank_at[r->type] / 64].bytes + rank_at[r->type] % 64, 4);
	name.bytes = 0;
	if (func && func <= head.names)
		copy(&name, 64, head.names_at + (func - 1ULL) * head.name_bytes);
	if (name.bytes < 2 || name.bytes > 61)
		name = unnamed;
	printf("%" PRIu32 "/%" PRIu32 " %s %.*s rank %" PRId32 " begin %" PRIu64
	       " took %" PRId64 "\n", i, lane.tid, events[r->type],
	       (int)name.bytes - 1, name.text, rank, head.anchor_ns + begin, took);
}

/* Walks over one record, or one line that is none's; 0 if the copy cuts it. */
static uint32_t take(uint32_t i, const union line *r, uint64_t left)
{
	uint32_t lines = r->form & 0xf;

	if (lane.begin - mine[i].next > lane.lines)
		return mine[i].torn = 1;
	if (r->type == 0xfe || (r->type == 0xff && mine[i].torn))
		return 1;
	check(r->type && r->type != 0xff && (lines == 1 || lines == 2) &&
	      rank_at[r->type] < lines * 64, "a record is none");
	if (lines > left)
		return 0;
	missed += (uint32_t)(r->serial - mine[i].serial - 1);
	mine[i].serial = r->serial;
	mine[i].torn = 0;
	records++;
	if (events[r->type])
		print_record(i, r);
	else
		unknown++;
	return lines;
}

static int read_lane(uint32_t i)
{
	uint64_t at = head.live_at + head.live_bytes + (uint64_t)i * head.lane_bytes;
	uint64_t to, from, n, done, took;

	copy(&lane, sizeof(lane), at);
	if (lane.state != 2)
		return 0;
	copy(&lane, sizeof(lane), at);				/* R1 */
	to = lane.begin < lane.end ? lane.begin : lane.end;
	check(lane.lines && to >= mine[i].next, "a lane is none, or goes back");
	if (lane.begin - mine[i].next > lane.lines) {
		mine[i].next = lane.begin - lane.lines;
		mine[i].torn = 1;
	}
	if (mine[i].next >= to)
		return 0;
	from = mine[i].next % lane.lines;
	n = to - mine[i].next < 1024 ? to - mine[i].next : 1024;
	n = n < lane.lines - from ? n : lane.lines - from;	/* none wraps */
	copy(copied, n * 64, lane.ring + from * 64);
	copy(&lane, sizeof(lane), at);				/* R3 */
	check(lane.begin >= to, "a lane goes back");
	for (done = 0; done < n; done += took, mine[i].next += took) {
		took = take(i, &copied[done], n - done);
		if (!took)
			break;
	}
	check(done > 0, "a record is none");
	return 1;
}

int main(int argc, char **argv)
{
	int alive = 1, news = 1;

	if (argc != 2)
		errx(2, "usage: nci-tail FILE");
	file = argv[1];
	fd = open(file, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err(1, "%s", file);
	copy(&head, 64, 0);
	check(head.magic == 0x0a70736e696c6363 && head.ready == 1,
	      "not a segment of ncclinsp, or not yet");
	copy(&head, sizeof(head), 0);
	check(head.major == 2, "a layout of another major version than 2");
	check(head.live_bytes >= 128 && head.lane_bytes >= 64 && head.name_bytes >= 64,
	      "its entries are too short");
	mine = calloc(head.lanes, sizeof(*mine));
	check(mine != NULL, "too many lanes");
	while (alive || news) {
		alive = is_alive();
		news = 0;
		pair_clocks();
		copy(&live, sizeof(live), head.live_at);
		for (uint32_t i = 0; i < live.lanes && i < head.lanes; i++)
			news |= read_lane(i);
		fflush(stdout);
		if (alive && !news)
			usleep(10000);
	}
	printf("%" PRIu64 " records, %" PRIu64 " of unknown events, %" PRIu64 " missed\n",
	       records, unknown, missed);
	return 0;
}
