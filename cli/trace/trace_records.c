/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single records as slices: calls on the lane of their thread, kernels on their GPU's
 * channel at the GPU's own times.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/base/must.h"
#include "cli/trace/trace_records.h"
#include "nci/token.h"
#include "reader/base/process.h"
#include "reader/join/reconstruct.h"
#include "reader/read/decode.h"
#include "util/nccl_names.h"

#define NAMES_MOST 65535	/* ids have 16 bits */
#define COMMS_MOST NCI_COMM_NUMBERS

/* The communicators of a stream's process: trace_who has what is known of them. */
static struct comm no_comms[COMMS_MOST];

struct trace_records *trace_records_new(void)
{
	struct trace_records *r = must(calloc(1, sizeof(*r)));

	r->steps = trace_steps_new();
	return r;
}

/* Old names stay: heads may hold them. */
void trace_records_free(struct trace_records *r)
{
	for (uint32_t i = 0; r && i < TRACE_SOURCES; i++) {
		for (uint32_t k = 0; k < r->source[i].names.n; k++)
			free(r->source[i].names.at[k]);
		list_deinit(&r->source[i].names);
		free(r->source[i].comms);
	}
	if (r)
		trace_steps_free(r->steps);
	free(r);
}

/* ---- what records refer to ------------------------------------------------------- */

/* Names are only ever added, in the same order. */
static void source_learn_names(struct source *s, const json_t *names)
{
	size_t n = json_array_size(names);

	if (n > NAMES_MOST)
		n = NAMES_MOST;
	while (s->names.n < n) {
		const char *name = json_string_value(json_array_get(names, s->names.n));
		char **place = must(list_append(&s->names));

		*place = must(strdup(name ?: "?"));
	}
	s->told.strings = (name_t *)s->names.at;
	s->told.nstrings = (uint32_t)s->names.n;
}

static void learn_comm(struct trace *t, struct source *s, uint32_t number, uint64_t index,
		       const json_t *row)
{
	if (index >= COMMS_MOST)
		return;
	if (index >= s->ncomms) {
		s->comms = must(realloc(s->comms, (index + 1) * sizeof(*s->comms)));
		memset(s->comms + s->ncomms, 0, (index + 1 - s->ncomms) * sizeof(*s->comms));
		s->ncomms = (uint32_t)index + 1;
	}
	s->comms[index] = trace_who_learn(t->who, number, row);
}

static void source_learn_comms(struct trace *t, struct source *s, uint32_t number, json_t *comms)
{
	json_each(row, comms)
		learn_comm(t, s, number, member_number(row, "index", COMMS_MOST), row);
}

/* NULL: more than there is room for. */
static struct source *line_source(struct trace *t, const json_t *line, uint32_t *number)
{
	*number = trace_who_source(t->who, (int64_t)member_number(line, "pid", 0),
				   member_hex(line, "instance"));
	return *number < TRACE_SOURCES ? &t->records->source[*number] : NULL;
}

void trace_records_source(struct trace *t, const json_t *line)
{
	uint32_t number;
	struct source *s = line_source(t, line, &number);

	if (!s)
		return;
	s->known = true;
	s->nonce = (uint32_t)member_number(line, "nonce", 0);
	s->process = &s->told;
	s->told.lanes = 1u << NCI_TOKEN_LANE_BITS;	/* a stream does not tell how many */
	s->told.comms = no_comms;
	source_learn_names(s, json_object_get(line, "names"));
	source_learn_comms(t, s, number, json_object_get(line, "comms"));
	s->told.ncomms = s->ncomms;
}

static const struct trace_member *source_member_at(const struct source *s, uint32_t comm)
{
	return comm < s->ncomms ? s->comms[comm] : NULL;
}

/* The communicator's member; with PXN, that of another process, whose communicator it is. */
static const struct trace_member *source_member(const struct trace *t, const struct source *s,
						const struct nci_record *rec)
{
	uint64_t origin;

	if (!(rec->form & NCI_FORM_FOREIGN))
		return source_member_at(s, rec->comm);
	if (rec->type != NCI_EV_PROXY_OP)
		return NULL;
	origin = ((const struct nci_ev_proxy_op *)(const void *)rec)->origin;
	for (uint32_t i = 0; i < TRACE_SOURCES; i++)
		if (t->records->source[i].known &&
		    t->records->source[i].nonce == nci_context_nonce(origin))
			return source_member_at(&t->records->source[i], nci_context_comm(origin));
	return NULL;
}

