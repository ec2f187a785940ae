/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's view of the daemon: what it may ask, and its place in the loop.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "ncclinspd/daemon.h"
#include "ncclinspd/find/containers.h"
#include "ncclinspd/findings/cpuwait.h"
#include "reader/read/life.h"
#include "shmring/clock.h"
#include "util/list.h"

size_t answers_processes(void *arg, struct process *const **list)
{
	struct daemon *d = arg;

	return discover_processes(d->discover, list);
}

static const struct foreign *source_next_foreign(void *arg, size_t *i)
{
	const struct daemon *d = arg;

	return discover_next_foreign(d->discover, i);
}

int answers_slots(void *arg, struct process *p, const struct live_slot **slots)
{
	struct daemon *d = arg;

	return drain_slots(d->drain, p, slots);
}

static void source_ingest(void *arg, struct serve_ingest *out)
{
	struct daemon *d = arg;
	struct drain_totals sum;

	drain_sum(d->drain, &sum);
	*out = (struct serve_ingest){
		.records = sum.records,
		.bytes = sum.bytes,
		.lost = sum.lost,
		.before = sum.before,
		.rejected = sum.rejected + discover_refused(d->discover),
		.segments = discover_attached(d->discover),
		.poll_interval_ns = sum.poll_interval_ns,
	};
}

static void source_containers(void *arg, struct containers_stats *out)
{
	const struct daemon *d = arg;

	discover_containers(d->discover, out);
}

static bool source_next_waiting(void *arg, size_t *i, uid_t *uid)
{
	const struct daemon *d = arg;

	return discover_next_waiting(d->discover, i, uid);
}

static uint64_t source_no_row(void *arg)
{
	const struct daemon *d = arg;
	uint32_t rows;

	return discover_no_row(d->discover, &rows);
}

/* One more process of that user: with the others of it, or as the first, if there is room. */
static void waiting_add(struct daemon *d, uint32_t *n, uid_t uid)
{
	struct unwatched *row;

	for (uint32_t i = 0; i < *n; i++) {
		row = &d->unwatched[i];
		if (row->thing == UNWATCHED_PROCESSES && row->uid == uid) {
			row->count++;
			return;
		}
	}
	row = array_add(d->unwatched, n);
	if (row)
		*row = (struct unwatched){ UNWATCHED_PROCESSES, uid, 1, d->config.max_segments };
}

uint64_t answers_waited_ns(void *arg)
{
	return cpuwait_own_ns(LIFE_PROC);
}

size_t answers_unwatched(void *arg, const struct unwatched **list)
{
	struct daemon *d = arg;
	struct containers_stats containers;
	uint32_t rows, n = 0;
	uint64_t no_row = discover_no_row(d->discover, &rows);
	const struct reconstruct_stats *stats = reconstruct_stats(d->reconstruct);
	size_t i = 0;
	uid_t uid;

	discover_containers(d->discover, &containers);
	const struct unwatched others[] = {
		{ UNWATCHED_FILES, geteuid(), no_row, rows },
		{ UNWATCHED_CONTAINERS, geteuid(), containers.left_out, SHMDIR_MOST - 1 },
		{ UNWATCHED_COMMUNICATORS, geteuid(), stats->comms_refused, stats->comms_most },
	};
	_Static_assert(ARRAY_LEN(others) == UNWATCHED_END - 1, "all but one");

	for (uint32_t k = 0; k < ARRAY_LEN(others); k++)
		*array_must_add(d->unwatched, &n) = others[k];
	while (discover_next_waiting(d->discover, &i, &uid))
		waiting_add(d, &n, uid);
	*list = d->unwatched;
	return n;
}

void answers_meanwhile(void *arg)
{
	struct daemon *d = arg;
	uint64_t now_ns = loop_clock_ns();

	if (d->poll_timer.armed && now_ns >= d->poll_timer.at_ns)
		flow_poll(d, now_ns);
}

static uint64_t source_clock_ns(void *arg)
{
	return loop_clock_ns();
}

static int source_snapshot(void *arg, uint64_t now_ns, char *path, uint64_t *bytes,
			   uint64_t *ticket)
{
	struct daemon *d = arg;
	int r;

	if (!d->blackbox)
		return -ENOSYS;
	r = blackbox_write(d->blackbox, "request", now_ns, clock_ns(CLOCK_REALTIME), path,
			   bytes);
	*ticket = writer_last(blackbox_writer(d->blackbox));
	return r;
}

