/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_VIEW_WAITS_H
#define CLI_VIEW_WAITS_H

/*
 * The part of the time that ranks wait for others.  The daemon tells sums since its start;
 * what was told some seconds ago makes them a matter of the last seconds.
 */

#include <jansson.h>
#include <stdint.h>

#define WAITS_WINDOW_NS UINT64_C(10000000000)
#define WAITS_KEY 192

struct waits {
	/* Member's key -> its sum, as told at that time; the older first; or NULL. */
	json_t *base[2];
	uint64_t base_ns[2];
	json_t *last;		/* sums of the last look */
	uint64_t last_ns;
	double share;		/* mean part of the time since the look before; < 0: not known */
};

void waits_deinit(struct waits *waits);

/* The key of a member of /v1/comms here. */
void waits_key(const json_t *comm, const json_t *member, char key[WAITS_KEY]);

/* Take in an answer's "comms", unless the last one has just come. */
void waits_update(struct waits *waits, const json_t *comms, uint64_t now_ns);

/*
 * The part of the last ten to twenty seconds that a member waited; as long as less
 * than these are known, of what is.  Negative: not known.
 */
double waits_share(const struct waits *waits, const char *key);

#endif
