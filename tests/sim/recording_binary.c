/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libnccl-profiler-record.so writes.  The file may be cut, damaged or
 * invented: every length is checked against the record, every record against the
 * file, and a handle means something only if its record was read before.
 */
#include "tests/sim/recording.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "plugin/adapt.h"
#include "record/format.h"
#include "record/shape.h"

#define MAX_RECORD	1024
#define MAX_THREADS	65536

/* What was given out as a handle, in the order of offsets. */
struct given {
	uint64_t offset;
	int index;
	bool is_context;
};

struct binary_reader {
	struct recording *rec;
	FILE *f;
	uint64_t at;		/* offset of the record */
	struct record_head head;
	_Alignas(8) uint8_t body[MAX_RECORD];
	uint32_t bytes;		/* of the body */
	struct given *given;
	int ngiven;
	int room;		/* for calls, and so for all else */
	uint64_t first_ns;
	const char *path;
	char *err;
	unsigned int err_size;
};

static int binary_complain(struct binary_reader *r, const char *why)
{
	snprintf(r->err, r->err_size, "%s: at byte %llu: %s", r->path,
		 (unsigned long long)r->at, why);
	return -EINVAL;
}

/* ---- pieces of a record ---- */

/* A string that may be NULL; false: it does not lie in the record. */
static bool binary_take_string(struct binary_reader *r, uint32_t *at, const char **text)
{
	uint32_t bytes;

	*text = NULL;
	if (*at >= r->bytes)
		return false;
	bytes = r->body[*at];
	if (bytes > r->bytes - *at)
		return false;
	if (bytes)
		*text = recording_intern(r->rec->names, (char *)&r->body[*at + 1], bytes - 1);
	*at += bytes ? bytes : 1;
	return true;
}

