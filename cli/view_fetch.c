/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of the daemon for one look at the node. */
#include <ctype.h>
#include <string.h>

#include "cli/view.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define TARGET	  512
#define RUNS_MOST 200

/* "&key=value", with all but letters and digits escaped; nothing where it is not known. */
static void add_parameter(char target[TARGET], const char *key, const json_t *value)
{
	size_t used = strlen(target);
	char number[32] = "";
	const char *text = json_string_value(value) ?: number;

	if (json_is_integer(value))
		snprintf(number, sizeof(number), "%" JSON_INTEGER_FORMAT,
			 json_integer_value(value));
	if (!*text)
		return;
	used += (size_t)snprintf(target + used, TARGET - used, "&%s=", key);
	for (; *text && used + 4 < TARGET; text++)
		used += (size_t)snprintf(target + used, TARGET - used,
					 isalnum((unsigned char)*text) ? "%c" : "%%%02X",
					 (unsigned char)*text);
}

static int fetch_runs(struct client *client, const json_t *of, json_t **runs)
{
	static const struct {
		const char *parameter;
		const char *key;
	} parameters[] = {
		{ "comm", "comm_id" }, { "nranks", "nranks" }, { "rank", "rank" },
		{ "func", "func" },
	};
	char target[TARGET];

	snprintf(target, sizeof(target), "/v1/collectives?limit=%d", RUNS_MOST);
	for (size_t i = 0; i < ARRAY_LEN(parameters); i++)
		add_parameter(target, parameters[i].parameter,
			      json_object_get(of, parameters[i].key));
	return client_get(client, target, runs);
}

static int fetch_all(struct client *client, const struct view_want *want,
		     struct view_answers *answers)
{
	char ranks[TARGET], ops[TARGET], kinds[TARGET];
	const struct {
		bool wanted;
		const char *target;
		json_t **answer;
	} requests[] = {
		{ true, "/v1/status", &answers->status },
		{ true, "/v1/processes", &answers->processes },
		{ true, "/v1/comms", &answers->comms },
		{ true, ranks, &answers->ranks },
		{ true, ops, &answers->ops },
		{ true, "/v1/summary?window=1s&by=comm", &answers->now },
		{ true, "/v1/inflight", &answers->inflight },
		{ !want->past, "/v1/findings?active=true", &answers->findings },
		{ want->past, "/v1/findings", &answers->findings },
		{ want->peers, "/v1/peers?window=60s", &answers->peers },
		{ want->kinds, kinds, &answers->kinds },
	};
	int r = 0;

	snprintf(ranks, sizeof(ranks), "/v1/summary?window=%s&by=comm,rank", want->window);
	snprintf(ops, sizeof(ops), "/v1/summary?window=%s&by=comm,func,size,algo,proto",
		 want->window);
	snprintf(kinds, sizeof(kinds), "/v1/summary?window=%s&by=comm,rank,func,size,algo,proto",
		 want->window);
	for (size_t i = 0; i < ARRAY_LEN(requests) && !r; i++)
		if (requests[i].wanted)
			r = client_get(client, requests[i].target, requests[i].answer);
	if (!r && want->runs)
		r = fetch_runs(client, want->runs, &answers->runs);
	return r;
}

int view_fetch(struct view *view, struct client *client, const struct view_want *want,
	       uint64_t now_ns)
{
	struct view_answers answers = { 0 };
	int r = fetch_all(client, want, &answers);

	if (!r) {
		view_build(view, &answers, now_ns);
		return 0;
	}
	view_answers_deinit(&answers);
	view->up = false;
	view->tried_ns = now_ns;
	snprintf(view->error, sizeof(view->error), "%s", client_error(client));
	return r;
}
