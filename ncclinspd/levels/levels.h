/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_LEVELS_LEVELS_H
#define NCCLINSPD_LEVELS_LEVELS_H

/*
 * The orders for each process, from all who have a say, the strongest last:
 *
 *     thrift    callbacks cost more than the budget: a lower level
 *     detail    a finding concerns it: every operation is timed for a while, at the
 *               level that it was lowered from
 *     the node's wishes, then those for jobs, communicators and processes, the newest
 *               last (wishes.h)
 *
 * So a person's word always holds, for the level and for the sampling, each where one
 * was given.  The control file has an entry for each of these in this order, which is
 * how a plugin reads it (control.h).  Times are CLOCK_MONOTONIC ns.
 */

#include "nci/control.h"
#include "ncclinspd/levels/owners.h"
#include "ncclinspd/levels/thrift.h"
#include "ncclinspd/levels/wishes.h"

#define LEVELS_DETAIL_NS	(UINT64_C(10) * 1000000000)	/* the longest */
#define LEVELS_DETAIL_APART_NS	(UINT64_C(300) * 1000000000)	/* gap between two in a process */

struct levels;

struct levels_config {
	bool detail;
	bool thrift;
	uint32_t processes;	/* processes that are kept in mind; 0: 256 */
	const struct accounts *accounts;	/* NULL: each uid is one */
};

/* The orders of a process now. */
struct level_wanted {
	uint32_t level;		/* NCI_LEVEL_*, or WISH_KEEP: as its environment says */
	uint32_t sample;	/* NCI_SAMPLE_*, or WISH_KEEP */
	uint32_t why;		/* NCI_CAUSE_* of the strongest that has a say; 0: nobody has */
	uint64_t since_ns;	/* beginning of the same; 0: nothing is wanted */
	uint64_t until_ns;	/* when the first part of it ends; 0: it does not */
};

struct levels_stats {
	uint64_t raised;	/* processes raised for a finding */
	uint64_t withheld;	/* processes that were not, because they had been lately */
	uint64_t lowered;	/* steps down for the budget */
	uint64_t forgotten;	/* processes that found no room here: nothing automatic for them */
	uint32_t entries;	/* entries in the control file */
	uint32_t left_out;	/* entries that found no room in it */
};

/* 0 or -ENOMEM. */
int levels_new(struct levels **lp, const struct levels_config *config);
void levels_free(struct levels *l);

/*
 * Take these settings from now on, but for `processes` and `accounts`; without thrift,
 * what was lowered comes back.  The next levels_entries() have it.
 */
void levels_set(struct levels *l, const struct levels_config *config);

/* The wishes themselves, to be asked and changed. */
struct wishes *levels_wishes(struct levels *l);

/* The owners of instances, to be kept and restored. */
struct owners *levels_owners(struct levels *l);

/* A finding concerns the process, until then, as far as that may be.  True: it is raised now. */
bool levels_detail(struct levels *l, const struct process *p, uint64_t until_ns, uint64_t now_ns);

/* Once a second for each live process; `held` is found out here.  True: a step. */
bool levels_look(struct levels *l, const struct process *p, struct thrift_look look,
		 uint64_t now_ns);

/* Drop what is over. */
void levels_tidy(struct levels *l, struct process *const *list, size_t n, uint64_t now_ns);

/* The time when the next thing ends by itself; UINT64_MAX: nothing does. */
uint64_t levels_next_end(const struct levels *l, uint64_t now_ns);

void levels_wanted(const struct levels *l, const struct process *p, uint64_t now_ns,
		   struct level_wanted *out);

/* The thrift about that process; NULL: there is none. */
const struct thrift *levels_thrift(const struct levels *l, const struct process *p);

/*
 * The entries of the control file for these processes: how many, up to
 * NCI_CONTROL_ENTRIES.  Should they be too many, the automatic ones are left out first,
 * then users' wishes, where none has more than half before others have theirs, then the
 * oldest of all.  From now on the instances that are named have owners.
 */
uint32_t levels_entries(struct levels *l, struct process *const *list, size_t n,
			uint64_t now_ns, struct nci_control_entry *entry);

const struct levels_stats *levels_stats(const struct levels *l);

#endif
