/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FINDINGS_BASELINE_H
#define NCCLINSPD_FINDINGS_BASELINE_H

/*
 * Baselines: what is normal for a kind of operation, kept across jobs and daemons in
 * <state-dir>/baselines, at most BASELINES of them; of the user with most, the one that was
 * not used for longest makes room.  The file is written whole, beside, and renamed; one that
 * is broken, of another version or another machine's order of bytes is ignored with a word on
 * the log.
 *
 * A key says nothing of the user: whoever chooses the names and sizes of its operations can
 * choose a key.
 *
 *   offset  size  field        meaning
 *        0     8  magic        BASELINE_MAGIC
 *        8     4  version      BASELINE_VERSION
 *       12     4  count        entries, the one used last at the end
 *       16     8  checksum     index_hash(0, entries)
 *       24    32  entry        key, mean, sigma, uid, samples; count times
 */

#include <stddef.h>
#include <stdint.h>

#define BASELINES		2048
#define BASELINE_MAGIC		UINT64_C(0x4553414249434e0a)
#define BASELINE_VERSION	2

struct baseline {
	uint64_t key;
	double mean;	/* mean of a logarithm: finite, from -100 to 100 */
	double sigma;	/* more than 0, up to 100 */
	uint32_t uid;	/* the owner of the processes that it was learned from */
	uint32_t samples;	/* windows that it was learned from; 0: enough */
};
_Static_assert(sizeof(struct baseline) == 32, "the file has no padding");

struct accounts;
struct baselines;

/*
 * `state_dir` NULL, or one that cannot be used: they are kept in memory.  One that does not
 * answer is asked again with each call; until then, nothing is written.  `accounts` NULL: each
 * uid is one.  0 or -ENOMEM.
 */
int baselines_new(struct baselines **bp, const char *state_dir, const struct accounts *accounts);

/* Writes what has changed, and waits for it as writer_close(). */
void baselines_free(struct baselines *b);

/* It counts as used.  NULL: not known; valid until the next put. */
const struct baseline *baselines_find(struct baselines *b, uint64_t key, uint32_t uid);

/* Set or replace.  What no file may hold is left out. */
void baselines_put(struct baselines *b, const struct baseline *baseline);

/* Have it written, if there is anything new; returns at once. */
void baselines_save(struct baselines *b);

/*
 * The bytes of a file -> entries, room for BASELINES.  How many; -EPROTO: broken;
 * -EPROTONOSUPPORT: of another version or kind of machine.
 */
int baselines_parse(const void *bytes, size_t n, struct baseline *out);

#endif
