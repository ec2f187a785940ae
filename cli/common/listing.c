/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common course of commands that print rows: ask the daemon, filter, sort, and print in
 * the format that was asked for, once or again and again.
 */
#include "cli/common/listing.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/base/member.h"
#include "cli/common/label.h"
#include "cli/common/members.h"
#include "util/list.h"
#include "util/text.h"

/* ---- what is asked for ------------------------------------------------------ */

static bool is_for_people(const struct cli *cli)
{
	return cli->format == CLI_TABLE || cli->format == CLI_WIDE;
}

static int option_wrong(const char *option, const char *why)
{
	fprintf(stderr, "ncclinsp: --%s: %s\n", option, why);
	return CLI_USAGE;
}

static int query_choose_fields(struct listing_query *query, const struct listing *listing)
{
	char why[128], *unknown = NULL;
	int r;

	query->columns = listing->columns;
	query->count = listing->count;
	if (query->cli->fields) {
		r = fields_select(&query->fields, listing->columns, listing->count,
				  query->cli->fields, &unknown);
		fields_unknown(listing->columns, listing->count, unknown ?: "", why, sizeof(why));
		free(unknown);
		if (r)
			return option_wrong("fields", r == -ENOENT ? why : "too many fields");
	} else if (query->cli->format == CLI_WIDE) {
		fields_widen(&query->fields, listing->columns, listing->count);
	} else {
		return CLI_DONE;
	}
	query->columns = query->fields.columns;
	query->count = query->fields.count;
	return CLI_DONE;
}

static int query_choose_order(struct listing_query *query, const struct listing *listing)
{
	const char *name = query->cli->sort;
	char why[128];
	bool raw;

	query->sort = listing->sort;
	query->ascending = listing->ascending;
	if (!name)
		return CLI_DONE;
	query->ascending = *name != '-';
	name += *name == '-' || *name == '+';
	query->sort = fields_find(listing->columns, listing->count, name, &raw);
	if (query->sort)
		return CLI_DONE;
	fields_unknown(listing->columns, listing->count, name, why, sizeof(why));
	return option_wrong("sort", why);
}

static int query_choose_filters(struct listing_query *query, const struct listing *listing)
{
	const struct cli_list *list = &query->cli->filters;
	char why[128];

	filter_init(&query->filter, listing->columns, listing->count);
	for (size_t i = 0; i < list->count; i++)
		if (filter_add(&query->filter, list->text[i], why, sizeof(why)))
			return option_wrong("filter", why);
	return CLI_DONE;
}

bool listing_begin(struct listing_query *query, const struct cli *cli,
		   const struct listing *listing, int *code)
{
	*query = (struct listing_query){ .cli = cli };
	if (cli->fields && !strcmp(cli->fields, "help")) {
		fields_list(listing->columns, listing->count, cli->header, stdout);
		*code = CLI_DONE;
		return false;
	}
	*code = query_choose_fields(query, listing);
	if (!*code)
		*code = query_choose_order(query, listing);
	if (!*code)
		*code = query_choose_filters(query, listing);
	return !*code;
}

void listing_end(struct listing_query *query)
{
	json_decref(query->members);
	json_decref(query->jobs);
}

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

bool listing_wants(const struct listing_query *query, const json_t *row)
{
	const struct cli *cli = query->cli;
	const struct report_style style = cli_report_style(cli);

	return (!cli->comm || label_matches(cli->comm, row)) &&
	       (!cli->func || text_matches(cli->func, row, "func")) &&
	       (cli->rank == CLI_ANY || number_matches(cli->rank, row, "rank|job.rank")) &&
	       (query->members ? members_want(cli, query->members, row)
			       : members_fit(cli, row)) &&
	       filter_wants(&query->filter, row, &style);
}

bool listing_filters(const struct cli *cli)
{
	return cli->comm || cli->func || cli->rank != CLI_ANY || cli->pid != CLI_ANY ||
	       cli->peer != CLI_ANY || cli->direction || cli->older_ns || cli->filters.count ||
	       members_asked(cli);
}

__attribute__((format(printf, 3, 4)))
static void text_add(char *buf, size_t size, const char *format, ...)
{
	size_t used = strlen(buf);
	va_list args;

	va_start(args, format);
	snprintf(buf + used, size - used, "%s", *buf ? ", " : "");
	used = strlen(buf);
	vsnprintf(buf + used, size - used, format, args);
	va_end(args);
}

