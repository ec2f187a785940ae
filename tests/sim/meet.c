/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/meet.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOOK_NS		20000000	/* how often somebody looks whether it was stopped */

struct meet {
	_Atomic uint32_t turn;		/* those who wait, wait for it to change */
	int nranks;
	_Atomic int64_t late_ns;	/* of the latest so far, behind the model */
	_Atomic uint64_t launched[SCENARIO_MAX_RANKS];	/* by a thread's first rank */
};

int meet_new(struct meet **meetp, const struct scenario *scn)
{
	struct meet *m;

	*meetp = NULL;
	if (!scn->together || !scn->pace)
		return 0;
	m = mmap(NULL, sizeof(*m), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED)
		return -errno;
	m->nranks = scn->nranks;
	for (int w = 0; w < scn->nranks; w++)	/* ranks that have no thread of their own */
		if (scn->thread_per_process && w % scn->gpus_per_process)
			atomic_init(&m->launched[w], UINT64_MAX);
	*meetp = m;
	return 0;
}

void meet_free(struct meet *meet)
{
	if (meet)
		munmap(meet, sizeof(*meet));
}

static bool meet_is_complete(const struct meet *m, uint64_t launches)
{
	for (int w = 0; w < m->nranks; w++)
		if (atomic_load_explicit(&m->launched[w], memory_order_seq_cst) < launches)
			return false;
	return true;
}

static void meet_wake(struct meet *m)
{
	atomic_fetch_add_explicit(&m->turn, 1, memory_order_seq_cst);
	syscall(SYS_futex, &m->turn, FUTEX_WAKE, SCENARIO_MAX_RANKS, NULL, NULL, 0);
}

static void meet_note_late(struct meet *m, int64_t late_ns)
{
	int64_t most = atomic_load_explicit(&m->late_ns, memory_order_seq_cst);

	while (late_ns > most && !atomic_compare_exchange_weak_explicit(&m->late_ns, &most, late_ns,
			memory_order_seq_cst, memory_order_seq_cst))
		;
}

static void meet_all(struct meet *m, uint64_t launches, const struct pace *pace)
{
	const struct timespec look = { .tv_nsec = LOOK_NS };

	if (meet_is_complete(m, launches)) {	/* of two who come last, one sees both */
		meet_wake(m);
		return;
	}
	while (!pace_stopped(pace)) {
		uint32_t turn = atomic_load_explicit(&m->turn, memory_order_seq_cst);

		if (meet_is_complete(m, launches))
			return;
		syscall(SYS_futex, &m->turn, FUTEX_WAIT, turn, &look, NULL, 0);
	}
}

int64_t meet_wait(struct meet *m, int first, uint64_t launches, int64_t late_ns,
		  const struct pace *pace)
{
	if (!m)
		return late_ns;
	meet_note_late(m, late_ns);
	atomic_store_explicit(&m->launched[first], launches, memory_order_seq_cst);
	meet_all(m, launches, pace);
	return atomic_load_explicit(&m->late_ns, memory_order_seq_cst);
}

void meet_leave(struct meet *m, int first)
{
	if (!m)
		return;
	atomic_store_explicit(&m->launched[first], UINT64_MAX, memory_order_seq_cst);
	meet_wake(m);
}

void meet_bury(struct meet *m, const struct scenario *scn, int process)
{
	for (int i = 0; i < scn->gpus_per_process; i++)
		meet_leave(m, process * scn->gpus_per_process + i);
}
