/* SPDX-License-Identifier: Apache-2.0 */
/* GET /v1/machine: the machine around the processes, and where this is known from. */
#include <inttypes.h>
#include <stdio.h>

#include "judge/gpu.h"
#include "ncclinspd/around/nics.h"
#include "ncclinspd/around/sensors.h"
#include "ncclinspd/findings/resources.h"
#include "ncclinspd/serve/serve_parts.h"

static field_put_fn machine_put_gpus, machine_put_nics, machine_put_xids, machine_put_bus_id;
static field_put_fn machine_put_counts, machine_put_lately;

#include "schema/machine.h"

void serve_put_sources(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct serve *s = serve_of(w);
	struct sensors_source source;

	json_begin(j, '[');
	for (size_t i = 0; s->source.sensors &&
			   sensors_source(s->source.sensors, i, s->now_ns, &source); i++)
		rows_put_object(w, j, machine_source_fields, &source);
	for (size_t i = 0; resources_source(&resources_roots, i, &source); i++)
		rows_put_object(w, j, machine_source_fields, &source);
	json_end(j, ']');
}

static void machine_put_gpus(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct serve *s = serve_of(w);
	struct gpu_health gpus[SENSORS_GPUS];
	uint32_t n = s->source.sensors ? sensors_gpus(s->source.sensors, s->now_ns, gpus) : 0;

	json_begin(j, '[');
	for (uint32_t i = 0; i < n; i++)
		rows_put_object(w, j, machine_gpu_fields, &gpus[i]);
	json_end(j, ']');
}

static void machine_put_nics(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct serve *s = serve_of(w);
	struct nic_health nics[NICS_MOST];
	uint32_t n = s->source.nics ? nics_all(s->source.nics, s->now_ns, nics) : 0;

	json_begin(j, '[');
	for (uint32_t i = 0; i < n; i++)
		rows_put_object(w, j, machine_nic_fields, &nics[i]);
	json_end(j, ']');
}

static void put_counts(struct json *j, const uint64_t counts[NIC_COUNT])
{
	json_begin(j, '{');
	for (uint32_t i = 0; i < NIC_COUNT; i++) {
		if (counts[i] == UNKNOWN_U64)
			continue;
		json_key(j, nic_counts[i].name);
		json_put_u64(j, counts[i]);
	}
	json_end(j, '}');
}

static void machine_put_counts(const struct rows_writer *w, struct json *j, const void *row)
{
	put_counts(j, ((const struct nic_health *)row)->total);
}

static void machine_put_lately(const struct rows_writer *w, struct json *j, const void *row)
{
	put_counts(j, ((const struct nic_health *)row)->lately);
}

static void machine_put_bus_id(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct kmsg_xid *x = row;
	char text[40];

	snprintf(text, sizeof(text), "%04" PRIx32 ":%02" PRIx32 ":%02" PRIx32 ".0", x->domain,
		 x->bus, x->device);
	json_put_string(j, text);
}

static void machine_put_xids(const struct rows_writer *w, struct json *j, const void *row)
{
	const struct sensors *sensors = serve_of(w)->source.sensors;
	const struct kmsg *k = sensors ? sensors_kmsg(sensors) : NULL;

	json_begin(j, '[');
	for (uint32_t i = k && k->n > KMSG_XIDS ? k->n - KMSG_XIDS : 0; k && i < k->n; i++)
		rows_put_object(w, j, machine_xid_fields, &k->at[i % KMSG_XIDS]);
	json_end(j, ']');
}

void serve_machine(struct request *r, struct json *j)
{
	rows_put(&r->serve->writer, j, machine_fields, r);
}
