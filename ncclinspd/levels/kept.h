/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_LEVELS_KEPT_H
#define NCCLINSPD_LEVELS_KEPT_H

/*
 * A small file of rows that the next daemon goes on with: of this boot only, since times
 * in it are CLOCK_MONOTONIC.  It is replaced as a whole: whoever is killed meanwhile
 * leaves the old one.
 */

#include <limits.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define KEPT_PATH	(PATH_MAX + 16)

struct kept_kind {
	uint64_t magic;
	uint32_t version;
	uint32_t most;		/* rows */
	size_t row_bytes;	/* bytes of a row, without padding */
	const char *what;	/* name in the log */
};

/* The content of the file, and whether writing it went well. */
struct kept_state {
	uint64_t checksum;
	int error;		/* result of the last attempt to write it */
};

/* Write all of it there.  0 or a negative errno. */
int kept_write(int fd, const void *bytes, size_t n, off_t at);

/*
 * Have these rows in the file, if it has others, or if the last attempt failed.  A failure
 * leaves the file as it was, and is told on the log once.
 */
void kept_save(struct kept_state *state, const char *path, const struct kept_kind *kind,
	       const uint8_t boot_id[16], const void *rows, uint32_t count);

/*
 * Take in what kept_read(), and the caller's check of the rows, came to: told on the log
 * if it is worth that.  With these rows the file need not be written again.
 */
void kept_restored(struct kept_state *state, const char *path, const struct kept_kind *kind,
		   int error, const void *rows, uint32_t count);

/*
 * Read into room for kind->most rows.  0 or a negative errno: -ENOENT: there is none, -EPERM:
 * others could have written it, -EPROTO or -EPROTONOSUPPORT: it makes no sense, -ESTALE: of
 * another boot.  What stands in a row is the caller's to check.
 */
int kept_read(const char *path, const struct kept_kind *kind, const uint8_t boot_id[16],
	      void *rows, uint32_t *count);

/* The same of bytes that are in memory. */
int kept_parse(const void *bytes, size_t n, const struct kept_kind *kind,
	       const uint8_t boot_id[16], void *rows, uint32_t *count);

#endif
