/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp ranks: who makes whom wait, the worst first; ncclinsp dmon: the same GPU by GPU. */
#include <time.h>

#include "cli/common/listing.h"
#include "cli/view/view.h"

#define HEADER_EVERY 20	/* lines of dmon */
#define LOOK_NS	     500000000	/* between the two of the first sample */

/* Files tell of all the time only. */
static const char *window(const struct cli *cli, const char *usual)
{
	return cli->window ?: cli->from.count ? "all" : usual;
}

static int fetch(struct cli *cli, struct view *view, const char *usual_window)
{
	const struct view_want want = { .window = window(cli, usual_window), .young = true,
					.fresh = true };

	return view_fetch(view, cli->client, &want, cli_now_ns());
}

/* ---- ranks ------------------------------------------------------------------ */

/*
 * Sums kept from one sample to the next tell which rank waited meanwhile.  The first sample
 * takes two looks, so that a single one tells it, too.
 */
static int fetch_ranks(struct cli *cli, void *arg, json_t **root)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	struct view *view = arg;
	bool first = !view->waits.last;
	int r = fetch(cli, view, "10s");

	if (!r && first && json_array_size(view->rows[VIEW_RANKS])) {
		nanosleep(&pause, NULL);
		r = fetch(cli, view, "10s");
	}
	if (!r)
		*root = json_pack("{s:O}", "ranks", view->rows[VIEW_RANKS]);
	return r;
}

int cmd_ranks(struct cli *cli)
{
	struct view view = { 0 };
	const struct listing listing = {
		.array = "ranks",
		.columns = rank_columns,
		.count = rank_column_count,
		.nothing = "no rank is alive",
		.fetch = fetch_ranks,
		.arg = &view,
	};
	int code = listing_run(cli, &listing, NULL);

	view_deinit(&view);
	return code;
}

/* ---- dmon ------------------------------------------------------------------- */

/* The moment of the sample, in each of its rows. */
static void put_time(json_t *rows)
{
	struct timespec now;
	struct tm utc;
	char text[64];
	json_t *row;
	size_t i, used;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	used = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(text + used, sizeof(text) - used, ".%09ldZ", now.tv_nsec);
	json_array_foreach(rows, i, row)
		json_object_set_new(row, "at", json_string(text));
}

/* Each GPU keeps its place from sample to sample. */
static int fetch_gpus(struct cli *cli, void *arg, json_t **root)
{
	static const struct column by_pid = { NULL, NULL, COL_INTEGER, "pid", 0, 0, 0 };
	static const struct column by_gpu = { NULL, NULL, COL_TEXT, "gpu", 0, 0, 0 };
	struct view *view = arg;
	json_t *rows;
	int r = fetch(cli, view, "1s");

	if (r)
		return r;
	rows = ranks_by_gpu(view->rows[VIEW_RANKS]);
	report_sort(rows, &by_pid, true);
	report_sort(rows, &by_gpu, true);
	put_time(rows);
	*root = json_pack("{s:o}", "gpus", rows);
	return 0;
}

int cmd_dmon(struct cli *cli)
{
	struct view view = { 0 };
	const struct listing listing = {
		.array = "gpus",
		.columns = gpu_columns,
		.count = gpu_column_count,
		.nothing = "no GPU uses NCCL",
		.fetch = fetch_gpus,
		.arg = &view,
		.header_every = HEADER_EVERY,
	};
	int code;

	cli->watch = true;
	code = listing_run(cli, &listing, NULL);
	view_deinit(&view);
	return code;
}