/* ---- one slice ------------------------------------------------------------------- */

struct trace_place trace_place_of(struct trace *t, struct source *s, uint32_t number,
				   const struct nci_record *rec)
{
	struct trace_place p = { .t = t, .s = s, .number = number };

	p.m = source_member(t, s, rec);
	/* the process that runs it draws it, also for another one */
	p.pid = p.m && p.m->source == number ? p.m->pid : trace_who_pid(t->who, number);
	p.label = p.m ? p.m->comm : "";
	p.key = p.m ? p.m->index : 0xfffff;
	return p;
}

void trace_draw(struct trace_place *p, struct trace_at at, const char *name,
		const struct nci_record *rec, uint64_t start_ns, uint64_t stop_ns)
{
	struct json *j = trace_slice(&p->t->w, at, name, nccl_event_name(rec->type), start_ns,
				     stop_ns);

	if (p->m) {
		json_member_string(j, "comm", p->m->comm);
	}
	trace_put_args(j, p->s->process, rec);
}

static uint64_t record_parent(const struct nci_record *rec)
{
	return rec->form & NCI_FORM_FOREIGN ? 0 : rec->parent;
}

/* ---- on lanes -------------------------------------------------------------------- */

static uint32_t record_lane(struct trace_place *p, const struct nci_record *rec)
{
	uint32_t lane = nci_token_lane(rec->token);
	char name[64];

	snprintf(name, sizeof(name), "lane %u %s", lane,
		 trace_is_of_caller(rec->type) ? "(calls)" : "(progress)");
	return trace_rows_track(p->t->rows, p->pid, TRACE_LANE, lane, name);
}

/* ncclGroupStart() and ncclGroupEnd(), which the calls lie between. */
static void draw_group_ends(struct trace_place *p, uint32_t track, const struct nci_record *rec,
			    uint64_t start_ns, uint64_t stop_ns)
{
	const struct nci_ev_group_api *g = (const void *)rec;
	uint64_t begun_ns = trace_source_ns(p->s, rec->start + nci_span_ticks(g->begin_span));
	uint64_t end_ns = trace_source_ns(p->s, rec->start + nci_span_ticks(g->end_span));
	struct trace_writer *w = &p->t->w;

	if (g->begin_span && begun_ns <= stop_ns) {
		trace_slice(w, trace_rows_place(p->t->rows, track, start_ns, begun_ns),
			    "ncclGroupStart", "GroupApi", start_ns, begun_ns);
		trace_slice_end(w);
	}
	if (g->end_span && end_ns <= stop_ns) {
		trace_slice(w, trace_rows_place(p->t->rows, track, end_ns, stop_ns),
			    "ncclGroupEnd", "GroupApi", end_ns, stop_ns);
		trace_slice_end(w);
	}
}

static void draw_on_lane(struct trace_place *p, const struct nci_record *rec)
{
	const char *func = decode_func(p->s->process, rec);
	uint64_t start_ns = trace_source_ns(p->s, rec->start);
	uint64_t stop_ns = trace_source_ns(p->s, rec->stop);
	uint32_t track = record_lane(p, rec);
	struct trace_at at;
	char name[96];

	if (rec->type == NCI_EV_GROUP_API)
		draw_group_ends(p, track, rec, start_ns, stop_ns);
	snprintf(name, sizeof(name), "%s%s%s", nccl_event_name(rec->type), func ? " " : "",
		 func ?: "");
	at = trace_rows_place(p->t->rows, track, start_ns, stop_ns);
	trace_draw(p, at, name, rec, start_ns, stop_ns);
	trace_slice_end(&p->t->w);
	if (trace_is_head(rec->type))
		trace_heads_add(p->t->heads, p->number, rec->token, &(struct trace_head){
			.at = at, .start_ns = start_ns, .stop_ns = stop_ns, .func = func,
			.seq = trace_seq_of(rec),
		});
	if (rec->type != NCI_EV_PROXY_CTRL)
		trace_heads_child(p->t->heads, p->number, record_parent(rec), at, start_ns,
				  stop_ns);
}

