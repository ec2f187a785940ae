/* SPDX-License-Identifier: Apache-2.0 */
/* Every word that the daemon says is explained, and no word that it does not say. */
#include <strings.h>

#include "ncclinspd/compare/ranks_compare.h"
#include "ncclinspd/findings/limits.h"
#include "ncclinspd/levels/kernels.h"
#include "ncclinspd/serve/serve_parts.h"
#include "ncclinspd/sums/fit.h"
#include "reader/join/inflight.h"
#include "reader/time/stamps.h"
#include "reader/time/timeline.h"
#include "tests/fixture_serve.h"
#include "util/nccl_names.h"
#include "util/words.h"

#define REASONS		64	/* more than there will be */

static void setup(void)
{
	fx_serve_open(NULL);
	fx_process(10, 0, 0);
}

static const struct topic *find_topic(const char *title)
{
	const struct topic *topic = NULL;

	for (size_t i = 0; (topic = words_topic(i)); i++)
		if (!strcmp(topic->title, title))
			break;
	ck_assert_ptr_nonnull(topic);
	return topic;
}

/* What the daemon says of one topic, put together by one of the tests. */
static struct {
	const char *said[REASONS];
	size_t n;
} said;

static void say(const char *word)
{
	for (size_t i = 0; word && i < said.n; i++)
		if (!strcmp(said.said[i], word))
			return;
	ck_assert_uint_lt(said.n, REASONS);
	if (word)
		said.said[said.n++] = word;
}

static void say_keys(json_t *object)
{
	const char *key;
	json_t *value;

	ck_assert(json_is_object(object));
	json_object_foreach(object, key, value)
		say(key);
}

static bool is_told(const struct topic *topic, const char *word)
{
	for (size_t i = 0; i < topic->n; i++)
		if (!strcmp(topic->words[i].name, word))
			return true;
	return false;
}

/* Each of what was said is in the topic, and nothing else. */
static void compare(const char *title)
{
	const struct topic *topic = find_topic(title);

	ck_assert_uint_gt(said.n, 0);
	for (size_t i = 0; i < said.n; i++)
		ck_assert_msg(is_told(topic, said.said[i]), "%s: no word '%s'", title,
			      said.said[i]);
	ck_assert_msg(topic->n == said.n, "%s: %zu words, of which %zu are said", title, topic->n,
		      said.n);
	said.n = 0;
}

TEST(kinds_severities_and_verdicts_are_explained)
{
	for (int i = 0; i < FINDING_KIND_END; i++)
		say(finding_kind_name((enum finding_kind)i));
	compare("kinds of findings");
	for (int i = 0; i < FINDING_SEVERITY_END; i++)
		say(finding_severity_name((enum finding_severity)i));
	compare("severities of findings");
	for (int i = 0; i < VERDICT_END; i++)
		say(words_verdict((enum verdict)i)->name);
	compare("verdicts of findings");
	say("MISSING");
	say("SILENT");
	compare("what a report of many nodes lacks");
	for (int i = 0; i < LIMIT_END; i++)
		say(limit_reason_name((enum limit_reason)i));
	compare("why a stall has this limit");
}

TEST(what_is_in_flight_is_explained)
{
	for (int i = 0; i < OP_STATE_END; i++)
		say(inflight_op_state((enum op_state)i));
	compare("states of an operation");
	for (uint32_t i = 0; nccl_state_name(i); i++)
		say(nccl_state_name(i));
	compare("states of a part of an operation");
	for (int i = 1; i < NCI_EV_END; i++)
		say(nccl_event_name(i));
	compare("what can be in flight");
}

TEST(sources_faults_and_methods_are_explained)
{
	for (int i = 0; i < TIMING_END; i++)
		say(timeline_source_text((enum timing_source)i));
	compare("where a duration comes from");
	for (int i = 0; i < ARRIVAL_END; i++)
		say(ranks_arrival_text((enum arrival_source)i));
	compare("where the order of ranks comes from");
	for (int i = 0; i < STAMP_FAULT_END; i++)
		say(stamps_fault_text((enum stamp_fault)i));
	compare("what is wrong with a GPU stamp");
	for (int i = 0; i < FIT_METHOD_END; i++)
		say(fit_method_text((enum fit_method)i));
	compare("how the line of a link was found");
	for (int i = FIT_FOUND + 1; i < FIT_OUTCOME_END; i++)
		say(fit_outcome_text((enum fit_outcome)i));
	compare("why a link has no line");
}

TEST(levels_and_what_restricts_them_are_explained)
{
	struct process *p = fx.processes[0];

	for (p->level = 0; p->level < NCI_LEVELS; p->level++)
		say(process_level(p));
	p->level = NCI_LEVEL_NET;
	compare("levels");
	for (int timed = 0; timed < 2; timed++)
		for (p->steering.mode = 0; p->steering.mode < NCI_MODES; p->steering.mode++)
			for (p->seen = NCI_SEEN_OUTSIDE; p->steering.mode; p->seen /= 2) {
				p->mask = timed ? NCI_EVENT_BIT(NCI_EV_KERNEL_CH) : 0;
				say(kernels_reason(p));
				p->steering.settles_ns = !p->steering.settles_ns;
				if (!p->seen)
					break;
			}
	compare("why less is recorded than the level says");
	for (int i = KERNELS_NEVER; i <= KERNELS_SETTLING; i++)
		say(kernels_word((enum kernels_state)i));
	compare("which kernels are timed now");
	p->steering.mode = NCI_MODE_ALWAYS;
	say(process_sampling(p));
	p->steering.mode = NCI_MODE_FIRST;
	say(process_sampling(p));
	compare("which operations are timed");
}

TEST(what_is_said_of_processes_is_explained)
{
	struct process *p = fx.processes[0];
	json_t *a[4];

	for (int i = 0; i < 3; i++) {
		p->state = (enum process_state)i;
		a[i] = fx_get("/v1/processes", 200);
		say(fx_text(a[i], "processes.0.state"));
	}
	p->state = PROCESS_LIVE;
	p->comms[0].finalize_ticks = 1;
	a[3] = fx_get("/v1/comms", 200);
	say(fx_text(a[3], "comms.0.local_ranks.0.state"));
	compare("states of a process");
	say_keys(fx_at(a[0], "processes.0.lost"));
	compare("causes of loss");
	say_keys(fx_at(a[0], "processes.0.stamps_refused_by"));
	compare("what is wrong with a GPU stamp");
	for (int i = 0; i < 4; i++)
		json_decref(a[i]);
}

TEST(each_word_has_a_meaning_and_is_found_in_whichever_case)
{
	const struct topic *topic;

	for (size_t i = 0; (topic = words_topic(i)); i++) {
		ck_assert_uint_gt(topic->n, 0);
		for (size_t k = 0; k < topic->n; k++) {
			const struct word *w = &topic->words[k];

			ck_assert_msg(w->name && w->meaning && strlen(w->meaning) > 10, "%s %zu",
				      topic->title, k);
			ck_assert_msg(w->meaning[strlen(w->meaning) - 1] == '.', "%s", w->name);
			ck_assert_msg(i > 1 || (w->evidence && w->action), "%s", w->name);
			for (size_t l = 0; l < k; l++)
				ck_assert(strcasecmp(w->name, topic->words[l].name));
		}
	}
	ck_assert_ptr_eq(words_find("Rank_Dead"), words_verdict(VERDICT_RANK_DEAD));
	ck_assert_ptr_null(words_find("nonsense"));
}

int main(void)
{
	return fx_run(setup, fx_serve_close);
}
