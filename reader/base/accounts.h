/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READER_BASE_ACCOUNTS_H
#define READER_BASE_ACCOUNTS_H

/*
 * The account that a user id's quotas count against.  /etc/subuid gives users ranges of
 * further ids, for the user namespaces that they make: 65,536 of them, as a rule.  If each had
 * quotas of its own, one user would have as many as the node has room for.
 *
 * Ranges of root, of system users and of names that are no local user's (of what starts
 * containers for everybody) are used by many: each block of ACCOUNTS_BLOCK ids is an account
 * there.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define ACCOUNTS_SUBUID	"/etc/subuid"
#define ACCOUNTS_PASSWD	"/etc/passwd"
#define ACCOUNTS_BLOCK	65536
#define ACCOUNTS_USER	1000	/* ids below are the system's */
#define ACCOUNTS_RANGES	65536	/* lines of the file that count */

struct accounts;

/*
 * Files that are not there say nothing.  The paths are not copied.  Only local files are
 * asked: a directory service may take seconds.  0 or -ENOMEM.
 */
int accounts_new(struct accounts **out, const char *subuid, const char *passwd);
void accounts_free(struct accounts *a);

/* Read again what has changed; a look at the file's times, if nothing has. */
void accounts_look(struct accounts *a);

/* The id itself, if it is in no range; and always, if `a` is NULL. */
uid_t accounts_of(const struct accounts *a, uid_t uid);

/* Counts by account, for shares: as a remainder, so that now and then two share one. */
#define ACCOUNTS_TALLY	256
struct accounts_tally {
	uint32_t of[ACCOUNTS_TALLY];
};

static inline uint32_t *accounts_count(struct accounts_tally *t, uid_t account)
{
	return &t->of[account % ACCOUNTS_TALLY];
}

/* Accounts that share a count are one here. */
static inline bool accounts_are_same(uid_t a, uid_t b)
{
	return a % ACCOUNTS_TALLY == b % ACCOUNTS_TALLY;
}

/*
 * May an account that has `own` of something have one more, where so many are left?  It has three
 * quarters at most of what others leave.
 */
static inline bool accounts_leave_room(uint32_t own, uint32_t left)
{
	return own / 3 < left;
}

static inline bool accounts_may_take(struct accounts_tally *t, uid_t account, uint32_t left)
{
	return accounts_leave_room(*accounts_count(t, account), left);
}

/* An account that has most. */
static inline uid_t accounts_most(const struct accounts_tally *t)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < ACCOUNTS_TALLY; i++)
		most = t->of[i] > t->of[most] ? i : most;
	return most;
}

#endif
