/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The share of time that each rank waited lately, from the differences between the daemon's
 * sums.
 */
#include "cli/view/waits.h"

#include <string.h>

#include "cli/table/report.h"

#define LEAST_NS UINT64_C(50000000)	/* over less, the moment of the answer counts most */

static json_t *sums_of(const json_t *comms)
{
	json_t *sums = json_object(), *comm, *member;
	size_t i, k;

	json_array_foreach((json_t *)comms, i, comm) {
		json_array_foreach(json_object_get(comm, "local_ranks"), k, member) {
			const json_t *wait = report_get(member, "waiting.wait_ns");
			char key[WAITS_KEY];

			if (!json_is_integer(wait))
				continue;
			waits_key(comm, member, key);
			json_object_set(sums, key, (json_t *)wait);
		}
	}
	return sums;
}

static const char *text_of(const json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key)) ?: "";
}

void waits_key(const json_t *comm, const json_t *member, char key[WAITS_KEY])
{
	snprintf(key, WAITS_KEY, "%s/%.64s/%lld/%lld/%lld", text_of(comm, "comm_id"),
		 text_of(comm, "name"),
		 (long long)json_integer_value(json_object_get(comm, "nranks")),
		 (long long)json_integer_value(json_object_get(member, "rank")),
		 (long long)json_integer_value(json_object_get(member, "pid")));
}

/* The share over members that are in both: one that came or went has no difference. */
static double share_between(const json_t *before, const json_t *after, uint64_t ns)
{
	const char *key;
	json_t *sum;
	double waited = 0;
	int members = 0;

	json_object_foreach((json_t *)after, key, sum) {
		const json_t *old = json_object_get(before, key);
		json_int_t more = json_integer_value(sum) - json_integer_value(old);

		if (!old || more < 0)
			continue;
		waited += (double)more;
		members++;
	}
	return members ? waited / members / (double)ns : -1;
}

static void keep(struct waits *waits)
{
	if (waits->base[1] && waits->last_ns < waits->base_ns[1] + WAITS_WINDOW_NS)
		return;
	json_decref(waits->base[0]);
	waits->base[0] = waits->base[1];
	waits->base_ns[0] = waits->base_ns[1];
	waits->base[1] = json_incref(waits->last);
	waits->base_ns[1] = waits->last_ns;
}

void waits_update(struct waits *waits, const json_t *comms, uint64_t now_ns)
{
	json_t *sums;

	if (waits->last && now_ns < waits->last_ns + LEAST_NS)
		return;
	sums = sums_of(comms);
	waits->share = waits->last
			       ? share_between(waits->last, sums, now_ns - waits->last_ns)
			       : -1;
	json_decref(waits->last);
	waits->last = sums;
	waits->last_ns = now_ns;
	keep(waits);
}

double waits_share(const struct waits *waits, const char *key)
{
	const json_t *now = json_object_get(waits->last, key);

	for (int i = 0; now && i < 2; i++) {
		const json_t *then = json_object_get(waits->base[i], key);
		json_int_t waited = json_integer_value(now) - json_integer_value(then);

		if (!then || waited < 0 || waits->last_ns == waits->base_ns[i])
			continue;
		return (double)waited / (double)(waits->last_ns - waits->base_ns[i]);
	}
	return -1;
}

void waits_deinit(struct waits *waits)
{
	json_decref(waits->base[0]);
	json_decref(waits->base[1]);
	json_decref(waits->last);
	memset(waits, 0, sizeof(*waits));
}
