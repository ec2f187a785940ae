/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of families, and rows as text.  A family's series are those of one kind of
 * row; what it has several of per row differ in one or two labels.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ncclinspd/metrics/metrics_impl.h"
#include "reader/time/timeline.h"
#include "tables/stat.h"
#include "util/list.h"

#define LATELY_NS	(UINT64_C(60) * 1000000000)

struct write_series {
	int value;
	const char *name, *text;	/* NULL: no label */
	const char *name2, *text2;
};

struct family {
	enum metrics_kind kind;
	enum exposition_type type;
	const char *name, *help;
	uint32_t n;
	const struct write_series *series;
};

#define SERIES(...) \
	sizeof((struct write_series[]){ __VA_ARGS__ }) / sizeof(struct write_series), \
	(const struct write_series[]){ __VA_ARGS__ }
#define ONE(value) SERIES({ value, NULL, NULL, NULL, NULL })
#define TWO(name, v, a, w, b) SERIES({ v, name, a, NULL, NULL }, { w, name, b, NULL, NULL })
#define STEP(i, phase, way) { MEMBER_STEP + (i), "phase", phase, "direction", way }

static const struct write_series dropped[] = {
#define X(NAME, text) { MEMBER_DROPPED + METRICS_REASON_##NAME, "reason", text, NULL, NULL },
	METRICS_REASONS(X)
#undef X
};

