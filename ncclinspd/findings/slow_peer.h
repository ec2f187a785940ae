/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_SLOW_PEER_H
#define NCCLINSPD_FINDINGS_SLOW_PEER_H

/* A slow link, found by finding_slow_peer.c and told by slow_peer_text.c. */

#include "ncclinspd/findings/delay.h"
#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/sums/links.h"

/* A link, or an end of it, that is slower than the others; borrows all that it points to. */
struct slow_peer {
	const struct delay_hot *hot;
	const struct links_who *who;	/* the link of it that costs most */
	const char *aspect;		/* the time that was compared: "wire", "room" */
	bool by_room;			/* it was the latter */
	double share;			/* part of wall time that it costs, 0 to 1 */
	double rate_gbs, median_gbs;	/* rates of that link; of all that were compared */
	size_t links;			/* links that were compared */
	bool siblings;			/* they are of several communicators, one of each */
	uint64_t window_ns;
};

/* Fill in verdict, ranks, peer, text and evidence. */
void slow_peer_describe(const struct slow_peer *p, struct finding *f);

#endif
