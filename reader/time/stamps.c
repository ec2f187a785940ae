/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL finds stamps by counting and can miscount: each pair is checked before it is
 * believed.
 */
#include "reader/time/stamps.h"

#include <string.h>

#include "reader/time/timeline.h"

#define SLOP_NS		4096	/* stamps of a batch's members differ by a few clock steps */
#define OVERLAP_NS	1024	/* a tick of the slowest clock: kernels that only touch */
#define RESYNC		8	/* backwards in a row: it was the reference that was wrong */
#define RING_SLOTS	64
#define RING_WORKS	48	/* works, of NCCL's 64: posting is told a little after it is done */
#define PERIOD_NS	2000	/* no works follow each other faster */
#define WORK		64	/* 1/64 is the unit of stamps.posted */
#define ROUNDED_NS	16	/* more than a moment is rounded by */
#define EVERY		16	/* works have their time of posting kept */
#define NEAR_NS		1000000	/* channels of a kernel start, and stop, nearly together */

/* ---- the order of a queue ------------------------------------------------ */

static unsigned int channel_queue(const struct stamps_channel *ch, const struct stamps_pair *pair,
				  bool is_receive, uint64_t group)
{
	unsigned int i;

	if (group)
		return !is_receive;
	/* the one that it is closest to, which finds a place for it if there is any */
	i = ch->queue[1].start > ch->queue[0].start;
	return pair->start + SLOP_NS < ch->queue[i].start ? !i : i;
}

static enum stamp_fault check_pair(const struct stamps_pair *pair)
{
	if (!pair->start || !pair->stop)
		return STAMP_ZERO;
	return timeline_stamps_sane(pair->start, pair->stop) ? STAMP_GOOD : STAMP_BACKWARDS;
}

static bool pair_is_backwards(const struct stamps_queue *q, const struct stamps_pair *pair)
{
	return pair->start + SLOP_NS < q->start || pair->stop + SLOP_NS < q->stop;
}

/* Marks what was not sure as a later work's.  True: there was something. */
static bool find_lies(struct stamps_queue *q)
{
	if (q->sure >= q->told)
		return false;
	q->lies[q->nlies++ % STAMPS_LIES] = (struct stamps_range){ q->sure + 1, q->told };
	q->sure = q->told;
	return true;
}

/* The stamps that the channel told before are no measure any more. */
static void forget_order(struct stamps_channel *ch, struct stamps_queue *q)
{
	struct stamps_queue *other = &ch->queue[q == ch->queue];

	other->start = other->stop = other->group = 0;
	q->start = q->stop = q->group = 0;
	ch->newest_stop = 0;
	ch->refused = 0;
}

static void note_order(struct stamps_channel *ch, struct stamps_queue *q,
		       const struct stamps_pair *pair, uint64_t group, uint64_t nth)
{
	ch->refused = 0;
	q->start = pair->start;
	q->stop = pair->stop;
	q->group = group;
	if (q->stop > ch->newest_stop) {
		ch->newest_stop = q->stop;
		ch->newest_nth = nth;
	}
}

static enum stamp_fault check_order(struct stamps_channel *ch, struct stamps_queue *q,
				    const struct stamps_pair *pair, uint64_t group, uint64_t nth)
{
	bool lies;

	if (pair_is_backwards(q, pair)) {
		lies = find_lies(q);
		if (!lies && ++ch->refused < RESYNC)
			return STAMP_BACKWARDS;
		forget_order(ch, q);
		note_order(ch, q, pair, group, nth);
		return lies ? STAMP_BACKWARDS : STAMP_GOOD;
	}
	if (pair->start == q->start && group && q->group && group != q->group)
		return STAMP_REPEATED;
	return STAMP_GOOD;
}

