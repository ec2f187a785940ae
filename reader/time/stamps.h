/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_TIME_STAMPS_H
#define READER_TIME_STAMPS_H

/*
 * The judgement which of the GPU's stamps of KernelCh are true.
 *
 * NCCL finds a kernel's stamps by counting: the GPU counts the works of a channel
 * and writes their stamps into 64 slots, the host counts too and looks into the slot
 * of its own count.  When it counts less than the GPU (drift: for the rest of the
 * communicator's life), it finds those of an earlier work; when it comes more than
 * 64 works late (overrun), those of a later one.  Such stamps look good.  What is
 * certain all the same:
 *
 *   - a kernel does not run before it was launched (gpuclock.h);
 *   - kernels of one communicator run one after another, so what two of them are
 *     told to have done at the same time is true of one at most;
 *   - in each of a channel's two queues (receives, and all else) stamps come in the
 *     order of execution, and never twice;
 *   - a later work's stamp can only be told once 64 later works were posted: what ended
 *     before that is its own;
 *   - what a queue told in order before one that is its own was its own too;
 *   - a host that comes too late catches up, and finds works' own stamps again: then
 *     its queue runs backwards, and what it told since the last that is sure may be untrue.
 *
 * So where 64 later works were posted already, as by a host that is far ahead of its
 * GPU, stamps wait for one of which it is known, as when the host waits for its GPU.  If
 * none comes, only those are believed whose kernels the host saw run as long as they ran
 * and as promptly as any: how long who looks stays late nobody can say, but such a thread
 * finds the end of a kernel with its beginning, unless it is away between the two.
 *
 * A channel that lied is not believed before it has been sane for a while; one whose
 * counters may have drifted not before it has shown that it tells its own kernels'
 * times: of kernels that were launched when all that it had told of since had stopped.
 *
 * A pair is judged twice: by itself and by its place in its queue when it is read
 * (stamps_read), and by all that is known of its operation when that is complete and
 * its pairs are settled (stamps_settle, stamps_judge).
 */

#include "reader/base/model.h"
#include "reader/time/gpuclock.h"

#define STAMPS_CHANNELS	64	/* NCCL's own limit */
#define STAMPS_SANE	32	/* stamps in a row after a lie, and */
#define STAMPS_PROOFS	8	/* proofs among these after what may be drift */

#define STAMPS_KERNELS	16
#define STAMPS_POSTED	1024
#define STAMPS_LIES	4

/* Places in a queue, the first being 1. */
struct stamps_range {
	uint64_t from, to;
};

/* Told last in one queue of a channel. */
struct stamps_queue {
	uint64_t start, stop;
	uint64_t group;
	uint64_t told;		/* stamps told so far, numbered from 1 */
	uint64_t sure;		/* stamps up to here are no later work's */
	struct stamps_range lies[STAMPS_LIES];	/* stamps that were, the last of them */
	uint32_t nlies;
};

struct stamps_channel {
	struct stamps_queue queue[2];	/* receives; all else */
	uint64_t newest_stop;		/* the newest of both queues */
	uint64_t newest_nth;		/* place of the operation it was told to be of */
	uint64_t believed_nth;		/* operations posted up to here are believed all the same */
	uint64_t suspect_nth;		/* works posted when trust was lost last */
	uint64_t proof_group;		/* gave the last proof: one launch gives one */
	uint32_t refused;		/* running backwards, in a row */
	uint16_t sane_left, proofs_left; /* number of them until it is believed again */
};

struct stamps_kernel {
	uint64_t group;			/* 0: unused */
	uint64_t start, stop;		/* over its channels, as far as told */
	bool doubtful;			/* another kernel was told to run meanwhile */
};

/* State of one communicator of one process.  Zeroed is new. */
struct stamps {
	uint64_t posted;		/* works of a channel posted so far, in 1/64 */
	uint64_t posted_group;		/* Group event of the last of them */
	uint64_t newest_ns;		/* time when it was posted */
	bool immune;			/* the drift that was suspected did no harm */
	bool drifted;			/* the drift did harm, after all */
	bool lied;			/* some channel has lied or may have: each is looked at */
	uint32_t nkernels;
	uint64_t greatest;		/* group of any of them so far */
	uint32_t channels;		/* seen in use */
	uint32_t latest;		/* the kernel that stopped last ... */
	uint64_t others_stop;		/* ... and when the last of the others did */
	struct stamps_kernel kernel[STAMPS_KERNELS];
	/* Members that are used in part, if at all, come last. */
	struct stamps_channel channel[STAMPS_CHANNELS];
	uint64_t posted_ns[STAMPS_POSTED];	/* when every 16th was */
};

/*
 * A kernel's stamps on one channel, and the callbacks that brought them; behind these, what
 * stamps_read() made of it.
 */
struct stamps_pair {
	uint16_t channel;
	uint8_t fault;			/* enum stamp_fault */
	uint8_t queue;			/* queue that told it */
	uint64_t start, stop;		/* ns of the GPU's clock */
	uint64_t start_ticks, stop_ticks;
	uint64_t place;			/* number of the stamp in its queue; 0: refused */
	uint64_t after, after_nth;	/* its channel's newest before it: stop and place */
};

/* Read, in the order of the records.  `group` and `nth` are those of struct stamps_told. */
void stamps_read(struct stamps *s, struct stamps_pair *pair, bool is_receive, uint64_t group,
		 uint64_t nth);

