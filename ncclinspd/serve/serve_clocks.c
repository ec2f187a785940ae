/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/clocks: the GPUs' clocks, and how well each is known. */
#include "ncclinspd/serve/serve_routes.h"
#include "reader/join/reconstruct.h"
#include "reader/time/gpus.h"

struct clock_row {
	const struct gpu *gpu;
	struct gpuclock_facts facts;
	int32_t pid, rank;
	uint64_t seen_ns;	/* CLOCK_MONOTONIC of the newest stamp; 0: none */
	uint64_t width_ns;	/* width of its bracket; UNKNOWN_U64: there is no lower bound */
};

#include "schema/clock.h"

static void clock_fill_row(struct clock_row *row, const struct gpu *gpu)
{
	uint64_t hi, width;

	*row = (struct clock_row){
		.gpu = gpu, .pid = gpu->pid, .rank = gpu->rank, .width_ns = UNKNOWN_U64,
	};
	gpuclock_facts(gpu->clock, &row->facts);
	if (!row->facts.stamps || !gpus_map(gpu, &gpu->now, row->facts.gpu_ns, &hi, &width))
		return;
	row->seen_ns = hi;
	row->width_ns = width;
	/* the known drift is against the host's counter at its frozen rate */
	row->facts.drift_ppm += 1e6 * (gpu->host.ns_per_tick / gpu->now.ns_per_tick - 1);
}

void serve_clocks(struct request *r, struct json *j)
{
	const struct gpus *gpus = reconstruct_gpus(r->serve->source.reconstruct);
	struct clock_row row;

	json_begin_member(j, "clocks", '[');
	for (uint32_t i = 0; i < gpus->n; i++) {
		if (!viewer_sees(&r->viewer, gpus->at[i]->uid))
			continue;
		clock_fill_row(&row, gpus->at[i]);
		rows_put_object(&r->serve->writer, j, clock_fields, &row);
	}
	json_end(j, ']');
}
