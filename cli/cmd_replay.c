/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ncclinsp replay: what snapshots tell, one moment after the other: a row for each, or with
 * a command what that shows of each.  Nodes write theirs at the same moments of the wall
 * clock, so that files of different nodes that were written together are one look.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/base/must.h"
#include "cli/command.h"
#include "cli/common/listing.h"
#include "cli/common/members.h"
#include "cli/offline/offline.h"
#include "cli/offline/shots.h"
#include "cli/option.h"
#include "cli/view/findings.h"

#define TOGETHER_S 20.0		/* between the first and the last file of a moment */
#define AT_BYTES   20		/* "2026-11-22T03:12:00" with its end */

static const struct column columns[] = {
#include "schema/replay_columns.h"
};

struct replay_play {
	struct cli *cli;
	json_t *files;		/* one row each, by time */
	json_t *moments;	/* one row each, with its files as "files" */
};

/* ---- one file ---------------------------------------------------------------------- */

static json_int_t moment_count_state(const struct snapshot_read *rows, const char *state)
{
	json_int_t n = 0;

	for (uint32_t i = 0; i < rows->processes.n; i++)
		n += !strcmp(rows->processes.at[i].state ?: "", state);
	return n;
}

/* The operations of all ranks since the file before; null: not known. */
static json_t *moment_sum_ops(const struct snapshot_read *rows)
{
	json_int_t sum = 0;
	bool known = false;

	for (uint32_t i = 0; i < rows->rows.n; i++) {
		uint64_t ops = rows->rows.at[i].since_previous.ops;

		known |= ops != UNKNOWN_U64;
		sum += ops == UNKNOWN_U64 ? 0 : (json_int_t)ops;
	}
	return known ? json_integer(sum) : json_null();
}

static json_t *moment_oldest(const struct snapshot_read *rows)
{
	uint64_t most_ns = 0;

	for (uint32_t i = 0; i < rows->inflight.n; i++) {
		uint64_t age_ns = rows->inflight.at[i].age_ns;

		if (age_ns != UNKNOWN_U64 && age_ns > most_ns)
			most_ns = age_ns;
	}
	return rows->inflight.n ? json_integer((json_int_t)most_ns) : json_null();
}

/* Findings that were active then: how many, and the worst of them. */
static void moment_put_findings(json_t *file, const struct shots_node *node)
{
	const json_t *worst = NULL;
	json_int_t n = 0;

	json_each(row, node->findings) {
		if (!member_true(row, "active") ||
		    finding_standing(row) == FINDING_IS_SUSPECTED)
			continue;
		n++;
		if (finding_severity(row) < finding_severity(worst))
			worst = row;
	}
	json_object_set_new(file, "findings", json_integer(n));
	if (!worst)
		return;
	json_object_set(file, "severity", json_object_get(worst, "severity"));
	json_object_set(file, "worst", (json_t *)(uintptr_t)report_get(worst, "verdict|kind"));
	json_object_set_new(file, "host", json_string(node->host));
}

static void replay_take_file(void *arg, const char *path, const struct shots_node *node)
{
	const struct snapshot_read *rows = &node->rows;
	struct replay_play *p = arg;
	json_t *file = json_pack("{s:s, s:s, s:f, s:s, s:I, s:I, s:o, s:o}", "path", path,
				 "at", node->written_at, "seconds",
				 (double)node->clock.written_ns * 1e-9, "node", node->host,
				 "live", moment_count_state(rows, "live"), "died",
				 moment_count_state(rows, "died"), "ops", moment_sum_ops(rows),
				 "oldest_ns", moment_oldest(rows));

	moment_put_findings(must(file), node);
	json_array_append_new(p->files, file);
}

/* ---- moments ----------------------------------------------------------------------- */

static int files_by_time(const void *left, const void *right)
{
	double a = json_number_value(json_object_get(*(json_t *const *)left, "seconds"));
	double b = json_number_value(json_object_get(*(json_t *const *)right, "seconds"));

	return (a > b) - (a < b);
}

static void files_sort(struct replay_play *p)
{
	size_t n = json_array_size(p->files);
	json_t **list = must(calloc(n + 1, sizeof(*list))), *sorted = json_array();

	for (size_t i = 0; i < n; i++)
		list[i] = json_array_get(p->files, i);
	qsort(list, n, sizeof(*list), files_by_time);
	for (size_t i = 0; i < n; i++)
		json_array_append(sorted, list[i]);
	free(list);
	json_decref(p->files);
	p->files = sorted;
}

/* Was it written together with the moment's, by another node? */
static bool moment_is_of(const json_t *moment, const json_t *file)
{
	const json_t *files = json_object_get(moment, "files");

	if (!moment || json_number_value(json_object_get(file, "seconds")) -
		       json_number_value(json_object_get(moment, "seconds")) > TOGETHER_S)
		return false;
	json_each(other, (json_t *)(uintptr_t)files)
		if (json_equal(json_object_get(other, "node"), json_object_get(file, "node")))
			return false;
	return true;
}

static void moment_add_number(json_t *moment, const json_t *file, const char *key)
{
	const json_t *more = json_object_get(file, key), *have = json_object_get(moment, key);

	if (json_is_integer(more))
		json_object_set_new(moment, key, json_integer(json_integer_value(have) +
							      json_integer_value(more)));
}

