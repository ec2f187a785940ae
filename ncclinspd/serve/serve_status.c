/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/status: the daemon about itself. */
#include "ncclinspd/serve/serve_impl.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ncclinspd/compare/ranks.h"
#include "ncclinspd/find/containers.h"
#include "ncclinspd/keep/exemplars.h"
#include "ncclinspd/sums/aggregate.h"
#include "ncclinspd/sums/links.h"
#include "reader/base/memory.h"
#include "reader/base/names.h"
#include "reader/join/reconstruct.h"

static const struct field ingest_fields[] = {
#define F(name, kind) { #name, kind, offsetof(struct serve_ingest, name), NULL }
	F(records, FIELD_U64),
	F(bytes, FIELD_U64),
	F(lost, FIELD_U64),
	F(before, FIELD_U64),
	F(rejected, FIELD_U64),
	F(segments, FIELD_U32),
	F(poll_interval_ns, FIELD_U64),
#undef F
	{ NULL, 0, 0, NULL },
};

static void put_refused_by(const struct serve *s, struct json *j, const void *row)
{
	(void)s;
	serve_put_refused(j, ((const struct reconstruct_stats *)row)->stamps_refused_by);
}

static const struct field reconstruct_fields[] = {
#define F(name) { #name, FIELD_U64, offsetof(struct reconstruct_stats, name), NULL }
	F(records),
	F(finished),
	F(orphans),
	F(foreign),
	F(foreign_orphans),
	F(late),
	F(comms_refused),
	F(stamps_refused),
	{ "stamps_refused_by", FIELD_PUT, 0, put_refused_by },
	F(unbatched),
	F(unnamed),
#undef F
	{ NULL, 0, 0, NULL },
};

static const struct field ranks_fields[] = {
#define F(name) { #name, FIELD_U64, offsetof(struct ranks_stats, name), NULL }
	F(joints),
	F(expired),
	F(pushed_out),
	F(ambiguous),
	F(unscanned),
#undef F
	{ NULL, 0, 0, NULL },
};

static const struct field aggregate_fields[] = {
#define F(name, kind) { #name, kind, offsetof(struct aggregate_stats, name), NULL }
	F(cells, FIELD_U32),
	F(added, FIELD_U64),
	F(evicted, FIELD_U64),
	F(unbinned, FIELD_U64),
	F(bytes, FIELD_U64),
#undef F
	{ NULL, 0, 0, NULL },
};

/* The part of the totals that one user may know: the sums over that user's own processes. */
static void ingest_of_viewer(const struct request *r, struct serve_ingest *sum)
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

static const struct field links_fields[] = {
#define F(name, kind) { #name, kind, offsetof(struct links_stats, name), NULL }
	F(links, FIELD_U32),
	F(added, FIELD_U64),
	F(refused, FIELD_U64),
	F(evicted, FIELD_U64),
	F(bytes, FIELD_U64),
#undef F
	{ NULL, 0, 0, NULL },
};

static const struct field exemplars_fields[] = {
#define F(name, kind) { #name, kind, offsetof(struct exemplars_stats, name), NULL }
	F(beyond, FIELD_U64),
	F(merged, FIELD_U64),
	F(skipped, FIELD_U64),
	F(written, FIELD_U64),
	F(failed, FIELD_U64),
	F(files, FIELD_U32),
	F(bytes, FIELD_U64),
#undef F
	{ NULL, 0, 0, NULL },
};

static const struct field memory_fields[] = {
#define F(name) { #name, FIELD_U64, offsetof(struct memory, name), NULL }
	F(most),
	F(taken),
	F(refused),
	F(forgotten),
#undef F
	{ NULL, 0, 0, NULL },
};

static const struct field containers_fields[] = {
#define F(name, kind) { #name, kind, offsetof(struct containers_stats, name), NULL }
	F(found, FIELD_U32),
	F(unseen, FIELD_U32),
	F(left_out, FIELD_U64),
#undef F
	{ NULL, 0, 0, NULL },
};

static void put_ingest(const struct request *r, struct json *j)
{
	struct serve_ingest ingest = { 0 };

	r->serve->source.ingest(r->serve->source.arg, &ingest);
	if (!r->viewer.all)
		ingest_of_viewer(r, &ingest);
	json_key(j, "ingest");
	json_begin(j, '{');
	rows_put(r->serve, j, ingest_fields, &ingest);
	json_end(j, '}');
}

/* Counters over all users' processes, for those who may see them. */
static void put_stage(const struct request *r, struct json *j, const char *name,
		      const struct field *fields, const void *stats)
{
	json_key(j, name);
	if (!r->viewer.all) {
		json_put_null(j);
		return;
	}
	json_begin(j, '{');
	rows_put(r->serve, j, fields, stats);
	json_end(j, '}');
}

static void put_containers(const struct request *r, struct json *j)
{
	const struct serve_source *source = &r->serve->source;
	struct containers_stats stats;

	if (source->containers) {
		source->containers(source->arg, &stats);
		put_stage(r, j, "containers", containers_fields, &stats);
	} else {
		json_key(j, "containers");
		json_put_null(j);
	}
}

struct unwatched_row {
	uint64_t processes;	/* processes that wait now */
	uint64_t files, names;	/* times that they found no place */
};

static const struct field unwatched_fields[] = {
#define F(name) { #name, FIELD_U64, offsetof(struct unwatched_row, name), NULL }
	F(processes),
	F(files),
	F(names),
#undef F
	{ NULL, 0, 0, NULL },
};