static const struct family families[] = {
	{ METRICS_JOB, EXPOSITION_GAUGE, "ncclinsp_processes",
	  "Processes that live and are read.", ONE(JOB_LIVE) },
	{ METRICS_JOB, EXPOSITION_COUNTER, "ncclinsp_process_exits_total",
	  "Processes that ended: clean, the plugin said so; unknown, without a word.",
	  TWO("how", JOB_CLEAN, "clean", JOB_UNKNOWN, "unknown") },
	{ METRICS_MEMBER, EXPOSITION_INFO, "ncclinsp_process_info",
	  "What is known of a process.", ONE(MEMBER_INFO) },
	{ METRICS_MEMBER, EXPOSITION_COUNTER, "ncclinsp_records_total",
	  "Records that were read.", ONE(MEMBER_RECORDS) },
	{ METRICS_MEMBER, EXPOSITION_COUNTER, "ncclinsp_records_dropped_total",
	  "What was lost or left out, by reason.", METRICS_REASON_END, dropped },
	{ METRICS_MEMBER, EXPOSITION_COUNTER, "ncclinsp_plugin_callback_seconds_total",
	  "Time in the plugin's callbacks, estimated from one in some, by class of thread.",
	  TWO("thread", MEMBER_CALLBACK + NCI_THREADS_USER, "user",
	      MEMBER_CALLBACK + NCI_THREADS_PROXY, "proxy") },
	{ METRICS_MEMBER, EXPOSITION_GAUGE, "ncclinsp_plugin_overhead_ratio",
	  "Share of a thread's time in callbacks over ten seconds, of the busier class.",
	  ONE(MEMBER_OVERHEAD) },
	{ METRICS_MEMBER, EXPOSITION_GAUGE, "ncclinsp_plugin_budget_ratio",
	  "What that share may be.", ONE(MEMBER_BUDGET) },
	{ METRICS_MEMBER, EXPOSITION_GAUGE, "ncclinsp_level",
	  "What is recorded: 0 off, 1 ops, 2 kernel, 3 net, 4 trace, 5 a mask.",
	  ONE(MEMBER_LEVEL) },
	{ METRICS_MEMBER, EXPOSITION_COUNTER, "ncclinsp_step_seconds_total",
	  "Time of network steps in each of their phases, summed over steps.",
	  SERIES(STEP(0, "produce", "send"), STEP(1, "credit", "send"), STEP(2, "wire", "send"),
		 STEP(3, "recv_wait", "receive"), STEP(4, "flush", "receive"),
		 STEP(5, "consume", "receive")) },
	{ METRICS_MEMBER, EXPOSITION_COUNTER, "ncclinsp_net_bytes_total",
	  "Bytes that went over the network.",
	  TWO("direction", MEMBER_MOVED, "send", MEMBER_MOVED + 1, "receive") },
	{ METRICS_ROLE, EXPOSITION_GAUGE, "ncclinsp_stalled",
	  "1: an operation hangs; desync: because its ranks do not agree.",
	  TWO("verdict", ROLE_STALL, "stall", ROLE_DESYNC, "desync") },
	{ METRICS_COMM, EXPOSITION_INFO, "ncclinsp_comm_info",
	  "What is known of an open communicator.", ONE(COMM_INFO) },
	{ METRICS_RANK, EXPOSITION_COUNTER, "ncclinsp_op_wait_seconds_total",
	  "Time inside operations in which the rank waited for others.", ONE(RANK_WAIT) },
	{ METRICS_RANK, EXPOSITION_COUNTER, "ncclinsp_blame_seconds_total",
	  "What the other ranks of the node waited for this one.", ONE(RANK_BLAME) },
	{ METRICS_RANK, EXPOSITION_COUNTER, "ncclinsp_judged_ops_total",
	  "Operations in which some rank was late.", ONE(RANK_JUDGED) },
	{ METRICS_RANK, EXPOSITION_COUNTER, "ncclinsp_last_arrivals_total",
	  "Of these: in which this rank came last.", ONE(RANK_LAST) },
	{ METRICS_RANK, EXPOSITION_GAUGE, "ncclinsp_inflight_ops",
	  "Operations that have begun and not ended.", ONE(RANK_INFLIGHT) },
	{ METRICS_RANK, EXPOSITION_GAUGE, "ncclinsp_inflight_oldest_seconds",
	  "Age of the oldest of them; 0: there is none.", ONE(RANK_OLDEST) },
	{ METRICS_INSIDE, EXPOSITION_COUNTER, "ncclinsp_op_inside_ops_total",
	  "Timed operations in which each rank needs the data of all others.", ONE(INSIDE_OPS) },
	{ METRICS_INSIDE, EXPOSITION_COUNTER, "ncclinsp_op_inside_seconds_total",
	  "Time inside these: on average it is shortest for the rank of all nodes that is late.",
	  ONE(INSIDE_TIME) },
	{ METRICS_PEER, EXPOSITION_COUNTER, "ncclinsp_peer_bytes_total",
	  "Bytes that went over the network, by peer.", ONE(PEER_BYTES) },
	{ METRICS_PEER, EXPOSITION_GAUGE, "ncclinsp_peer_rate_bytes_per_second",
	  "What was sent in the last minute over the time that the wire was busy, channels added.",
	  ONE(PEER_RATE) },
	{ METRICS_PEER, EXPOSITION_GAUGE, "ncclinsp_peer_latency_seconds",
	  "Time of a transfer of no size, from a line through the sizes of the last minute.",
	  ONE(PEER_LATENCY) },
	{ METRICS_OP, EXPOSITION_COUNTER, "ncclinsp_ops_total",
	  "Operations that finished.", ONE(OP_OPS) },
	{ METRICS_OP, EXPOSITION_COUNTER, "ncclinsp_op_bytes_total",
	  "Their sizes, as nccl-tests counts them.", ONE(OP_BYTES) },
	{ METRICS_OP, EXPOSITION_GAUGE, "ncclinsp_last_sequence",
	  "Number of the newest that was posted, the same on all ranks of a communicator.",
	  ONE(OP_SEQUENCE) },
	{ METRICS_TIME, EXPOSITION_HISTOGRAM, "ncclinsp_op_duration_seconds",
	  "Time inside operations that ran alone, over the ranks of the node.",
	  ONE(TIME_BUCKET) },
	{ METRICS_TIME, EXPOSITION_GAUGE, "ncclinsp_op_busbw_bytes_per_second",
	  "Bus bandwidth, the median of the last 32 operations of a minute: naive, over the "
	  "time inside; waitfree, of who came last and waited for nobody.",
	  TWO("kind", TIME_BUSBW, "naive", TIME_WAITFREE, "waitfree") },
};

#define FAMILIES (sizeof(families) / sizeof(families[0]))

/* A histogram is its buckets, its sum and its count. */
uint32_t metrics_cost(enum metrics_kind kind)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < FAMILIES; i++)
		if (families[i].kind == kind)
			sum += families[i].type == EXPOSITION_HISTOGRAM ? METRICS_BOUNDS + 3 :
									   families[i].n;
	return sum;
}

void metrics_reset_gauges(struct metrics_row *row)
{
	for (size_t i = 0; i < FAMILIES; i++) {
		const struct family *f = &families[i];

		if (f->kind != row->labels.kind || f->type == EXPOSITION_COUNTER ||
		    f->type == EXPOSITION_HISTOGRAM)
			continue;
		for (uint32_t s = 0; s < f->n; s++)
			row->v[f->series[s].value] = NAN;
	}
}