static void moment_join(json_t *moment, json_t *file)
{
	static const char *const sums[] = { "live", "died", "ops", "findings" };
	static const char *const of_worst[] = { "severity", "worst", "host" };
	const json_t *oldest_ns = json_object_get(file, "oldest_ns");
	bool worse = finding_severity(file) < finding_severity(moment);

	for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
		moment_add_number(moment, file, sums[i]);
	for (size_t i = 0; worse && i < sizeof(of_worst) / sizeof(of_worst[0]); i++)
		json_object_set(moment, of_worst[i], json_object_get(file, of_worst[i]));
	if (json_integer_value(oldest_ns) >
	    json_integer_value(json_object_get(moment, "oldest_ns")))
		json_object_set(moment, "oldest_ns", (json_t *)(uintptr_t)oldest_ns);
	json_array_append(json_object_get(moment, "files"), file);
	json_object_set_new(moment, "nodes",
			    json_integer((json_int_t)json_array_size(json_object_get(moment,
										  "files"))));
}

static json_t *new_moment(const json_t *file)
{
	char at[AT_BYTES + 1] = "";

	strncat(at, member_text(file, "at", NULL), AT_BYTES - 1);
	strcat(at, *at ? "Z" : "");
	return must(json_pack("{s:s, s:O, s:[]}", "at", at, "seconds",
			      json_object_get(file, "seconds"), "files"));
}

static void moments_find(struct replay_play *p)
{
	json_t *moment = NULL;

	files_sort(p);
	json_each(file, p->files) {
		if (!moment_is_of(moment, file)) {
			moment = new_moment(file);
			json_array_append_new(p->moments, moment);
		}
		moment_join(moment, file);
	}
}

/* ---- shown ------------------------------------------------------------------------- */

static int moments_fetch(struct cli *cli, void *arg, json_t **root)
{
	const struct replay_play *p = arg;

	*root = must(json_pack("{s:O}", "moments", p->moments));
	return 0;
}

static int moments_show(struct replay_play *p)
{
	struct cli *cli = p->cli;
	const struct listing listing = {
		.array = "moments", LISTING_COLUMNS(columns), .nothing = "no snapshot found",
		.fetch = moments_fetch, .arg = p, .labelled = true,
	};

	if (cli->comm || cli->func || cli->rank != CLI_ANY || cli->pid != CLI_ANY ||
	    members_asked(cli))
		return cli_reject("filters belong to the command: replay PATH ranks -p PID");
	cli->samples = 1;
	return listing_run(cli, &listing, NULL);
}

static int moment_show(struct replay_play *p, const struct command *command, const json_t *moment)
{
	const json_t *files = json_object_get(moment, "files"), *file;
	size_t n = json_array_size(files), i;
	const char **paths = must(calloc(n + 1, sizeof(*paths)));
	struct offline *offline;
	int code = CLI_NOTHING;

	json_array_foreach((json_t *)(uintptr_t)files, i, file)
		paths[i] = member_text(file, "path", NULL);
	offline = offline_open(paths, n, NULL, NULL);
	if (offline) {
		client_set_source(p->cli->client, offline_answer, offline);
		if (p->cli->header)
			printf("%s %s, %zu node%s\n", p->cli->style.ascii ? "--" : "──",
			       member_text(moment, "at", NULL), n, n == 1 ? "" : "s");
		code = command->run(p->cli);
		fflush(stdout);
	}
	offline_free(offline);
	free(paths);
	return code;
}

/* A moment may have nothing to show where another has: the worst code counts, not the last. */
static int replay_play_command(struct replay_play *p, const struct command *command)
{
	int64_t most = p->cli->samples;
	int worst = CLI_NOTHING;
	json_t *moment;
	size_t i;

	p->cli->samples = 1;
	json_array_foreach(p->moments, i, moment) {
		int code;

		if (most != CLI_ANY && (int64_t)i >= most)
			break;
		if (i && p->cli->clears)
			cli_pause(p->cli);
		if (p->cli->clears)
			fputs("\033[H\033[2J", stdout);
		else if (i)
			putchar('\n');
		code = moment_show(p, command, moment);
		if (code == CLI_USAGE || code == CLI_FAILED || ferror(stdout))
			return code;
		if (code != CLI_NOTHING && (worst == CLI_NOTHING || code > worst))
			worst = code;
	}
	return worst;
}

static int replay_check(const struct cli *cli, const struct command *command)
{
	if (!command)
		return cli_reject("no command '%s'", cli->second);
	if (!option_takes(command, "from"))
		return cli_reject("snapshots do not have what %s shows; ncclinsp ranks, ops, "
				  "peers, inflight, ps, comms and diagnose can be replayed",
				  command->name);
	if (cli->format != CLI_TABLE && cli->format != CLI_WIDE)
		return cli_reject("replay prints tables only; for other formats: %s --from FILE, "
				  "file by file", command->name);
	return CLI_DONE;
}

int cmd_replay(struct cli *cli)
{
	struct replay_play p = { .cli = cli, .files = json_array(), .moments = json_array() };
	struct shots shots = { .each = replay_take_file, .each_arg = &p };
	const struct command *command = cli->second ? command_find(cli->second) : NULL;
	int code = cli->argument ? CLI_DONE :
		   cli_reject("replay needs a file or directory with snapshots");

	if (!code && cli->second)
		code = replay_check(cli, command);
	shots_init(&shots);
	if (!code) {
		shots_add(&shots, (const char *const *)&cli->argument, 1);
		moments_find(&p);
		code = !json_array_size(p.moments) ? (int)shots_tell_none(&shots, "")
		       : command ? replay_play_command(&p, command) : moments_show(&p);
	}
	shots_deinit(&shots);
	json_decref(p.files);
	json_decref(p.moments);
	return code;
}
