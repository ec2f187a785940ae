/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_SLOW_PEER_H
#define JUDGE_SLOW_PEER_H

/*
 * Links that are slower than the others of their communicator: which one, or which end of it
 * (delay.h).  Pure functions of rows, whoever made them: the daemon sees what is sent from its
 * node, `ncclinsp report` what is sent from the nodes whose files it has.  Where that leaves
 * two causes, the words name both.
 *
 * Compared is the time that a byte is on the wire, among links whose transfers are of one size
 * (within a factor of two).  Where nobody's wire is slow, the time for which the peer had no
 * room comes next: that is the peer's own doing, whatever its reason.
 *
 *     slow_links_since(..)     what links did in a while, in groups of like ones
 *     slow_peer_find(..)       what is slow in one group
 *     slow_links_siblings(..)  those that are alone in their group, in groups by job
 */

#include "judge/delay.h"
#include "judge/nic.h"
#include "judge/resources.h"
#include "judge/slow_queue.h"
#include "judge/whom.h"
#include "util/list.h"
#include "util/unknown.h"
#include "util/words.h"

/* One link that sends, and what it did. */
struct slow_link {
	uint64_t link;		/* key of the link */
	uint64_t comm;		/* equal: one communicator */
	uint32_t group;		/* equal: and one size of transfers; set by those that sort */
	int32_t row, column;	/* place in the matrix of its group (delay.h) */
	bool has_comm_id;
	uint64_t user;
	uint64_t process;	/* a number of its process */
	uint64_t job;		/* equal: one job; asked of siblings alone */
	uint64_t comm_id;
	name_t comm_name;	/* NULL: none */
	int32_t nranks, rank, peer;
	uint32_t comm_index, channel;
	const char *host;	/* NULL: not told, or nothing but this node is looked at */
	uint64_t bytes, steps;		/* transfers whose times are known, as are */
	uint64_t busy_ns, held_ns;	/* on the wire; ready, and waiting for room */
};

struct slow_links {
	LIST(struct slow_link);
};

int slow_links_by_link(const void *a, const void *b);

/*
 * Groups the links by communicator and size of transfers; links with too little work to be
 * compared go.
 */
void slow_links_group(struct slow_links *list);

/* The work between two of these, which are sorted by link, in groups.  NULL there: no memory. */
void slow_links_since(const struct slow_links *now, const struct slow_links *before,
		      struct slow_links *out);

/*
 * Links of `since` that have no other one in their group, together with those of other
 * communicators of the same job, name and size; at least two in each group.
 */
void slow_links_siblings(const struct slow_links *since, struct slow_links *out);

/* The place behind the group that begins at `first`. */
uint32_t slow_links_group_end(const struct slow_links *list, uint32_t first);

enum slow_peer_aspect {
	SLOW_PEER_WIRE,
	SLOW_PEER_ROOM,		/* it waits for room at the receiver */
};

/* TCP segments that the sending process sent again, to the address that most of them went to. */
struct slow_peer_resent {
	uint64_t segments;	/* UNKNOWN_U64 */
	uint64_t window_ns;	/* the time that they are of */
	char to[46];		/* "": to none */
};

/* The queue pair or socket whose path makes the link slow. */
struct slow_peer_queue {
	struct slow_queue load;		/* all 0: none, or nobody tells */
	bool is_socket;
	uint32_t number, channel;
	int32_t nic;			/* UNKNOWN_I32 */
	struct slow_queues_sum all;	/* of the link, or of its slow channel */
};

/* A link, or an end of it, that is slower than the others. */
struct slow_peer {
	struct delay_hot hot;		/* named by its ranks */
	enum slow_peer_aspect aspect;
	enum verdict verdict;
	const struct slow_link *worst;	/* the link of it that costs most */
	bool begins;		/* false: enough to go on, too little to begin */
	double share;		/* part of the time that it costs, 0 to 1 */
	double rate_gbs, median_gbs;	/* rates of that link; of all that were compared */
	uint32_t links;		/* links that were compared */
	bool siblings;		/* they are of several communicators, one of each */
	uint64_t window_ns;	/* the time that they are of */
	/* set by those who know: the ranks of `hot`; ... */
	struct whom from, to;
	/* The progress thread at its ends that lacked a CPU for longest. */
	double away;		/* the part of the time for which it did */
	int32_t away_rank;	/* its rank; UNKNOWN_I32: neither end's, or not known */
	bool apart;		/* its progress thread at the slow end may run far from a device */
	struct placement placement;
	struct slow_peer_resent resent;
	struct slow_peer_queue queue;
	struct nic_cause nic;	/* an interface of this node that fails; NIC_WELL: none */
};

#define SLOW_PEERS	8	/* told of one group */

/*
 * Finds what is slow in a group of `n`, in that time: `out` has room for SLOW_PEERS.  Returns how
 * many, or -ENOMEM.
 */
int slow_peer_find(const struct slow_link *links, uint32_t n, enum slow_peer_aspect aspect,
		   bool siblings, uint64_t window_ns, struct slow_peer *out);

/*
 * Does it cost as little as a thread at its ends explains that was away for that share of the
 * time?  What is usual of the links that it was compared with made them slower as well.
 */
bool slow_peer_is_explained(const struct slow_peer *p, double away_share, double usual_share);

/* The usual share: most of them were away for longer.  The shares are sorted. */
double slow_links_usual_away(double *shares, uint32_t n);

void slow_peer_say(const struct slow_peer *p, char *text, size_t size);

#endif
