/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ncclinsp diff: what differs between two runs.  Values of both are sorted together, so that those
 * of one figure lie side by side; judge/ compares them, and says which differ beyond noise.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/base/must.h"
#include "cli/common/listing.h"
#include "cli/offline/runs.h"
#include "judge/difference.h"
#include "tables/stat.h"
#include "util/list.h"
#include "util/phrase.h"
#include "util/text.h"

#define LATE_LEAST_NS	20000.0	/* a rank that is late by less harms nobody */
#define LINK_ALIKE	1.25	/* most times by which the transfers of a link are larger */
#define SHOWN		4	/* values of a setting in a cell */
#define SETTINGS_WEIGHT	1e9	/* settings come first: they may be the cause */

static const struct column columns[] = {
#include "schema/diff_columns.h"
};

/* The largest change first. */
static const struct column by_weight = { NULL, NULL, COL_NUMBER, "weight", 0, 0, 0 };

/* A figure that both runs have: of[0] and of[1] are its first values. */
struct diff_figure {
	const struct run_value *of[2];
	uint32_t n[2];
};

struct diff {
	struct run runs[2];
	struct run_values values;	/* both runs' */
	struct run_settings settings;
	LIST(struct diff_figure) figures;
	LIST(struct difference) judged;	/* each figure's */
	double *scratch, *picked, *bounds;
	/* The operation that was measured last, of whose ranks the next figures are. */
	const struct run_value *operation;
	double operation_ns;
	uint64_t operations, ranks, links, alone;
	json_t *rows;
};

/* ---- figures -------------------------------------------------------------------------------- */

/* Is it of one operation: role, function and size? */
static int values_by_operation(const struct run_value *a, const struct run_value *b)
{
	int r = strcmp(a->role, b->role);

	r = r ? r : strcmp(a->func, b->func);
	return r ? r : number_order(a->size_class, b->size_class);
}

static int values_by_figure(const struct run_value *a, const struct run_value *b)
{
	int r = values_by_operation(a, b);

	r = r ? r : number_order(a->kind, b->kind);
	r = r ? r : strcmp(a->algo, b->algo);
	r = r ? r : strcmp(a->proto, b->proto);
	r = r ? r : number_order((uint32_t)a->rank, (uint32_t)b->rank);
	return r ? r : number_order((uint32_t)a->peer, (uint32_t)b->peer);
}

static int values_order(const void *left, const void *right)
{
	const struct run_value *a = left, *b = right;
	int r = values_by_figure(a, b);

	r = r ? r : number_order(a->second, b->second);
	r = r ? r : number_order(a->at, b->at);
	return r ? r : number_order(a->comm_id, b->comm_id);
}

static struct difference_side figure_side(const struct diff *d, const struct diff_figure *f,
					  int side, uint32_t first)
{
	for (uint32_t i = 0; i < f->n[side]; i++) {
		d->picked[first + i] = f->of[side][i].value;
		d->bounds[first + i] = f->of[side][i].bound;
	}
	return (struct difference_side){ &d->picked[first],
		f->of[0]->kind == RUN_SUM ? &d->bounds[first] : NULL, f->n[side] };
}

/* Links move a byte in more time where their transfers are smaller. */
static bool links_are_alike(const struct diff_figure *f)
{
	double a = (double)f->of[0][f->n[0] / 2].at, b = (double)f->of[1][f->n[1] / 2].at;

	return a <= b * LINK_ALIKE && b <= a * LINK_ALIKE;
}

static struct difference figure_measure(const struct diff *d, const struct diff_figure *f)
{
	struct difference_side a = figure_side(d, f, 0, 0), b = figure_side(d, f, 1, f->n[0]);
	struct difference found = { .scale = 0 };

	if (f->of[0]->kind == RUN_RANK) {
		found.scale = d->operation_ns;
		found.least = LATE_LEAST_NS;
	}
	difference_measure(&found, &a, &b, d->scratch);
	return found;
}

/* A link's channels together; it is compared once all links are known. */
static struct difference link_measure(const struct diff *d, const struct diff_figure *f)
{
	const struct difference_side a = figure_side(d, f, 0, 0), b = figure_side(d, f, 1, f->n[0]);

