/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer of OTF2 archives, for Vampir and the tools around Score-P: it takes the events of
 * trace_write.c.  The library is loaded when it is needed, so that no other command needs it.
 *
 * Operations are MPI records: OTF2 has no paradigm of NCCL's, and tools look for collectives,
 * communicators and messages in MPI's records alone.
 */
#include "cli/trace/trace_otf2.h"

#include <errno.h>
#include <stdio.h>

#if __has_include(<otf2/otf2.h>) && !defined(NO_OTF2)
#include <dlfcn.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <otf2/otf2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/base/member.h"
#include "cli/base/must.h"
#include "util/list.h"

#if OTF2_VERSION_MAJOR != 3
#error "OTF2 3 is needed; build with CPPFLAGS=-DNO_OTF2 to do without"
#endif

#define NONE UINT32_MAX

#define OTF2_CALLS(X)									\
	X(Archive_Open) X(Archive_SetFlushCallbacks) X(Archive_SetSerialCollectiveCallbacks)	\
	X(Archive_SetCreator) X(Archive_SetDescription) X(Archive_OpenEvtFiles)		\
	X(Archive_GetEvtWriter) X(Archive_CloseEvtWriter) X(Archive_CloseEvtFiles)	\
	X(Archive_OpenDefFiles) X(Archive_GetDefWriter) X(Archive_CloseDefWriter)	\
	X(Archive_CloseDefFiles) X(Archive_GetGlobalDefWriter) X(Archive_Close)		\
	X(EvtWriter_GetNumberOfEvents) X(EvtWriter_Enter) X(EvtWriter_Leave)		\
	X(EvtWriter_MpiCollectiveBegin) X(EvtWriter_MpiCollectiveEnd) X(EvtWriter_MpiSend)	\
	X(EvtWriter_MpiRecv) X(EvtWriter_Metric) X(AttributeList_New)			\
	X(AttributeList_Delete) X(AttributeList_AddInt64) X(AttributeList_AddDouble)	\
	X(AttributeList_AddStringRef) X(GlobalDefWriter_WriteClockProperties)		\
	X(GlobalDefWriter_WriteString) X(GlobalDefWriter_WriteAttribute)		\
	X(GlobalDefWriter_WriteSystemTreeNode) X(GlobalDefWriter_WriteLocationGroup)	\
	X(GlobalDefWriter_WriteLocation) X(GlobalDefWriter_WriteRegion)			\
	X(GlobalDefWriter_WriteGroup) X(GlobalDefWriter_WriteComm)			\
	X(GlobalDefWriter_WriteMetricMember) X(GlobalDefWriter_WriteMetricClass)	\
	X(Error_RegisterCallback) X(Error_GetDescription)

#define PASSES	256	/* locations for slices that overlap, of each thread */

/* Arguments of slices that become attributes; the first ones are used here as well. */
enum { SEQ, RANK, ROOT, PEER, BYTES, BUSBW };
static const struct {
	const char *name;
	OTF2_Type type;
} attributes[] = {
	[SEQ] = { "seq", OTF2_TYPE_INT64 }, [RANK] = { "rank", OTF2_TYPE_INT64 },
	[ROOT] = { "root", OTF2_TYPE_INT64 }, [PEER] = { "peer", OTF2_TYPE_INT64 },
	[BYTES] = { "bytes", OTF2_TYPE_INT64 }, [BUSBW] = { "busbw_gbs", OTF2_TYPE_DOUBLE },
	{ "count", OTF2_TYPE_INT64 }, { "channel", OTF2_TYPE_INT64 },
	{ "channels", OTF2_TYPE_INT64 }, { "step", OTF2_TYPE_INT64 },
	{ "n", OTF2_TYPE_INT64 }, { "late_ns", OTF2_TYPE_INT64 },
	{ "wait_ns", OTF2_TYPE_INT64 }, { "datatype", OTF2_TYPE_STRING },
	{ "algo", OTF2_TYPE_STRING }, { "proto", OTF2_TYPE_STRING },
	{ "timing_source", OTF2_TYPE_STRING }, { "clock", OTF2_TYPE_STRING },
	{ "why", OTF2_TYPE_STRING },
};

static const struct {
	const char *func;
	OTF2_CollectiveOp op;
	OTF2_RegionRole role;
} collectives[] = {
	{ "AllReduce", OTF2_COLLECTIVE_OP_ALLREDUCE, OTF2_REGION_ROLE_COLL_ALL2ALL },
	{ "AllGather", OTF2_COLLECTIVE_OP_ALLGATHER, OTF2_REGION_ROLE_COLL_ALL2ALL },
	{ "ReduceScatter", OTF2_COLLECTIVE_OP_REDUCE_SCATTER_BLOCK, OTF2_REGION_ROLE_COLL_ALL2ALL },
	{ "Broadcast", OTF2_COLLECTIVE_OP_BCAST, OTF2_REGION_ROLE_COLL_ONE2ALL },
	{ "Reduce", OTF2_COLLECTIVE_OP_REDUCE, OTF2_REGION_ROLE_COLL_ALL2ONE },
	{ "AlltoAll", OTF2_COLLECTIVE_OP_ALLTOALL, OTF2_REGION_ROLE_COLL_ALL2ALL },
	{ "Gather", OTF2_COLLECTIVE_OP_GATHER, OTF2_REGION_ROLE_COLL_ALL2ONE },
	{ "Scatter", OTF2_COLLECTIVE_OP_SCATTER, OTF2_REGION_ROLE_COLL_ONE2ALL },
};

