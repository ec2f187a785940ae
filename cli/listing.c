/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/listing.h"

#include <string.h>
#include <strings.h>

#include "cli/label.h"

/* ---- filters -------------------------------------------------------------- */

static bool text_matches(const char *wanted, const json_t *row, const char *path)
{
	const char *have = json_string_value(report_get(row, path));

	return have && !strcasecmp(wanted, have);
}

static bool number_matches(int64_t wanted, const json_t *row, const char *path)
{
	const json_t *have = report_get(row, path);

	return json_is_integer(have) && json_integer_value(have) == wanted;
}

bool listing_wants(const struct cli *cli, const json_t *row)
{
	return (!cli->comm || label_matches(cli->comm, row)) &&
	       (!cli->func || text_matches(cli->func, row, "func")) &&
	       (cli->rank == CLI_ANY || number_matches(cli->rank, row, "rank|job.rank")) &&
	       (cli->pid == CLI_ANY || number_matches(cli->pid, row, "pid"));
}

static bool filters(const struct cli *cli)
{
	return cli->comm || cli->func || cli->rank != CLI_ANY || cli->pid != CLI_ANY ||
	       cli->peer != CLI_ANY || cli->direction || cli->older_ns;
}

/* ---- communicators -------------------------------------------------------- */

json_t *listing_comms(const struct cli *cli)
{
	json_t *root = NULL, *known = json_array(), *row;
	size_t i;

	if (!client_get(cli->client, "/v1/comms", &root))
		json_array_foreach(json_object_get(root, "comms"), i, row)
			label_learn(known, row);
	json_decref(root);
	return known;
}

/*
 * A name that one communicator of these rows has may be another's as well that is not
 * among them; one that is has perhaps ended, and the daemon does not know it any more.
 */
static void label_all(const struct cli *cli, json_t *rows)
{
	json_t *known = listing_comms(cli), *row;
	size_t i;

	json_array_foreach(rows, i, row)
		label_learn(known, row);
	label_rows(rows, known);
	json_decref(known);
}

/* ---- one sample ----------------------------------------------------------- */

/* The rows that pass the filters: the table's, or for JSON the daemon's own. */
static json_t *select_rows(const struct cli *cli, const struct listing *listing,
			   const json_t *root)
{
	bool reshaped = listing->reshape && (cli->format != CLI_JSON || listing->nested);
	const json_t *answered = json_object_get(root, listing->array);
	json_t *rows, *wanted = json_array();

	rows = reshaped ? listing->reshape(answered) : json_copy((json_t *)answered);
	if (cli->format == CLI_TABLE)
		label_all(cli, rows);
	for (size_t i = 0; i < json_array_size(rows); i++)
		if (listing_wants(cli, json_array_get(rows, i)))
			json_array_append(wanted, json_array_get(rows, i));
	json_decref(rows);
	if (listing->sort)
		report_sort(wanted, listing->sort, false);
	return wanted;
}

/* What the daemon answered, to the byte, unless a filter of ours was given. */
static void print_json(const struct cli *cli, const struct listing *listing, json_t *root,
		       json_t *rows)
{
	size_t len;
	const char *body = client_body(cli->client, &len);

	if (!filters(cli) && body) {
		fwrite(body, 1, len, stdout);
		if (len && body[len - 1] == '\n')
			return;
	} else {
		if (listing->nested)
			json_object_set_new(root, listing->array,
					    listing->nested(cli, report_get(root, listing->array)));
		else
			json_object_set(root, listing->array, rows);
		json_dumpf(root, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	}
	fputc('\n', stdout);
}

static void print_csv(const struct cli *cli, const struct report *report, const json_t *rows,
		      bool first)
{
	if (cli->header && first)
		report_csv_header(report, stdout);
	for (size_t i = 0; i < json_array_size(rows); i++)
		report_csv_row(report, json_array_get(rows, i), stdout);
}

static void print_table(const struct cli *cli, struct report *report, const json_t *rows)
{
	struct line line;

	report_fit(report, rows, cli->columns);
	for (size_t i = 0; i < json_array_size(rows) + 1; i++) {
		line_start(&line, cli->columns);
		if (i)
			report_row(report, json_array_get(rows, i - 1), &line);
		else if (cli->header)
			report_header(report, &line, -1);
		else
			continue;
		line_print(&line, &cli->style, stdout);
	}
}

static int sample(struct cli *cli, const struct listing *listing, const char *target, bool first)
{
	struct report report;
	json_t *root, *rows;
	size_t n;
	int r;

	r = client_get(cli->client, target, &root);
	if (r)
		return cli_fail(cli, r);

	rows = select_rows(cli, listing, root);
	n = json_array_size(rows);
	report_init(&report, listing->columns, listing->count, cli_now_ns());
	if (cli->format == CLI_TABLE)
		cli_next_sample(cli, first);
	if (cli->format == CLI_JSON)
		print_json(cli, listing, root, rows);
	else if (cli->format == CLI_CSV)
		print_csv(cli, &report, rows, first);
	else if (n)
		print_table(cli, &report, rows);
	fflush(stdout);
	json_decref(rows);
	json_decref(root);
	if (n)
		return CLI_DONE;
	if (cli->format == CLI_TABLE)
		fprintf(stderr, "ncclinsp: %s\n",
			filters(cli) ? "nothing matches the filter" : listing->nothing);
	return CLI_NOTHING;
}

int listing_run(struct cli *cli, const struct listing *listing, const char *target)
{
	int code = CLI_DONE;

	for (int64_t i = 0; cli_wants_sample(cli, i); i++) {
		code = sample(cli, listing, target, !i);
		if (code != CLI_DONE && code != CLI_NOTHING)
			break;
	}
	return code;
}
