/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ncclinsp overlap: how much of NCCL's time computation hides, by the kernels in traces of a
 * profiler; with what the daemon knows of these operations, where it knows them.
 */
#include <inttypes.h>

#include "cli/common/listing.h"
#include "cli/kernels/kernels.h"

static const struct column overlap_columns[] = {
#include "schema/overlap_columns.h"
};

struct overlap {
	json_t *files, *gpus;
	json_t *processes, *rows;	/* the daemon's; NULL: it was not to be had */
};

static void overlap_tell_file(struct overlap *o, const struct cli *cli, const struct kernels *k,
			      const char *why)
{
	json_t *file = json_pack("{s:s, s:o, s:I, s:I, s:b, s:s?}", "file", k->path, "pid",
				 k->pid == UNKNOWN_I32 ? json_null()
						       : json_integer(k->host_pid ?: k->pid),
				 "kernels", (json_int_t)k->all.n, "malformed",
				 (json_int_t)k->malformed, "joined", !*why, "why",
				 *why ? why : NULL);

	json_object_update_new(file, *why ?
		json_pack("{s:n, s:n, s:n, s:n}", "compared", "matched", "shift_ns", "spread_ns") :
		json_pack("{s:I, s:I, s:I, s:I}", "compared", (json_int_t)k->compared, "matched",
			  (json_int_t)k->matched, "shift_ns", (json_int_t)k->shift_ns, "spread_ns",
			  (json_int_t)k->spread_ns));
	json_array_append_new(o->files, file);
	if (cli->quiet || cli->format == CLI_JSON)
		return;
	if (*why)
		fprintf(stderr, "%s: not joined with operations: %s\n", k->path, why);
	else
		kernels_tell_join(k);
	if (k->malformed)
		fprintf(stderr, "%s: events that made no sense: %" PRIu64 "\n", k->path,
			k->malformed);
}

static int overlap_add(struct overlap *o, const struct cli *cli, const char *path)
{
	char why[KERNELS_WHY];
	struct kernels k;
	int r;

	r = kernels_read(&k, path, why);
	if (r) {
		fprintf(stderr, "ncclinsp: cannot use %s: %s\n", k.path, why);
	} else {
		if (o->rows)
			kernels_join(&k, o->processes, o->rows, why);
		else
			snprintf(why, sizeof(why), "%s", client_error(cli->client));
		overlap_tell_file(o, cli, &k, why);
		kernels_sum(&k, o->gpus);
	}
	kernels_deinit(&k);
	return r;
}

static int overlap_fetch(struct cli *cli, void *arg, json_t **root)
{
	struct overlap *o = arg;

	*root = json_pack("{s:O, s:O}", "files", o->files, "gpus", o->gpus);
	return 0;
}

int cmd_overlap(struct cli *cli)
{
	struct overlap o = { .files = json_array(), .gpus = json_array() };
	const struct listing listing = {
		.array = "gpus", LISTING_COLUMNS(overlap_columns), .fetch = overlap_fetch,
		.arg = &o, .labelled = true,
	};
	json_auto_t *processes = NULL, *rows = NULL;
	int r = CLI_DONE;

	if (!cli->npaths)
		return cli_reject("overlap needs traces of PyTorch's profiler: FILE.json, or .gz");
	if (!client_get(cli->client, "/v1/processes", &processes) &&
	    !client_get(cli->client, "/v1/collectives?limit=10000", &rows)) {
		o.processes = json_object_get(processes, "processes");
		o.rows = json_object_get(rows, "collectives");
	}
	for (int i = 0; i < cli->npaths && !r; i++)
		r = overlap_add(&o, cli, cli->paths[i]) ? CLI_FAILED : CLI_DONE;
	if (!r)
		r = listing_run(cli, &listing, NULL);
	json_decref(o.files);
	json_decref(o.gpus);
	return r;
}