struct otf2_value {
	uint32_t attribute, string;
	union {
		int64_t number;
		double real;
	};
};

struct otf2_slice {
	uint64_t start_ns, stop_ns;
	uint32_t order;		/* its place among all, as they came */
	uint32_t location, region;
	uint32_t comm;		/* NONE: no operation of one */
	uint32_t value, nvalues;
	uint32_t tag;		/* the message's; NONE: none whose other end is known */
};

struct otf2_location {
	uint32_t process, name;
	bool gpu;
	uint64_t events;
};

/* A process of the trace: one rank. */
struct otf2_process {
	uint32_t name;
	uint32_t home;		/* the location that stands for it in groups; NONE: none */
	uint32_t number;	/* the archive's: by rank, those with a home first */
	int64_t sort;
	bool has_gpu;
};

struct otf2_region {
	uint32_t name, category;
	uint32_t collective;	/* row of the table; NONE: none */
	bool operation, send, recv;
};

struct otf2_comm {
	uint32_t name, first, members;	/* members in the trace, by rank */
};

struct otf2_member {
	uint32_t comm, process;
	int64_t rank;
};

struct trace_otf2 {
	struct {
#define X(name) __typeof__(OTF2_##name) *name;
		OTF2_CALLS(X)
#undef X
	} call;
	char path[PATH_MAX], part[PATH_MAX];
	char why[256];		/* the library's words for its first error */
	int error;
	json_t *strings;	/* number by text */
	json_t *numbers;	/* number of a location, process, region or comm by its key */
	char *description;
	uint64_t left_out;
	OTF2_Archive *archive;
	OTF2_AttributeList *list;
	LIST(struct otf2_value) value;
	LIST(struct otf2_slice) slice;
	LIST(struct otf2_location) location;
	LIST(struct otf2_process) process;
	LIST(struct otf2_process *) order;	/* processes by number */
	LIST(struct otf2_region) region;
	LIST(struct otf2_comm) comm;
	LIST(struct otf2_member) member;
};

static void otf2_note(struct trace_otf2 *o, OTF2_ErrorCode code)
{
	if (code == OTF2_SUCCESS || o->error)
		return;
	o->error = code == OTF2_ERROR_ENOSPC ? -ENOSPC : -EIO;
	snprintf(o->why, sizeof(o->why), "%s", o->call.Error_GetDescription(code));
}

#define CALL(o, name, ...) otf2_note(o, (o)->call.name(__VA_ARGS__))

/* ---- what comes ------------------------------------------------------------------ */

static uint32_t otf2_string(struct trace_otf2 *o, const char *text)
{
	const json_t *known = json_object_get(o->strings, text);
	uint32_t n = (uint32_t)json_object_size(o->strings);

	if (known)
		return (uint32_t)json_integer_value(known);
	json_object_set_new_nocheck(o->strings, text, must(json_integer(n)));
	return n;
}

/* The number behind the key; a new one's is `next`, and *fresh. */
static uint32_t otf2_number(struct trace_otf2 *o, const char *key, uint32_t next, bool *fresh)
{
	const json_t *known = json_object_get(o->numbers, key);

	*fresh = !known;
	if (known)
		return (uint32_t)json_integer_value(known);
	json_object_set_new_nocheck(o->numbers, key, must(json_integer(next)));
	return next;
}

static uint32_t otf2_process(struct trace_otf2 *o, uint32_t pid)
{
	char key[32];
	bool fresh;
	uint32_t n;

	snprintf(key, sizeof(key), "process %" PRIu32, pid);
	n = otf2_number(o, key, o->process.n, &fresh);
	if (fresh)
		*(struct otf2_process *)must(list_append(&o->process)) = (struct otf2_process){
			.name = otf2_string(o, "all processes"), .home = NONE, .sort = INT64_MAX,
		};
	return n;
}

static uint32_t otf2_location(struct trace_otf2 *o, const json_t *event)
{
	uint32_t pid = (uint32_t)member_number(event, "pid", 0), n;
	char key[64];
	bool fresh;

	snprintf(key, sizeof(key), "location %" PRIu32 " %" PRIu64, pid,
		 member_number(event, "tid", 0));
	n = otf2_number(o, key, o->location.n, &fresh);
	if (fresh)
		*(struct otf2_location *)must(list_append(&o->location)) = (struct otf2_location){
			.process = otf2_process(o, pid), .name = otf2_string(o, "more"),
		};
	return n;
}

