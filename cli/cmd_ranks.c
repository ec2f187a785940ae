/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp ranks: who makes whom wait, the worst first; ncclinsp dmon: the same GPU by GPU. */
#include <time.h>

#include "cli/base/member.h"
#include "cli/common/listing.h"
#include "cli/view/ranks.h"
#include "schema/fields.h"

#define HEADER_EVERY 20	/* lines of dmon */

/* The ranks over the window that was asked for; files tell of all the time only. */
static int ranks_fetch(struct cli *cli, const char *usual_window, json_t **root)
{
	char target[512];
	int r;

	snprintf(target, sizeof(target), "/v1/ranks?window=%s&fields=" RANK_FIELDS,
		 cli->window ?: usual_window);
	r = client_get(cli->client, target, root);
	if (r)
		return r;
	json_each(row, json_object_get(*root, "ranks"))
		ranks_dress(row);
	return 0;
}

/* The daemon tells the worst ones where there are very many. */
static bool note_left_out(const json_t *answer, char *text, size_t size)
{
	json_int_t all = json_integer_value(json_object_get(answer, "ranks_total"));
	size_t shown = json_array_size(json_object_get(answer, "ranks"));

	if (all <= (json_int_t)shown)
		return false;
	snprintf(text, size, "these are the worst %zu of %lld ranks", shown, (long long)all);
	return true;
}

/* ---- ranks ------------------------------------------------------------------ */

static int ranks_fetch_rows(struct cli *cli, void *arg, json_t **root)
{
	return ranks_fetch(cli, "10s", root);
}

int cmd_ranks(struct cli *cli)
{
	const struct listing listing = {
		.array = "ranks",
		.columns = rank_columns,
		.count = rank_column_count,
		.nothing = "no rank is alive",
		.note = note_left_out,
		.fetch = ranks_fetch_rows,
		.whole = true,
	};

	return listing_run(cli, &listing, NULL);
}

/* ---- dmon ------------------------------------------------------------------- */

/* The moment of the sample, in each of its rows. */
static void ranks_put_time(json_t *rows)
{
	struct timespec now;
	struct tm utc;
	char text[64];
	size_t used;

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	used = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(text + used, sizeof(text) - used, ".%09ldZ", now.tv_nsec);
	json_each(row, rows)
		json_object_set_new(row, "at", json_string(text));
}

/* Each GPU keeps its place from sample to sample. */
static int ranks_fetch_gpus(struct cli *cli, void *arg, json_t **root)
{
	static const struct column by_pid = { NULL, NULL, COL_INTEGER, "pid", 0, 0, 0 };
	static const struct column by_gpu = { NULL, NULL, COL_TEXT, "pci_bus_id", 0, 0, 0 };
	json_t *answer = NULL, *rows;
	int r = ranks_fetch(cli, "1s", &answer);

	if (r)
		return r;
	rows = ranks_by_gpu(json_object_get(answer, "ranks"));
	json_decref(answer);
	report_sort(rows, &by_pid, true);
	report_sort(rows, &by_gpu, true);
	ranks_put_time(rows);
	*root = json_pack("{s:o}", "gpus", rows);
	return 0;
}

int cmd_dmon(struct cli *cli)
{
	const struct listing listing = {
		.array = "gpus",
		.columns = gpu_columns,
		.count = gpu_column_count,
		.nothing = "no GPU uses NCCL",
		.fetch = ranks_fetch_gpus,
		.whole = true,
		.header_every = HEADER_EVERY,
	};

	cli->watch = true;
	return listing_run(cli, &listing, NULL);
}