	memcpy(d->scratch, a.values, a.n * sizeof(*d->scratch));
	memcpy(d->scratch + a.n, b.values, b.n * sizeof(*d->scratch));
	return (struct difference){ .test = DIFFERENCE_LINKS,
				    .a = stat_median(d->scratch, a.n),
				    .b = stat_median(d->scratch + a.n, b.n) };
}

static bool diff_has_operation(const struct diff *d, const struct run_value *of)
{
	return d->operation && !values_by_operation(d->operation, of);
}

/* Sums are asked where there are no samples, and ranks where their operation was compared. */
static bool diff_wants(const struct diff *d, const struct diff_figure *f)
{
	switch (f->of[0]->kind) {
	case RUN_LINK:
		return links_are_alike(f);
	case RUN_SUM:
		return !diff_has_operation(d, f->of[0]);
	case RUN_RANK:
		return diff_has_operation(d, f->of[0]);
	case RUN_OPERATION:
		break;
	}
	return true;
}

static void diff_count(struct diff *d, const struct diff_figure *f, const struct difference *found)
{
	switch (f->of[0]->kind) {
	case RUN_LINK:
		break;
	case RUN_RANK:
		d->ranks++;
		break;
	case RUN_OPERATION:
		d->operation = f->of[0];
		d->operation_ns = fmax(found->a, found->b);
		d->operations++;
		break;
	case RUN_SUM:
		d->operations++;
		break;
	}
}

static void diff_add_figure(struct diff *d, const struct diff_figure *f)
{
	struct difference found = { .test = DIFFERENCE_NONE };

	if (f->n[0] && f->n[1] && diff_wants(d, f))
		found = f->of[0]->kind == RUN_LINK ? link_measure(d, f) : figure_measure(d, f);
	if (found.test == DIFFERENCE_NONE) {
		const struct run_value *of = f->of[0] ?: f->of[1];

		d->alone += of->kind == RUN_SUM && !diff_has_operation(d, of);
		return;
	}
	diff_count(d, f, &found);
	*(struct diff_figure *)must(list_append(&d->figures)) = *f;
	*(struct difference *)must(list_append(&d->judged)) = found;
}

static void diff_find_figures(struct diff *d)
{
	const struct run_value *at = d->values.at;

	for (uint32_t i = 0, end; i < d->values.n; i = end) {
		struct diff_figure f = { .n = { 0, 0 } };

		for (end = i; end < d->values.n && !values_by_figure(&at[i], &at[end]); end++) {
			f.of[at[end].second] = f.of[at[end].second] ?: &at[end];
			f.n[at[end].second]++;
		}
		diff_add_figure(d, &f);
	}
}

/* The links of one communicator's role stand together. */
static void diff_measure_links(struct diff *d)
{
	const struct diff_figure *f = d->figures.at;

	for (uint32_t i = 0, end; i < d->figures.n; i = end) {
		for (end = i + 1; end < d->figures.n && f[i].of[0]->kind == RUN_LINK &&
				  f[end].of[0]->kind == RUN_LINK &&
				  !strcmp(f[end].of[0]->role, f[i].of[0]->role);)
			end++;
		if (f[i].of[0]->kind != RUN_LINK)
			continue;
		difference_measure_links(&d->judged.at[i], end - i, d->scratch);
		d->links += d->judged.at[i].test != DIFFERENCE_NONE ? end - i : 0;
	}
}

/* ---- rows ----------------------------------------------------------------------------------- */

static void row_set_text(json_t *row, const char *key, const char *text)
{
	json_object_set_new(row, key, json_text(text));
}

static void row_set_rank(json_t *row, const char *key, int32_t rank)
{
	json_object_set_new(row, key, rank == UNKNOWN_I32 ? json_null() : json_integer(rank));
}

/* A time; of a link, the rate that it is. */
static void figure_say(const struct run_value *v, double ns, char *text, size_t size)
{
	if (v->kind != RUN_LINK) {
		text_duration(text, size, (uint64_t)(ns + 0.5));
		return;
	}
	text_number(text, size, ns > 0 ? 1 / ns : 0);
	strncat(text, "GB/s", size - strlen(text) - 1);
}

static void phrase_add_operation(struct phrase *p, const struct run_value *v)
{
	char size[32];

	text_bytes(size, sizeof(size), UINT64_C(1) << v->size_class);
	phrase_add(p, "%s of %s on %s", v->func, size, v->role);
}

