/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_KEEP_EXEMPLAR_HEAD_H
#define NCCLINSPD_KEEP_EXEMPLAR_HEAD_H

/*
 * The fields of an exemplar that a list shows.  Each file begins with them, so that a
 * daemon that starts finds out what there is without reading them whole:
 *
 *     {"format":"ncclinsp-exemplar","format_version":1,"exemplar":{...},
 */

#include "ncclinspd/keep/archive.h"
#include "reader/base/model.h"

#define EXEMPLAR_HEAD_BYTES	4096	/* no head is longer */

struct exemplar_head {
	char id[ARCHIVE_ID];
	uid_t uid;		/* the user whose processes it is about, and nobody else's */
	uint64_t at_real_ns;	/* when the operation had ended, CLOCK_REALTIME */
	uint64_t at_mono_ns;	/* 0: before this daemon began */
	char reason[16];
	bool has_comm_id;
	uint64_t comm_id;
	char comm_name[97];	/* "": none */
	int32_t rank, nranks;
	pid_t pid;
	char func[64];
	uint64_t seq;		/* UNKNOWN_U64 */
	uint64_t bytes;		/* UNKNOWN_U64 */
	uint64_t exec_ns;
	uint64_t threshold_ns;
	uint64_t p999_ns, p50_ns;	/* quantiles of `ops` others like it */
	uint64_t ops;
	uint64_t merged;	/* others that were beyond theirs in the same window */
};

/* The members, into the open object. */
void exemplar_head_put(const struct exemplar_head *h, struct json *j);

/* The beginning of a file: up to and with the head. */
void exemplar_head_begin(const struct exemplar_head *h, struct json *j);

/*
 * Reads the head from the beginning of a file, `text` of `bytes` bytes; `id` is in its
 * name.  False: this is no exemplar, or not of that name.
 */
bool exemplar_head_read(struct exemplar_head *h, const char *id, const char *text, size_t bytes);

#endif
