/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a run, turned into values that can be compared with those of another run:
 * samples of all files joined by operation, sums and links of each node's newest file.
 */
#include "cli/offline/runs.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/member.h"
#include "cli/base/must.h"
#include "judge/difference.h"
#include "tables/stat.h"

#define LEAST_OPS	32	/* operations of a sum */
#define NAME		128	/* bytes of a setting's name */

/* ---- settings ---------------------------------------------------------------------------- */

/* Others in each run, and no setting of what it does. */
static bool variable_is_of_one_run(const char *name)
{
	static const char *const names[] = {
		"NCCL_COMM_ID", "NCCL_HOSTID", "NCCL_DEBUG_FILE", "NCCL_TOPO_DUMP_FILE",
		"NCCL_GRAPH_DUMP_FILE", "NCCL_RAS_ADDR",
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

/* A node's are the last ones of the list. */
static struct run_setting *setting_find(struct run *run, const char *host, const char *name)
{
	for (uint32_t i = run->settings.n; i; i--) {
		struct run_setting *s = &run->settings.at[i - 1];

		if (s->host != host)
			break;
		if (s->name == name)
			return s;
	}
	return NULL;
}

static void setting_append(struct run *run, const struct run_setting *setting)
{
	struct run_setting *s = must(list_append(&run->settings));

	*s = *setting;
	s->second = run->second;
	s->n = 1;
}

static void setting_add(struct run *run, enum run_about about, const char *host, const char *name,
			const char *value)
{
	const char *known = shots_text(&run->shots, value);

	name = shots_text(&run->shots, name);
	for (uint32_t i = run->settings.n; i; i--) {
		struct run_setting *s = &run->settings.at[i - 1];

		if (s->host != host)
			break;
		if (s->name == name && s->value == known) {
			s->n++;
			return;
		}
	}
	setting_append(run, &(struct run_setting){ .about = about, .name = name, .value = known,
						   .host = host });
}

static void setting_add_number(struct run *run, const char *host, const char *what,
			       const char *role, int64_t number)
{
	char name[NAME], value[24];

	snprintf(name, sizeof(name), "%s%s%s", what, role ? " of " : "", role ?: "");
	snprintf(value, sizeof(value), "%" PRId64, number);
	setting_add(run, RUN_TOPOLOGY, host, name, value);
}

/* A node has one such, the largest number of all. */
static void setting_keep_most(struct run *run, const char *host, const char *what,
			      const char *role, int32_t number)
{
	char name[NAME], value[24];
	struct run_setting *s;

	snprintf(name, sizeof(name), "%s of %s", what, role);
	s = setting_find(run, host, shots_text(&run->shots, name));
	if (!s)
		setting_add_number(run, host, what, role, number);
	else if (strtol(s->value, NULL, 10) < number) {
		snprintf(value, sizeof(value), "%d", number);
		s->value = shots_text(&run->shots, value);
	}
}

static void process_add_version(struct run *run, const char *host, const json_t *process)
{
	uint64_t nccl = member_number(process, "nccl_version", 0);
	uint64_t api = member_number(process, "api_version", 0);
	char text[64];

	if (nccl) {
		snprintf(text, sizeof(text), "%" PRIu64 ".%" PRIu64 ".%" PRIu64, nccl / 10000,
			 nccl / 100 % 100, nccl % 100);
		setting_add(run, RUN_SETTING, host, "NCCL", text);
	}
	if (api) {
		snprintf(text, sizeof(text), "v%" PRIu64, api);
		setting_add(run, RUN_SETTING, host, "profiler interface", text);
	}
	if (member_text(process, "plugin_version", NULL))
		setting_add(run, RUN_SETTING, host, "plugin",
			    member_text(process, "plugin_version", ""));
}

static void run_add_process(struct run *run, const char *host, const json_t *process)
{
	json_t *variables = json_object_get(process, "nccl_variables"), *value;
	const char *name;

	process_add_version(run, host, process);
	if (!json_is_object(variables)) {
		run->lacks_variables = true;
		return;
	}
	setting_add(run, RUN_SETTING, host, "", "");
	json_object_foreach(variables, name, value)
		if (json_is_string(value) && !variable_is_of_one_run(name))
			setting_add(run, RUN_SETTING, host, name, json_string_value(value));
}

static void run_add_processes(struct run *run, const struct shots_node *node)
{
	json_auto_t *processes = shots_json(node, &node->rows.processes_json);

	json_each(process, processes)
		run_add_process(run, node->host, process);
}

/* ---- sums and links of a node's newest file ------------------------------------------------- */

static const char *run_role(struct run *run, const char *name, int32_t nranks)
{
	char text[32];

	if (name && *name)
		return name;
	snprintf(text, sizeof(text), "%d ranks", nranks == UNKNOWN_I32 ? 0 : nranks);
	return shots_text(&run->shots, text);
}

/* NULL stays it. */
static const char *text_kept(struct run *run, const char *text)
{
	return text ? shots_text(&run->shots, text) : NULL;
}

static uint8_t bytes_class(uint64_t bytes)
{
	return bytes && bytes != UNKNOWN_U64 ? (uint8_t)(63 - __builtin_clzll(bytes)) : 0;
}

static void run_add_value(struct run *run, const struct run_value *value)
{
	struct run_value *v = must(list_append(&run->values));

	*v = *value;
	v->func = v->func ?: "";
	v->algo = v->algo ?: "";
	v->proto = v->proto ?: "";
	v->second = run->second;
}

static void sum_add_algorithm(struct run *run, const char *host, const struct run_value *v)
{
	char name[NAME], value[64];

	snprintf(name, sizeof(name), "%s\n%s\n%u", v->role, v->func, v->size_class);
	snprintf(value, sizeof(value), "%s/%s", v->algo, v->proto);
	setting_add(run, RUN_ALGORITHM, host, name, value);
}

static void run_add_sum(struct run *run, const char *host, const struct sum_read *row)
{
	const struct times_read *t = &row->exec;
	struct run_value v = {
		.kind = RUN_SUM, .host = host, .func = row->func, .algo = row->algo ?: "",
		.proto = row->proto ?: "", .rank = UNKNOWN_I32, .peer = UNKNOWN_I32,
		.size_class = bytes_class(row->size_class),
	};

	if (!row->func || row->ops == UNKNOWN_U64 || row->ops < LEAST_OPS)
		return;
	v.role = run_role(run, row->comm_name, row->nranks);
	if (row->algo)
		sum_add_algorithm(run, host, &v);
	if (t->n == UNKNOWN_U64 || t->n < LEAST_OPS || t->p50_ns == UNKNOWN_U64 ||
	    t->p90_ns == UNKNOWN_U64)
		return;
	v.value = (double)t->p50_ns;
	v.bound = difference_median_bound(v.value, (double)t->p90_ns, (double)t->n);
	run_add_value(run, &v);
}

/*
 * The line below the transfers of a link is what its path can do: sums of times are those of a
 * busy host as well.
 */
static void run_add_link(struct run *run, const char *host, const json_t *row)
{
	const json_t *fit = json_object_get(row, "fit");
	double rate = json_number_value(json_object_get(fit, "rate_gbs"));
	uint64_t bytes = member_number(row, "bytes", 0), steps = member_number(row, "steps", 0);
	struct run_value v = { .kind = RUN_LINK, .host = host, .rank = member_i32(row, "rank"),
			       .peer = member_i32(row, "peer") };
	int32_t channel = member_i32(row, "channel");

	if (v.rank < 0 || v.peer < 0 || !member_is(row, "direction", "send") ||
	    !member_is(row, "window", "all"))
		return;
	v.role = run_role(run, text_kept(run, member_text(row, "comm_name", NULL)),
			  member_i32(row, "nranks"));
	if (channel >= 0 && channel < INT32_MAX)
		setting_keep_most(run, host, "channels", v.role, channel + 1);
	if (!steps || bytes < steps || rate <= 0)
		return;
	v.at = bytes / steps;
	v.value = 1 / rate + (double)member_number(fit, "latency_ns", 0) / (double)v.at;
	run_add_value(run, &v);
}

static void run_drop_host(struct run *run, const char *host)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < run->values.n; i++)
		if (run->values.at[i].host != host)
			run->values.at[kept++] = run->values.at[i];
	run->values.n = kept;
	kept = 0;
	for (uint32_t i = 0; i < run->settings.n; i++)
		if (run->settings.at[i].host != host)
			run->settings.at[kept++] = run->settings.at[i];
	run->settings.n = kept;
}

