/* SPDX-License-Identifier: Apache-2.0 */
/* One box per rank of each communicator, under a lock that survives its holder. */
#include "tests/sim/pxn.h"

#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>

#include "tests/sim/pace.h"

#define RETRY_NS	200000
#define MAX_RETRIES	10000		/* 2 s */

struct box {
	pthread_mutex_t mutex;
	unsigned int put, taken;
	struct pxn_message slot[PXN_BOX_SLOTS];
};

struct pxn {
	atomic_int left;		/* processes that are through */
	int base[SCENARIO_MAX_COMMS];	/* of a communicator's boxes */
	struct box box[];
};

static int count_boxes(const struct scenario *scn)
{
	int n = 0;

	for (int i = 0; i < scn->ncomms; i++)
		n += scn->comm[i].pxn ? scn->comm[i].nranks : 0;
	return n;
}

static size_t pxn_size(const struct scenario *scn)
{
	return sizeof(struct pxn) + count_boxes(scn) * sizeof(struct box);
}

static void init_box(struct box *box)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&box->mutex, &attr);
	pthread_mutexattr_destroy(&attr);
}

int pxn_new(struct pxn **pxnp, const struct scenario *scn)
{
	struct pxn *pxn;
	int n = 0;

	*pxnp = NULL;
	if (!count_boxes(scn))
		return 0;
	pxn = mmap(NULL, pxn_size(scn), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (pxn == MAP_FAILED)
		return -errno;
	for (int i = 0; i < scn->ncomms; i++) {
		pxn->base[i] = n;
		n += scn->comm[i].pxn ? scn->comm[i].nranks : 0;
	}
	for (int i = 0; i < n; i++)
		init_box(&pxn->box[i]);
	*pxnp = pxn;
	return 0;
}

void pxn_free(struct pxn *pxn, const struct scenario *scn)
{
	if (pxn)
		munmap(pxn, pxn_size(scn));
}

static void box_lock(struct box *box)
{
	if (pthread_mutex_lock(&box->mutex) == EOWNERDEAD)
		pthread_mutex_consistent(&box->mutex);
}

int pxn_put(struct pxn *pxn, const struct sim_comm *comm, int executor,
	    const struct pxn_message *message)
{
	struct box *box = &pxn->box[pxn->base[comm->index] + executor];

	for (int i = 0; i < MAX_RETRIES; i++) {
		box_lock(box);
		if (box->put - box->taken < PXN_BOX_SLOTS) {
			box->slot[box->put++ % PXN_BOX_SLOTS] = *message;
			pthread_mutex_unlock(&box->mutex);
			return 0;
		}
		pthread_mutex_unlock(&box->mutex);
		pace_sleep(RETRY_NS);
	}
	return -EPIPE;
}

bool pxn_take(struct pxn *pxn, const struct sim_comm *comm, int rank,
	      struct pxn_message *message)
{
	struct box *box = &pxn->box[pxn->base[comm->index] + rank];
	bool any;

	box_lock(box);
	any = box->put != box->taken;
	if (any)
		*message = box->slot[box->taken++ % PXN_BOX_SLOTS];
	pthread_mutex_unlock(&box->mutex);
	return any;
}

void pxn_leave(struct pxn *pxn, const struct scenario *scn)
{
	atomic_fetch_add_explicit(&pxn->left, 1, memory_order_relaxed);
	for (int i = 0; i < MAX_RETRIES; i++) {
		if (atomic_load_explicit(&pxn->left, memory_order_relaxed) >= scn->nprocesses)
			return;
		pace_sleep(RETRY_NS);
	}
}
