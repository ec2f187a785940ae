/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The target of a change, checked and written into the request; the daemon's answer is told
 * here, too.
 */
#include "cli/target.h"

#include <string.h>

#include "cli/base/member.h"
#include "cli/common/label.h"
#include "cli/common/listing.h"
#include "util/text.h"

int target_take(struct cli *cli, const char *argument, const char *what)
{
	bool node = argument && !strcmp(argument, "node");

	if (argument && !node && text_parse_integer(argument, 1, INT32_MAX, &cli->pid))
		return cli_reject("'%s' is not a pid, node or a %s", argument, what);
	if (node && (cli->pid != CLI_ANY || cli->job || cli->comm))
		return cli_reject("give node or a process, not both");
	return CLI_DONE;
}

/* The one that the name means; several may have it. */
static int target_find_name(struct cli *cli, json_t *body)
{
	json_t *names = listing_comms(cli), *ids, *unused;
	const char *name, *one, *id = NULL;
	size_t found = 0;
	int code = CLI_DONE;

	json_object_foreach(names, name, ids)
		json_object_foreach(ids, one, unused)
			if (label_is(cli->comm, name, one)) {
				found++;
				id = one;
			}
	if (found > 1)
		code = cli_reject("%zu communicators are called '%s': give the id, or the name "
				  "with its end, as %s:%s", found, cli->comm, cli->comm,
				  id && strlen(id) > 4 ? id + strlen(id) - 4 : "");
	else if (id)
		json_object_set_new(body, "comm_id", json_string(id));
	else
		code = CLI_NOTHING;
	json_decref(names);
	if (code == CLI_NOTHING)
		fprintf(stderr, "ncclinsp: no communicator '%s' with an id; ncclinsp comms lists "
			"them\n", cli->comm);
	return code;
}

static bool comm_is_id(const char *comm)
{
	return strlen(comm) == 18 && !strncmp(comm, "0x", 2) &&
	       strspn(comm + 2, "0123456789abcdef") == 16;
}

/* An id need not be listed to be known. */
static int target_find_comm(struct cli *cli, json_t *body)
{
	if (comm_is_id(cli->comm))
		return json_object_set_new(body, "comm_id", json_string(cli->comm));
	return target_find_name(cli, body);
}

static int body_put_target(struct cli *cli, json_t *body)
{
	if ((cli->pid != CLI_ANY) + !!cli->job + !!cli->comm > 1)
		return cli_reject("give one of a pid, --job and --comm");
	if (cli->pid != CLI_ANY)
		json_object_set_new(body, "pid", json_integer(cli->pid));
	/* A job that cannot be told must not become the whole node. */
	if (cli->job && json_object_set_new(body, "job", json_string(cli->job)))
		return cli_reject("the job '%s' is not written in UTF-8", cli->job);
	return cli->comm ? target_find_comm(cli, body) : CLI_DONE;
}

int target_change(struct cli *cli, const char *path, json_t *body,
		  void (*tell)(struct cli *cli, const json_t *answer))
{
	int code = body_put_target(cli, body), r;
	json_auto_t *answer = NULL;

	if (cli->dry_run)
		json_object_set_new(body, "dry_run", json_true());
	r = code ? 0 : client_put(cli->client, path, body, &answer);
	json_decref(body);
	if (code || r)
		return code ?: cli_fail(cli, r);
	if (cli->format == CLI_JSON)
		report_answer(client_body(cli->client), stdout);
	else
		tell(cli, answer);
	return CLI_DONE;
}

void target_text(char *buf, size_t size, const json_t *answer)
{
	const char *target = member_text(answer, "target", "-");
	const char *name = json_string_value(report_get(answer, "job|comm_id"));
	const json_t *pid = json_object_get(answer, "pid");

	if (json_is_integer(pid))
		snprintf(buf, size, "%s %lld", target, (long long)json_integer_value(pid));
	else
		snprintf(buf, size, "%s%s%s", target, name ? " " : "", name ?: "");
}

/* The communicator's members with its name, so that they pass its filter. */
static void target_name_members(json_t *processes, const json_t *comm)
{
	json_each(member, json_object_get(comm, "local_ranks"))
		json_each(process, processes) {
			if (!json_equal(json_object_get(process, "pid"),
					json_object_get(member, "pid")))
				continue;
			json_object_set(process, "comm_id", json_object_get(comm, "comm_id"));
			json_object_set(process, "comm_name", json_object_get(comm, "name"));
		}
}

int target_fetch(struct cli *cli, void *arg, json_t **root)
{
	json_auto_t *comms = NULL;
	int r;

	r = client_get(cli->client, "/v1/comms?fields=comm_id,name,local_ranks.pid", &comms);
	if (r)
		return r;
	r = client_get(cli->client, arg, root);
	json_each(comm, json_object_get(comms, "comms"))
		if (!r && label_matches(cli->comm, comm))
			target_name_members(json_object_get(*root, "processes"), comm);
	return r;
}
