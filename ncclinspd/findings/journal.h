/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_JOURNAL_H
#define NCCLINSPD_FINDINGS_JOURNAL_H

/*
 * Findings for people who watch logs: under systemd entries of the journal with a
 * MESSAGE_ID for each kind and fields to search for, else lines of the log.
 */

#include "ncclinspd/base/finding.h"

#define JOURNAL_SOCKET	"/run/systemd/journal/socket"

struct journal {
	int fd;		/* -1: lines of the log */
	uint64_t suspected;	/* the newest suspicion that was told */
};

/* `path` of the journal's socket; NULL: lines of the log.  Never fails. */
void journal_open(struct journal *j, const char *path);
void journal_close(struct journal *j);

/*
 * It began, changed, or is over; one that is suspected is told once, and not at all if it is
 * but a note.  Never waits.
 */
void journal_finding(struct journal *j, const struct finding *f);

#endif