static void run_take_node(void *arg, struct shots_node *node, bool is_first)
{
	struct run *run = arg;
	json_auto_t *peers = NULL;

	if (!is_first)
		run_drop_host(run, node->host);
	run_add_processes(run, node);
	for (uint32_t i = 0; i < node->rows.rows.n; i++)
		run_add_sum(run, node->host, &node->rows.rows.at[i]);
	peers = shots_json(node, &node->rows.peers_json);
	json_each(peer, peers)
		run_add_link(run, node->host, peer);
}

/* ---- samples of all files ------------------------------------------------------------------- */

/* One communicator's function. */
struct run_series {
	struct run *run;
	const struct shots_series *of;
	struct run_value value;		/* members that all its values share */
	double *inside;			/* room for each rank */
};

static uint32_t series_next(const struct shots_series *s, uint32_t first)
{
	uint32_t end = first;

	while (end < s->samples.n && s->samples.at[end].seq == s->samples.at[first].seq)
		end++;
	return end;
}

/* Operations with fewer ranks than others lack somebody, who may have been the last. */
static uint32_t series_most_ranks(const struct shots_series *s)
{
	uint32_t most = 0, end;

	for (uint32_t i = 0; i < s->samples.n; i = end) {
		end = series_next(s, i);
		most = end - i > most ? end - i : most;
	}
	return most;
}