/* "AllReduce" of "AllReduce #300 4MiB": numbers are attributes, or there were too many regions. */
static uint32_t otf2_region(struct trace_otf2 *o, const json_t *event, const char *category)
{
	bool fresh, open = json_is_false(json_object_get(json_object_get(event, "args"), "ended"));
	const char *text = member_text(event, "name", "");
	struct otf2_region r = { .collective = NONE, .category = otf2_string(o, category) };
	char name[128], key[256];
	size_t len = 0;
	uint32_t n;

	if (!strcmp(category, "lost"))
		text = category;
	while (text[len] && !(text[len] == ' ' && text[len + 1] &&
			      strchr("#0123456789", text[len + 1])))
		len++;
	snprintf(name, sizeof(name), "%.*s%s", (int)len, text, open ? " (not ended)" : "");
	snprintf(key, sizeof(key), "region %s %s", category, name);
	n = otf2_number(o, key, o->region.n, &fresh);
	if (!fresh)
		return n;
	r.name = otf2_string(o, name);
	r.operation = !strcmp(category, "operation");
	r.send = r.operation && !strcmp(name, "Send");
	r.recv = r.operation && !strcmp(name, "Recv");
	for (uint32_t i = 0; r.operation && i < ARRAY_LEN(collectives); i++)
		if (!strcmp(name, collectives[i].func))
			r.collective = i;
	*(struct otf2_region *)must(list_append(&o->region)) = r;
	return n;
}

static void otf2_put_values(struct trace_otf2 *o, struct otf2_slice *s, const json_t *args)
{
	s->value = o->value.n;
	for (uint32_t i = 0; i < ARRAY_LEN(attributes); i++) {
		const json_t *given = json_object_get(args, attributes[i].name);
		OTF2_Type type = attributes[i].type;
		struct otf2_value v = { .attribute = i };

		if (type == OTF2_TYPE_STRING && json_is_string(given))
			v.string = otf2_string(o, json_string_value(given));
		else if (type == OTF2_TYPE_INT64 && json_is_integer(given))
			v.number = json_integer_value(given);
		else if (type == OTF2_TYPE_DOUBLE && json_is_number(given))
			v.real = json_number_value(given);
		else
			continue;
		*(struct otf2_value *)must(list_append(&o->value)) = v;
		s->nvalues++;
	}
}

/* The communicator of an operation, in which that process has that rank. */
static uint32_t otf2_comm(struct trace_otf2 *o, const json_t *args, uint32_t process)
{
	const char *id = member_text(args, "comm_id", "");
	const char *name = member_text(args, "comm_name", id);
	const json_t *rank = json_object_get(args, "rank");
	char key[256];
	bool fresh;
	uint32_t n;

	if (!json_is_integer(rank) || !*name)
		return NONE;
	snprintf(key, sizeof(key), "comm %s %s", id, name);
	n = otf2_number(o, key, o->comm.n, &fresh);
	if (fresh)
		*(struct otf2_comm *)must(list_append(&o->comm)) = (struct otf2_comm){
			.name = otf2_string(o, name),
		};
	snprintf(key, sizeof(key), "member %" PRIu32 " %" PRIu32, n, process);
	otf2_number(o, key, 0, &fresh);
	if (fresh)
		*(struct otf2_member *)must(list_append(&o->member)) = (struct otf2_member){
			.comm = n, .process = process, .rank = json_integer_value(rank),
		};
	return n;
}

static void otf2_take_slice(struct trace_otf2 *o, const json_t *event, uint64_t start_ns,
			    uint64_t stop_ns)
{
	const char *category = member_text(event, "cat", "");
	const json_t *args = json_object_get(event, "args");
	struct otf2_slice s = { start_ns, stop_ns, .order = o->slice.n, .comm = NONE, .tag = NONE };
	struct otf2_process *p;

	if (o->slice.n == TRACE_OTF2_SLICES) {
		o->left_out++;
		return;
	}
	s.location = otf2_location(o, event);
	s.region = otf2_region(o, event, category);
	p = &o->process.at[o->location.at[s.location].process];
	if (o->region.at[s.region].operation)
		s.comm = otf2_comm(o, args, (uint32_t)(p - o->process.at));
	if (s.comm != NONE && p->home == NONE)
		p->home = s.location;
	if (!strcmp(category, "KernelCh"))
		p->has_gpu = o->location.at[s.location].gpu = true;
	otf2_put_values(o, &s, args);
	*(struct otf2_slice *)must(list_append(&o->slice)) = s;
}

static void otf2_take_name(struct trace_otf2 *o, const json_t *event)
{
	uint32_t process = otf2_process(o, (uint32_t)member_number(event, "pid", 0));
	const char *what = member_text(event, "name", "");
	const json_t *args = json_object_get(event, "args");
	uint32_t name = otf2_string(o, member_text(args, "name", "")), location;

	if (!strcmp(what, "process_name")) {
		o->process.at[process].name = name;
	} else if (!strcmp(what, "process_sort_index")) {
		o->process.at[process].sort = (int64_t)member_number(args, "sort_index", 0);
	} else if (!strcmp(what, "thread_name")) {
		location = otf2_location(o, event);
		o->location.at[location].name = name;
	}
}

void trace_otf2_event(struct trace_otf2 *o, const char *text, size_t bytes, uint64_t start_ns,
		      uint64_t stop_ns)
{
	json_auto_t *event = json_loadb(text, bytes, 0, NULL);
	const char *phase = member_text(event, "ph", "");

	if (!event)
		o->left_out++;
	else if (*phase == 'X' || *phase == 'b')
		otf2_take_slice(o, event, start_ns, stop_ns);
	else if (*phase == 'M')
		otf2_take_name(o, event);
}