/* ---- labels -------------------------------------------------------------------------- */

static void labels_put_gpu(struct exposition *e, const uint8_t u[16])
{
	static const uint8_t none[16];
	char text[48];
	size_t n = 4;

	if (!memcmp(u, none, sizeof(none)))
		return;
	memcpy(text, "GPU-", 5);
	for (int i = 0; i < 16; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%02x",
				      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
	exposition_label(e, "gpu_uuid", text);
}

static void labels_put_number(struct exposition *e, const char *name, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)value);
	exposition_label(e, name, text);
}

static void labels_put_hex(struct exposition *e, const char *name, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%016llx", (unsigned long long)value);
	exposition_label(e, name, text);
}

static void labels_put_size_class(struct exposition *e, uint64_t class)
{
	static const char *const units[] = { "KiB", "MiB", "GiB" };
	int unit = 0;
	char text[24];

	if (!class)
		return;
	class >>= 10;
	for (; class >= 1024 && unit < 2; unit++)
		class >>= 10;
	snprintf(text, sizeof(text), "%llu%s", (unsigned long long)class, units[unit]);
	exposition_label(e, "size_class", class > 16 && unit == 2 ? "inf" : text);
}

static void labels_put_info(struct exposition *e, const struct metrics_row *row)
{
	static const char *const member[METRICS_INFOS] = {
		"plugin_api", "plugin_version", "scheduler", "namespace", "pod", "container_id",
		"command",
	};
	static const char *const comm[METRICS_INFOS] = {
		"comm_id", "comm_name", "nranks", "nnodes",
	};
	const char *const *names = row->labels.kind == METRICS_MEMBER ? member : comm;

	for (int i = 0; i < METRICS_INFOS && names[i]; i++)
		exposition_label(e, names[i], row->info[i]);
}

static void labels_put_other(struct exposition *e, enum metrics_kind kind)
{
	exposition_label(e, "job_id", METRICS_OTHER);
	if (kind != METRICS_JOB && kind != METRICS_MEMBER)
		exposition_label(e, "comm", METRICS_OTHER);
	if (kind == METRICS_OP || kind == METRICS_TIME)
		exposition_label(e, "op", METRICS_OTHER);
}

static void labels_put(const struct metrics *m, struct exposition *e,
		       const struct metrics_row *row)
{
	const struct metrics_labels *l = &row->labels;

	exposition_label(e, "node", m->host);
	if (l->uid == METRICS_NOBODY) {
		labels_put_other(e, (enum metrics_kind)l->kind);
		return;
	}
	labels_put_number(e, "uid", l->uid);
	exposition_label(e, "job_id", l->job);
	exposition_label(e, "comm", l->comm);
	if (l->kind == METRICS_INSIDE)
		labels_put_hex(e, "comm_id", l->comm_id);
	if (l->rank != UNKNOWN_I32)
		labels_put_number(e, "rank", l->rank);
	labels_put_gpu(e, l->gpu);
	if (l->kind == METRICS_PEER) {
		labels_put_number(e, "peer_rank", l->peer);
		exposition_label(e, "direction", l->receives ? "receive" : "send");
	}
	exposition_label(e, "op", l->op);
	labels_put_size_class(e, l->size_class);
	exposition_label(e, "algo", l->algo);
	exposition_label(e, "proto", l->proto);
	exposition_label(e, "source", timeline_source_text((enum timing_source)l->source));
}

/* ---- values ---------------------------------------------------------------------------- */

/* NaN: there was none for a minute. */
static double row_median(const struct metrics *m, const struct metrics_row *row, int which,
			 uint64_t now_ns)
{
	const struct metrics_lately *lately = pool_at(&m->lately, row->lately);
	double rate[METRICS_LATELY];
	uint32_t n = 0, all = lately->of[which].n;

	for (uint32_t i = 0; i < all && i < METRICS_LATELY; i++)
		if (lately->of[which].at_ns[i] + LATELY_NS > now_ns)
			*array_must_add(rate, &n) = lately->of[which].rate[i];
	return n ? stat_median(rate, n) : NAN;
}

static void row_put_histogram(struct exposition *e, const struct metrics_row *row)
{
	double bound_s = METRICS_FIRST_BOUND_NS * 1e-9, n = 0;
	size_t before = e->label_bytes;
	char text[32];

	for (int i = 0; i <= METRICS_BOUNDS; i++, bound_s *= 2) {
		snprintf(text, sizeof(text), "%.9g", bound_s);
		n += row->v[TIME_BUCKET + i];
		exposition_label(e, "le", i < METRICS_BOUNDS ? text : "+Inf");
		exposition_sample(e, "_bucket", n);
		exposition_unlabel(e, before);
	}
	exposition_sample(e, "_sum", row->v[TIME_SUM]);
	exposition_sample(e, "_count", n);
}

