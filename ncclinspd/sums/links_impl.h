/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_SUMS_LINKS_IMPL_H
#define NCCLINSPD_SUMS_LINKS_IMPL_H

/*
 * State that these share: links.c adds, links_query.c puts rows together.
 *
 * A link holds its totals and a ring of slices, each one period long: the youngest ones
 * together are the last minute.
 */

#include "ncclinspd/sums/links.h"
#include "tables/keyed.h"
#include "util/list.h"

#define LINKS_SLICES	4
#define LINKS_SLICE_NS	UINT64_C(15000000000)

/* Compared and hashed as bytes: no padding. */
struct link_key {
	uint64_t issuer;	/* process ids */
	uint64_t executor;
	uint32_t comm_index;
	int32_t peer;
	uint32_t channel;
	uint32_t send;
};
_Static_assert(sizeof(struct link_key) == 32, "padding would be compared");

struct slice {
	uint64_t period;	/* now / LINKS_SLICE_NS, plus one; 0: never used */
	struct links_sums sums;
};

struct link {
	struct keyed_head head;
	struct link_key key;
	uint64_t first_ns;
	struct links_who who;
	struct links_sums sums;	/* totals since it was made */
	struct slice slice[LINKS_SLICES];
};

/* Transfers that come while a query is at work wait here, up to so many. */
#define LINKS_HELD	2048

/* The sums of one ProxyOp, on their way into their link. */
struct links_entry {
	struct link_key key;
	struct links_who who;
	struct links_sums sums;
	uint64_t now_ns;
};

struct links {
	struct keyed table;	/* of struct link */
	struct links_stats stats;
	struct links_entry last;	/* entry of the last links_add() */
	uint64_t started_ns;
	LIST(struct links_entry) held;	/* entries that wait, at most LINKS_HELD */
	bool holding;
	uint64_t released;		/* number of times the state has been let go */
};

/*
 * The state does not change from hold to release.  More transfers than can wait release it
 * early: a reader in pieces looks at `released` whether it still holds.
 */
void links_hold(struct links *l);
void links_release(struct links *l);

/* Add `from` to `to`: all but the fit, or all. */
void links_add_up(struct links_sums *to, const struct links_sums *from);
void links_merge(struct links_sums *to, const struct links_sums *from);

#endif
