/* SPDX-License-Identifier: Apache-2.0 */
/* ncclinsp level: what is recorded of whom, and since when; with a level, change it. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/base/member.h"
#include "cli/common/listing.h"
#include "cli/target.h"
#include "util/text.h"

#define FOLLOW_NS UINT64_C(1000000000)	/* a process that has not followed by then posts nothing */
#define LOOK_NS	  20000000
#define PIDS_NAMED 8
#define SECOND_NS UINT64_C(1000000000)

/* ---- what there is ------------------------------------------------------------- */

static const struct column columns[] = {
#include "schema/level_columns.h"
};

/* The time left until `until`; null: `until` is unknown, the level does not end. */
static json_t *until_left(const json_t *until)
{
	json_int_t ns = json_integer_value(until) - (json_int_t)cli_now_ns();

	return json_is_integer(until) ? json_integer(ns > 0 ? ns : 0) : json_null();
}

static void level_dress(json_t *row)
{
	json_object_set_new(row, "left_ns", until_left(report_get(row, "wanted.until_mono_ns")));
}

static void level_put_wanted(char *buf, size_t size, const json_t *wish)
{
	const char *level = member_text(wish, "level", NULL);
	const char *sampling = member_text(wish, "sampling", NULL);

	snprintf(buf, size, "%s%s%s%s", level ?: "", level && sampling ? ", " : "",
		 sampling ? "sample " : "", sampling ?: "");
}

static void put_left(char *buf, size_t size, const json_t *wish)
{
	json_auto_t *ns = until_left(report_get(wish, "until_mono_ns"));
	char text[TEXT_MAX];
	uint64_t seconds;

	*buf = '\0';
	if (json_is_integer(ns)) {
		seconds = ((uint64_t)json_integer_value(ns) + SECOND_NS / 2) / SECOND_NS;
		text_duration(text, sizeof(text), seconds * SECOND_NS);
		snprintf(buf, size, " for %s", text);
	}
}

/* Why kernels are not what the level says, once for all processes that say the same. */
static void print_reasons(const struct cli *cli, const json_t *processes)
{
	json_auto_t *reasons = json_object();
	json_t *pids;
	const char *reason;
	size_t i;

	json_each(process, processes) {
		json_t *pid = json_object_get(process, "pid");

		reason = member_text(process, "level_reason", NULL);
		if (!reason || (cli->pid != CLI_ANY && json_integer_value(pid) != cli->pid))
			continue;
		if (!json_object_get(reasons, reason))
			json_object_set_new(reasons, reason, json_array());
		json_array_append(json_object_get(reasons, reason), pid);
	}
	json_object_foreach(reasons, reason, pids) {
		size_t n = json_array_size(pids);

		printf("%s: pid", reason);
		for (i = 0; i < n && i < PIDS_NAMED; i++)
			printf("%s%lld", i ? ", " : " ",
			       (long long)json_integer_value(json_array_get(pids, i)));
		if (n > PIDS_NAMED)
			printf(" and %zu more", n - PIDS_NAMED);
		putchar('\n');
	}
}

/* A wish's target may come later, so that no process tells of the wish yet. */
static void print_wishes(const json_t *wishes)
{
	json_each(wish, wishes) {
		char target[192], wanted[64], time[64];

		target_text(target, sizeof(target), wish);
		level_put_wanted(wanted, sizeof(wanted), wish);
		put_left(time, sizeof(time), wish);
		printf("set for %s: %s%s, by uid %lld\n", target, wanted, time,
		       (long long)json_integer_value(json_object_get(wish, "uid")));
	}
}

/* The reasons and wishes, for which a table has no room. */
static int print_notes(struct cli *cli)
{
	json_auto_t *root = NULL;
	int r = client_get(cli->client, "/v1/level", &root);

	if (r)
		return cli_fail(cli, r);
	print_reasons(cli, json_object_get(root, "processes"));
	print_wishes(json_object_get(root, "wishes"));
	return CLI_DONE;
}

static int level_show(struct cli *cli)
{
	struct listing listing = {
		.array = "processes",
		LISTING_COLUMNS(columns),
		.sort = &columns[0],	/* the pid */
		.ascending = true,
		.nothing = "no process uses NCCL with this plugin",
		.dress = level_dress,
		.fetch = cli->comm ? target_fetch : NULL,
		.arg = (void *)(uintptr_t)"/v1/level",
	};
	int code = listing_run(cli, &listing, "/v1/level"), more = CLI_DONE;

	if ((code == CLI_DONE || code == CLI_NOTHING) && cli->format == CLI_TABLE && !cli->fields)
		more = print_notes(cli);
	return more == CLI_DONE ? code : more;
}

/* ---- what is to be --------------------------------------------------------------- */

static const char *const levels[] = { "off", "ops", "kernel", "net", "trace", "detail", "default",
				      NULL };

