/* SPDX-License-Identifier: Apache-2.0 */
/* What is asked of the daemon for one look at the node. */
#include <ctype.h>
#include <string.h>

#include "cli/view.h"
#include "util/text.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

#define TARGET	  512
#define RUNS_MOST 200

#define PROCESSES_AGE_NS UINT64_C(5000000000)
#define FIGURES_AGE_NS	 UINT64_C(2000000000)
#define SLACK_NS	 UINT64_C(100000000)	/* a look comes a little early or late */

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

static int ask_anew(struct client *client, const char *target, json_t **kept)
{
	json_t *answer;
	int r = client_get(client, target, &answer);

	if (r)
		return r;
	json_decref(*kept);
	*kept = answer;
	return 0;
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

/* How long figures over a window are good for, at most a fifth of it. */
static uint64_t figures_age_ns(const char *window)
{
	uint64_t window_ns;

	if (text_parse_duration(window, &window_ns) || window_ns > 5 * FIGURES_AGE_NS)
		return FIGURES_AGE_NS;
	return window_ns / 5;
}

static bool is_due(uint64_t asked_ns, uint64_t age_ns, uint64_t now_ns)
{
	return !asked_ns || now_ns + SLACK_NS >= asked_ns + age_ns;
}

/* Whoever comes, goes or dies changes it. */
static uint64_t census(const json_t *comms)
{
	json_t *comm, *member;
	uint64_t sum = 0;
	size_t i, k;

	json_array_foreach((json_t *)comms, i, comm) {
		json_array_foreach(json_object_get(comm, "local_ranks"), k, member) {
			const char *state = json_string_value(json_object_get(member, "state"));

			sum = sum * 31 + (uint64_t)json_integer_value(json_object_get(member,
										     "pid"));
			sum = sum * 31 + (state ? (unsigned char)state[0] : 0);
		}
	}
	return sum;
}

/* Ask anew for what is kept, where it is due. */
static int fetch_kept(struct client *client, struct view_kept *kept,
		      const struct view_want *want, uint64_t census_now, uint64_t now_ns)
{
	bool processes = census_now != kept->census ||
			 is_due(kept->processes_ns, PROCESSES_AGE_NS, now_ns);
	bool figures = is_due(kept->figures_ns, figures_age_ns(want->window), now_ns);
	char ranks[TARGET], ops[TARGET];
	int r = 0;

	snprintf(ranks, sizeof(ranks), "/v1/summary?window=%s&by=comm,rank", want->window);
	snprintf(ops, sizeof(ops), "/v1/summary?window=%s&by=comm,func,size,algo,proto",
		 want->window);
	if (processes)
		r = ask_anew(client, "/v1/processes", &kept->processes);
	if (!r && figures)
		r = ask_anew(client, ranks, &kept->ranks);
	if (!r && figures)
		r = ask_anew(client, ops, &kept->ops);
	if (r)
		return r;
	kept->census = census_now;
	if (processes)
		kept->processes_ns = now_ns;
	if (figures)
		kept->figures_ns = now_ns;
	return 0;
}

static int fetch_all(struct client *client, const struct view_want *want,
		     struct view_kept *kept, uint64_t now_ns, struct view_answers *answers)
{
	char kinds[TARGET];
	const struct {
		bool wanted;
		const char *target;
		json_t **answer;
	} requests[] = {
		{ true, "/v1/status", &answers->status },
		{ true, "/v1/comms", &answers->comms },
		{ true, "/v1/summary?window=1s&by=comm", &answers->now },
		{ true, "/v1/inflight", &answers->inflight },
		{ !want->past, "/v1/findings?active=true", &answers->findings },
		{ want->past, "/v1/findings", &answers->findings },
		{ want->peers, "/v1/peers?window=60s", &answers->peers },
		{ want->kinds, kinds, &answers->kinds },
	};
	int r = 0;

	snprintf(kinds, sizeof(kinds), "/v1/summary?window=%s&by=comm,rank,func,size,algo,proto",
		 want->window);
	for (size_t i = 0; i < ARRAY_LEN(requests) && !r; i++)
		if (requests[i].wanted)
			r = client_get(client, requests[i].target, requests[i].answer);
	if (!r && want->runs)
		r = fetch_runs(client, want->runs, &answers->runs);
	if (!r)
		r = fetch_kept(client, kept, want,
			       census(json_object_get(answers->comms, "comms")), now_ns);
	answers->processes = json_incref(kept->processes);
	answers->ranks = json_incref(kept->ranks);
	answers->ops = json_incref(kept->ops);
	return r;
}

int view_fetch(struct view *view, struct client *client, const struct view_want *want,
	       uint64_t now_ns)
{
	struct view_answers answers = { 0 };
	int r = fetch_all(client, want, &view->kept, now_ns, &answers);

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