/* The rank inside for the shortest time came last: its time is the one without waiting. */
static void operation_add(const struct run_series *s, const struct shots_sample *at, uint32_t n)
{
	struct run_value v = s->value;
	double middle;

	for (uint32_t i = 0; i < n; i++)
		s->inside[i] = (double)at[i].inside_ns;
	stat_sort(s->inside, n);
	middle = s->inside[n / 2];
	v.at = at->seq;
	v.size_class = at->size_class;
	v.kind = RUN_OPERATION;
	v.value = s->inside[0];
	run_add_value(s->run, &v);
	v.kind = RUN_RANK;
	for (uint32_t i = 0; n > 1 && i < n; i++) {
		v.rank = at[i].rank;
		v.value = fmax(0, middle - (double)at[i].inside_ns);
		run_add_value(s->run, &v);
	}
}

static void run_add_series(struct run *run, const struct shots_comm *comm,
			   const struct shots_series *of)
{
	uint32_t most = series_most_ranks(of), end;
	struct run_series s = {
		.run = run, .of = of, .inside = must(calloc(most ?: 1, sizeof(double))),
		.value = { .role = run_role(run, comm->name, comm->nranks), .func = of->func,
			   .rank = UNKNOWN_I32, .peer = UNKNOWN_I32, .comm_id = comm->id },
	};

	for (uint32_t i = 0; i < of->samples.n; i = end) {
		end = series_next(of, i);
		if (end - i == most)
			operation_add(&s, &of->samples.at[i], most);
	}
	free(s.inside);
}

/* ---- the run as a whole ---------------------------------------------------------------------- */

static int uuids_order(const void *a, const void *b)
{
	uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;

	return (x > y) - (x < y);
}

/* Texts are there once, so that equal ones are at one place. */
static int64_t run_count_gpus(const struct run *run)
{
	LIST(uintptr_t) uuids = { NULL, 0, 0 };
	int64_t n = 0;

	for (uint32_t i = 0; i < run->shots.comms.n; i++)
		for (uint32_t k = 0; k < run->shots.comms.at[i]->ranks.n; k++) {
			const char *uuid = run->shots.comms.at[i]->ranks.at[k].row->gpu_uuid;

			if (uuid)
				*(uintptr_t *)must(list_append(&uuids)) = (uintptr_t)uuid;
		}
	list_sort(&uuids, uuids_order);
	for (uint32_t i = 0; i < uuids.n; i++)
		n += !i || uuids.at[i] != uuids.at[i - 1];
	list_deinit(&uuids);
	return n;
}

static void run_add_comm(struct run *run, const struct comm_ranks_read *comm)
{
	if (comm->comm_id == UNKNOWN_U64)
		return;
	setting_add(run, RUN_TOPOLOGY, NULL, "communicators",
		    run_role(run, comm->name, comm->nranks));
	if (!comm->name)
		return;
	setting_add_number(run, NULL, "ranks", comm->name, comm->nranks);
	if (comm->nnodes != UNKNOWN_I32)
		setting_add_number(run, NULL, "nodes", comm->name, comm->nnodes);
}

static void run_add_topology(struct run *run)
{
	int64_t gpus = run_count_gpus(run);

	setting_add_number(run, NULL, "nodes", NULL, (int64_t)run->shots.nodes.n);
	if (gpus)
		setting_add_number(run, NULL, "GPUs", NULL, gpus);
	for (uint32_t i = 0; i < run->shots.nodes.n; i++) {
		const struct snapshot_read *rows = &run->shots.nodes.at[i]->rows;

		for (uint32_t k = 0; k < rows->comms.n; k++)
			run_add_comm(run, &rows->comms.at[k]);
	}
	for (uint32_t i = 0; i < run->settings.n; i++)
		if (!*run->settings.at[i].name)
			run->processes += run->settings.at[i].n;
}

/* Cuts "@2026-11-24" off a path that is none; NULL: the files of any time. */
static const char *path_cut_time(char *path)
{
	char *at = strrchr(path, '@');

	if (!at || !access(path, F_OK) || strspn(at + 1, "0123456789") != 4)
		return NULL;
	*at = '\0';
	return at + 1;
}

enum cli_exit run_read(struct run *run, const char *path, bool second)
{
	*run = (struct run){ .path = must(strdup(path)), .second = second };
	shots_init(&run->shots);
	run->shots.at = path_cut_time(run->path);
	run->shots.wants_samples = true;
	run->shots.newest = run_take_node;
	run->shots.newest_arg = run;
	shots_add(&run->shots, (const char *const *)&run->path, 1);
	if (!run->shots.files)
		return shots_tell_none(&run->shots,
				       second ? "the second run: " : "the first run: ");
	shots_settle(&run->shots);
	run_add_topology(run);
	for (uint32_t i = 0; i < run->shots.comms.n; i++)
		for (const struct shots_series *s = run->shots.comms.at[i]->series; s; s = s->next)
			run_add_series(run, run->shots.comms.at[i], s);
	return CLI_DONE;
}

void run_deinit(struct run *run)
{
	list_deinit(&run->values);
	list_deinit(&run->settings);
	shots_deinit(&run->shots);
	free(run->path);
}