static bool word_is_level(const char *word)
{
	for (int i = 0; word && levels[i]; i++)
		if (!strcmp(levels[i], word))
			return true;
	return false;
}

/* Counts of the processes that a change is about. */
struct followers {
	size_t follow;	/* have followed that sequence of the control file */
	size_t old;	/* never will: their plugins read none */
	size_t walled;	/* others in containers: have never seen any */
};

static struct followers count_followers(const json_t *root, const json_t *of,
					json_int_t sequence)
{
	struct followers n = { 0 };

	json_each(asked, of)
		json_each(row, json_object_get(root, "processes")) {
			json_int_t has = json_integer_value(report_get(row, "steering.sequence"));

			if (!json_equal(json_object_get(row, "instance"),
					json_object_get(asked, "instance")))
				continue;
			if (has >= sequence)
				n.follow++;
			else if (json_is_false(json_object_get(row, "steerable")))
				n.old++;
			else if (!has && json_is_object(json_object_get(row, "container")))
				n.walled++;
		}
	return n;
}

/* Wait until all follow that can, or long enough. */
static struct followers level_follow(struct cli *cli, const json_t *answer, uint64_t *took_ns)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	const json_t *of = json_object_get(answer, "processes");
	json_int_t sequence = json_integer_value(report_get(answer, "control.sequence"));
	uint64_t since_ns = cli_now_ns();
	struct followers n = { 0 };
	json_t *root;

	do {
		nanosleep(&pause, NULL);
		if (client_get(cli->client, "/v1/level", &root))
			break;
		n = count_followers(root, of, sequence);
		json_decref(root);
		*took_ns = cli_now_ns() - since_ns;
	} while (n.follow + n.old < json_array_size(of) && *took_ns < FOLLOW_NS);
	return n;
}

/* Reasons that may keep the others from following, and what to do. */
static void tell_others(const struct followers *n, size_t all, const json_t *answer)
{
	if (n->old)
		printf("%zu of them cannot follow, because their plugins are older than the "
		       "daemon: restart these jobs\n", n->old);
	if (n->follow + n->old + n->walled < all)
		puts("the others make no NCCL calls now, must keep their level (ncclinsp level "
		     "shows why),\nor read another control file (see ncclinsp doctor)");
	if (n->walled)
		printf("%zu of them, in containers, have never read the control file: is the "
		       "directory of %s mounted there?\n", n->walled,
		       json_string_value(report_get(answer, "control.path")) ?: "that file");
}

static void level_tell(struct cli *cli, const json_t *answer)
{
	size_t all = json_array_size(json_object_get(answer, "processes"));
	const json_t *raised = json_object_get(answer, "raised");
	char target[192], wanted[64], time[64], took[TEXT_MAX];
	uint64_t took_ns = 0;
	struct followers n;

	target_text(target, sizeof(target), answer);
	level_put_wanted(wanted, sizeof(wanted), answer);
	put_left(time, sizeof(time), answer);
	if (cli->dry_run) {
		printf("%s: would be %s%s, for %zu process%s; nothing was changed\n", target,
		       *wanted ? wanted : "as before", time, all, all == 1 ? "" : "es");
		return;
	}
	if (json_is_integer(raised)) {
		printf("%s: %s%s; processes raised: %lld\n", target, wanted, time,
		       (long long)json_integer_value(raised));
		return;
	}
	n = level_follow(cli, answer, &took_ns);
	text_duration(took, sizeof(took), took_ns);
	printf("%s: %s%s; %zu of %zu processes follow%s%s\n", target,
	       *wanted ? wanted : "as before", time, n.follow, all,
	       all && n.follow == all ? ", after " : "", all && n.follow == all ? took : "");
	tell_others(&n, all, answer);
}

static int level_change(struct cli *cli, const char *level)
{
	json_t *body = json_object();

	if (level)
		json_object_set_new(body, "level", json_string(level));
	if (cli->sample)
		json_object_set_new(body, "sample", json_string(cli->sample));
	if (cli->for_ns)
		json_object_set_new(body, "for_s", json_real((double)cli->for_ns * 1e-9));
	return target_change(cli, "/v1/level", body, level_tell);
}

/* "node", a pid, or already the level. */
int cmd_level(struct cli *cli)
{
	const char *target = cli->argument, *level = cli->second;
	int code;

	if (word_is_level(target) && !level) {
		level = target;
		target = NULL;
	}
	code = target_take(cli, target, "level");
	if (code)
		return code;
	if (level && !word_is_level(level))
		return cli_reject("'%s' is not a level; there are off, ops, kernel, net, trace, "
				  "detail, default", level);
	if (level || cli->sample)
		return level_change(cli, level);
	if (cli->for_ns || cli->dry_run)
		return cli_reject("--%s goes with a level, or with --sample",
				  cli->for_ns ? "for" : "dry-run");
	return level_show(cli);
}