/* Processes are told to whose they are; files and names are nobody's. */
static void put_unwatched(const struct request *r, struct json *j)
{
	struct unwatched_row row = { .files = UNKNOWN_U64, .names = UNKNOWN_U64 };
	const struct serve_source *source = &r->serve->source;
	size_t i = 0;
	uid_t uid;

	while (source->next_waiting && source->next_waiting(source->arg, &i, &uid))
		row.processes += viewer_sees(&r->viewer, uid);
	if (r->viewer.all) {
		row.files = source->no_row ? source->no_row(source->arg) : 0;
		row.names = names_refused(source->names);
	}
	json_key(j, "unwatched");
	json_begin(j, '{');
	rows_put(r->serve, j, unwatched_fields, &row);
	json_end(j, '}');
}

static uint64_t cpu_ns(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) < 0)
		return UNKNOWN_U64;
	return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000000 +
	       (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

static uint64_t rss_bytes(void)
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

static const struct field cost_fields[] = {
	{ "cpu_ns", FIELD_U64, offsetof(struct cost_row, cpu_ns), NULL },
	{ "cpu_share", FIELD_RATE, offsetof(struct cost_row, cpu_share), NULL },
	{ "rss_bytes", FIELD_U64, offsetof(struct cost_row, rss_bytes), NULL },
	{ NULL, 0, 0, NULL },
};

void serve_put_daemon_cost(const struct serve *s, struct json *j)
{
	uint64_t up_ns = s->now_ns - s->config.started_mono_ns;
	struct cost_row row = { cpu_ns(), -1, rss_bytes() };

	if (up_ns && row.cpu_ns != UNKNOWN_U64)
		row.cpu_share = (double)row.cpu_ns / (double)up_ns;
	json_key(j, "daemon");
	json_begin(j, '{');
	rows_put(s, j, cost_fields, &row);
	json_end(j, '}');
}

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
};

static const struct field status_fields[] = {
#define F(name, kind) { #name, kind, offsetof(struct status_row, name), NULL }
	F(version, FIELD_NAME),
	F(host, FIELD_NAME),
	F(boot_id, FIELD_NAME),
	F(uptime_ns, FIELD_U64),
	{ "started", FIELD_TIME, offsetof(struct status_row, started_ns), NULL },
	F(loop, FIELD_NAME),
	F(cpu_ns, FIELD_U64),
	F(rss_bytes, FIELD_U64),
	F(connections, FIELD_U32),
	F(level, FIELD_NAME),
	F(sampling, FIELD_NAME),
#undef F
	{ NULL, 0, 0, NULL },
};

/* The word that `text` has for every live process that has said what it records; else NULL. */
static const char *agreed(const struct request *r, const char *text(const struct process *))
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

static void put_error(const struct serve *s, struct json *j, const void *row)
{
	int error = ((const struct serve_exporter *)row)->error;

	(void)s;
	json_put_string(j, error ? strerror(-error) : NULL);
}

static const struct field exporter_fields[] = {
#define F(name, kind) { #name, kind, offsetof(struct serve_exporter, name), NULL }
	F(kind, FIELD_NAME),
	F(at, FIELD_NAME),
	F(done, FIELD_U64),
	F(failed, FIELD_U64),
	{ "last", FIELD_TIME, offsetof(struct serve_exporter, last_ns), NULL },
	{ "error", FIELD_PUT, 0, put_error },
#undef F
	{ NULL, 0, 0, NULL },
};

static void put_exporters(const struct serve *s, struct json *j)
{
	struct serve_exporter at[SERVE_EXPORTERS];
	size_t n = s->source.exporters ? s->source.exporters(s->source.arg, at) : 0;

	json_key(j, "exporters");
	json_begin(j, '[');
	for (size_t i = 0; i < n; i++) {
		json_begin(j, '{');
		rows_put(s, j, exporter_fields, &at[i]);
		json_end(j, '}');
	}
	json_end(j, ']');
}

void serve_status(struct request *r, struct json *j)
{
	const struct serve *s = r->serve;
	struct status_row row = {
		.version = NCCLINSP_VERSION,
		.host = s->host,
		.boot_id = *s->boot_id ? s->boot_id : NULL,
		.loop = s->loop,
		.uptime_ns = s->now_ns - s->config.started_mono_ns,
		.started_ns = s->config.started_mono_ns,
		.cpu_ns = cpu_ns(),
		.rss_bytes = rss_bytes(),
		.connections = s->nclients,
		.level = agreed(r, process_level),
		.sampling = agreed(r, process_sampling),
	};

	rows_put(s, j, status_fields, &row);
	put_ingest(r, j);
	put_stage(r, j, "reconstruct", reconstruct_fields,
		  reconstruct_stats(s->source.reconstruct));
	if (s->source.ranks)
		put_stage(r, j, "ranks", ranks_fields, ranks_stats(s->source.ranks));
	put_stage(r, j, "aggregate", aggregate_fields, aggregate_stats(s->source.aggregate));
	put_stage(r, j, "links", links_fields, links_stats(s->source.links));
	if (s->source.exemplars) {
		struct exemplars_stats stats;

		exemplars_read_stats(s->source.exemplars, &stats);
		put_stage(r, j, "exemplars", exemplars_fields, &stats);
	}
	if (s->source.memory)
		put_stage(r, j, "memory", memory_fields, s->source.memory);
	put_containers(r, j);
	put_unwatched(r, j);
	serve_control(s, j);
	serve_put_overhead(r, j);
	put_exporters(s, j);
}
