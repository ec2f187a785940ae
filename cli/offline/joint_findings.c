/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verdicts of many nodes together, in the shape in which one node's daemon tells its findings:
 * whatever shows findings shows these.
 */
#include <string.h>

#include "cli/base/intake.h"
#include "cli/base/member.h"
#include "cli/common/cli.h"
#include "cli/offline/joint.h"

/* The id of the rank's job, which its process has; NULL: none is told. */
static json_t *verdict_job(const struct joint *joint, const json_t *row)
{
	const struct shots_node *node = shots_node(&joint->shots, member_text(row, "host", ""));
	uint64_t pid = member_number(row, "pid", UNKNOWN_U64);

	for (uint32_t i = 0; node && i < node->rows.processes.n; i++) {
		const struct process_read *process = &node->rows.processes.at[i];

		if (process->pid >= 0 && (uint64_t)process->pid == pid)
			return process->job.id ? json_string(process->job.id) : NULL;
	}
	return NULL;
}

static json_t *verdict_since(const json_t *row)
{
	json_int_t age_ns = json_integer_value(json_object_get(row, "age_ns"));

	return age_ns ? json_integer((json_int_t)cli_now_ns() - age_ns) : json_null();
}

/* A new finding, with its times as others have them; NULL: there is none. */
static json_t *finding_moved(const struct shots_node *node, const json_t *finding)
{
	json_t *f = json_deep_copy(finding);

	if (f && node)
		intake_move_times(f, node->moved_ns);
	return f;
}

/* The finding that a row's text is the whole of, but for its ranks. */
static json_t *verdict_finding(const struct joint *joint, const json_t *row)
{
	static const char *const same[] = {
		"kind", "severity", "grade", "verdict", "comm_id", "comm_name", "nranks", "peer",
		"host", "text", "gathered",
	};
	json_t *f = finding_moved(shots_node(&joint->shots, member_text(row, "host", "")),
				  json_object_get(row, "finding")) ?: json_object();

	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
		if (json_object_get(row, same[i]))
			json_object_set(f, same[i], json_object_get(row, same[i]));
	if (json_object_get(row, "finding"))
		return f;
	json_object_set_new(f, "active", json_true());
	json_object_set_new(f, "since_mono_ns", verdict_since(row));
	json_object_set_new(f, "job", verdict_job(joint, row));
	json_object_set_new(f, "ranks", json_array());
	json_object_set_new(f, "whom", json_array());
	return f;
}

/* One more of the ranks that the text names. */
static void finding_add_rank(json_t *f, const json_t *row)
{
	static const char *const of_rank[] = { "rank", "world_rank", "pid", "pci_bus_id",
					     "gpu_index" };
	json_t *whom = json_object();

	if (json_object_get(row, "finding") || !json_is_integer(json_object_get(row, "rank")))
		return;
	json_array_append(json_object_get(f, "ranks"), json_object_get(row, "rank"));
	for (size_t i = 0; i < sizeof(of_rank) / sizeof(of_rank[0]); i++)
		json_object_set_new(whom, of_rank[i],
				    json_incref(json_object_get(row, of_rank[i])) ?: json_null());
	json_object_set(whom, "rank", json_object_get(row, "rank"));
	json_object_set(whom, "host", json_object_get(row, "host"));
	json_array_append_new(json_object_get(f, "whom"), whom);
}

/* Has another node said the same of that job? */
static bool findings_have(const json_t *findings, const json_t *f)
{
	json_each(other, findings)
		if (members_same(other, f, "kind", "job", "comm_name"))
			return true;
	return false;
}

/*
 * True for a finding that is no fault, or over, and for waiting elsewhere and hangs, which all
 * nodes together have told.
 */
static bool finding_is_beside(const json_t *f)
{
	const char *kind = member_text(f, "kind", "");

	return !member_true(f, "active") ||
	       (member_is(f, "severity", "info") && strcmp(kind, "straggler") &&
		strcmp(kind, "stall") && strcmp(kind, "desync"));
}

static void findings_add_beside(json_t *findings, const struct shots_node *node)
{
	json_t *copy;

	json_each(f, node->findings) {
		if (!finding_is_beside(f) ||
		    (member_true(f, "active") && findings_have(findings, f)))
			continue;
		copy = finding_moved(node, f);
		json_object_set_new(copy, "host", json_string(node->host));
		json_array_append_new(findings, copy);
	}
}

json_t *joint_findings(struct joint *joint)
{
	json_t *rows = joint_verdicts(joint), *findings = json_array(), *last = NULL;

	json_each(row, rows) {
		/* The rows of one finding have one text, and stand together. */
		if (!last || !members_same(last, row, "comm_id", "text")) {
			last = verdict_finding(joint, row);
			json_array_append_new(findings, last);
		}
		finding_add_rank(last, row);
	}
	json_decref(rows);
	for (uint32_t n = 0; n < joint->shots.nodes.n; n++)
		findings_add_beside(findings, joint->shots.nodes.at[n]);
	return findings;
}

/* ---- ranks ----------------------------------------------------------------------------- */

static bool finding_is_about(const json_t *f, const json_t *rank)
{
	if (!member_true(f, "active") || member_is(f, "severity", "info") ||
	    !json_equal(json_object_get(f, "comm_id"), json_object_get(rank, "comm_id")))
		return false;
	json_each(number, json_object_get(f, "ranks"))
		if (json_equal(number, json_object_get(rank, "rank")))
			return true;
	return false;
}

/* The worst finding about it; NULL: none is. */
static const json_t *rank_finding(const json_t *rank, const json_t *findings)
{
	const json_t *worst = NULL;

	json_each(f, findings)
		if (finding_is_about(f, rank) &&
		    (!worst || member_is(f, "severity", "critical")))
			worst = f;
	return worst;
}

/* The order of the rows, as docs/api.md says of /v1/ranks, with that finding. */
static double rank_badness(const json_t *rank, const json_t *f)
{
	double badness = json_number_value(json_object_get(rank, "badness")), part;
	int whole = (int)badness;

	part = badness - whole;
	if (whole == 5)
		return badness;
	whole = member_true(rank, "late");
	if (f)
		whole = member_is(f, "severity", "critical") ? 4 : 2;
	if (whole < 3 && member_true(rank, "stalled"))
		whole = 3;
	return whole + part;
}

void joint_mark_ranks(json_t *ranks, const json_t *findings)
{
	static const struct {
		const char *of_rank, *of_finding;
	} members[] = {
		{ "finding", "kind" }, { "verdict", "verdict" }, { "grade", "grade" },
		{ "severity", "severity" }, { "finding_id", "id" },
	};

	json_each(rank, ranks) {
		const json_t *f = rank_finding(rank, findings);

		for (size_t k = 0; k < sizeof(members) / sizeof(members[0]); k++)
			json_object_set_new(rank, members[k].of_rank, json_incref(
				json_object_get(f, members[k].of_finding)) ?: json_null());
		json_object_set_new(rank, "badness", json_real(rank_badness(rank, f)));
	}
}
