/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp ops: how often and how fast each operation ran, the costliest first. */
#include <string.h>
#include <strings.h>

#include "cli/common/listing.h"

const struct column ops_columns[] = {
	{ "comm_id", NULL, COL_TEXT, "comm_id", 0, 0, 0 },
	{ "comm_name", NULL, COL_TEXT, "comm_name", 0, 0, 0 },
	{ NULL, "COMM", COL_TEXT, "comm_label|comm_name|comm_id", 0, 20, 0 },
	{ "rank", "RANK", COL_INTEGER, "rank", 0, 0, REPORT_IF_KNOWN | REPORT_KEY },
	{ NULL, "PHASE", COL_TEXT, "phase", 0, 16, 3 | REPORT_IF_KNOWN | REPORT_APART },
	{ NULL, "TAG", COL_TEXT, "tag", 0, 18, 3 | REPORT_IF_KNOWN | REPORT_APART },
	{ "func", NULL, COL_TEXT, "func", 0, 0, 0 },
	{ NULL, "OP", COL_OP, "func", 9, 20, 0 },
	{ "size_class", "SIZE", COL_BYTES, "size_class", 6, 0, REPORT_KEY },
	{ "algo", NULL, COL_TEXT, "algo", 0, 0, 0 },
	{ "proto", NULL, COL_TEXT, "proto", 0, 0, 0 },
	{ NULL, "ALGO/PROTO", COL_TEXT, "algo/proto", 0, 20, 5 | REPORT_APART },
	{ "ops", "N", COL_INTEGER, "ops", 6, 0, 0 },
	{ "fused", "FUSED", COL_INTEGER, "fused", 0, 0, REPORT_IF_UNUSUAL },
	{ "derived", NULL, COL_INTEGER, "derived", 0, 0, 0 },
	{ "bytes", NULL, COL_INTEGER, "bytes", 0, 0, 0 },
	{ "mean_ns", NULL, COL_MICROS, "exec.mean_ns", 0, 0, 0 },
	{ "p50_ns", NULL, COL_MICROS, "exec.p50_ns", 0, 0, 0 },
	{ "p90_ns", NULL, COL_MICROS, "exec.p90_ns", 0, 0, 0 },
	{ "p95_ns", NULL, COL_MICROS, "exec.p95_ns", 0, 0, 0 },
	{ "p99_ns", NULL, COL_MICROS, "exec.p99_ns", 0, 0, 0 },
	{ "max_ns", NULL, COL_MICROS, "exec.max_ns", 0, 0, 0 },
	{ "batches", NULL, COL_INTEGER, "batch.n", 0, 0, 0 },
	{ "batch_mean_ns", NULL, COL_MICROS, "batch.mean_ns", 0, 0, 0 },
	{ "batch_p50_ns", NULL, COL_MICROS, "batch.p50_ns", 0, 0, 0 },
	{ "batch_p99_ns", NULL, COL_MICROS, "batch.p99_ns", 0, 0, 0 },
	{ NULL, "P50(us)", COL_MICROS, "exec.p50_ns|batch.p50_ns", 8, 0, 0 },
	{ NULL, "P95(us)", COL_MICROS, "exec.p95_ns|batch.p95_ns", 8, 0, 9 },
	{ NULL, "P99(us)", COL_MICROS, "exec.p99_ns|batch.p99_ns", 8, 0, 2 },
	{ NULL, "MAX(us)", COL_MICROS, "exec.max_ns|batch.max_ns", 8, 0, 7 },
	{ "algbw_gbs", NULL, COL_NUMBER, "algbw_gbs", 0, 0, 0 },
	{ "busbw_gbs", "BUSBW(GB/s)", COL_NUMBER, "busbw_gbs.mean", 0, 0, 0 },
	{ "busbw_waitfree_gbs", "WAITFREE(GB/s)", COL_NUMBER, "busbw_waitfree_gbs", 0, 0,
	  REPORT_IF_KNOWN | 8 },
	{ "wait_fraction", "WAIT(%)", COL_PERCENT, "wait_fraction", 0, 0, REPORT_IF_KNOWN | 5 },
	{ "share", "SHARE(%)", COL_PERCENT, "share", 0, 0, 6 },
	{ "sampled_fraction", "TIMED(%)", COL_PERCENT, "sampled_fraction", 0, 0,
	  5 | REPORT_IF_UNUSUAL },
	{ "lost_fraction", "LOST(%)", COL_LOSS, "lost_fraction", 0, 0, REPORT_IF_UNUSUAL },
	{ "timing_source", "SRC", COL_TEXT, "timing_source", 10, 0, 4 | REPORT_APART },
	{ "nranks", NULL, COL_INTEGER, "nranks", 0, 0, REPORT_KEY },
	{ "phase", NULL, COL_TEXT, "phase", 0, 0, 0 },
	{ "tag", NULL, COL_TEXT, "tag", 0, 0, 0 },
	{ "host", "HOST", COL_TEXT, "host", 0, 24, REPORT_IF_KNOWN },
};
const size_t ops_column_count = sizeof(ops_columns) / sizeof(ops_columns[0]);

static bool is_rank(const char *text, const char *end)
{
	return !strncasecmp(text, "rank", 4) && strchr(end, text[4]);
}

/* Ranks are asked for, in whichever way: else all of a communicator are one row. */
static bool wants_ranks(const struct cli *cli)
{
	const char *sort = cli->sort, *field = cli->fields;

	if (cli->by_rank || cli->rank != CLI_ANY || cli->pid != CLI_ANY || cli->gpu)
		return true;
	for (size_t i = 0; i < cli->filters.count; i++)
		if (is_rank(cli->filters.text[i], " =!<>~"))
			return true;
	for (; field && *field; field += strcspn(field, ","), field += *field == ',')
		if (is_rank(field, ","))
			return true;
	return sort && is_rank(sort + strspn(sort, "+-"), "");
}

int cmd_ops(struct cli *cli)
{
	const struct listing listing = {
		.array = "rows",
		.members = "comm_id,comm_name,nranks,rank,func,algo,proto,size_class,phase,tag,ops,"
			   "bytes,fused,derived,exec,batch,algbw_gbs,busbw_gbs,"
			   "busbw_waitfree_gbs,wait_fraction,share,timing_source,"
			   "sampled_fraction,lost_fraction",
		.columns = ops_columns,
		.count = ops_column_count,
		.nothing = "no operation has finished yet",
		.joint = true,
	};
	char target[128];

	snprintf(target, sizeof(target),
		 "/v1/summary?window=%s&by=comm,func,size,algo,proto,phase,tag%s",
		 cli->window ? cli->window : "all",
		 wants_ranks(cli) ? ",rank" : "");
	return listing_run(cli, &listing, target);
}
