/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_ABSENCE_H
#define NCCLINSPD_FINDINGS_ABSENCE_H

/*
 * The longest that ranks of each communicator stayed away from an operation in which the
 * others waited, and came after all: one that is alive may be writing a checkpoint.
 */

#include "tables/keyed.h"

/* The length of one of them: what is shorter is no pause to speak of. */
#define ABSENCE_LEAST_NS	UINT64_C(5000000000)

struct absences {
	struct keyed table;
};

int absences_init(struct absences *a);	/* 0 or -ENOMEM */
void absences_deinit(struct absences *a);

/* A rank of communicator `comm`, a user's, has been missing in operation `op` for so long by now. */
void absences_see(struct absences *a, uid_t account, uint64_t comm, uint64_t op, uint64_t age_ns);

/* The longest before that operation; 0: there was none. */
uint64_t absences_longest(const struct absences *a, uint64_t comm, uint64_t op);

#endif
