/* SPDX-License-Identifier: Apache-2.0 */
/* The phase of an operation is asked for after it was posted, so the one before is kept too. */
#include "reader/base/phase.h"

#include <string.h>

bool phase_is_sound(const char *name)
{
	size_t bytes = strlen(name);

	return bytes && bytes < PHASE_BYTES && strcmp(name, "-") &&
	       strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
			    "._:/+-") == bytes;
}

void phase_set(struct process *p, name_t name, uint64_t now_ns)
{
	if (p->phase.name == name)
		return;
	p->phase = (struct phase){ .name = name, .before = p->phase.name, .since_ns = now_ns };
}

name_t phase_at(const struct process *p, uint64_t mono_ns)
{
	return mono_ns && mono_ns < p->phase.since_ns ? p->phase.before : p->phase.name;
}
