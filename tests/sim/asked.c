/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/asked.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/sim/player.h"

void asked_end(int fd, struct member *m)
{
	struct asked *a = &m->asked;
	char line[256];
	int n;

	if (fd < 0 || !a->any)
		return;
	a->any = false;
	n = snprintf(line, sizeof(line), "{\"comm\":\"%s\",\"comm_id\":\"%016" PRIx64
		     "\",\"rank\":%d,\"world_rank\":%d,\"mask\":%d,\"first\":%" PRIu64
		     ",\"last\":%" PRIu64 ",\"first_real_ns\":%" PRId64 "}\n", m->comm->name,
		     m->comm->id, m->rank, m->world, a->mask, a->first, a->last,
		     a->first_real_ns);
	if (write(fd, line, (size_t)n) != n)
		perror("nccl-sim: --asked");
}

void asked_note(int fd, struct member *m, uint64_t op, int mask)
{
	struct asked *a = &m->asked;
	bool goes_on = a->any && mask == a->mask && op - a->last <= 1;

	if (fd < 0)
		return;
	if (!goes_on) {
		asked_end(fd, m);
		a->first = op;
		a->first_real_ns = pace_real_now();
		a->mask = mask;
		a->any = true;
	}
	a->last = op;
}