static void figure_explain(const struct run_value *v, const struct difference *d, struct phrase *p)
{
	const char *more = d->change > 0 ? "longer" : "less time", *than = "in B than in A";

	switch (v->kind) {
	case RUN_OPERATION:
	case RUN_SUM:
		phrase_add_operation(p, v);
		if (*v->algo)
			phrase_add(p, " (%s/%s)", v->algo, v->proto);
		phrase_add(p, " takes %.1f %% %s %s%s", fabs(d->change) * 100, more, than,
			   v->kind == RUN_OPERATION ? ", without the waiting for ranks" : "");
		break;
	case RUN_RANK:
		phrase_add(p, "rank %d of %s comes %s to ", v->rank, v->role,
			   d->change > 0 ? "later" : "earlier");
		phrase_add_operation(p, v);
		phrase_add(p, " %s, by %.1f %% of its time", than, fabs(d->change) * 100);
		break;
	case RUN_LINK:
		phrase_add(p, "a byte on the link from rank %d to rank %d of %s takes %.1f %% %s "
			      "%s",
			   v->rank, v->peer, v->role, fabs(d->change) * 100, more, than);
		break;
	}
}

static void diff_add_row(struct diff *diff, const struct diff_figure *f, const struct difference *d)
{
	static const char *const what[] = {
		[RUN_LINK] = "link", [RUN_OPERATION] = "operation", [RUN_SUM] = "operation",
		[RUN_RANK] = "rank",
	};
	const struct run_value *v = f->of[0];
	char a[32], b[32], algo[64], text[512];
	struct phrase p;
	json_t *row = json_pack("{s:s, s:f, s:f, s:f, s:I, s:I, s:s, s:f}", "what", what[v->kind],
				"a_ns", d->a, "b_ns", d->b, "change", d->change,
				"n_a", (json_int_t)f->n[0], "n_b", (json_int_t)f->n[1],
				"test", difference_test_name(d->test), "weight", fabs(d->change));

	figure_say(v, d->a, a, sizeof(a));
	figure_say(v, d->b, b, sizeof(b));
	snprintf(algo, sizeof(algo), "%s/%s", v->algo, v->proto);
	phrase_start(&p, text, sizeof(text));
	figure_explain(v, d, &p);
	row_set_text(row, "role", v->role);
	row_set_text(row, "func", v->func);
	row_set_text(row, "algo", *v->algo ? algo : NULL);
	row_set_text(row, "in_a", a);
	row_set_text(row, "in_b", b);
	row_set_text(row, "text", text);
	row_set_rank(row, "rank", v->rank);
	row_set_rank(row, "peer", v->peer);
	if (v->kind != RUN_LINK)
		json_object_set_new(row, "size_class",
				    json_integer((json_int_t)1 << v->size_class));
	if (d->test == DIFFERENCE_RANKS)
		json_object_set_new(row, "p", json_real(d->p));
	json_array_append_new(diff->rows, row);
}

static void diff_judge_figures(struct diff *d)
{
	uint32_t *order = must(calloc(d->judged.n + 1, sizeof(*order)));

	difference_judge(d->judged.at, d->judged.n, order);
	for (uint32_t i = 0; i < d->judged.n; i++)
		if (d->judged.at[i].differs)
			diff_add_row(d, &d->figures.at[i], &d->judged.at[i]);
	free(order);
}

/* ---- settings -------------------------------------------------------------------------------- */

static int settings_order(const void *left, const void *right)
{
	const struct run_setting *a = left, *b = right;
	int r = number_order(a->about, b->about);

	r = r ? r : strcmp(a->name, b->name);
	r = r ? r : strcmp(a->value, b->value);
	return r ? r : number_order(a->second, b->second);
}

/* One name's values: side by side, as texts. */
struct diff_setting {
	char text[2][256];
	uint32_t values[2], having[2];
	bool differs;
};

static void setting_say(struct diff_setting *s, int side, const char *value)
{
	size_t used = strlen(s->text[side]);

	if (s->values[side]++ < SHOWN)
		snprintf(s->text[side] + used, sizeof(s->text[side]) - used, "%s%s",
			 used ? ", " : "", value);
	else if (s->values[side] == SHOWN + 1)
		snprintf(s->text[side] + used, sizeof(s->text[side]) - used, ", ...");
}