void trace_otf2_describe(struct trace_otf2 *o, const char *text, size_t bytes)
{
	o->description = must(strndup(text, bytes));
}

/* ---- messages -------------------------------------------------------------------- */

static const struct otf2_region *slice_region(const struct trace_otf2 *o,
					      const struct otf2_slice *s)
{
	return &o->region.at[s->region];
}

static const struct otf2_value *slice_value(const struct trace_otf2 *o,
					    const struct otf2_slice *s, uint32_t attribute)
{
	for (uint32_t i = 0; i < s->nvalues; i++)
		if (o->value.at[s->value + i].attribute == attribute)
			return &o->value.at[s->value + i];
	return NULL;
}

static int64_t slice_number(const struct trace_otf2 *o, const struct otf2_slice *s,
			    uint32_t attribute)
{
	const struct otf2_value *v = slice_value(o, s, attribute);

	return v ? v->number : -1;
}

static uint64_t slice_bytes(const struct trace_otf2 *o, const struct otf2_slice *s)
{
	int64_t bytes = slice_number(o, s, BYTES);

	return bytes < 0 ? 0 : (uint64_t)bytes;
}

/* One end of a message. */
struct otf2_end {
	struct otf2_slice *slice;
	uint32_t comm;
	bool recv;
	int64_t from, to, bytes;
};

/* Sends of a pair first, then its receives. */
static int ends_by_pair(const void *a, const void *b)
{
	const struct otf2_end *x = a, *y = b;

#define BY(member) if (x->member != y->member) return x->member < y->member ? -1 : 1
	BY(comm);
	BY(from);
	BY(to);
	BY(recv);
	BY(slice->start_ns);
	BY(slice->order);
	return 0;
}

static bool ends_are_same_pair(const struct otf2_end *x, const struct otf2_end *y)
{
	return x->comm == y->comm && x->from == y->from && x->to == y->to;
}

/*
 * NCCL matches the sends and receives of a pair in order.  Where not each has its other end in
 * the trace, none of the pair is known for sure; a message does not go back in time.
 */
static void otf2_match_pair(const struct otf2_end *end, uint32_t n)
{
	const struct otf2_end *recv = end + n / 2;

	for (uint32_t i = 0; i < n / 2; i++)
		if (n % 2 || end[i].recv || !recv[i].recv || end[i].bytes != recv[i].bytes)
			return;
	for (uint32_t i = 0; i < n / 2; i++)
		if (end[i].slice->start_ns <= recv[i].slice->stop_ns)
			end[i].slice->tag = recv[i].slice->tag = i;
}

static void otf2_match(struct trace_otf2 *o)
{
	LIST(struct otf2_end) ends = { 0 };

	list_each(s, &o->slice) {
		bool recv = slice_region(o, s)->recv;
		int64_t rank = slice_number(o, s, RANK), peer = slice_number(o, s, PEER);

		if (s->comm == NONE || !(recv || slice_region(o, s)->send) || peer < 0)
			continue;
		*(struct otf2_end *)must(list_append(&ends)) = (struct otf2_end){
			.slice = s, .comm = s->comm, .recv = recv, .from = recv ? peer : rank,
			.to = recv ? rank : peer, .bytes = slice_number(o, s, BYTES),
		};
	}
	list_sort(&ends, ends_by_pair);
	for (uint32_t i = 0, n; i < ends.n; i += n) {
		for (n = 1; i + n < ends.n && ends_are_same_pair(&ends.at[i], &ends.at[i + n]);)
			n++;
		otf2_match_pair(&ends.at[i], n);
	}
	list_deinit(&ends);
}

/* ---- events ---------------------------------------------------------------------- */

static int members_by_rank(const void *a, const void *b)
{
	const struct otf2_member *x = a, *y = b;

	BY(comm);
	BY(rank);
	BY(process);
	return 0;
}

/* The place of a rank among those of its communicator that are in the trace; NONE: it is not. */
static uint32_t otf2_place(const struct trace_otf2 *o, uint32_t comm, int64_t rank)
{
	const struct otf2_comm *c = &o->comm.at[comm];

	for (uint32_t i = 0; i < c->members; i++)
		if (o->member.at[c->first + i].rank == rank)
			return i;
	return NONE;
}

/* Outer ones first. */
static int slices_by_location(const void *a, const void *b)
{
	const struct otf2_slice *x = a, *y = b;

	BY(location);
	BY(start_ns);
	if (x->stop_ns != y->stop_ns)
		return x->stop_ns > y->stop_ns ? -1 : 1;
	BY(order);
	return 0;
}

