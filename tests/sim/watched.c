/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/watched.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/sim/player.h"

void watched_end(int fd, struct member *m)
{
	struct watched *w = &m->watched;
	char line[256];
	int n;

	if (fd < 0 || !w->any)
		return;
	w->any = false;
	n = snprintf(line, sizeof(line), "{\"comm\":\"%s\",\"comm_id\":\"%016" PRIx64
		     "\",\"rank\":%d,\"world_rank\":%d,\"first\":%" PRIu64 ",\"last\":%" PRIu64
		     ",\"first_real_ns\":%" PRId64 "}\n", m->comm->name, m->comm->id, m->rank,
		     m->world, w->first, w->last, w->first_real_ns);
	if (write(fd, line, (size_t)n) != n)
		perror("nccl-sim: --watched");
}

void watched_note(int fd, struct member *m, uint64_t op, bool is_watched)
{
	struct watched *w = &m->watched;

	if (fd < 0 || (is_watched && w->any && op == w->last))
		return;		/* a collective of sends: one call of many */
	if (w->any && (!is_watched || op != w->last + 1))
		watched_end(fd, m);
	if (!is_watched)
		return;
	if (!w->any) {
		w->first = op;
		w->first_real_ns = pace_real_now();
	}
	w->last = op;
	w->any = true;
}
