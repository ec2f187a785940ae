/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_RAS_H
#define NCCLINSPD_FINDINGS_RAS_H

/*
 * NCCL's RAS, which each process of a job has from 2.24 on, is asked about an operation that hangs
 * where this node does not show why: on loopback only, one question at a time, by a thread that
 * ends with the answer.
 *
 * A question makes all processes of the job tell of themselves.  All nodes of a job that hangs
 * have reason to ask: so a node waits before it asks first, the longer the higher its ranks are,
 * and asks about one operation RAS_TIMES times at most.  Users take turns: the user whose last
 * question was longest ago comes first.
 *
 * Anybody on the node may listen at that port.  What a process of another user says counts for
 * nothing, and neither does an answer without a rank of this node with its pid (judge/afar.h).
 */

#include <sys/types.h>

#include "judge/afar.h"

#define RAS_PORT	28028
#define RAS_APART_NS	(UINT64_C(10) * 1000000000)	/* time from one question to the next */
#define RAS_AGAIN_NS	(UINT64_C(30) * 1000000000)	/* ... about the same */
#define RAS_TIMES	4	/* RAS takes a process for dead after 60 s */
#define RAS_MOST_NS	(UINT64_C(12) * 1000000000)	/* time for a whole answer */
#define RAS_MOST_BYTES	(UINT64_C(256) << 20)
#define RAS_RANK_NS	(UINT64_C(20) * 1000000)	/* to wait at first, for each rank below */
#define RAS_WAIT_NS	(UINT64_C(60) * 1000000000)	/* the longest such wait */

struct ras;

struct ras_question {
	uint64_t comm_id;
	int32_t nranks;		/* ranks of that communicator */
	char func[24];		/* the function of which calls are compared */
	uint16_t port;
	uid_t uid, account;	/* the job's user */
	struct afar_own own[AFAR_OWN];	/* ranks here that are in the operation */
	uint32_t nown;
};

/* 0 or -ENOMEM. */
int ras_new(struct ras **out);

/* Ends what is under way.  NULL is fine. */
void ras_free(struct ras *r);

/* The outcome of the newest question about that operation; NULL: there is none yet. */
const struct afar *ras_told(struct ras *r, uint64_t key);

/* Ask if it is time to.  Never waits. */
void ras_ask(struct ras *r, uint64_t key, const struct ras_question *q, uint64_t now_ns);

/*
 * The port in an address as in NCCL_RAS_ADDR, if that is on loopback; NULL is the default.  0: it
 * is elsewhere, or no address.
 */
uint16_t ras_port(const char *address);

#endif