static void otf2_enter(struct trace_otf2 *o, OTF2_EvtWriter *w, const struct otf2_slice *s)
{
	const struct otf2_region *r = slice_region(o, s);

	for (uint32_t i = 0; i < s->nvalues; i++) {
		const struct otf2_value *v = &o->value.at[s->value + i];

		if (attributes[v->attribute].type == OTF2_TYPE_STRING)
			CALL(o, AttributeList_AddStringRef, o->list, v->attribute, v->string);
		else if (attributes[v->attribute].type == OTF2_TYPE_DOUBLE)
			CALL(o, AttributeList_AddDouble, o->list, v->attribute, v->real);
		else
			CALL(o, AttributeList_AddInt64, o->list, v->attribute, v->number);
	}
	CALL(o, EvtWriter_Enter, w, o->list, s->start_ns, s->region);	/* empties the list */
	if (s->comm != NONE && r->collective != NONE)
		CALL(o, EvtWriter_MpiCollectiveBegin, w, NULL, s->start_ns);
	if (s->tag != NONE && r->send)
		CALL(o, EvtWriter_MpiSend, w, NULL, s->start_ns,
		     otf2_place(o, s->comm, slice_number(o, s, PEER)), s->comm, s->tag,
		     slice_bytes(o, s));
}

static void otf2_leave(struct trace_otf2 *o, OTF2_EvtWriter *w, const struct otf2_slice *s)
{
	const struct otf2_region *r = slice_region(o, s);
	const struct otf2_value *busbw = slice_value(o, s, BUSBW);
	uint64_t bytes = slice_bytes(o, s);
	uint32_t root = OTF2_COLLECTIVE_ROOT_NONE;

	if (busbw)
		CALL(o, EvtWriter_Metric, w, NULL, s->stop_ns, 0, 1,
		     &(OTF2_Type){ OTF2_TYPE_DOUBLE },
		     &(OTF2_MetricValue){ .floating_point = busbw->real });
	if (s->tag != NONE && r->recv)
		CALL(o, EvtWriter_MpiRecv, w, NULL, s->stop_ns,
		     otf2_place(o, s->comm, slice_number(o, s, PEER)), s->comm, s->tag, bytes);
	if (s->comm != NONE && r->collective != NONE) {
		if (collectives[r->collective].role != OTF2_REGION_ROLE_COLL_ALL2ALL)
			root = otf2_place(o, s->comm, slice_number(o, s, ROOT));
		CALL(o, EvtWriter_MpiCollectiveEnd, w, NULL, s->stop_ns,
		     collectives[r->collective].op, s->comm, root, bytes, bytes);
	}
	CALL(o, EvtWriter_Leave, w, NULL, s->stop_ns, s->region);
}

/*
 * Slices that would overlap others of their location go to a further one, or, the last time
 * around, are left out.  Returns how many went.
 */
static uint32_t otf2_spread(struct trace_otf2 *o, bool last)
{
	uint32_t location = NONE, further = NONE, kept = 0, went = 0;
	LIST(uint64_t) open = { 0 };	/* ends, the innermost last */

	list_each(s, &o->slice) {
		if (s->location != location) {
			location = s->location;
			further = NONE;
			open.n = 0;
		}
		while (open.n && open.at[open.n - 1] <= s->start_ns)
			open.n--;
		if (!open.n || open.at[open.n - 1] >= s->stop_ns) {
			*(uint64_t *)must(list_append(&open)) = s->stop_ns;
		} else if (last) {
			o->left_out++;
			continue;
		} else {
			if (further == NONE) {
				further = o->location.n;
				must(list_append(&o->location));
				o->location.at[further] = o->location.at[location];
			}
			s->location = further;
			went++;
		}
		o->slice.at[kept++] = *s;
	}
	list_deinit(&open);
	o->slice.n = kept;
	return went;
}

/* Returns where the next location's slices begin. */
static uint32_t otf2_write_location(struct trace_otf2 *o, uint32_t i)
{
	uint32_t location = o->slice.at[i].location;
	OTF2_EvtWriter *w = o->call.Archive_GetEvtWriter(o->archive, location);
	LIST(const struct otf2_slice *) open = { 0 };

	if (!w)
		otf2_note(o, OTF2_ERROR_MEM_ALLOC_FAILED);
	for (; i < o->slice.n && o->slice.at[i].location == location && !o->error; i++) {
		const struct otf2_slice *s = &o->slice.at[i];

		while (open.n && open.at[open.n - 1]->stop_ns <= s->start_ns)
			otf2_leave(o, w, open.at[--open.n]);
		otf2_enter(o, w, s);
		*(const struct otf2_slice **)must(list_append(&open)) = s;
	}
	while (open.n && !o->error)
		otf2_leave(o, w, open.at[--open.n]);
	list_deinit(&open);
	if (!o->error)
		CALL(o, EvtWriter_GetNumberOfEvents, w, &o->location.at[location].events);
	if (w)
		CALL(o, Archive_CloseEvtWriter, o->archive, w);
	return i;
}

static void otf2_write_events(struct trace_otf2 *o)
{
	CALL(o, Archive_OpenEvtFiles, o->archive);
	o->list = o->call.AttributeList_New();
	for (uint32_t i = 0; i < o->slice.n && !o->error;)
		i = otf2_write_location(o, i);
	o->call.AttributeList_Delete(o->list);
	CALL(o, Archive_CloseEvtFiles, o->archive);
	CALL(o, Archive_OpenDefFiles, o->archive);	/* empty, but readers look for them */
	for (uint32_t i = 0; i < o->location.n && !o->error; i++)
		if (o->location.at[i].events)
			CALL(o, Archive_CloseDefWriter, o->archive,
			     o->call.Archive_GetDefWriter(o->archive, i));
	CALL(o, Archive_CloseDefFiles, o->archive);
}