static int source_snapshot_outcome(void *arg, uint64_t ticket)
{
	const struct daemon *d = arg;

	return writer_outcome(blackbox_writer(d->blackbox), ticket);
}

int answers_snapshot(void *arg, const char *reason, uint64_t now_ns, struct json *j)
{
	struct daemon *d = arg;

	return serve_snapshot(d->serve, reason, now_ns, j);
}

int answers_interval(void *arg, uint64_t now_ns, struct json *j)
{
	struct daemon *d = arg;

	return serve_snapshot(d->serve, NULL, now_ns, j);
}

int answers_exemplar(void *arg, const struct exemplar *e, uint64_t now_ns, struct json *j)
{
	struct daemon *d = arg;

	exports_exemplar(d, e);
	return serve_exemplar_fill(d->serve, e, now_ns, j);
}

static int source_steer(void *arg, uint64_t now_ns)
{
	return flow_steer(arg, now_ns);
}

static void source_catch_up(void *arg)
{
	flow_poll(arg, loop_clock_ns());
}

static void server_run(void *arg, uint64_t now_ns)
{
	struct daemon *d = arg;

	serve_run(d->serve, now_ns, clock_ns(CLOCK_REALTIME));
}

void answers_arm(struct daemon *d, struct serve *s, struct loop_timer *timer, uint64_t now_ns)
{
	uint64_t wait_ns = serve_timeout_ns(s, now_ns);

	if (wait_ns == UINT64_MAX)
		loop_cancel(d->loop, timer);
	else
		loop_arm(d->loop, timer, now_ns + wait_ns);
}

/* The end of a round: lines for streams may have come up. */
static void server_on_round(void *arg, uint64_t now_ns)
{
	struct daemon *d = arg;

	answers_arm(d, d->serve, &d->serve_timer, now_ns);
	exports_round(d, now_ns);
}

static void server_boot_id(char id[64])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, id, 63);

	if (fd >= 0)
		close(fd);
	id[n > 0 ? n : 0] = '\0';
	id[strcspn(id, "\n")] = '\0';
}

int answers_start(struct daemon *d)
{
	struct serve_source source = {
		.arg = d,
		.processes = answers_processes,
		.next_foreign = source_next_foreign,
		.slots = answers_slots,
		.ingest = source_ingest,
		.containers = d->config.containers ? source_containers : NULL,
		.next_waiting = source_next_waiting,
		.accounts = d->accounts,
		.no_row = source_no_row,
		.meanwhile = answers_meanwhile,
		.clock_ns = source_clock_ns,
		.catch_up = source_catch_up,
		.snapshot = source_snapshot,
		.snapshot_outcome = source_snapshot_outcome,
		.steered = source_steer,
		.exporters = exports_list,
		.steer = d->steer,
		.marks = d->marks,
		.memory = &d->memory,
		.reconstruct = d->reconstruct,
		.ranks = d->ranks,
		.straggler = d->straggler,
		.sensors = d->sensors,
		.nics = d->nics,
		.oplog = d->oplog,
		.aggregate = d->aggregate,
		.links = d->links,
		.queues = d->queues,
		.transferlog = d->transferlog,
		.names = d->names,
		.diagnose = d->diagnose,
		.exemplars = d->exemplars,
		.probe = d->probe,
		.config = &d->config,
		.reading = &d->reading,
		.metrics = d->metrics,
	};
	char boot_id[64];
	struct serve_config config = {
		.listen_fd = d->listen_fd,
		.host = d->config.node_name,
		.started_mono_ns = d->started_mono_ns,
		.started_real_ns = d->started_real_ns,
		.raiser = d->config.raiser,
	};
	int r;

	server_boot_id(boot_id);
	config.boot_id = boot_id[0] ? boot_id : NULL;
	d->listen_fd = -1;
	r = serve_open(&d->serve, &config, &source);
	if (r < 0)
		return r;
	d->serve_timer = (struct loop_timer){ .fn = server_run, .arg = d };
	loop_hook(d->loop, server_on_round, d);
	exports_start(d, &config, &source);
	return loop_add(d->loop, serve_fd(d->serve), server_run, d);
}
