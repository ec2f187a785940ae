/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The argument block of a launch is ncclDevKernelArgs, then batches of works: the
 * first of each channel in the order of the channels, those that follow it
 * nextJump further on, 0 after the last.  One that nextExtends says is continued
 * is one batch with its follower.  Each channel counts its works, and has rings
 * of stamps, one for starts and one for ends, where work number n, counted from
 * 1, has slot n modulo their length.  NCCL polls for the number, so the time
 * goes before it.
 */
#include "kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "shared.h"

static const uint32_t work_bytes[] = {
	[ncclDevWorkTypeP2p] = SIZE_ncclDevWorkP2p,
	[ncclDevWorkTypeColl] = SIZE_ncclDevWorkColl,
	[ncclDevWorkTypeCollReg] = SIZE_ncclDevWorkCollReg,
};

/* Works of further types (AllGatherV's) are counted like all, and never stamped. */
#define WORK_TYPES	(sizeof(work_bytes) / sizeof(*work_bytes))

#define SLOT_BYTES	(SIZE_ncclDevProfiler / LEN_ncclDevProfiler_data)

static uint64_t gpu_clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static bool is_watched(const char *work, unsigned int type)
{
	if (type == ncclDevWorkTypeP2p)
		return BITS(work, ncclDevWorkP2p, profilerEnabled);
	return BITS(work, ncclDevWorkColl, profilerEnabled);
}

/* Works lie behind the arguments, or in a buffer that wraps. */
static const char *work_at(const char *args, uint32_t offset)
{
	if (MEMBER(args, ncclDevKernelArgs, workStorageType, uint8_t) == ncclDevWorkStorageTypeArgs)
		return args + offset;
	return MEMBER(args, ncclDevKernelArgs, workBuf, char *) +
	       (offset & MEMBER(args, ncclDevKernelArgs, workMask, uint32_t));
}

static void add_works(struct batch *b, const char *args, const char *entry)
{
	unsigned int type = BITS(entry, ncclDevWorkBatch, workType);
	uint32_t base = MEMBER(entry, ncclDevWorkBatch, offsetBase, uint32_t);
	uint64_t set = MEMBER(entry, ncclDevWorkBatch, offsetBitset, uint64_t);

	for (unsigned int i = 0; i < 64; i++) {
		if (!(set >> i & 1))
			continue;
		if (type < WORK_TYPES &&
		    is_watched(work_at(args, base + i * work_bytes[type]), type))
			b->watched |= UINT64_C(1) << b->works;
		b->works++;
	}
}

static struct batch *add_batch(struct kernel *k, uint8_t channel, uint8_t part)
{
	struct batch *b = &k->batch[k->batches++];

	if (k->batches > KERNEL_BATCHES) {
		fprintf(stderr, "fake GPU: a kernel of more than %d batches\n", KERNEL_BATCHES);
		abort();
	}
	*b = (struct batch){ .channel = channel, .part = part };
	if (part + 1U > k->parts)
		k->parts = part + 1U;
	return b;
}

static void add_channel(struct kernel *k, uint8_t channel, const char *args, const char *entry)
{
	struct batch *b = add_batch(k, channel, 0);
	uint8_t part = 0;

	for (;;) {
		unsigned int jump = BITS(entry, ncclDevWorkBatch, nextJump);

		add_works(b, args, entry);
		if (!jump)
			return;
		if (!BITS(entry, ncclDevWorkBatch, nextExtends))
			b = add_batch(k, channel, ++part);
		entry += (size_t)jump * SIZE_ncclDevWorkBatch;
	}
}

struct kernel *kernel_new(const char *args)
{
	uint64_t channels = MEMBER(args, ncclDevKernelArgs, channelMask, uint64_t);
	const char *entry = args + SIZE_ncclDevKernelArgs;
	struct kernel *k = malloc(sizeof(*k));

	if (!k)
		abort();
	k->next = NULL;
	k->comm = MEMBER(args, ncclDevKernelArgs, comm, char *);
	k->parts = k->batches = 0;
	for (uint8_t c = 0; c < LEN_ncclKernelCommAndChannels_channels; c++) {
		if (!(channels >> c & 1))
			continue;
		add_channel(k, c, args, entry);
		entry += SIZE_ncclDevWorkBatch;
	}
	return k;
}

bool kernel_aborted(const struct kernel *k)
{
	uint32_t *flag = MEMBER(k->comm, ncclKernelComm, abortFlag, uint32_t *);

	return flag && __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

static uint64_t *work_counter(const struct kernel *k, unsigned int channel)
{
	char *channels = MEMBER(k->comm, ncclKernelComm, channels, char *);

	return &MEMBER(channels + (size_t)channel * SIZE_ncclDevChannel, ncclDevChannel,
		       workCounter, uint64_t);
}

static void stamp(const struct kernel *k, const struct batch *b, char *rings)
{
	char *ring = rings + (size_t)b->channel * SIZE_ncclDevProfiler;
	uint64_t number = *work_counter(k, b->channel);
	uint64_t now_ns = gpu_clock_ns();

	for (unsigned int i = 0; i < b->works; i++) {
		char *slot = ring + ++number % LEN_ncclDevProfiler_data * SLOT_BYTES;

		if (!(b->watched >> i & 1))
			continue;
		__atomic_store_n(&MEMBER(slot, ncclDevProfiler, timestamp, uint64_t), now_ns,
				 __ATOMIC_RELAXED);
		__atomic_store_n(&MEMBER(slot, ncclDevProfiler, counter, uint64_t), number,
				 __ATOMIC_RELEASE);
	}
}

void kernel_begin(const struct kernel *k, unsigned int part)
{
	char *started = MEMBER(k->comm, ncclKernelComm, workStarted, char *);

	for (unsigned int i = 0; i < k->batches; i++)
		if (k->batch[i].part == part)
			stamp(k, &k->batch[i], started);
}

void kernel_end(const struct kernel *k, unsigned int part)
{
	char *completed = MEMBER(k->comm, ncclKernelComm, workCompleted, char *);

	for (unsigned int i = 0; i < k->batches; i++) {
		const struct batch *b = &k->batch[i];

		if (b->part != part)
			continue;
		stamp(k, b, completed);
		*work_counter(k, b->channel) += b->works;
	}
}