/* ---- definitions ----------------------------------------------------------------- */

enum { NODE, METRIC, ABOUT, UNIT };
static const char *const words[] = {
	[NODE] = "node", [METRIC] = "bus bandwidth", [ABOUT] = "of the operation that ends here",
	[UNIT] = "B/s",
};

/* A string must be defined before what it names. */
static void otf2_define_strings(struct trace_otf2 *o, OTF2_GlobalDefWriter *w, const char *host)
{
	const char *text;
	json_t *number;

	otf2_string(o, host);
	for (uint32_t i = 0; i < ARRAY_LEN(words); i++)
		otf2_string(o, words[i]);
	for (uint32_t i = 0; i < ARRAY_LEN(attributes); i++)
		otf2_string(o, attributes[i].name);
	json_object_foreach(o->strings, text, number)
		CALL(o, GlobalDefWriter_WriteString, w, (uint32_t)json_integer_value(number), text);
}

static void otf2_define_clock(struct trace_otf2 *o, OTF2_GlobalDefWriter *w, uint64_t wall_ns)
{
	uint64_t first_ns = UINT64_MAX, last_ns = 0;

	list_each(s, &o->slice) {
		first_ns = s->start_ns < first_ns ? s->start_ns : first_ns;
		last_ns = s->stop_ns > last_ns ? s->stop_ns : last_ns;
	}
	if (!o->slice.n)
		first_ns = 0;
	CALL(o, GlobalDefWriter_WriteClockProperties, w, UINT64_C(1000000000), first_ns,
	     last_ns - first_ns, wall_ns ? wall_ns + first_ns : OTF2_UNDEFINED_TIMESTAMP);
}

static int processes_by_rank(const void *a, const void *b)
{
	const struct otf2_process *x = *(struct otf2_process *const *)a;
	const struct otf2_process *y = *(struct otf2_process *const *)b;

	if ((x->home == NONE) != (y->home == NONE))
		return x->home == NONE ? 1 : -1;
	BY(sort);
	return (x > y) - (x < y);
}

static void otf2_number_processes(struct trace_otf2 *o)
{
	for (uint32_t i = 0; i < o->process.n; i++)
		*(struct otf2_process **)must(list_append(&o->order)) = &o->process.at[i];
	list_sort(&o->order, processes_by_rank);
	for (uint32_t i = 0; i < o->order.n; i++)
		o->order.at[i]->number = i;
}

/* The node, its processes, the GPU of each, and their locations. */
static void otf2_define_places(struct trace_otf2 *o, OTF2_GlobalDefWriter *w, uint32_t host)
{
	CALL(o, GlobalDefWriter_WriteSystemTreeNode, w, 0, host, otf2_string(o, words[NODE]),
	     OTF2_UNDEFINED_SYSTEM_TREE_NODE);
	for (uint32_t i = 0; i < o->order.n; i++)
		CALL(o, GlobalDefWriter_WriteLocationGroup, w, i, o->order.at[i]->name,
		     OTF2_LOCATION_GROUP_TYPE_PROCESS, 0, OTF2_UNDEFINED_LOCATION_GROUP);
	for (uint32_t i = 0; i < o->order.n; i++)
		if (o->order.at[i]->has_gpu)
			CALL(o, GlobalDefWriter_WriteLocationGroup, w, o->order.n + i,
			     o->order.at[i]->name, OTF2_LOCATION_GROUP_TYPE_ACCELERATOR, 0, i);
	for (uint32_t i = 0; i < o->location.n; i++) {
		const struct otf2_location *l = &o->location.at[i];
		uint32_t group = o->process.at[l->process].number;

		if (l->events)
			CALL(o, GlobalDefWriter_WriteLocation, w, i, l->name,
			     l->gpu ? OTF2_LOCATION_TYPE_ACCELERATOR_STREAM :
				      OTF2_LOCATION_TYPE_CPU_THREAD,
			     l->events, l->gpu ? o->order.n + group : group);
	}
}

static OTF2_RegionRole region_role(const struct otf2_region *r)
{
	if (r->collective != NONE)
		return collectives[r->collective].role;
	if (r->send || r->recv)
		return OTF2_REGION_ROLE_POINT2POINT;
	return r->operation ? OTF2_REGION_ROLE_COLL_OTHER : OTF2_REGION_ROLE_FUNCTION;
}

static void otf2_define_regions(struct trace_otf2 *o, OTF2_GlobalDefWriter *w)
{
	for (uint32_t i = 0; i < o->region.n; i++) {
		const struct otf2_region *r = &o->region.at[i];

		CALL(o, GlobalDefWriter_WriteRegion, w, i, r->name, r->name, r->category,
		     region_role(r), r->operation ? OTF2_PARADIGM_MPI : OTF2_PARADIGM_USER,
		     OTF2_REGION_FLAG_NONE, OTF2_UNDEFINED_STRING, 0, 0);
	}
}

