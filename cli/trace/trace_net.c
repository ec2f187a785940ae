/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Network transfers as slices: on a thread for each channel, peer and direction, with
 * their steps, and in these what they waited for.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/trace/trace_records.h"

static const struct trace_link unknown = { .channel = -1, .peer = -1 };

static void step_draw_stays(struct trace_place *p, struct trace_at at, const struct nci_record *rec)
{
	struct trace_stay stay[TRACE_STAYS];
	int n = trace_stays((const void *)rec, stay);

	for (int i = 0; i < n && !at.async; i++) {
		uint64_t from_ns = trace_source_ns(p->s, rec->start + stay[i].from);
		uint64_t to_ns = trace_source_ns(p->s, rec->start + stay[i].to);

		if (from_ns / TRACE_GRID_NS == to_ns / TRACE_GRID_NS)
			continue;	/* nothing to be seen */
		trace_slice(&p->t->w, at, stay[i].state, "state", from_ns, to_ns);
		trace_slice_end(&p->t->w);
	}
}

/* Draws steps within their ProxyOp while they follow each other; overlaps on a track beside. */
static void net_draw_steps(struct trace_place *p, const struct nci_record *step, size_t n,
			   const struct trace_at *within, uint64_t start_ns, uint64_t stop_ns,
			   uint32_t beside)
{
	uint64_t last_ns = start_ns;

	for (size_t i = 0; i < n; i++) {
		uint64_t from_ns = trace_source_ns(p->s, step[i].start);
		uint64_t to_ns = trace_source_ns(p->s, step[i].stop);
		const struct nci_ev_proxy_step *c = (const void *)&step[i];
		struct trace_at at;
		char name[32];

		if (within && from_ns >= last_ns && to_ns <= stop_ns) {
			at = *within;
			last_ns = to_ns;
		} else {
			at = trace_rows_place(p->t->rows, beside, from_ns, to_ns);
		}
		snprintf(name, sizeof(name), "step %" PRId32, c->step);
		trace_draw(p, at, name, &step[i], from_ns, to_ns);
		trace_slice_end(&p->t->w);
		step_draw_stays(p, at, &step[i]);
	}
}

/* The track for what overlaps on a link's own. */
static uint32_t more_of(struct trace_place *p, struct trace_link link)
{
	link.beside = true;
	return trace_link(p->t, p->pid, p->key, p->label, link);
}

static void net_put_sums(struct trace_place *p, const struct nci_record *rec)
{
	struct nci_ev_proxy_sums *sums = &p->s->sums;

	if (sums->steps && sums->parent == rec->token)
		trace_put_sums(&p->t->w.j, sums, p->s->clock.ns_per_tick);
	sums->steps = 0;
}

void trace_draw_proxy_op(struct trace_place *p, const struct nci_record *rec)
{
	const struct nci_ev_proxy_op *c = (const void *)rec;
	uint64_t start_ns = trace_source_ns(p->s, rec->start);
	uint64_t stop_ns = trace_source_ns(p->s, rec->stop);
	bool send = rec->form & NCI_FORM_SEND;
	const struct trace_link link = { .channel = c->channel, .peer = c->peer, .send = send };
	const struct nci_record *step;
	struct trace_at at;
	size_t n;

	at = trace_rows_place(p->t->rows, trace_link(p->t, p->pid, p->key, p->label, link),
			      start_ns, stop_ns);
	trace_draw(p, at, send ? "ProxyOp send" : "ProxyOp recv", rec, start_ns, stop_ns);
	net_put_sums(p, rec);
	trace_slice_end(&p->t->w);
	trace_heads_child(p->t->heads, p->m ? p->m->source : p->number, rec->parent, at, start_ns,
			  stop_ns);
	n = trace_steps_take(p->t->records->steps, p->number, rec->token, &step);
	if (n)
		net_draw_steps(p, step, n, at.async ? NULL : &at, start_ns, stop_ns,
			       more_of(p, link));
}

static uint32_t queue_track(struct trace_place *p, const struct nci_ev_net_plugin *c)
{
	uint64_t key = (uint64_t)c->queue << 16 | (uint64_t)(c->device & 0xff) << 8 | 1;
	char name[64];

	if (NCI_FORM_LINES(c->form) < 2)
		return trace_rows_track(p->t->rows, p->pid, TRACE_QUEUE, 0, "net plugin");
	if (c->id == NCI_NET_IB_V1)
		snprintf(name, sizeof(name), "net qp %" PRIu32 " nic %" PRId32, c->queue,
			 c->device);
	else
		snprintf(name, sizeof(name), "net socket %" PRIu32, c->queue);
	return trace_rows_track(p->t->rows, p->pid, TRACE_QUEUE, key, name);
}

/* A request of the network plugin: on a thread for each queue pair or socket. */
void trace_draw_request(struct trace_place *p, const struct nci_record *rec)
{
	const struct nci_ev_net_plugin *c = (const void *)rec;
	uint64_t start_ns = trace_source_ns(p->s, rec->start);
	uint64_t stop_ns = trace_source_ns(p->s, rec->stop);
	struct trace_at at = trace_rows_place(p->t->rows, queue_track(p, c), start_ns, stop_ns);
	const char *name = NCI_FORM_LINES(c->form) < 2 ? "request" :
			   c->form & NCI_FORM_SEND ? "request send" : "request recv";

	trace_draw(p, at, name, rec, start_ns, stop_ns);
	trace_slice_end(&p->t->w);
}

/* Their ProxyOp is not known, nor is what only that one tells. */
static void net_draw_lone_steps(struct trace *t, uint32_t number, const struct nci_record *step,
				size_t n)
{
	struct source *s = &t->records->source[number];
	struct trace_place p = trace_place_of(t, s, number, step);

	net_draw_steps(&p, step, n, NULL, 0, 0,
		       more_of(&p, unknown));
}

void trace_records_open_proxy(struct trace *t, uint32_t source, uint64_t token,
			      struct trace_at at)
{
	struct source *s = source < TRACE_SOURCES ? &t->records->source[source] : NULL;
	const struct nci_record *step;
	struct trace_place p;
	size_t n;

	n = s && s->has_clock ? trace_steps_take(t->records->steps, source, token, &step) : 0;
	if (!n)
		return;
	p = trace_place_of(t, s, source, step);
	net_draw_steps(&p, step, n, at.async ? NULL : &at, 0, UINT64_MAX,
		       more_of(&p, unknown));
}

void trace_records_flush(struct trace *t)
{
	const struct nci_record *step;
	uint32_t source;
	uint64_t token;
	size_t n;

	while ((n = trace_steps_take_oldest(t->records->steps, &source, &token, &step)))
		net_draw_lone_steps(t, source, step, n);
}

void trace_keep_step(struct trace *t, uint32_t number, const struct nci_record *rec)
{
	const struct nci_record *step;
	uint32_t source;
	uint64_t token;
	size_t n;

	if (trace_steps_is_full(t->records->steps)) {
		n = trace_steps_take_oldest(t->records->steps, &source, &token, &step);
		net_draw_lone_steps(t, source, step, n);
	}
	trace_steps_add(t->records->steps, number, rec);
}