static double row_value(const struct metrics *m, const struct metrics_row *row, int value,
			uint64_t now_ns)
{
	if (row->labels.kind == METRICS_TIME)
		return row_median(m, row, value == TIME_WAITFREE, now_ns);
	return row->v[value];
}

static void metric_row_put(const struct metrics *m, struct exposition *e, const struct family *f,
			   const struct metrics_row *row, uint64_t now_ns)
{
	labels_put(m, e, row);
	if (f->type == EXPOSITION_INFO)
		labels_put_info(e, row);
	if (f->type == EXPOSITION_HISTOGRAM) {
		row_put_histogram(e, row);
	} else {
		size_t before = e->label_bytes;

		for (uint32_t i = 0; i < f->n; i++) {
			const struct write_series *s = &f->series[i];

			if (s->name)
				exposition_label(e, s->name, s->text);
			if (s->name2)
				exposition_label(e, s->name2, s->text2);
			exposition_sample(e, "", row_value(m, row, s->value, now_ns));
			exposition_unlabel(e, before);
		}
	}
	exposition_unlabel(e, 0);
}

/* ---- the node itself ------------------------------------------------------------------- */

static void row_put_one(const struct metrics *m, struct exposition *e, const char *name,
			enum exposition_type type, const char *help, double value)
{
	exposition_family(e, name, type, help);
	exposition_label(e, "node", m->host);
	if (type == EXPOSITION_INFO)
		exposition_label(e, "version", NCCLINSP_VERSION);
	exposition_sample(e, "", value);
	exposition_unlabel(e, 0);
}

static double node_cpu_s(void)
{
	struct rusage u;

	if (getrusage(RUSAGE_SELF, &u) < 0)
		return NAN;
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

static void node_put_findings(const struct metrics *m, struct exposition *e, const char *family,
			      const char *help, enum finding_grade grade)
{
	exposition_family(e, family, EXPOSITION_GAUGE, help);
	for (int kind = 0; kind < FINDING_KIND_END; kind++) {
		exposition_label(e, "node", m->host);
		exposition_label(e, "kind", finding_kind_name((enum finding_kind)kind));
		exposition_sample(e, "", m->findings[grade][kind]);
		exposition_unlabel(e, 0);
	}
}

static void node_put(const struct metrics *m, struct exposition *e, bool all)
{
	row_put_one(m, e, "ncclinsp_build_info", EXPOSITION_INFO, "The daemon.", 1);
	if (!all)
		return;
	row_put_one(m, e, "ncclinsp_daemon_cpu_seconds_total", EXPOSITION_COUNTER,
		    "What the daemon itself has used.", node_cpu_s());
	row_put_one(m, e, "ncclinsp_series", EXPOSITION_GAUGE,
		    "Series of jobs that have their places.", m->stats.series);
	row_put_one(m, e, "ncclinsp_series_limit", EXPOSITION_GAUGE,
		    "What these and the node's own may be.", m->stats.limit);
	row_put_one(m, e, "ncclinsp_series_refused_total", EXPOSITION_COUNTER,
		    "Times that labels found no place, and were counted under other.",
		    (double)m->stats.refused);
	node_put_findings(m, e, "ncclinsp_findings", "Active findings, by kind.", FINDING_FOUND);
	node_put_findings(m, e, "ncclinsp_findings_suspected",
			  "Faults that are suspected, and not found yet, by kind.",
			  FINDING_SUSPECTED);
}

void metrics_write(const struct metrics *m, struct exposition *e, bool all, uid_t uid,
		   uint64_t now_ns)
{
	node_put(m, e, all);
	for (size_t i = 0; i < FAMILIES; i++) {
		const struct family *f = &families[i];
		const struct pool_list *rows = &m->kind[f->kind];

		exposition_family(e, f->name, f->type, f->help);
		for (uint32_t item = rows->first; item != POOL_NONE;
		     item = pool_list_next(&m->rows.pool, rows, item)) {
			const struct metrics_row *row = metrics_row_at(m, item);

			if (all || row->labels.uid == uid)
				metric_row_put(m, e, f, row, now_ns);
		}
	}
	exposition_end(e);
}