void stamps_read(struct stamps *s, struct stamps_pair *pair, bool is_receive, uint64_t group,
		 uint64_t nth)
{
	struct stamps_channel *ch;
	struct stamps_queue *q;

	pair->queue = 0;
	pair->place = pair->after = pair->after_nth = 0;
	pair->fault = (uint8_t)check_pair(pair);
	if (pair->fault != STAMP_GOOD || pair->channel >= STAMPS_CHANNELS)
		return;
	ch = &s->channel[pair->channel];
	pair->queue = (uint8_t)channel_queue(ch, pair, is_receive, group);
	q = &ch->queue[pair->queue];
	pair->fault = (uint8_t)check_order(ch, q, pair, group, nth);
	if (pair->fault != STAMP_GOOD) {
		s->lied = true;
		return;
	}
	pair->place = ++q->told;
	pair->after = ch->newest_stop;
	pair->after_nth = ch->newest_nth;
	note_order(ch, q, pair, group, nth);
}

/* ---- one kernel after another -------------------------------------------- */

/* Finds the kernel that stopped last, and when all others had stopped. */
static void kernels_look(struct stamps *s)
{
	s->latest = 0;
	for (uint32_t i = 1; i < STAMPS_KERNELS; i++)
		if (s->kernel[i].stop > s->kernel[s->latest].stop)
			s->latest = i;
	s->others_stop = 0;
	for (uint32_t i = 0; i < STAMPS_KERNELS; i++)
		if (i != s->latest && s->kernel[i].stop > s->others_stop)
			s->others_stop = s->kernel[i].stop;
}

static struct stamps_kernel *kernel_of(struct stamps *s, uint64_t group)
{
	struct stamps_kernel *k;
	bool counts;

	/* Group events that take turns in a handle have ever greater tokens. */
	for (k = s->kernel; group <= s->greatest && k < s->kernel + STAMPS_KERNELS; k++)
		if (k->group == group)
			return k;
	if (group > s->greatest)
		s->greatest = group;
	k = &s->kernel[s->nkernels++ % STAMPS_KERNELS];
	counts = k->stop >= s->others_stop;
	*k = (struct stamps_kernel){ .group = group, .start = UINT64_MAX };
	if (counts)
		kernels_look(s);
	return k;
}

static bool kernel_overlaps(const struct stamps_kernel *k, const struct gpuclock_sight *t)
{
	return t->gpu_start_ns + OVERLAP_NS < k->stop && k->start + OVERLAP_NS < t->gpu_stop_ns;
}

/* Did it begin after all other kernels had stopped? */
static bool kernel_is_apart(const struct stamps *s, const struct stamps_kernel *own,
			    uint64_t start)
{
	const struct stamps_kernel *latest = &s->kernel[s->latest];

	return start + OVERLAP_NS >= (own == latest ? s->others_stop : latest->stop);
}

static void kernel_note(struct stamps *s, struct stamps_kernel *k, uint64_t start, uint64_t stop)
{
	const struct stamps_kernel *latest = &s->kernel[s->latest];

	if (start < k->start)
		k->start = start;
	if (stop <= k->stop)
		return;
	k->stop = stop;
	if (k == latest)
		return;
	if (stop <= latest->stop) {
		s->others_stop = stop > s->others_stop ? stop : s->others_stop;
		return;
	}
	s->others_stop = latest->stop;
	s->latest = (uint32_t)(k - s->kernel);
}

/*
 * Two kernels that were told to run at once are both doubtful: nobody knows which was lied
 * about.  One that is not doubtful is noted.
 */
static enum stamp_fault check_kernel(struct stamps *s, const struct stamps_told *told)
{
	struct stamps_kernel *own;
	bool doubtful = false;

	if (!told->group)
		return STAMP_GOOD;
	own = kernel_of(s, told->group);
	for (uint32_t i = 0; !kernel_is_apart(s, own, told->sight.gpu_start_ns) &&
			     i < STAMPS_KERNELS; i++) {
		struct stamps_kernel *k = &s->kernel[i];

		if (!k->group || k == own || !kernel_overlaps(k, &told->sight))
			continue;
		k->doubtful = doubtful = true;
	}
	/* One collective's channels are one grid: they do not run one after another. */
	if (told->alone && !told->is_p2p && own->stop && !kernel_overlaps(own, &told->sight) &&
	    (told->sight.gpu_start_ns > own->stop + SLOP_NS ||
	     told->sight.gpu_stop_ns + SLOP_NS < own->start))
		doubtful = true;
	own->doubtful |= doubtful;
	if (own->doubtful)
		return STAMP_REPEATED;
	kernel_note(s, own, told->sight.gpu_start_ns, told->sight.gpu_stop_ns);
	return STAMP_GOOD;
}