/* Group 0 is all ranks; the others, of each communicator, are numbers of its members. */
static void otf2_define_comms(struct trace_otf2 *o, OTF2_GlobalDefWriter *w)
{
	uint32_t none = otf2_string(o, ""), n = 0;
	uint64_t *numbers = must(calloc(o->order.n + o->member.n + 1, sizeof(*numbers)));

	while (n < o->order.n && o->order.at[n]->home != NONE) {
		numbers[n] = o->order.at[n]->home;
		n++;
	}
	if (n)
		CALL(o, GlobalDefWriter_WriteGroup, w, 0, none, OTF2_GROUP_TYPE_COMM_LOCATIONS,
		     OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE, n, numbers);
	for (uint32_t i = 0; i < o->comm.n; i++) {
		const struct otf2_comm *c = &o->comm.at[i];

		for (uint32_t k = 0; k < c->members; k++)
			numbers[k] = o->process.at[o->member.at[c->first + k].process].number;
		CALL(o, GlobalDefWriter_WriteGroup, w, i + 1, none, OTF2_GROUP_TYPE_COMM_GROUP,
		     OTF2_PARADIGM_MPI, OTF2_GROUP_FLAG_NONE, c->members, numbers);
		CALL(o, GlobalDefWriter_WriteComm, w, i, c->name, i + 1, OTF2_UNDEFINED_COMM,
		     OTF2_COMM_FLAG_NONE);
	}
	free(numbers);
}

static void otf2_define_values(struct trace_otf2 *o, OTF2_GlobalDefWriter *w)
{
	for (uint32_t i = 0; i < ARRAY_LEN(attributes); i++)
		CALL(o, GlobalDefWriter_WriteAttribute, w, i, otf2_string(o, attributes[i].name),
		     otf2_string(o, ""), attributes[i].type);
	CALL(o, GlobalDefWriter_WriteMetricMember, w, 0, otf2_string(o, words[METRIC]),
	     otf2_string(o, words[ABOUT]), OTF2_METRIC_TYPE_OTHER, OTF2_METRIC_ABSOLUTE_POINT,
	     OTF2_TYPE_DOUBLE, OTF2_BASE_DECIMAL, 9, otf2_string(o, words[UNIT]));
	CALL(o, GlobalDefWriter_WriteMetricClass, w, 0, 1, &(OTF2_MetricMemberRef){ 0 },
	     OTF2_METRIC_ASYNCHRONOUS, OTF2_RECORDER_KIND_CPU);
}

static void otf2_define(struct trace_otf2 *o, const char *host, uint64_t wall_ns)
{
	OTF2_GlobalDefWriter *w = o->call.Archive_GetGlobalDefWriter(o->archive);

	if (!w) {
		otf2_note(o, OTF2_ERROR_MEM_ALLOC_FAILED);
		return;
	}
	otf2_number_processes(o);
	otf2_define_strings(o, w, host);
	otf2_define_clock(o, w, wall_ns);
	otf2_define_values(o, w);
	otf2_define_places(o, w, otf2_string(o, host));
	otf2_define_regions(o, w);
	otf2_define_comms(o, w);
}

/* ---- the archive ----------------------------------------------------------------- */

static OTF2_FlushType on_full(void *arg, OTF2_FileType type, OTF2_LocationRef location,
			      void *caller, bool final)
{
	(void)arg, (void)type, (void)location, (void)caller, (void)final;
	return OTF2_FLUSH;
}

/* The library would write to stderr itself. */
static OTF2_ErrorCode on_error(void *arg, const char *file, uint64_t line, const char *function,
			       OTF2_ErrorCode code, const char *format, va_list args)
{
	(void)file, (void)line, (void)function, (void)format, (void)args;
	otf2_note(arg, code);
	return code;
}

static int archive_file_sync(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), r;

	(void)st, (void)type, (void)ftw;
	r = fd < 0 || fsync(fd) < 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	return r;
}

static int archive_file_drop(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	remove(path);
	return 0;
}

static int otf2_load(struct trace_otf2 *o, char why[256])
{
	static const char *const names[] = {
#define X(name) "OTF2_" #name,
		OTF2_CALLS(X)
#undef X
	};
	void *library = dlopen("libopen-trace-format2.so.10", RTLD_NOW | RTLD_LOCAL);

	if (!library)	/* OTF2's own name for it */
		library = dlopen("libotf2.so.10", RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		void *at = library ? dlsym(library, names[i]) : NULL;

		if (!at) {
			snprintf(why, 256, "OTF2 3 is not installed (Debian and Ubuntu: "
				 "libopen-trace-format2-10): %s", dlerror() ?: names[i]);
			return -ELIBACC;
		}
		memcpy((char *)&o->call + i * sizeof(at), &at, sizeof(at));
	}
	return 0;
}