static const struct given *given_find(const struct binary_reader *r, uint64_t handle,
				      bool is_context)
{
	uint64_t offset = record_offset((uint32_t)r->rec->pid, handle);
	int low = 0, high = r->ngiven;

	while (low < high) {
		int middle = low + (high - low) / 2;

		if (r->given[middle].offset < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low < r->ngiven && r->given[low].offset == offset &&
	       r->given[low].is_context == is_context ? &r->given[low] : NULL;
}

/* The event's or context's index; -1: it is nobody's here. */
static int given_index(const struct binary_reader *r, uint64_t handle, bool is_context)
{
	const struct given *given = given_find(r, handle, is_context);

	return given ? given->index : -1;
}

static struct recording_call *binary_add_call(struct binary_reader *r, enum recording_verb verb)
{
	struct recording_call *call = &r->rec->call[r->rec->ncalls++];

	*call = (struct recording_call){ .verb = verb, .event = -1, .context = -1,
					 .thread = (int)r->head.thread };
	call->at_ns = (int64_t)(r->head.time_ns - r->first_ns);
	if (r->rec->nthreads <= call->thread)
		r->rec->nthreads = call->thread + 1;
	return call;
}

static void handle_give(struct binary_reader *r, int index, bool is_context)
{
	r->given[r->ngiven++] = (struct given){ r->at, index, is_context };
}

/* ---- verbs ---- */

static int binary_on_init(struct binary_reader *r)
{
	struct recording *rec = r->rec;
	uint32_t at = sizeof(struct record_init);
	struct record_init init;
	const char *name;

	if (r->bytes < sizeof(init) || !binary_take_string(r, &at, &name))
		return binary_complain(r, "an init that is too short");
	memcpy(&init, r->body, sizeof(init));
	rec->context[rec->ncontexts] = (struct recording_context){
		init.comm_id, name, init.nnodes, init.rank, init.nranks };
	handle_give(r, rec->ncontexts, true);
	binary_add_call(r, RECORDING_INIT)->context = rec->ncontexts++;
	return 0;
}

/* Brings a version's descriptor into the newest form. */
static void event_adapt(struct recording_event *event, int version, const void *image)
{
	struct adapt_event e = { 0 };

	switch (version) {
	case 1: adapt_v1(&e, image); break;
	case 2: adapt_v2(&e, image); break;
	case 3: adapt_v3(&e, image); break;
	case 4: adapt_v4(&e, image); break;
	default:	/* 5 and 6 are parts of 7 */
		memcpy(&event->descr, image, sizeof(event->descr));
		return;
	}
	memcpy(&event->descr, &e.descr, sizeof(e.descr));
	event->comm_hash = e.extra.comm_hash;
	event->traffic_bytes = e.extra.traffic;
}

static void *descr_group(const struct nccl_descr_v7 *d)
{
	if (d->type == NCCL_COLL)
		return d->coll.parentGroup;
	return d->type == NCCL_P2P ? d->p2p.parentGroup : NULL;
}

/* No address of the recorded process is followed in this one. */
static void forget_addresses(struct nccl_descr_v7 *d)
{
	static uint64_t nothing[8];	/* a payload of type 0 */

	if (d->type == NCCL_NET_PLUGIN)
		d->netPlugin.data = nothing;
}

/* An event of a type that its version does not have is one of no type. */
static int binary_on_start(struct binary_reader *r)
{
	struct recording_event *event = &r->rec->event[r->rec->nevents];
	_Alignas(8) uint8_t image[sizeof(struct nccl_descr_v7)] = { 0 };
	uint32_t at = sizeof(uint64_t);
	const struct shape *shape;
	uint64_t context;

	if (r->bytes < sizeof(uint64_t) + sizeof(uint64_t))
		return binary_complain(r, "a start that is too short");
	memcpy(&context, r->body, sizeof(context));
	shape = shape_of(r->head.api, shape_type(r->head.api, r->body + at));
	if (r->bytes - at < shape->bytes)
		return binary_complain(r, "a start that is shorter than its event");
	memcpy(image, r->body + at, shape->bytes);
	at += record_padded(shape->bytes);
	for (int i = 0; i < SHAPE_STRINGS && shape->string[i]; i++) {
		const char *text;

		if (!binary_take_string(r, &at, &text))
			return binary_complain(r, "a name that does not end");
		memcpy(image + shape->string[i], &text, sizeof(text));
	}
	if (shape_knows(r->head.api, shape_type(r->head.api, image)))
		event_adapt(event, r->head.api, image);
	forget_addresses(&event->descr);
	event->parent = given_index(r, (uint64_t)event->descr.parentObj, false);
	event->group = given_index(r, (uint64_t)descr_group(&event->descr), false);
	event->context = given_index(r, context, true);
	event->foreign_context = context;
	handle_give(r, r->rec->nevents, false);
	binary_add_call(r, RECORDING_START)->event = r->rec->nevents++;
	return 0;
}

/* Versions 1 to 3 count sizes in the operation's states, later ones in the step's. */
static void adapt_args(struct recording_call *call, int version, const struct record_state *state)
{
	union nccl_args_v1 old;

	if (version >= 4) {
		memcpy(&call->args, state->args, sizeof(call->args));
		return;
	}
	memcpy(&old, state->args, sizeof(old));
	if (call->state >= NCCL_CTRL_IDLE && call->state <= NCCL_CTRL_APPEND_END) {
		call->args.proxyCtrl.appendedProxyOps = old.proxyCtrl.appendedProxyOps;
		return;
	}
	call->args.proxyStep.transSize = old.proxyOp.transSize;
	call->steps = old.proxyOp.steps;
}

static int binary_on_state(struct binary_reader *r)
{
	struct record_state state;
	struct recording_call *call;

	if (r->bytes < sizeof(state))
		return binary_complain(r, "a state that is too short");
	memcpy(&state, r->body, sizeof(state));
	call = binary_add_call(r, RECORDING_STATE);
	call->event = given_index(r, r->head.object, false);
	call->foreign = r->head.object;
	call->state = state.state;
	call->has_args = state.args_bytes != 0;
	adapt_args(call, r->head.api, &state);
	return 0;
}

static int binary_on_stop(struct binary_reader *r)
{
	struct recording_call *call = binary_add_call(r, RECORDING_STOP);

	call->event = given_index(r, r->head.object, false);
	call->foreign = r->head.object;
	return 0;
}

static int binary_on_finalize(struct binary_reader *r)
{
	struct recording_call *call = binary_add_call(r, RECORDING_FINALIZE);

	call->context = given_index(r, r->head.object, true);
	call->foreign = r->head.object;
	return 0;
}

/* ---- the file ---- */

/* 1: there is a record in head and body; 0: the recording ends here. */
static int binary_next_record(struct binary_reader *r)
{
	size_t got = fread(&r->head, 1, sizeof(r->head), r->f);

	if (got == 0 || (got >= sizeof(r->head.size) && !r->head.size))
		return 0;
	if (got < sizeof(r->head))
		return binary_complain(r, "the file is cut off");
	if (r->head.size < sizeof(r->head) || r->head.size % 8 || r->head.size > MAX_RECORD)
		return binary_complain(r, "a record of an impossible size");
	r->bytes = r->head.size - (uint32_t)sizeof(r->head);
	if (fread(r->body, 1, r->bytes, r->f) != r->bytes)
		return binary_complain(r, "the file is cut off");
	return 1;
}

static int binary_make_room(struct binary_reader *r)
{
	struct recording *rec = r->rec;
	int room = r->room * 2 + 256;
	void *p;

	if (rec->ncalls < r->room)
		return 0;
#define GROW(array)							\
	do {								\
		p = realloc(array, room * sizeof(*(array)));		\
		if (!p)							\
			return -ENOMEM;					\
		(array) = p;						\
	} while (0)
	GROW(rec->call);
	GROW(rec->context);
	GROW(rec->event);
	GROW(r->given);
#undef GROW
	memset(rec->event + r->room, 0, (room - r->room) * sizeof(*rec->event));
	r->room = room;
	return 0;
}

static int (*const verbs[RECORD_VERBS])(struct binary_reader *) = {
	[RECORD_INIT] = binary_on_init, [RECORD_START] = binary_on_start,
	[RECORD_STATE] = binary_on_state, [RECORD_STOP] = binary_on_stop,
	[RECORD_FINALIZE] = binary_on_finalize,
};

static int binary_take_record(struct binary_reader *r)
{
	const struct record_head *head = &r->head;
	int e = binary_make_room(r);

	if (e)
		return e;
	if (head->verb >= RECORD_VERBS || !verbs[head->verb])
		return 0;
	if (head->api > NCCL_PROFILER_VERSIONS)
		return binary_complain(r, "a version of NCCL's interface that is not known");
	if (head->thread > MAX_THREADS)
		return binary_complain(r, "more threads than there can be");
	if (!r->rec->ncalls)
		r->first_ns = head->time_ns;
	return verbs[head->verb](r);
}

static int binary_take_records(struct binary_reader *r)
{
	int e;

	while ((e = binary_next_record(r)) > 0) {
		e = binary_take_record(r);
		if (e)
			return e;
		r->at += r->head.size;
	}
	return e;
}

static int binary_read_header(struct binary_reader *r)
{
	struct record_header h;

	if (fread(&h, sizeof(h), 1, r->f) != 1 ||
	    memcmp(h.magic, RECORD_MAGIC, sizeof(h.magic)))
		return binary_complain(r, "this is no recording");
	if (h.version != RECORD_VERSION || h.header_bytes != sizeof(h))
		return binary_complain(r, "a recording of another version");
	if (h.api < 1 || h.api > NCCL_PROFILER_VERSIONS || !h.pid || h.pid >> 24)
		return binary_complain(r, "the header makes no sense");
	r->at = sizeof(h);
	r->rec->api = (int)h.api;
	r->rec->pid = (int32_t)h.pid;
	r->rec->lost = h.lost;
	return 0;
}

int recording_binary(struct recording **recp, FILE *f, const char *path, char *err,
		     unsigned int err_size)
{
	struct binary_reader r = { .rec = recording_new(), .f = f, .path = path, .err = err,
				   .err_size = err_size };
	int e = r.rec ? 0 : -ENOMEM;

	snprintf(err, err_size, "%s: out of memory", path);
	if (!e)
		e = binary_read_header(&r);
	if (!e)
		e = binary_take_records(&r);
	if (!e && !r.rec->ncontexts)
		e = binary_complain(&r, "no communicator is ever initialised");
	free(r.given);
	if (e) {
		recording_free(r.rec);
		return e;
	}
	*recp = r.rec;
	return 0;
}