/* ---- on the GPU ------------------------------------------------------------------ */

/* Not before it was called for, nor after the host saw it end: else a stamp that lies. */
static bool kernel_is_believable(const struct trace_kernel *k, const struct trace_head *head,
				 uint64_t seen_ns)
{
	uint64_t slack_ns = TRACE_SLACK_NS + (k->error_ns == UINT64_MAX ? 0 : k->error_ns);

	if (!k->known || k->stop_ns > seen_ns + slack_ns)
		return false;
	return !head || k->start_ns + slack_ns >= head->start_ns;
}

/* The time it ran by the GPU's own clock, where it is not known how that lies; 0: not told. */
static uint64_t kernel_gpu_ns(const struct nci_ev_kernel_ch *c, const struct trace_head *head,
			      uint64_t seen_ns)
{
	uint64_t ns = c->gpu_stop - c->gpu_start;

	if (!c->gpu_start || c->gpu_stop < c->gpu_start || ns > seen_ns ||
	    (head && seen_ns - ns < head->start_ns))
		return 0;
	return ns;
}

static void kernel_draw(struct trace_place *p, const struct nci_record *rec,
			const struct trace_kernel *k)
{
	const struct nci_ev_kernel_ch *c = (const void *)rec;
	const struct trace_head *head = trace_heads_find(p->t->heads, p->number, rec->parent);
	uint64_t start_ns = trace_source_ns(p->s, rec->start);
	uint64_t stop_ns = trace_source_ns(p->s, rec->stop);
	bool by_gpu = kernel_is_believable(k, head, stop_ns);
	uint64_t length_ns = by_gpu ? 0 : kernel_gpu_ns(c, head, stop_ns);
	struct trace_at at;
	struct json *j;
	char name[96];

	if (by_gpu) {
		start_ns = k->start_ns;
		stop_ns = k->stop_ns;
	} else if (length_ns) {
		start_ns = stop_ns - length_ns;
	}
	at = trace_rows_place(p->t->rows, trace_channel(p->t, p->pid, p->key, p->label, c->channel),
			      start_ns, stop_ns);
	snprintf(name, sizeof(name), "KernelCh%s%s", head && head->func ? " " : "",
		 head && head->func ? head->func : "");
	trace_draw(p, at, name, rec, start_ns, stop_ns);
	j = &p->t->w.j;
	json_member_string(j, "clock", by_gpu ? "gpu" : length_ns ? "gpu_duration" : "host");
	if (by_gpu && k->error_ns != UINT64_MAX) {
		json_member_u64(j, "error_ns", k->error_ns);
	}
	trace_slice_end(&p->t->w);
	trace_heads_child(p->t->heads, p->number, record_parent(rec), at, start_ns, stop_ns);
}

/* ---- a batch --------------------------------------------------------------------- */

static void source_take_record(struct trace_place *p, const struct nci_record *rec,
			       const struct trace_kernel *kernel)
{
	if (rec->type == NCI_EV_PROXY_STEP)
		trace_keep_step(p->t, p->number, rec);
	else if (rec->type == NCI_EV_PROXY_SUMS)
		memcpy(&p->s->sums, rec, sizeof(p->s->sums));
	else if (rec->type == NCI_EV_PROXY_OP)
		trace_draw_proxy_op(p, rec);
	else if (rec->type == NCI_EV_NET_PLUGIN)
		trace_draw_request(p, rec);
	else if (rec->type == NCI_EV_KERNEL_CH)
		kernel_draw(p, rec, kernel);
	else if (trace_is_of_lane(rec->type))
		draw_on_lane(p, rec);
}

static void draw_event(struct trace *t, struct source *s, uint32_t number,
		       const struct nci_record *rec, const struct trace_kernel *kernel)
{
	struct trace_place p = trace_place_of(t, s, number, rec);
	uint64_t stop_ns = trace_source_ns(s, rec->stop);

	t->nrecords++;
	if (stop_ns > s->last_ns)
		s->last_ns = stop_ns;
	source_take_record(&p, rec, kernel);
}