/* A kernel on one channel as it is judged. */
struct stamps_told {
	struct gpuclock_sight sight;
	struct stamps_pair pair;
	bool is_p2p, is_receive;
	bool alone;		/* its kernel ran nothing else */
	uint64_t group;		/* Group event of its kernel; 0: not known */
	uint64_t nth;		/* number that stamps_post() gave; 0: not known */
};

/*
 * Its operation is complete: whether it is known that these are, or are not, a later
 * work's.  False: ask again, for the next ones of its queue may tell, or what was posted
 * meanwhile, unless all that had been told when these were is read.  `clock` may be NULL.
 */
bool stamps_settle(struct stamps *s, const struct gpuclock *clock,
		   const struct stamps_told *told, bool all_read);

/*
 * STAMP_GOOD, or why not.  What cannot be settled is not good.  `clock` may be NULL.
 */
enum stamp_fault stamps_judge(struct stamps *s, struct gpuclock *clock,
			      const struct stamps_told *told);

/*
 * All channels of an operation, as far as they are alike: nearly all are.  Each one is added, and
 * then all are judged at once, in a fraction of the time that each would take.
 */
struct stamps_whole {
	uint64_t first_start, last_start, first_stop, last_stop;	/* ns of the GPU's clock */
	/* the stamps that callbacks came soonest after, and how soon */
	uint64_t tight_start, tight_stop;
	int64_t start_delay, stop_delay;
	uint64_t last_seen;		/* the latest callback */
	uint32_t channels;
	bool strange;			/* one of them needs to be looked at by itself */
};

static const struct stamps_whole STAMPS_NONE = {
	.first_start = UINT64_MAX, .first_stop = UINT64_MAX,
	.start_delay = INT64_MAX, .stop_delay = INT64_MAX,
};

/* The channel is not trusted then, or what its queue told then was not true. */
bool stamps_lied_near(const struct stamps *s, const struct stamps_pair *pair, uint64_t nth);

/* The times are those of its callbacks, ns of the clock that the GPU's is compared with. */
static inline void stamps_whole_add(struct stamps_whole *w, const struct stamps *s,
				    const struct stamps_pair *pair, uint64_t nth,
				    uint64_t start_ns, uint64_t stop_ns)
{
	int64_t start_delay = (int64_t)(start_ns - pair->start);
	int64_t stop_delay = (int64_t)(stop_ns - pair->stop);

	if (!pair->place || !start_ns || !stop_ns ||
	    (s->lied && stamps_lied_near(s, pair, nth)))
		w->strange = true;
	if (start_delay < w->start_delay) {
		w->start_delay = start_delay;
		w->tight_start = pair->start;
	}
	if (stop_delay < w->stop_delay) {
		w->stop_delay = stop_delay;
		w->tight_stop = pair->stop;
	}
	if (pair->start < w->first_start)
		w->first_start = pair->start;
	if (pair->start > w->last_start)
		w->last_start = pair->start;
	if (pair->stop < w->first_stop)
		w->first_stop = pair->stop;
	if (pair->stop > w->last_stop)
		w->last_stop = pair->stop;
	if (stop_ns > w->last_seen)
		w->last_seen = stop_ns;
	if (pair->channel >= w->channels)
		w->channels = pair->channel + 1u;
}

/*
 * As stamps_settle(), of all.  `told` has what all channels have in common.  True: each may be
 * believed (stamps_believe()).  False: each must be asked about.
 */
bool stamps_settle_whole(const struct stamps *s, const struct gpuclock *clock,
			 const struct stamps_whole *w, const struct stamps_told *told,
			 bool all_read);

static inline void stamps_believe(struct stamps *s, const struct stamps_pair *pair)
{
	struct stamps_queue *q;

	if (!pair->place)
		return;
	q = &s->channel[pair->channel].queue[pair->queue];
	if (pair->place > q->sure)
		q->sure = pair->place;
}

/* False: it may be a later work's. */
static inline bool stamps_are_sure(const struct stamps *s, const struct stamps_pair *pair)
{
	return !pair->place ||
	       pair->place <= s->channel[pair->channel].queue[pair->queue].sure;
}

/*
 * All are sure.  True: all are STAMP_GOOD.  False: each is to be judged by itself
 * (stamps_judge()).
 */
bool stamps_judge_whole(struct stamps *s, struct gpuclock *clock, const struct stamps_whole *w,
			const struct stamps_told *told);

/*
 * An operation was posted (CLOCK_MONOTONIC) on so many channels; 0: not known.
 * Returns its place, by which its stamps are compared with what was posted since.
 */
uint64_t stamps_post(struct stamps *s, uint64_t posted_ns, bool is_p2p, uint32_t channels,
		     uint64_t group);

/* It is not known what was posted meanwhile. */
void stamps_gap(struct stamps *s);

/*
 * A graph was replayed after something that was no replay, or the other way round: host and
 * GPU may count them in another order.  No channel is believed until it has shown that it
 * still tells its own kernels' times.
 */
void stamps_suspect(struct stamps *s);

/* Another kernel was told to have run at the same time as this one. */
bool stamps_doubtful(const struct stamps *s, uint64_t group);

/* "zero" and so on; NULL for STAMP_GOOD. */
const char *stamps_fault_text(enum stamp_fault fault);

#endif
