/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRACE_TRACE_RECORDS_H
#define CLI_TRACE_TRACE_RECORDS_H

/* The parts that trace_records.c and trace_net.c share: the owner of records, and where they go. */

#include "cli/trace/trace.h"
#include "cli/trace/trace_line.h"
#include "cli/trace/trace_look.h"
#include "cli/trace/trace_steps.h"
#include "reader/time/timeline.h"
#include "util/list.h"

#define TRACE_SOURCES	1024
#define TRACE_SLACK_NS	1000000	/* error of a GPU's time that is still believed */

/* Facts known of one process, by the number that trace_who gives it. */
struct source {
	bool known;
	uint32_t nonce;
	/* The process that records are checked by and named from: a segment's, or `told`. */
	const struct process *process;
	struct process told;	/* facts that the lines of a stream tell */
	LIST(char *) names;
	const struct trace_member **comms;
	uint32_t ncomms;
	bool has_clock;
	struct tick_clock clock;	/* the first line's: nesting needs one and the same */
	uint64_t next;			/* records seen or known to be lost */
	uint64_t lost;
	uint64_t last_ns;		/* end of the newest record so far */
	struct nci_ev_proxy_sums sums;	/* the newest: of the ProxyOp that comes next */
};

struct trace_records {
	struct source source[TRACE_SOURCES];
	struct trace_batch batch;
	struct trace_steps *steps;
};

/* Ticks as CLOCK_MONOTONIC ns; 0: before the boot. */
static inline uint64_t trace_source_ns(const struct source *s, uint64_t ticks)
{
	return timeline_mono(&s->clock, ticks);
}

/* The place where a record is drawn: which process of the trace, and whose. */
struct trace_place {
	struct trace *t;
	struct source *s;
	uint32_t number;	/* number of the source */
	const struct trace_member *m;	/* NULL: of no communicator that is known */
	uint32_t pid;
	const char *label;	/* its communicator's */
	uint64_t key;		/* the same */
};

struct trace_place trace_place_of(struct trace *t, struct source *s, uint32_t number,
				  const struct nci_record *rec);

/* A record's slice with its arguments; ended by trace_slice_end(). */
void trace_draw(struct trace_place *p, struct trace_at at, const char *name,
		const struct nci_record *rec, uint64_t start_ns, uint64_t stop_ns);

/* Keep a step until its ProxyOp comes; a ProxyOp, with its steps. */
void trace_keep_step(struct trace *t, uint32_t number, const struct nci_record *rec);
void trace_draw_proxy_op(struct trace_place *p, const struct nci_record *rec);
void trace_draw_request(struct trace_place *p, const struct nci_record *rec);

#endif