void listing_tell_filters(const struct cli *cli, char *buf, size_t size)
{
	const struct { const char *option, *value; } texts[] = {
		{ "comm", cli->comm }, { "func", cli->func }, { "job", cli->job },
		{ "gpu", cli->gpu }, { "direction", cli->direction },
	};
	const struct { const char *option; int64_t value; } numbers[] = {
		{ "rank", cli->rank }, { "pid", cli->pid }, { "peer", cli->peer },
	};
	char age[TEXT_MAX];

	*buf = '\0';
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (texts[i].value)
			text_add(buf, size, "--%s %s", texts[i].option, texts[i].value);
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (numbers[i].value != CLI_ANY)
			text_add(buf, size, "--%s %lld", numbers[i].option,
				 (long long)numbers[i].value);
	if (cli->uid != CLI_ANY)
		text_add(buf, size, "--user with uid %lld", (long long)cli->uid);
	if (cli->older_ns) {
		text_duration(age, sizeof(age), cli->older_ns);
		text_add(buf, size, "--older-than %s", age);
	}
	for (size_t i = 0; i < cli->filters.count; i++)
		text_add(buf, size, "%s", cli->filters.text[i]);
}

/* Is the answer printed otherwise than it came? */
static bool listing_changes(const struct cli *cli)
{
	return listing_filters(cli) || cli->fields || cli->sort;
}

/* ---- communicators -------------------------------------------------------- */

json_t *listing_comms(const struct cli *cli)
{
	json_auto_t *root = NULL;

	client_get(cli->client, "/v1/comms?fields=comm_id,name", &root);
	return label_names(json_object_get(root, "comms"));
}

/* Do options name the job of rows that do not tell it? */
static bool listing_wants_jobs(const struct cli *cli)
{
	bool wants = (cli->fields && strcasestr(cli->fields, "job")) ||
		     (cli->sort && strcasestr(cli->sort, "job"));

	for (size_t i = 0; i < cli->filters.count; i++)
		wants = wants || strcasestr(cli->filters.text[i], "job");
	return wants;
}

int listing_jobs(const struct cli *cli, json_t **jobs)
{
	json_auto_t *root = NULL;
	int r;

	*jobs = NULL;
	if (!listing_wants_jobs(cli))
		return 0;
	r = client_get(cli->client, "/v1/ranks?fields=comm_id,pid,host,job", &root);
	if (!r)
		*jobs = label_jobs(json_object_get(root, "ranks"));
	return r;
}

/* Its rows say all of communicators and jobs themselves. */
static bool listing_is_known(const struct listing *listing)
{
	return listing->labelled || listing->whole;
}

/*
 * A name that one communicator of these rows has may be another's as well that is not
 * among them; one that is has perhaps ended, and the daemon does not know it any more.
 */
static void rows_label(const struct listing_query *query, const struct listing *listing,
		       json_t *rows)
{
	bool known = listing_is_known(listing);
	json_auto_t *names = known ? label_names(NULL) : listing_comms(query->cli);

	json_each(row, rows)
		label_learn(names, row);
	label_rows(rows, names);
	label_put_jobs(rows, query->jobs);
}

/* ---- rows ----------------------------------------------------------------- */

/* The answer's rows, borrowed but for the array. */
static json_t *listing_answered_rows(const struct listing *listing, json_t *root)
{
	if (!listing->array)
		return json_pack("[O]", root);
	return json_incref(json_object_get(root, listing->array)) ?: json_array();
}

json_t *listing_dressed(const json_t *rows, listing_dress *dress)
{
	json_t *all = json_array();

	json_each(row, rows) {
		json_t *copy = json_copy(row);

		if (dress)
			dress(copy);
		json_array_append_new(all, copy);
	}
	return all;
}

/* The table's rows, each with its source, and none the answer's own; or those fetched for it. */
static json_t *listing_shape(const struct listing *listing, json_t *answered)
{
	json_t *rows, *row;
	size_t i;

	if (listing->fetch && !listing->reshape) {
		json_array_foreach(answered, i, row)
			if (listing->dress)
				listing->dress(row);
		return json_incref(answered);
	}
	rows = listing->reshape ? listing->reshape(answered)
				: listing_dressed(answered, listing->dress);

	json_array_foreach(rows, i, row)
		if (!listing->nested)
			json_object_set(row, LISTING_SOURCE, json_array_get(answered, i));
	return rows;
}