bool stamps_doubtful(const struct stamps *s, uint64_t group)
{
	for (uint32_t i = 0; group && i < STAMPS_KERNELS; i++)
		if (s->kernel[i].group == group)
			return s->kernel[i].doubtful;
	return false;
}

/* ---- later works --------------------------------------------------------- */

uint64_t stamps_post(struct stamps *s, uint64_t posted_ns, bool is_p2p, uint32_t channels,
		     uint64_t group)
{
	uint64_t before = s->posted / (WORK * EVERY);
	uint32_t works = WORK;

	/*
	 * A send and a receive share their works and have their own few channels, over
	 * which those of one launch are spread; its first is counted in full.
	 */
	if (is_p2p && group && group == s->posted_group && channels && s->channels > channels)
		works = WORK * channels / s->channels / 2;
	s->posted_group = group;
	s->newest_ns = posted_ns;
	s->posted += works ? works : 1;
	if (s->posted / (WORK * EVERY) != before)
		s->posted_ns[s->posted / (WORK * EVERY) % STAMPS_POSTED] = posted_ns;
	return s->posted;
}

void stamps_gap(struct stamps *s)
{
	for (int i = 0; i < RING_SLOTS / EVERY; i++) {
		s->posted += WORK * EVERY;
		s->posted_ns[s->posted / (WORK * EVERY) % STAMPS_POSTED] = 0;
	}
}

/* Were so many works posted after it before its stamps were taken? */
static bool ring_went_round(const struct stamps *s, const struct stamps_told *told,
			    uint64_t latest_ns)
{
	uint64_t later = (told->nth / WORK + RING_WORKS) / EVERY;
	uint64_t newest = s->posted / (WORK * EVERY);

	return newest - later >= STAMPS_POSTED || s->posted_ns[later % STAMPS_POSTED] <= latest_ns;
}

static bool may_be_later(const struct stamps *s, const struct gpuclock *clock,
			 const struct stamps_told *told, bool all_read)
{
	uint64_t latest = told->sight.stop_ns, launch = told->sight.launch_ns;

	bool ahead = s->posted / WORK >= told->nth / WORK + RING_WORKS;

	if (!told->nth || (!ahead && all_read))
		return false;
	if (clock)
		gpuclock_map(clock, told->sight.gpu_stop_ns, NULL, &latest);
	if (launch && latest < launch + RING_WORKS * PERIOD_NS)
		return false;
	if (!ahead)
		return latest >= s->newest_ns;
	return ring_went_round(s, told, latest);
}

/* Stamps told before the oldest lies that are remembered count as lies: nobody knows. */
static bool queue_has_lied(const struct stamps_queue *q, uint64_t place)
{
	for (uint32_t i = 0; i < STAMPS_LIES && i < q->nlies; i++)
		if (place >= q->lies[i].from && place <= q->lies[i].to)
			return true;
	return q->nlies > STAMPS_LIES && place < q->lies[q->nlies % STAMPS_LIES].from;
}

bool stamps_settle(struct stamps *s, const struct gpuclock *clock,
		   const struct stamps_told *told, bool all_read)
{
	struct stamps_queue *q;

	if (!told->pair.place || told->pair.channel >= STAMPS_CHANNELS)
		return true;
	q = &s->channel[told->pair.channel].queue[told->pair.queue];
	if (told->pair.place <= q->sure)
		return true;
	if (may_be_later(s, clock, told, all_read))
		return false;
	q->sure = told->pair.place;
	return true;
}

/* The host saw it run for as long as it ran, and no later than it sees others. */
static bool told_is_prompt(const struct gpuclock *clock, const struct stamps_told *told)
{
	uint64_t hi, ran = told->sight.gpu_stop_ns - told->sight.gpu_start_ns;

	return clock && gpuclock_is_sure(clock) && gpuclock_watched(&told->sight) &&
	       gpuclock_map(clock, told->sight.gpu_stop_ns, NULL, &hi) &&
	       told->sight.stop_ns <= hi + ran / 4;
}

