/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/clocks: the GPUs' clocks, and how well each is known. */
#include "ncclinspd/serve/serve_impl.h"

#include "reader/join/reconstruct.h"
#include "reader/time/gpus.h"

struct clock_row {
	const struct gpu *gpu;
	struct gpuclock_facts facts;
	int32_t pid, rank;
	uint64_t seen_ns;	/* CLOCK_MONOTONIC of the newest stamp; 0: none */
	uint64_t width_ns;	/* width of its bracket; UNKNOWN_U64: there is no lower bound */
};

static void put_gpu_uuid(const struct serve *s, struct json *j, const void *row)
{
	const struct gpu *gpu = ((const struct clock_row *)row)->gpu;

	(void)s;
	serve_put_uuid(j, gpu->has_uuid ? gpu->uuid : NULL);
}

static void put_pci_bus_id(const struct serve *s, struct json *j, const void *row)
{
	const struct gpu *gpu = ((const struct clock_row *)row)->gpu;

	(void)s;
	json_put_string(j, *gpu->pci_bus_id ? gpu->pci_bus_id : NULL);
}

static void put_comm_id(const struct serve *s, struct json *j, const void *row)
{
	const struct gpu *gpu = ((const struct clock_row *)row)->gpu;

	(void)s;
	if (gpu->has_comm_id)
		json_put_hex64(j, gpu->comm_id);
	else
		json_put_null(j);
}

/* The GPU's time minus the host's: it may be negative. */
static void put_offset(const struct serve *s, struct json *j, const void *row)
{
	const struct clock_row *c = row;

	(void)s;
	if (c->seen_ns)
		json_put_i64(j, (int64_t)(c->facts.gpu_ns - c->seen_ns));
	else
		json_put_null(j);
}

static void put_ppm(struct json *j, bool known, double ppm)
{
	if (known)
		json_put_double(j, ppm);
	else
		json_put_null(j);
}

static void put_drift(const struct serve *s, struct json *j, const void *row)
{
	const struct clock_row *c = row;

	(void)s;
	put_ppm(j, c->facts.has_drift, c->facts.drift_ppm);
}

static void put_drift_error(const struct serve *s, struct json *j, const void *row)
{
	const struct clock_row *c = row;

	(void)s;
	put_ppm(j, c->facts.has_drift, c->facts.drift_error_ppm);
}

static const struct field clock_fields[] = {
#define F(name, kind, member) { name, kind, offsetof(struct clock_row, member), NULL }
#define P(name, put) { name, FIELD_PUT, 0, put }
	P("gpu_uuid", put_gpu_uuid),
	P("pci_bus_id", put_pci_bus_id),
	F("pid", FIELD_I32, pid),
	P("comm_id", put_comm_id),
	F("rank", FIELD_I32, rank),
	F("stamps", FIELD_U64, facts.stamps),
	F("newest", FIELD_TIME, seen_ns),
	P("offset_ns", put_offset),
	F("error_ns", FIELD_U64, width_ns),
	P("drift_ppm", put_drift),
	P("drift_error_ppm", put_drift_error),
	F("resolution_ns", FIELD_U64, facts.resolution_ns),
	F("windows", FIELD_U64, facts.windows),
	F("steps", FIELD_U64, facts.steps),
	F("bends", FIELD_U64, facts.bends),
#undef F
#undef P
	{ NULL, 0, 0, NULL },
};

static void fill_row(struct clock_row *row, const struct gpu *gpu)
{
	uint64_t lo, hi;

	*row = (struct clock_row){
		.gpu = gpu, .pid = gpu->pid, .rank = gpu->rank, .width_ns = UNKNOWN_U64,
	};
	gpuclock_facts(gpu->clock, &row->facts);
	if (!row->facts.stamps || !gpus_map(gpu, &gpu->now, row->facts.gpu_ns, &lo, &hi))
		return;
	row->seen_ns = hi;
	row->width_ns = lo ? hi - lo : UNKNOWN_U64;
	/* the known drift is against the host's counter at its frozen rate */
	row->facts.drift_ppm += 1e6 * (gpu->host.ns_per_tick / gpu->now.ns_per_tick - 1);
}

void serve_clocks(struct request *r, struct json *j)
{
	const struct gpus *gpus = reconstruct_gpus(r->serve->source.reconstruct);
	struct clock_row row;

	json_key(j, "clocks");
	json_begin(j, '[');
	for (uint32_t i = 0; i < gpus->n; i++) {
		if (!viewer_sees(&r->viewer, gpus->at[i]->uid))
			continue;
		fill_row(&row, gpus->at[i]);
		json_begin(j, '{');
		rows_put(r->serve, j, clock_fields, &row);
		json_end(j, '}');
	}
	json_end(j, ']');
}