static json_t *query_select_rows(const struct listing_query *query, const struct listing *listing,
				 json_t *answered)
{
	json_t *rows = listing_shape(listing, answered), *wanted = json_array();

	if (is_for_people(query->cli) || listing_changes(query->cli))
		rows_label(query, listing, rows);
	json_each(row, rows)
		if (listing_wants(query, row))
			json_array_append(wanted, row);
	json_decref(rows);
	if (query->sort)
		report_sort(wanted, query->sort, query->ascending);
	return wanted;
}

/* ---- printing ------------------------------------------------------------- */

struct listing_sample {
	struct cli *cli;
	const struct listing *listing;
	struct report report;
	json_t *root;		/* the answer */
	json_t *answered;	/* its rows */
	json_t *rows;		/* the wanted ones, as the table has them */
	bool first;
};

static bool sample_wants_header(const struct listing_sample *sample, struct listing_query *query)
{
	int every = sample->listing->header_every;

	if (!sample->cli->header || !json_array_size(sample->rows))
		return false;
	if (every && !sample->first && query->lines < every)
		return false;
	query->lines = 0;
	return true;
}

static void sample_print_rows(struct listing_sample *sample, struct listing_query *query, int width)
{
	const struct cli *cli = sample->cli;
	bool header = sample_wants_header(sample, query);
	struct line line;

	report_fit(&sample->report, sample->rows, width);
	if (header) {
		line_start(&line, width);
		report_header(&sample->report, &line, -1);
		line_print(&line, &cli->style, stdout);
	}
	for (size_t i = 0; i < json_array_size(sample->rows); i++, query->lines++) {
		line_start(&line, width);
		report_row(&sample->report, json_array_get(sample->rows, i), &line);
		line_print(&line, &cli->style, stdout);
	}
}

static int sample_print_table(struct listing_sample *sample, struct listing_query *query)
{
	const struct cli *cli = sample->cli;

	if (!sample->listing->header_every)
		cli_next_sample(cli, sample->first);
	if (sample->listing->page && !cli->fields)
		return sample->listing->page(sample->cli, sample->root, sample->rows);
	sample_print_rows(sample, query, cli->format == CLI_WIDE ? CLI_ANY_WIDTH : cli->columns);
	return 0;
}

/* The answer's own rows behind those of the table. */
static json_t *sample_sources(const struct listing_sample *sample)
{
	json_t *array;

	if (sample->listing->nested)
		return sample->listing->nested(sample->answered, sample->rows);
	array = json_array();
	json_each(row, sample->rows)
		json_array_append(array, json_object_get(row, LISTING_SOURCE));
	return array;
}

static json_t *sample_objects(const struct listing_sample *sample)
{
	json_t *array = json_array();

	json_each(row, sample->rows)
		json_array_append_new(array, report_object(&sample->report, row));
	return array;
}

/* Prints the daemon's answer, with all its digits, unless something else was asked for. */
static int sample_print_json(struct listing_sample *sample)
{
	const struct listing *listing = sample->listing;
	json_auto_t *rows = NULL;
	json_t *answer;

	if (!listing_changes(sample->cli) && !listing->fetch) {
		report_answer(client_body(sample->cli->client), stdout);
		return 0;
	}
	rows = sample->cli->fields ||
		listing->fetch ? sample_objects(sample) : sample_sources(sample);
	if (listing->array)
		json_object_set(sample->root, listing->array, rows);
	answer = listing->array ? sample->root : json_array_get(rows, 0);
	if (answer)
		report_json(answer, true, stdout);
	return 0;
}

void listing_put(const struct listing_query *query, const struct report *report, const json_t *row)
{
	const struct cli *cli = query->cli;
	struct line line;
	json_t *object;

	if (cli->format == CLI_CSV) {
		report_csv_row(report, row, stdout);
	} else if (!is_for_people(cli)) {
		object = report_object(report, row);
		report_json(object, cli->format == CLI_JSON, stdout);
		json_decref(object);
	} else {
		line_start(&line, cli->columns);
		report_row(report, row, &line);
		line_print(&line, &cli->style, stdout);
	}
}

