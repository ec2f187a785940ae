/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The age of an operation when a rank was last seen missing in it is how long that rank
 * stayed away, once the communicator is in another operation.
 */
#include "ncclinspd/findings/absence.h"

#define PLACES	1024

struct absence {
	struct keyed_head head;
	uint64_t comm;
	uint64_t op;		/* the newest in which a rank was missing ... */
	uint64_t age_ns;	/* the time that it is missing */
	uint64_t longest_ns;	/* the longest absence before it */
};

int absences_init(struct absences *a)
{
	return keyed_init(&a->table, &KEYED_CONFIG(struct absence, comm, PLACES));
}

void absences_deinit(struct absences *a)
{
	keyed_deinit(&a->table);
}

static uint64_t absence_before(const struct absence *e, uint64_t op)
{
	return e->op != op && e->age_ns > e->longest_ns ? e->age_ns : e->longest_ns;
}

void absences_see(struct absences *a, uid_t account, uint64_t comm, uint64_t op, uint64_t age_ns)
{
	struct absence *e;
	bool made;

	e = age_ns < ABSENCE_LEAST_NS ? NULL : keyed_use(&a->table, &comm, account, &made);
	if (!e)
		return;
	e->longest_ns = absence_before(e, op);
	e->op = op;
	e->age_ns = age_ns;
}

uint64_t absences_longest(const struct absences *a, uint64_t comm, uint64_t op)
{
	const struct absence *e = keyed_find(&a->table, &comm);

	return e ? absence_before(e, op) : 0;
}