static enum stamp_fault check_overrun(struct stamps *s, const struct gpuclock *clock,
				      const struct stamps_told *told)
{
	const struct stamps_queue *q = &s->channel[told->pair.channel].queue[told->pair.queue];

	if (!told->pair.place)
		return STAMP_GOOD;
	if (queue_has_lied(q, told->pair.place))
		return STAMP_OVERRUN;
	if (stamps_settle(s, clock, told, true) ||
	    (q->told > told->pair.place && told_is_prompt(clock, told)))
		return STAMP_GOOD;
	return STAMP_DISTRUSTED;
}

/* ---- trust --------------------------------------------------------------- */

static void channel_distrust(struct stamps *s, struct stamps_channel *ch, enum stamp_fault fault)
{
	ch->sane_left = STAMPS_SANE;
	s->lied = true;
	if (fault != STAMP_REPEATED && fault != STAMP_DRIFTED)
		return;
	ch->proofs_left = STAMPS_PROOFS;
	ch->suspect_nth = s->posted;
	ch->believed_nth = 0;
	s->drifted |= fault == STAMP_DRIFTED;
}

void stamps_suspect(struct stamps *s)
{
	if (!s->drifted && s->immune)
		return;
	s->lied = true;
	for (int i = 0; i < STAMPS_CHANNELS; i++) {
		struct stamps_channel *ch = &s->channel[i];

		if (!ch->proofs_left) {
			ch->proofs_left = STAMPS_PROOFS;
			ch->believed_nth = s->posted;
		}
		ch->suspect_nth = s->posted;
	}
}

/*
 * Launched when everything the channel had told of was over, some of it posted since
 * trust was lost, and started after that: an earlier kernel's stamps would lie before
 * the launch.
 */
static bool told_is_proof(const struct stamps_channel *ch, const struct gpuclock *clock,
			  const struct stamps_told *told)
{
	uint64_t hi, launch = told->sight.launch_ns;

	if (!clock || !launch || !told->pair.after || told->pair.after_nth <= ch->suspect_nth)
		return false;
	if (told->group && told->group == ch->proof_group)
		return false;
	if (!gpuclock_map(clock, told->pair.after, NULL, &hi) || hi >= launch)
		return false;
	return gpuclock_map(clock, told->sight.gpu_start_ns, NULL, &hi) && hi >= launch;
}

static bool channel_is_trusted(const struct stamps_channel *ch, uint64_t nth)
{
	return !ch->sane_left &&
	       (!ch->proofs_left || (nth && nth <= ch->believed_nth));
}

/* A good one; it takes some of them. */
static void channel_regain(struct stamps *s, struct stamps_channel *ch, bool proof, uint64_t group)
{
	if (ch->sane_left)
		ch->sane_left--;
	if (!ch->proofs_left || !proof)
		return;
	ch->proof_group = group;
	if (!--ch->proofs_left)
		s->immune = true;
}

/* ---- the verdict --------------------------------------------------------- */

static enum stamp_fault check_clock(struct gpuclock *clock, const struct stamps_told *told,
				    bool trusted)
{
	static const enum stamp_fault faults[] = {
		[GPUCLOCK_FITS] = STAMP_GOOD,
		[GPUCLOCK_FUTURE] = STAMP_OVERRUN,
		[GPUCLOCK_PAST] = STAMP_DRIFTED,
	};

	return clock ? faults[gpuclock_see(clock, &told->sight, trusted)] : STAMP_GOOD;
}

static enum stamp_fault stamps_check_told(struct stamps *s, struct gpuclock *clock,
					  const struct stamps_told *told, bool trusted)
{
	enum stamp_fault fault = (enum stamp_fault)told->pair.fault;

	if (fault == STAMP_GOOD)
		fault = check_clock(clock, told, trusted);
	if (fault == STAMP_GOOD)
		fault = check_overrun(s, clock, told);
	if (fault == STAMP_GOOD && trusted)
		fault = check_kernel(s, told);
	return fault;
}