static int sample_print_lines(struct listing_sample *sample, const struct listing_query *query)
{
	if (sample->cli->format == CLI_CSV && sample->cli->header && sample->first)
		report_csv_header(&sample->report, stdout);
	for (size_t i = 0; i < json_array_size(sample->rows); i++)
		listing_put(query, &sample->report, json_array_get(sample->rows, i));
	return 0;
}

static int sample_print(struct listing_sample *sample, struct listing_query *query)
{
	switch (sample->cli->format) {
	case CLI_JSON:
		return sample_print_json(sample);
	case CLI_JSONL:
	case CLI_CSV:
		return sample_print_lines(sample, query);
	case CLI_PROM:
		report_prom(&sample->report, sample->cli->command, sample->rows, stdout);
		return 0;
	}
	return sample_print_table(sample, query);
}

/* ---- one sample ----------------------------------------------------------- */

/* JSON shows the answer itself, and so all of it. */
static int listing_fetch_rows(struct cli *cli, const struct listing *listing, const char *target,
			      json_t **root)
{
	char some[1024];

	if (!listing->asked || cli->format == CLI_JSON)
		return client_get(cli->client, target, root);
	snprintf(some, sizeof(some), "%s%cfields=%s", target, strchr(target, '?') ? '&' : '?',
		 listing->asked);
	return client_get(cli->client, some, root);
}

static int query_fetch(struct listing_query *query, struct cli *cli, const struct listing *listing,
		       const char *target, json_t **root)
{
	int r = 0;

	listing_end(query);
	query->members = query->jobs = NULL;
	if (!listing->whole && (members_asked(cli) || (listing->joint && cli->pid != CLI_ANY)))
		r = members_get(cli, &query->members);
	if (!r && !listing_is_known(listing))
		r = listing_jobs(cli, &query->jobs);
	if (r)
		return r;
	return listing->fetch ? listing->fetch(cli, listing->arg, root)
			      : listing_fetch_rows(cli, listing, target, root);
}

/* Prints the note beside the table, on stderr: true when there was something to say. */
static bool sample_say_note(const struct listing_sample *sample)
{
	char text[512];

	if (!sample->listing->note || !is_for_people(sample->cli) || sample->cli->quiet ||
	    !sample->listing->note(sample->root, text, sizeof(text)))
		return false;
	fprintf(stderr, "ncclinsp: %s\n", text);
	return true;
}

static int sample_code(const struct listing_sample *sample, bool noted)
{
	const struct cli *cli = sample->cli;
	char filters[256];

	if (sample->listing->code)
		return sample->listing->code(sample->listing, sample->root, sample->rows);
	if (json_array_size(sample->rows))
		return CLI_DONE;
	listing_tell_filters(cli, filters, sizeof(filters));
	if (is_for_people(cli) && !cli->quiet && (!noted || *filters))
		fprintf(stderr, "ncclinsp: %s%s\n",
			*filters ? "nothing matches " : sample->listing->nothing, filters);
	return CLI_NOTHING;
}

static int query_take_sample(struct listing_query *query, struct cli *cli,
			     const struct listing *listing, const char *target, bool first)
{
	const struct report_style style = cli_report_style(cli);
	struct listing_sample sample = { .cli = cli, .listing = listing, .first = first };
	int r, code;

	r = query_fetch(query, cli, listing, target, &sample.root);
	if (r)
		return cli_fail(cli, r);
	report_init(&sample.report, query->columns, query->count, &style);
	sample.answered = listing_answered_rows(listing, sample.root);
	sample.rows = query_select_rows(query, listing, sample.answered);
	r = sample_print(&sample, query);
	fflush(stdout);
	code = r ? cli_fail(cli, r) : sample_code(&sample, sample_say_note(&sample));
	json_decref(sample.rows);
	json_decref(sample.answered);
	json_decref(sample.root);
	return code;
}

static bool listing_goes_on(int code)
{
	return code == CLI_DONE || code == CLI_NOTHING || code == CLI_FINDING;
}

int listing_run(struct cli *cli, const struct listing *listing, const char *target)
{
	struct listing_query query;
	int code;

	if (listing_begin(&query, cli, listing, &code))
		for (int64_t i = 0; listing_goes_on(code) && cli_wants_sample(cli, i); i++)
			code = query_take_sample(&query, cli, listing, target, !i);
	listing_end(&query);
	return code;
}
