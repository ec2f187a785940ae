/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A progress thread without CPU in words and in numbers, apart from the statistics that
 * find it: the advice differs with what kept the thread.
 */
#include "ncclinspd/findings/proxy_starved_text.h"

#include <inttypes.h>

#include "util/json.h"
#include "util/phrase.h"

static void say_what(const struct proxy_starved_told *t, struct phrase *text)
{
	phrase_add(text, "the network thread of rank %" PRId32 " (pid %d) ", t->owner->rank,
		   (int)t->owner->pid);
	if (t->grade != STARVED_AWAY) {
		phrase_add(text, "waited for a CPU for %.0f %% of the time; what that costs is not "
			   "known, since too few kernels are watched; ", 100 * t->cpu_share);
		return;
	}
	phrase_add(text, "was away %" PRIu64 " times: of %" PRIu64 " kernels it saw %" PRIu64
		   " too late, up to ", t->sum->times, t->sum->seen, t->sum->late);
	phrase_add_duration(text, t->sum->longest_ns);
	phrase_add(text, " after they had begun, %.0f %% of wall time; ", 100 * t->share);
}

static void say_who_else(const struct proxy_starved_told *t, struct phrase *text)
{
	if (t->starved > 1)
		phrase_add(text, "so were those of %" PRIu32 " of %" PRIu32 " processes on this "
			   "node; ", t->starved, t->all);
	else if (t->grade == STARVED_AWAY && t->all > 1)
		phrase_add(text, "that of no other of the %" PRIu32 " processes on this node was; ",
			   t->all);
}

/* It could have run for half of the time that it was away, or more. */
static bool waits_for_cpu(const struct proxy_starved_told *t)
{
	return t->grade != STARVED_AWAY || t->cpu_share >= t->share / 2;
}

static void say_why(const struct proxy_starved_told *t, struct phrase *text)
{
	double percent = 100 * t->cpu_share;
	bool most = t->starved > 1 && 2 * t->starved > t->all;

	if (t->cpu_share >= 0 && !waits_for_cpu(t)) {
		phrase_add(text, "it did not itself wait for a CPU meanwhile (%.0f %% of the "
			   "time): it slept, waited for another thread or was stopped; see what it "
			   "does (gdb -p %d), and whether somebody stops it or freezes its cgroup",
			   percent, (int)t->owner->pid);
		return;
	}
	if (t->cpu_share >= 0 && t->grade == STARVED_AWAY)
		phrase_add(text, "it could have run, and waited for a CPU for %.0f %% of the "
			   "time: ", percent);
	if (most)
		phrase_add(text, "too few CPUs for all that runs here, or a cgroup limit");
	else if (t->cpu_share >= 0)
		phrase_add(text, "see what shares its CPUs (taskset -cp %d, numactl), a cgroup "
			   "limit", (int)t->tid);
	else
		phrase_add(text, "see what shares its CPUs (taskset -p, numactl), a cgroup limit");
}

static void proxy_starved_say(const struct proxy_starved_told *t, struct finding *f)
{
	struct phrase text;

	phrase_start(&text, f->text, sizeof(f->text));
	say_what(t, &text);
	say_who_else(t, &text);
	say_why(t, &text);
}

static void put_share(struct json *j, const char *key, double share)
{
	json_key(j, key);
	if (share >= 0)
		json_put_rounded(j, share);
	else
		json_put_null(j);
}

static void proxy_starved_show(const struct proxy_starved_told *t, struct finding *f)
{
	const struct starved_slice *sum = t->sum;
	const struct { const char *name; uint64_t value; } numbers[] = {
		{ "ops", sum->ops }, { "seen", sum->seen }, { "late", sum->late },
		{ "times", sum->times }, { "late_ns", sum->away_ns },
		{ "longest_ns", sum->longest_ns }, { "processes", t->all },
		{ "starved", t->starved }, { "window_ns", t->window_ns },
	};
	struct json j;

	json_init(&j, FINDING_EVIDENCE);
	json_begin(&j, '{');
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		json_key(&j, numbers[i].name);
		json_put_u64(&j, numbers[i].value);
	}
	put_share(&j, "share", t->grade == STARVED_AWAY ? t->share : -1);
	put_share(&j, "cpu_wait_share", t->cpu_share);
	json_end(&j, '}');
	finding_set_evidence(f, &j);
	json_deinit(&j);
}

void proxy_starved_describe(const struct proxy_starved_told *t, struct finding *f)
{
	proxy_starved_say(t, f);
	proxy_starved_show(t, f);
}
