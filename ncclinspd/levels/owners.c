/* SPDX-License-Identifier: Apache-2.0 */
/* A short table, searched from its beginning: few processes are steered at a time. */
#include "ncclinspd/levels/owners.h"

#include <stdio.h>

#include "ncclinspd/levels/wishes.h"
#include "util/list.h"

static const struct kept_kind kind = {
	.magic = UINT64_C(0x0a7372656e776f63),	/* "cowners\n", little-endian */
	.version = 1, .most = OWNERS, .row_bytes = sizeof(struct owner),
	.what = "whose processes are steered",
};

static uint32_t owner_find(const struct owners *o, uint64_t instance)
{
	uint32_t i = 0;

	while (i < o->n && o->row[i].instance != instance)
		i++;
	return i;
}

static bool owner_is(const struct owners *o, uint32_t i, const struct process *p)
{
	return o->row[i].instance == p->instance && o->row[i].uid == p->uid &&
	       (!o->process_id[i] || o->process_id[i] == p->id);
}

static void owner_drop(struct owners *o, uint32_t i)
{
	o->n--;
	o->row[i] = o->row[o->n];
	o->process_id[i] = o->process_id[o->n];
	o->seen_ns[i] = o->seen_ns[o->n];
}

enum owners_word owners_ask(const struct owners *o, const struct process *p)
{
	uint32_t i = owner_find(o, p->instance);

	if (i == o->n)
		return OWNERS_UNKNOWN;
	return owner_is(o, i, p) ? OWNERS_ITS : OWNERS_ANOTHER;
}

bool owners_take(struct owners *o, const struct process *p, uint64_t now_ns)
{
	uint32_t i = owner_find(o, p->instance);

	if (i == o->n) {
		struct owner *row = array_add(o->row, &o->n);

		if (!row)
			return false;
		*row = (struct owner){ .instance = p->instance, .uid = p->uid };
	}
	o->process_id[i] = p->id;
	o->seen_ns[i] = now_ns;
	return true;
}

/* True: it is to be forgotten. */
static bool owner_is_over(struct owners *o, uint32_t i, struct process *const *list, size_t n,
			  uint64_t now_ns)
{
	for (size_t k = 0; k < n; k++) {
		if (!owner_is(o, i, list[k]))
			continue;
		if (list[k]->state != PROCESS_LIVE)
			return true;
		o->process_id[i] = list[k]->id;
		o->seen_ns[i] = now_ns;
		return false;
	}
	return now_ns - o->seen_ns[i] > WISH_IDLE_NS;
}

void owners_tidy(struct owners *o, struct process *const *list, size_t n, uint64_t now_ns)
{
	for (uint32_t i = 0; i < o->n;)
		if (owner_is_over(o, i, list, n, now_ns))
			owner_drop(o, i);
		else
			i++;
}

static void owners_path(const char *control, char path[KEPT_PATH])
{
	snprintf(path, KEPT_PATH, "%s.owners", control);
}

void owners_save(struct owners *o, const char *control, const uint8_t boot_id[16])
{
	char path[KEPT_PATH];

	owners_path(control, path);
	kept_save(&o->kept, path, &kind, boot_id, o->row, o->n);
}

void owners_restore(struct owners *o, const char *control, const uint8_t boot_id[16],
		    uint64_t now_ns)
{
	char path[KEPT_PATH];
	int r;

	owners_path(control, path);
	r = kept_read(path, &kind, boot_id, o->row, &o->n);
	kept_restored(&o->kept, path, &kind, r, o->row, o->n);
	for (uint32_t i = 0; i < o->n; i++)
		o->seen_ns[i] = now_ns;
}