/* A value that a run has and the other has not is a difference. */
static uint32_t setting_take_value(struct diff_setting *s, const struct run_setting *at, uint32_t n)
{
	uint32_t have[2] = { 0, 0 }, end = 0;

	for (; end < n && !strcmp(at[end].name, at->name) &&
	       !strcmp(at[end].value, at->value); end++)
		have[at[end].second] += at[end].n;
	for (int side = 0; side < 2; side++) {
		if (have[side])
			setting_say(s, side, at->value);
		s->having[side] += have[side];
	}
	s->differs |= !have[0] != !have[1];
	return end;
}

/* Processes that have no value of a variable have it unset. */
static void setting_take_unset(const struct diff *d, struct diff_setting *s)
{
	bool unset[2];

	for (int side = 0; side < 2; side++) {
		unset[side] = s->having[side] < d->runs[side].processes;
		if (unset[side])
			setting_say(s, side, "unset");
	}
	s->differs |= unset[0] != unset[1];
}

static bool setting_is_variable(const struct run_setting *at)
{
	return at->about == RUN_SETTING && !strncmp(at->name, "NCCL_", 5);
}

/* The name of an algorithm's is role, function and size, a line each. */
static void setting_add_operation(json_t *row, const char *name, struct phrase *text)
{
	struct run_value v = { .kind = RUN_SUM };
	char role[128], func[64];
	unsigned size;

	if (sscanf(name, "%127[^\n]\n%63[^\n]\n%u", role, func, &size) != 3 || size > 62)
		return;
	v.role = role;
	v.func = func;
	v.size_class = (uint8_t)size;
	row_set_text(row, "role", role);
	row_set_text(row, "func", func);
	json_object_set_new(row, "size_class", json_integer((json_int_t)1 << size));
	phrase_add_operation(text, &v);
}

static void diff_add_setting(struct diff *d, const struct run_setting *at,
			     const struct diff_setting *s)
{
	static const char *const what[] = {
		[RUN_SETTING] = "setting", [RUN_TOPOLOGY] = "topology",
		[RUN_ALGORITHM] = "algorithm",
	};
	json_t *row = json_pack("{s:s, s:f}", "what", what[at->about], "weight",
				SETTINGS_WEIGHT - at->about);
	char text[1024];
	struct phrase p;

	phrase_start(&p, text, sizeof(text));
	if (at->about == RUN_ALGORITHM) {
		setting_add_operation(row, at->name, &p);
	} else {
		row_set_text(row, "name", at->name);
		phrase_add(&p, "%s", at->name);
	}
	phrase_add(&p, ": %s in A, %s in B", s->text[0], s->text[1]);
	row_set_text(row, "in_a", s->text[0]);
	row_set_text(row, "in_b", s->text[1]);
	row_set_text(row, "text", text);
	json_array_append_new(d->rows, row);
}

/* Unknown is no difference: older daemons tell less. */
static bool diff_can_compare(const struct diff *d, const struct run_setting *at,
			     const struct diff_setting *s)
{
	if (setting_is_variable(at))
		return !d->runs[0].lacks_variables && !d->runs[1].lacks_variables;
	return *at->name && s->values[0] && s->values[1];
}

static void diff_judge_settings(struct diff *d)
{
	const struct run_setting *all = d->settings.at;

	list_sort(&d->settings, settings_order);
	for (uint32_t i = 0, end; i < d->settings.n; i = end) {
		struct diff_setting s = { .differs = false };

		for (end = i; end < d->settings.n && all[end].about == all[i].about &&
			      !strcmp(all[end].name, all[i].name);)
			end += setting_take_value(&s, &all[end], d->settings.n - end);
		if (!diff_can_compare(d, &all[i], &s))
			continue;
		if (setting_is_variable(&all[i]))
			setting_take_unset(d, &s);
		if (s.differs)
			diff_add_setting(d, &all[i], &s);
	}
}

/* ---- the command ----------------------------------------------------------------------------- */