/* Tells what is missing between the batch before and this one, if anything is. */
static void source_tell_losses(struct trace *t, struct source *s, uint32_t number,
			       const struct trace_batch *b, uint64_t now_ns)
{
	uint64_t from_ns = s->last_ns && s->last_ns < now_ns ? s->last_ns : now_ns;
	uint32_t pid = trace_who_pid(t->who, number);

	if (s->last_ns && b->first > s->next)
		trace_loss(t, pid, b->first - s->next, from_ns, now_ns,
			   "this client was too slow");
	if (s->last_ns && b->lost > s->lost)
		trace_loss(t, pid, b->lost - s->lost, from_ns, now_ns,
			   "overwritten before they were read, or refused for lack of room");
	s->next = b->first + b->n;
	s->lost = b->lost;
}

/* Again only if the counter has jumped: slices of one batch must nest with those of the next. */
static void source_take_clock(struct source *s, const struct trace_batch *b)
{
	uint64_t now_ns = s->has_clock ? trace_source_ns(s, b->clock.ticks) : 0;

	if (s->has_clock && now_ns < b->clock.mono_ns + TRACE_SLACK_NS &&
	    b->clock.mono_ns < now_ns + TRACE_SLACK_NS)
		return;
	s->has_clock = true;
	s->clock = b->clock;
}

void trace_records_batch(struct trace *t, const json_t *line)
{
	struct trace_batch *b = &t->records->batch;
	struct nci_record *rec;
	struct trace_kernel kernel;
	struct event event;
	uint32_t number;
	struct source *s = line_source(t, line, &number);
	bool first = true;

	t->live = true;		/* true of a file, too: calls are drawn from records */
	if (!s || !s->process || !trace_batch_read(b, line)) {
		t->malformed++;
		return;
	}
	source_take_clock(s, b);
	while ((rec = trace_batch_next(b, &kernel))) {
		enum decode_outcome outcome = decode_record(s->process, rec, UINT64_MAX, &event);

		t->malformed += outcome == DECODE_REFUSED;
		if (outcome != DECODE_OK)
			continue;
		if (first)
			source_tell_losses(t, s, number, b, trace_source_ns(s, rec->start));
		first = false;
		draw_event(t, s, number, rec, &kernel);
	}
}

/* ---- a segment ------------------------------------------------------------------- */

static void learn_comm_of(struct trace *t, struct source *s, uint32_t number, uint32_t index,
			  const struct comm *c)
{
	char uuid[PROCESS_UUID_BYTES] = "";
	json_auto_t *row = json_object();

	if (c->has_gpu)
		process_uuid_text(c->gpu_uuid, uuid);
	if (c->has_id)
		json_object_set_new(row, "comm_id", json_sprintf("0x%016" PRIx64, c->id));
	if (c->has_id)
		json_object_set_new(row, "nranks", json_integer(c->nranks));
	if (c->rank != UNKNOWN_I32)
		json_object_set_new(row, "rank", json_integer(c->rank));
	json_object_set_new(row, "name", json_text(c->name));
	json_object_set_new(row, "gpu_uuid", json_text(uuid));
	json_object_set_new(row, "pci_bus_id", json_text(c->pci_bus_id));
	if (c->has_gpu && c->gpu_index != UNKNOWN_I32)
		json_object_set_new(row, "gpu_index", json_integer(c->gpu_index));
	learn_comm(t, s, number, index, row);
}

void trace_records_event(struct trace *t, const struct process *p, const struct event *ev)
{
	uint32_t number = trace_who_source(t->who, p->pid, p->instance), comm = ev->rec->comm;
	struct reconstruct_kernel times;
	struct trace_kernel kernel = { 0 };
	struct source *s = &t->records->source[number % TRACE_SOURCES];

	s->known = true;
	s->process = p;
	s->nonce = p->nonce;
	s->clock = s->has_clock ? s->clock : p->clock;
	s->has_clock = true;
	if (ev->comm && !source_member_at(s, comm))
		learn_comm_of(t, s, number, comm, ev->comm);
	if (ev->rec->type == NCI_EV_KERNEL_CH &&
	    reconstruct_kernel(p, EVENT(ev, kernel_ch), &times))
		kernel = (struct trace_kernel){ true, times.start_ns, times.stop_ns,
						times.error_ns };
	draw_event(t, s, number, ev->rec, &kernel);
}
