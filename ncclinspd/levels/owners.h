/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_LEVELS_OWNERS_H
#define NCCLINSPD_LEVELS_OWNERS_H

/*
 * The owner of each instance that the control file names.  The file shows everybody the
 * instances of processes that are steered, and anybody can then write one into a segment of
 * its own.  So an instance belongs to the process that had it when the file first named it,
 * and to its user, until that process ends; "<control>.owners" keeps this for the next daemon.
 */

#include "ncclinspd/levels/kept.h"
#include "reader/base/model.h"

#define OWNERS		1024

/* A row as it is kept in a file: fixed widths, no padding. */
struct owner {
	uint64_t instance;
	uint32_t uid;
	uint32_t zero;
};
_Static_assert(sizeof(struct owner) == 16, "kept in a file without padding");

/* Zeroed: nobody owns anything.  The first `n` rows of each array are in use. */
struct owners {
	uint32_t n;
	struct owner row[OWNERS];
	uint64_t process_id[OWNERS];	/* 0: not seen since the daemon before */
	uint64_t seen_ns[OWNERS];	/* when it was last found alive */
	struct kept_state kept;
};

enum owners_word {
	OWNERS_UNKNOWN,		/* it was never named */
	OWNERS_ITS,
	OWNERS_ANOTHER,
};

enum owners_word owners_ask(const struct owners *o, const struct process *p);

/* Its instance is about to be named.  False: it must not be, there is no room. */
bool owners_take(struct owners *o, const struct process *p, uint64_t now_ns);

/* Forget whose process has ended, or has not been seen for WISH_IDLE_NS. */
void owners_tidy(struct owners *o, struct process *const *list, size_t n, uint64_t now_ns);

/* Keep what has changed in a file beside the control file; called before that one names them. */
void owners_save(struct owners *o, const char *control, const uint8_t boot_id[16]);
void owners_restore(struct owners *o, const char *control, const uint8_t boot_id[16],
		    uint64_t now_ns);

#endif