enum stamp_fault stamps_judge(struct stamps *s, struct gpuclock *clock,
			      const struct stamps_told *told)
{
	struct stamps_channel *ch;
	enum stamp_fault fault;
	bool trusted, proof;

	if (told->pair.channel >= STAMPS_CHANNELS)
		return (enum stamp_fault)told->pair.fault;
	ch = &s->channel[told->pair.channel];
	if (told->pair.channel >= s->channels)
		s->channels = told->pair.channel + 1;
	trusted = channel_is_trusted(ch, told->nth);
	proof = ch->proofs_left && told_is_proof(ch, clock, told);
	fault = stamps_check_told(s, clock, told, trusted);
	if (fault != STAMP_GOOD) {
		if (fault != STAMP_DISTRUSTED)
			channel_distrust(s, ch, fault);
		return fault;
	}
	if (!trusted) {
		channel_regain(s, ch, proof, told->group);
		return STAMP_DISTRUSTED;
	}
	return STAMP_GOOD;
}

/* ---- all channels at once ------------------------------------------------- */

bool stamps_lied_near(const struct stamps *s, const struct stamps_pair *pair, uint64_t nth)
{
	const struct stamps_channel *ch = &s->channel[pair->channel];

	return !channel_is_trusted(ch, nth) ||
	       queue_has_lied(&ch->queue[pair->queue], pair->place);
}

/* Stamps of then, or of before: nothing later can have told them. */
static bool moment_is_early(const struct stamps *s, const struct stamps_whole *w, uint64_t launch,
			    uint64_t until, bool ahead)
{
	until = (w->last_seen > until ? w->last_seen : until) + ROUNDED_NS;
	return (launch && until < launch + RING_WORKS * PERIOD_NS) ||
	       (!ahead && until < s->newest_ns);
}

/*
 * The moments that stamps tell follow each other as the stamps do, so what is early enough for
 * the latest is for all; a stamp that the clock does not know is its callback's time.
 */
bool stamps_settle_whole(const struct stamps *s, const struct gpuclock *clock,
			 const struct stamps_whole *w, const struct stamps_told *told,
			 bool all_read)
{
	bool ahead = s->posted / WORK >= told->nth / WORK + RING_WORKS;
	uint64_t hi = 0, launch = told->sight.launch_ns;

	if (!told->nth || (!ahead && all_read))
		return true;
	if (!w->last_seen || (clock && !gpuclock_map(clock, w->last_stop, NULL, &hi)))
		return false;
	return moment_is_early(s, w, launch, hi, ahead);
}

/* They are told to have run beside each other, and nothing else meanwhile. */
static bool whole_is_one_kernel(const struct stamps *s, const struct stamps_kernel *own,
				const struct stamps_whole *w)
{
	return w->last_start <= w->first_stop && w->last_start - w->first_start <= NEAR_NS &&
	       w->last_stop - w->first_stop <= NEAR_NS && !own->doubtful &&
	       kernel_is_apart(s, own, w->first_start);
}

bool stamps_judge_whole(struct stamps *s, struct gpuclock *clock, const struct stamps_whole *w,
			const struct stamps_told *told)
{
	const struct gpuclock_sight sight = {
		.gpu_start_ns = w->tight_start,
		.gpu_stop_ns = w->tight_stop,
		.start_ns = w->tight_start + (uint64_t)w->start_delay,
		.stop_ns = w->tight_stop + (uint64_t)w->stop_delay,
		.launch_ns = told->sight.launch_ns,
		.gpu_first_ns = w->first_start,
	};
	struct stamps_kernel *own;

	if (w->strange || !told->group)
		return false;
	own = kernel_of(s, told->group);
	if (told->alone && own->stop)
		return false;		/* it was judged before */
	if (!whole_is_one_kernel(s, own, w) || (clock && !gpuclock_see_plain(clock, &sight)))
		return false;
	kernel_note(s, own, w->first_start, w->last_stop);
	if (w->channels > s->channels)
		s->channels = w->channels;
	return true;
}

const char *stamps_fault_text(enum stamp_fault fault)
{
	static const char *const text[STAMP_FAULT_END] = {
#define X(NAME, string) [STAMP_##NAME] = string,
		STAMP_FAULTS(X)
#undef X
	};

	return fault < STAMP_FAULT_END ? text[fault] : NULL;
}
