/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/status: the daemon about itself. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ncclinspd/compare/ranks.h"
#include "ncclinspd/find/containers.h"
#include "ncclinspd/findings/probelink.h"
#include "ncclinspd/keep/exemplars.h"
#include "ncclinspd/levels/steer.h"
#include "ncclinspd/serve/serve_parts.h"
#include "ncclinspd/sums/aggregate.h"
#include "ncclinspd/sums/queues.h"
#include "reader/base/memory.h"
#include "reader/base/names.h"
#include "reader/join/reconstruct.h"

/* The part of the totals that one user may know: the sums over that user's own processes. */
static void viewer_ingest(const struct request *r, struct serve_ingest *sum)
{
	struct process *p;

	*sum = (struct serve_ingest){ .poll_interval_ns = sum->poll_interval_ns };
	for (size_t i = 0; (p = serve_next_process(r->serve, &r->viewer, &i));) {
		sum->records += p->records;
		sum->bytes += p->bytes;
		sum->lost += process_lost(p);
		sum->before += p->loss.before;
		sum->rejected += p->loss.rejected;
		sum->segments += p->state == PROCESS_LIVE;
	}
}

struct unwatched_row {
	uint64_t processes;	/* processes that wait now */
	uint64_t files, names;	/* times that they found no place */
};

struct overhead_sum {
	double share;
};

/* Processes are told to whose they are; files and names are nobody's. */
static void fill_unwatched(const struct request *r, struct unwatched_row *row)
{
	const struct serve_source *source = &r->serve->source;
	size_t i = 0;
	uid_t uid;

	*row = (struct unwatched_row){ .files = UNKNOWN_U64, .names = UNKNOWN_U64 };
	while (source->next_waiting && source->next_waiting(source->arg, &i, &uid))
		row->processes += viewer_sees(&r->viewer, uid);
	if (r->viewer.all) {
		row->files = source->no_row ? source->no_row(source->arg) : 0;
		row->names = names_refused(source->names);
	}
}

static uint64_t status_cpu_ns(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) < 0)
		return UNKNOWN_U64;
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

static uint64_t status_rss_bytes(void)
{
	unsigned long total, resident;
	FILE *f = fopen("/proc/self/statm", "re");
	int n = 0;

	if (f) {
		n = fscanf(f, "%lu %lu", &total, &resident);
		fclose(f);
	}
	return n == 2 ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : UNKNOWN_U64;
}

struct cost_row {
	uint64_t cpu_ns;
	double cpu_share;	/* share of one core, since the start */
	uint64_t rss_bytes;
};

struct status_row {
	const char *version;
	const char *host;
	const char *boot_id;
	const char *loop;
	uint64_t uptime_ns;
	uint64_t started_ns;
	uint64_t cpu_ns;
	uint64_t rss_bytes;
	uint32_t connections;
	const char *level;
	const char *sampling;
	struct serve_ingest ingest;
	/* Counters over all users' processes: NULL for those who may not see them. */
	const struct reconstruct_stats *reconstruct;
	const struct ranks_stats *ranks;
	const struct aggregate_stats *aggregate;
	const struct links_stats *links;
	const struct queues_stats *queues;
	const struct exemplars_stats *exemplars;
	const struct memory *memory;
	const struct probelink_stats *probe;
	const struct containers_stats *containers;
	struct unwatched_row unwatched;
	const struct control *control;
	struct overhead_sum overhead;
};

/* The word that `text` has for every live process that has said what it records; else NULL. */
static const char *processes_agree_on(const struct request *r,
				      const char *text(const struct process *))
{
	const char *all = NULL;
	struct process *p;
	bool first = true;

	for (size_t i = 0; (p = serve_next_process(r->serve, &r->viewer, &i));) {
		if (p->state != PROCESS_LIVE || !p->api_version)
			continue;
		if (!first && text(p) != all)
			return NULL;
		all = text(p);
		first = false;
	}
	return all;
}

static const char *error_text(int error)
{
	return error ? strerror(-error) : NULL;
}

static field_put_fn status_put_exporters;

#include "schema/status.h"

static void status_put_exporters(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct serve *s = serve_of(w);
	struct serve_exporter at[SERVE_EXPORTERS];
	size_t n = s->source.exporters ? s->source.exporters(s->source.arg, at) : 0;

	json_begin(j, '[');
	for (size_t i = 0; i < n; i++)
		rows_put_object(w, j, exporter_fields, &at[i]);
	json_end(j, ']');
}

void serve_put_daemon_cost(const struct serve *s, struct json *j)
{
	uint64_t up_ns = s->now_ns - s->config.started_mono_ns;
	struct cost_row row = { status_cpu_ns(), -1, status_rss_bytes() };

	if (up_ns && row.cpu_ns != UNKNOWN_U64)
		row.cpu_share = (double)row.cpu_ns / (double)up_ns;
	json_key(j, "daemon");
	rows_put_object(&s->writer, j, daemon_cost_fields, &row);
}

/* Room for counters that are copied. */
struct status_copies {
	struct exemplars_stats exemplars;
	struct containers_stats containers;
};

static void fill_stages(const struct serve_source *source, struct status_row *row,
			struct status_copies *copies)
{
	row->reconstruct = reconstruct_stats(source->reconstruct);
	row->ranks = source->ranks ? ranks_stats(source->ranks) : NULL;
	row->aggregate = aggregate_stats(source->aggregate);
	row->links = links_stats(source->links);
	row->queues = queues_stats(source->queues);
	row->memory = source->memory;
	if (source->exemplars) {
		exemplars_read_stats(source->exemplars, &copies->exemplars);
		row->exemplars = &copies->exemplars;
	}
	if (source->probe)
		row->probe = probelink_stats(source->probe);
	if (source->containers) {
		source->containers(source->arg, &copies->containers);
		row->containers = &copies->containers;
	}
}

void serve_status(struct request *r, struct json *j)
{
	const struct serve *s = r->serve;
	struct status_copies copies;
	struct status_row row = {
		.version = NCCLINSP_VERSION,
		.host = s->host,
		.boot_id = *s->boot_id ? s->boot_id : NULL,
		.loop = "epoll",	/* there were two once; fields stay */
		.uptime_ns = s->now_ns - s->config.started_mono_ns,
		.started_ns = s->config.started_mono_ns,
		.cpu_ns = status_cpu_ns(),
		.rss_bytes = status_rss_bytes(),
		.connections = s->nclients,
		.level = processes_agree_on(r, process_level),
		.sampling = processes_agree_on(r, process_sampling),
		.control = s->source.steer ? steer_control(s->source.steer) : NULL,
		.overhead = { serve_overhead_share(r) },
	};

	s->source.ingest(s->source.arg, &row.ingest);
	if (r->viewer.all)
		fill_stages(&s->source, &row, &copies);
	else
		viewer_ingest(r, &row.ingest);
	fill_unwatched(r, &row.unwatched);
	rows_put(&s->writer, j, status_fields, &row);
}