static int otf2_make_place(struct trace_otf2 *o, const char *path, char why[256])
{
	struct stat st;
	int error = 0;

	if (strlen(path) + 20 >= sizeof(o->part))
		error = ENAMETOOLONG;
	else if (lstat(path, &st) == 0)
		error = EEXIST;
	snprintf(o->path, sizeof(o->path), "%s", path);
	snprintf(o->part, sizeof(o->part), "%.*s.%d.part", PATH_MAX - 20, path, (int)getpid());
	if (!error && mkdir(o->part, 0777) < 0)
		error = errno;
	if (error)
		*o->part = '\0';
	snprintf(why, 256, "%s%s", strerror(error), error != EEXIST ? "" :
		 "; an OTF2 archive is a directory, and none is overwritten: remove it, or choose "
		 "another name");
	return -error;
}

int trace_otf2_open(struct trace_otf2 **op, const char *path, char why[256])
{
	struct trace_otf2 *o = must(calloc(1, sizeof(*o)));
	int r = otf2_load(o, why);

	if (r == 0)
		r = otf2_make_place(o, path, why);
	if (r < 0) {
		trace_otf2_drop(o);
		return r;
	}
	o->strings = must(json_object());
	o->numbers = must(json_object());
	otf2_string(o, "");
	*op = o;
	return 0;
}

static void otf2_write(struct trace_otf2 *o, const char *host, uint64_t wall_ns)
{
	static const OTF2_FlushCallbacks flush = { .otf2_pre_flush = on_full };

	o->archive = o->call.Archive_Open(o->part, "traces", OTF2_FILEMODE_WRITE,
					  OTF2_CHUNK_SIZE_EVENTS_DEFAULT,
					  OTF2_CHUNK_SIZE_DEFINITIONS_DEFAULT,
					  OTF2_SUBSTRATE_POSIX, OTF2_COMPRESSION_NONE);
	if (!o->archive) {
		otf2_note(o, OTF2_ERROR_FILE_INTERACTION);
		return;
	}
	CALL(o, Archive_SetFlushCallbacks, o->archive, &flush, NULL);
	CALL(o, Archive_SetSerialCollectiveCallbacks, o->archive);
	CALL(o, Archive_SetCreator, o->archive, "ncclinsp " NCCLINSP_VERSION);
	CALL(o, Archive_SetDescription, o->archive, o->description ?: "");
	otf2_write_events(o);
	otf2_define(o, host, wall_ns);
	CALL(o, Archive_Close, o->archive);
}

int trace_otf2_close(struct trace_otf2 *o, const char *host, uint64_t wall_ns, char why[256],
		     uint64_t *left_out)
{
	int r;

	list_sort(&o->member, members_by_rank);
	for (uint32_t i = 0; i < o->member.n; i++) {
		struct otf2_comm *c = &o->comm.at[o->member.at[i].comm];

		c->first = c->members++ ? c->first : i;
	}
	otf2_match(o);
	for (int pass = 0;; pass++) {
		list_sort(&o->slice, slices_by_location);
		if (!otf2_spread(o, pass == PASSES))
			break;
	}
	o->call.Error_RegisterCallback(on_error, o);
	otf2_write(o, host, wall_ns);
	o->call.Error_RegisterCallback(NULL, NULL);
	r = o->error;
	snprintf(why, 256, "%s", o->why);
	if (r == 0 && (r = -nftw(o->part, archive_file_sync, 8, FTW_PHYS)) == 0)
		r = rename(o->part, o->path) < 0 ? -errno : 0;
	if (r < 0 && !*why)
		snprintf(why, 256, "%s", strerror(-r));
	if (r == 0)
		*o->part = '\0';
	*left_out = o->left_out;
	trace_otf2_drop(o);
	return r;
}

void trace_otf2_drop(struct trace_otf2 *o)
{
	if (!o)
		return;
	if (*o->part)
		nftw(o->part, archive_file_drop, 8, FTW_DEPTH | FTW_PHYS);
	json_decref(o->strings);
	json_decref(o->numbers);
	free(o->description);
	list_deinit(&o->value);
	list_deinit(&o->slice);
	list_deinit(&o->location);
	list_deinit(&o->process);
	list_deinit(&o->order);
	list_deinit(&o->region);
	list_deinit(&o->comm);
	list_deinit(&o->member);
	free(o);
}

#else

int trace_otf2_open(struct trace_otf2 **op, const char *path, char why[256])
{
	(void)op, (void)path;
	snprintf(why, 256, "this ncclinsp was built without OTF2 (its headers were missing: "
		 "libopen-trace-format2-dev); write a .json, or build it again");
	return -ENOTSUP;
}

/* None is ever open. */
void trace_otf2_event(struct trace_otf2 *o, const char *text, size_t bytes, uint64_t start_ns,
		      uint64_t stop_ns)
{
	(void)o, (void)text, (void)bytes, (void)start_ns, (void)stop_ns;
}

void trace_otf2_describe(struct trace_otf2 *o, const char *text, size_t bytes)
{
	(void)o, (void)text, (void)bytes;
}

int trace_otf2_close(struct trace_otf2 *o, const char *host, uint64_t wall_ns, char why[256],
		     uint64_t *left_out)
{
	(void)o, (void)host, (void)wall_ns, (void)why, (void)left_out;
	return 0;
}

void trace_otf2_drop(struct trace_otf2 *o)
{
}

#endif
