/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of a profiler's traces, beside the operations of their process: a thread for each
 * stream, one for the time in which only NCCL's run, and marks where the host began a step.
 */
#include "cli/trace/trace_kernels.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/base/must.h"
#include "cli/kernels/kernels.h"

#define AROUND_NS INT64_C(100000000)	/* operations are drawn that long around kernels */

struct trace_kernels {
	struct kernels *file;
	uint32_t n;
	char why[KERNELS_WHY + 256];
};

void trace_kernels_free(struct trace_kernels *tk)
{
	for (uint32_t i = 0; tk && i < tk->n; i++)
		kernels_deinit(&tk->file[i]);
	if (tk)
		free(tk->file);
	free(tk);
}

struct trace_kernels *trace_kernels_new(const char *const *paths, uint32_t n)
{
	struct trace_kernels *tk = must(calloc(1, sizeof(*tk)));
	char why[KERNELS_WHY];

	tk->file = must(calloc(n, sizeof(*tk->file)));
	for (; tk->n < n; tk->n++) {
		if (!kernels_read(&tk->file[tk->n], paths[tk->n], why))
			continue;
		fprintf(stderr, "ncclinsp: cannot use %s: %s\n", tk->file[tk->n].path, why);
		tk->n++;
		trace_kernels_free(tk);
		return NULL;
	}
	return tk;
}

/* A kernel's time on the trace's axis. */
static uint64_t kernel_mono_ns(const struct kernels *k, int64_t ns)
{
	return ns > k->offset_ns ? (uint64_t)(ns - k->offset_ns) : 0;
}

int trace_kernels_join(struct trace *t, const json_t *root, const char **why)
{
	struct trace_kernels *tk = t->kernels;
	char reason[KERNELS_WHY];

	for (uint32_t i = 0; i < tk->n; i++) {
		struct kernels *k = &tk->file[i];
		uint64_t from_ns, until_ns;

		if (kernels_join(k, json_object_get(root, "processes"),
				 json_object_get(root, "collectives"), reason)) {
			snprintf(tk->why, sizeof(tk->why), "%s does not fit it: %s", k->path,
				 reason);
			*why = tk->why;
			return -1;
		}
		kernels_tell_join(k);
		from_ns = kernel_mono_ns(k, k->first_ns - AROUND_NS);
		until_ns = kernel_mono_ns(k, k->last_ns + AROUND_NS);
		t->from_ns = i && t->from_ns < from_ns ? t->from_ns : from_ns;
		t->until_ns = t->until_ns > until_ns ? t->until_ns : until_ns;
	}
	return 0;
}

/* ---- drawing ------------------------------------------------------------------------------ */

struct drawing {
	struct trace *t;
	const struct kernels *k;
	uint32_t source;
	uint32_t pid[KERNELS_DEVICES];	/* the process of the trace that has that GPU */
};

/* A GPU is where the operations of its kernels are; one without any is with the process. */
static void drawing_find_places(struct drawing *d)
{
	for (int32_t i = 0; i < KERNELS_DEVICES; i++)
		d->pid[i] = trace_who_pid(d->t->who, d->source);
	for (uint32_t i = 0; i < d->k->all.n; i++) {
		const struct kernels_unit *unit = d->k->all.at[i].unit;
		const struct trace_member *m;

		m = unit ? trace_who_learn(d->t->who, d->source, unit->row) : NULL;
		if (m)
			d->pid[d->k->all.at[i].device] = m->pid;
	}
}

/* The place of a slice on the thread with that key. */
static struct trace_at drawing_place(const struct drawing *d, int32_t device, uint64_t key,
				     const char *name, uint64_t start_ns, uint64_t stop_ns)
{
	uint32_t track = trace_rows_track(d->t->rows, d->pid[device], TRACE_STREAM,
					  (uint64_t)device << 48 | key, name);

	return trace_rows_place(d->t->rows, track, start_ns, stop_ns);
}

static void drawing_draw_kernel(const struct drawing *d, const struct gpu_kernel *kernel)
{
	static const char *const keys[] = { "comm_id", "comm_name", "rank", "func", "seq",
					    "bytes", "fused", NULL };
	const struct kernels_unit *unit = kernel->unit;
	uint64_t start_ns = kernel_mono_ns(d->k, kernel->start_ns);
	uint64_t stop_ns = kernel_mono_ns(d->k, kernel->stop_ns);
	const char *name = kernel->name;
	struct trace *t = d->t;
	struct trace_at at;
	struct json *j;
	char track[64];

	snprintf(track, sizeof(track), "GPU %" PRId32 " stream %" PRIu64, kernel->device,
		 kernel->stream);
	at = drawing_place(d, kernel->device, 1 + (kernel->stream & UINT32_MAX), track, start_ns,
			   stop_ns);
	j = trace_slice(&t->w, at, name, kernel->nccl ? "nccl" : "kernel", start_ns, stop_ns);
	if (strlen(name) >= sizeof(t->w.name))
		json_member_string(j, "kernel", name);
	json_member_u64(j, "correlation", kernel->correlation);
	if (unit)
		trace_copy(j, unit->row, keys);
	trace_slice_end(&t->w);
	if (unit)
		trace_heads_child(t->heads, d->source, member_hex(unit->row, "token"), at,
				  start_ns, stop_ns);
}

static void drawing_draw_exposed(const struct drawing *d, int32_t device)
{
	struct kernels_spans exposed = kernels_exposed(d->k, device);
	char track[32];

	snprintf(track, sizeof(track), "GPU %" PRId32 " exposed", device);
	for (uint32_t i = 0; i < exposed.list.n; i++) {
		uint64_t from_ns = kernel_mono_ns(d->k, exposed.list.at[i].start_ns);
		uint64_t to_ns = kernel_mono_ns(d->k, exposed.list.at[i].stop_ns);

		trace_slice(&d->t->w, drawing_place(d, device, 0, track, from_ns, to_ns),
			    "exposed", "exposed", from_ns, to_ns);
		trace_slice_end(&d->t->w);
	}
	list_deinit(&exposed.list);
}

static void drawing_draw(struct drawing *d)
{
	const struct kernels *k = d->k;
	char name[64];

	d->source = trace_who_source(d->t->who, k->host_pid, 0);
	drawing_find_places(d);
	for (uint32_t i = 0; i < k->all.n; i++)
		drawing_draw_kernel(d, &k->all.at[i]);
	for (int32_t i = 0; i < KERNELS_DEVICES; i++)
		drawing_draw_exposed(d, i);
	for (uint32_t i = 0; i < k->steps.n; i++) {
		snprintf(name, sizeof(name), "step %" PRId64, k->steps.at[i].number);
		trace_instant(&d->t->w, trace_who_pid(d->t->who, d->source), name, "step",
			      kernel_mono_ns(k, k->steps.at[i].at_ns));
		trace_instant_end(&d->t->w);
	}
}

void trace_kernels_draw(struct trace *t)
{
	for (uint32_t i = 0; i < t->kernels->n; i++) {
		struct drawing d = { .t = t, .k = &t->kernels->file[i] };

		drawing_draw(&d);
	}
}
