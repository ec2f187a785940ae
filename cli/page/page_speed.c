/* SPDX-License-Identifier: Apache-2.0 */
/* Bandwidth by operation and size, its ranks added up, against what is usual. */
#include <string.h>

#include "cli/base/member.h"
#include "cli/page/html.h"
#include "cli/page/page_parts.h"
#include "util/list.h"
#include "util/text.h"

/* A figure of a group: the path in the ranks' rows, and how they make one. */
static const struct fold {
	const char *name, *path;
	enum { FOLD_SUM, FOLD_MEAN, FOLD_LEAST, FOLD_MOST } how;
	bool whole;	/* it is a whole number */
} folds[] = {
	{ "ops", "ops", FOLD_SUM, true },
	{ "bus", "busbw_gbs.mean", FOLD_MEAN, false },
	{ "free", "busbw_waitfree_gbs", FOLD_MEAN, false },
	{ "usual", "usual_busbw_gbs", FOLD_MEAN, false },
	{ "least", "busbw_gbs.mean", FOLD_LEAST, false },
	{ "p50_ns", "exec.p50_ns|batch.p50_ns", FOLD_MEAN, true },
	{ "p99_ns", "exec.p99_ns|batch.p99_ns", FOLD_MOST, true },
};

static const struct page_column columns[] = {
	{ { NULL, "Comm", COL_TEXT, "comm_label|comm_id", 0, 24, 0 }, NULL },
	{ { NULL, "Operation", COL_TEXT, "func", 0, 20, 0 }, NULL },
	{ { NULL, "Size", COL_BYTES, "size_class", 0, 0, 0 }, NULL },
	{ { NULL, "Algorithm", COL_TEXT, "algo/proto", 0, 20, 0 }, NULL },
	{ { NULL, "Operations", COL_INTEGER, "ops", 0, 0, 0 }, NULL },
	{ { NULL, "Median (us)", COL_MICROS, "p50_ns", 0, 0, 0 }, NULL },
	{ { NULL, "p99 (us)", COL_MICROS, "p99_ns", 0, 0, 0 }, NULL },
	{ { NULL, "Bus (GB/s)", COL_NUMBER, "bus", 0, 0, 0 }, "speed" },
	{ { NULL, "Slowest rank", COL_NUMBER, "least", 0, 0, 0 }, NULL },
	{ { NULL, "Without waiting", COL_NUMBER, "free", 0, 0, 0 }, NULL },
	{ { NULL, "Usual", COL_NUMBER, "usual", 0, 0, 0 }, NULL },
	{ { NULL, "Of usual (%)", COL_PERCENT, "of_usual", 0, 0, 0 }, "speed" },
};

static const struct column by_key = { NULL, NULL, COL_TEXT, "key", 0, 0, 0 };

/* Ranks of one communicator, operation and size have one key; keys are in the order of rows. */
static void group_key(const json_t *row, char *key, size_t size)
{
	char comm[160] = "", algo[64] = "";

	report_text(row, "comm_label|comm_id", comm, sizeof(comm));
	report_text(row, "algo/proto", algo, sizeof(algo));
	snprintf(key, size, "%s\n%s\n%s\n%020llu\n%s", comm, member_text(row, "comm_id", ""),
		 member_text(row, "func", ""),
		 (unsigned long long)member_number(row, "size_class", 0), algo);
}

static double fold_join(const struct fold *fold, double so_far, double value, double n)
{
	switch (fold->how) {
	case FOLD_SUM:
		return so_far + value;
	case FOLD_MEAN:
		return so_far + (value - so_far) / n;
	case FOLD_LEAST:
		return n > 1 && so_far < value ? so_far : value;
	case FOLD_MOST:
		return n > 1 && so_far > value ? so_far : value;
	}
	return value;
}

/* `counts`: how many rows had each figure so far. */
static void group_add(json_t *group, json_t *counts, const json_t *row)
{
	for (size_t i = 0; i < ARRAY_LEN(folds); i++) {
		const struct fold *f = &folds[i];
		const json_t *value = report_get(row, f->path);
		json_int_t n = json_integer_value(json_object_get(counts, f->name)) + 1;
		double so_far = json_number_value(json_object_get(group, f->name));
		double joined = fold_join(f, so_far, json_number_value(value), (double)n);

		if (!json_is_number(value))
			continue;
		json_object_set_new(counts, f->name, json_integer(n));
		json_object_set_new(group, f->name, f->whole ? json_integer((json_int_t)joined) :
							       json_real(joined));
	}
}

static json_t *group_new(const json_t *row, const char *key)
{
	static const char *const kept[] = {
		"comm_label", "comm_id", "func", "size_class", "algo", "proto",
	};
	json_t *group = json_pack("{s:s}", "key", key);

	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		if (json_object_get(row, kept[i]))
			json_object_set(group, kept[i], json_object_get(row, kept[i]));
	return group;
}

/* The part that the figures are of the usual is added. */
static void group_finish(json_t *group)
{
	double free_gbs = json_number_value(json_object_get(group, "free"));
	double usual_gbs = json_number_value(json_object_get(group, "usual"));

	if (free_gbs > 0 && usual_gbs > 0)
		json_object_set_new(group, "of_usual", json_real(free_gbs / usual_gbs));
}

json_t *page_ops_by_size(const json_t *ops)
{
	json_t *groups = json_object(), *counts = json_object(), *rows = json_array(), *row;
	const char *name;
	char key[512];
	size_t i;

	json_array_foreach((json_t *)ops, i, row) {
		group_key(row, key, sizeof(key));
		if (!json_object_get(groups, key)) {
			json_object_set_new(groups, key, group_new(row, key));
			json_object_set_new(counts, key, json_object());
		}
		group_add(json_object_get(groups, key), json_object_get(counts, key), row);
	}
	json_object_foreach(groups, name, row) {
		group_finish(row);
		json_array_append(rows, row);
	}
	json_decref(groups);
	json_decref(counts);
	report_sort(rows, &by_key, true);
	return rows;
}

void page_speed(const struct page *page)
{
	json_t *rows = page_ops_by_size(page->ops);

	page_section(page, "speed", "Bandwidth by size",
		     "Bus bandwidth as in nccl-tests, the mean of all ranks, over the whole time. "
		     "<b>Usual</b> is what such operations reached before. It is compared with "
		     "the bandwidth <b>without waiting</b> for late ranks.");
	page_table(page, columns, ARRAY_LEN(columns), rows,
		   "No operation has finished in the time of these files.");
	json_decref(rows);
	page_section_end(page);
}