static void diff_join(struct diff *d)
{
	for (int side = 0; side < 2; side++) {
		struct run *run = &d->runs[side];

		for (uint32_t i = 0; i < run->values.n; i++)
			*(struct run_value *)must(list_append(&d->values)) = run->values.at[i];
		for (uint32_t i = 0; i < run->settings.n; i++)
			*(struct run_setting *)must(list_append(&d->settings)) =
				run->settings.at[i];
		list_deinit(&run->values);
		list_deinit(&run->settings);
	}
	list_sort(&d->values, values_order);
	d->scratch = must(calloc(2 * (size_t)d->values.n + 1, sizeof(*d->scratch)));
	d->picked = must(calloc((size_t)d->values.n + 1, sizeof(*d->picked)));
	d->bounds = must(calloc((size_t)d->values.n + 1, sizeof(*d->bounds)));
}

static int diff_fetch(struct cli *cli, void *arg, json_t **root)
{
	struct diff *d = arg;
	const struct shots *a = &d->runs[0].shots, *b = &d->runs[1].shots;

	*root = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:O}",
			  "nodes_a", (json_int_t)a->nodes.n, "files_a", (json_int_t)a->files,
			  "nodes_b", (json_int_t)b->nodes.n, "files_b", (json_int_t)b->files,
			  "operations", (json_int_t)d->operations, "ranks", (json_int_t)d->ranks,
			  "links", (json_int_t)d->links, "alone", (json_int_t)d->alone,
			  "differences", d->rows);
	return 0;
}

static int diff_code(const struct listing *listing, const json_t *answer, const json_t *rows)
{
	const struct diff *d = listing->arg;

	if (json_array_size(rows))
		return CLI_FINDING;
	return d->operations || d->links ? CLI_DONE : CLI_NOTHING;
}

static void diff_say(const struct diff *d)
{
	if (!json_array_size(d->rows) && (d->operations || d->links))
		puts("no difference beyond noise");
	if (!d->operations && !d->links)
		puts("no operation and no link has enough values in both runs to be compared");
	printf("nodes and files: A %u and %zu, B %u and %zu\n", d->runs[0].shots.nodes.n,
	       d->runs[0].shots.files, d->runs[1].shots.nodes.n, d->runs[1].shots.files);
	printf("compared: operations %" PRIu64 ", ranks %" PRIu64 " (%s test, "
	       "false discovery rate "
	       "%g %%; by ranges where there are no samples), links %" PRIu64 " (with each other); "
	       "least change: %g %%; operations in one run only: %" PRIu64 "\n",
	       d->operations, d->ranks, difference_test_name(DIFFERENCE_RANKS),
	       DIFFERENCE_RATE * 100, d->links, DIFFERENCE_LEAST_CHANGE * 100, d->alone);
	if (d->runs[0].lacks_variables || d->runs[1].lacks_variables)
		puts("NCCL's variables were not compared, because files of an older ncclinspd lack "
		     "them");
}

static int diff_run(struct cli *cli, struct diff *d)
{
	const struct listing listing = {
		.array = "differences", LISTING_COLUMNS(columns), .sort = &by_weight,
		.fetch = diff_fetch, .arg = d, .code = diff_code, .labelled = true,
	};
	int r;

	diff_join(d);
	diff_find_figures(d);
	diff_measure_links(d);
	diff_judge_settings(d);
	diff_judge_figures(d);
	r = listing_run(cli, &listing, NULL);
	if (cli->format == CLI_TABLE || cli->format == CLI_WIDE)
		diff_say(d);
	return r;
}

static void diff_deinit(struct diff *d)
{
	list_deinit(&d->values);
	list_deinit(&d->settings);
	list_deinit(&d->figures);
	list_deinit(&d->judged);
	free(d->scratch);
	free(d->picked);
	free(d->bounds);
	json_decref(d->rows);
	run_deinit(&d->runs[0]);
	run_deinit(&d->runs[1]);
}

int cmd_diff(struct cli *cli)
{
	struct diff *d;
	int r;

	if (!cli->second)
		return cli_reject("diff needs two runs: two files or directories with snapshots");
	d = must(calloc(1, sizeof(*d)));
	d->rows = json_array();
	r = run_read(&d->runs[0], cli->argument, false);
	if (!r)
		r = run_read(&d->runs[1], cli->second, true);
	else
		shots_init(&d->runs[1].shots);
	if (!r)
		r = diff_run(cli, d);
	diff_deinit(d);
	free(d);
	return r;
}
