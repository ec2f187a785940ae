/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A profiler that writes down every call as it comes and does nothing else: no
 * other profiler behind it, so that what is in the file is NCCL's doing alone.
 * Any plugin can be driven with it afterwards (nccl-replay).
 *
 *     NCCLINSP_RECORD=FILE             %p is the process id, %h the host's name
 *     NCCLINSP_RECORD_MIB=256          no more than that
 *     NCCL_PROFILE_EVENT_MASK=0xfff    events to ask for; all that are safe
 *
 * Callbacks take no lock and do not wait; their only system calls give the file
 * blocks, once per MiB.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "plugin/forks.h"
#include "record/format.h"
#include "record/shape.h"
#include "record/store.h"

#define EXPORT __attribute__((visibility("default")))
#define MIB_DEFAULT	256

/* Only under the lock. */
static struct {
	pthread_mutex_t lock;
	unsigned int open;	/* communicators */
	bool told;
	_Atomic bool watches_forks;
} state = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Atomic uint32_t threads;
static __thread uint32_t my_number;	/* 0: not written down yet */

/* ---- forks ---- */

/* The thread that holds the lock may not be there in the child, whose file will be its own. */
static void recorder_forget_parent(void)
{
	store_forget();
	state.open = 0;
	state.told = false;
	atomic_store_explicit(&threads, 0, memory_order_relaxed);
	my_number = 0;
	pthread_mutex_init(&state.lock, NULL);
}

/* ---- records ---- */

static uint32_t record_string_bytes(const char *s)
{
	return s ? 1 + (uint32_t)strnlen(s, RECORD_STRING_MAX) : 1;
}

/* Returns where the next one goes. */
static uint8_t *record_put_string(uint8_t *to, const char *s)
{
	uint32_t bytes = record_string_bytes(s);

	*to = s ? (uint8_t)bytes : 0;
	if (s)
		memcpy(to + 1, s, bytes - 1);
	return to + bytes;
}

/*
 * Room for a head and `bytes` more, with all of the head written but its size,
 * and the offset as its object; NULL: lost.
 */
static struct record_head *record_take(enum record_verb verb, int api, uint32_t bytes)
{
	uint64_t offset;
	struct record_head *head = store_take(record_padded(sizeof(*head) + bytes), &offset);

	if (!head)
		return NULL;
	head->verb = (uint8_t)verb;
	head->api = (uint8_t)api;
	head->thread = my_number;
	head->time_ns = store_time();
	head->object = store_handle(offset);
	return head;
}

/* A reader of a killed process's file sees a record whole or not at all. */
static void record_publish(struct record_head *head, uint32_t bytes)
{
	__atomic_store_n(&head->size, (uint16_t)record_padded(sizeof(*head) + bytes),
			 __ATOMIC_RELEASE);
}

/* False: there is no room, perhaps until the next init. */
static bool record_introduce_thread(void)
{
	char name[RECORD_STRING_MAX + 1] = "";
	struct record_head *head;
	uint32_t bytes;

	prctl(PR_GET_NAME, name);
	bytes = record_string_bytes(name);
	head = record_take(RECORD_THREAD, 0, bytes);
	if (!head)
		return false;
	my_number = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
	head->thread = my_number;
	head->object = (uint64_t)syscall(SYS_gettid);
	record_put_string((uint8_t *)(head + 1), name);
	record_publish(head, bytes);
	return true;
}

static struct record_head *record_begin(enum record_verb verb, int api, uint32_t bytes)
{
	if (__builtin_expect(!my_number, 0) && !record_introduce_thread())
		return NULL;	/* this one call is lost */
	return record_take(verb, api, bytes);
}

/* Verbs with an object and nothing else. */
static int record_put_plain(enum record_verb verb, void *object)
{
	struct record_head *head = record_begin(verb, 0, 0);

	if (head) {
		head->object = (uint64_t)object;
		record_publish(head, 0);
	}
	return NCCL_SUCCESS;
}

/* ---- init, finalize ---- */

struct record_comm {
	int version;
	uint64_t id;
	const char *name;
	int nnodes, nranks, rank;
	nccl_logger_fn *logger;
};

/* Older NCCLs can abort on KernelCh; those from 2.29.2 to 2.30 may never end with it. */
static int record_all_events(int version)
{
	static const int events[] = {
		0, NCCL_EVENTS_V1, NCCL_EVENTS_V2, NCCL_EVENTS_V3 & ~NCCL_KERNEL_CH,
		NCCL_EVENTS_V4 & ~NCCL_KERNEL_CH, NCCL_EVENTS_V5, NCCL_EVENTS_V6 & ~NCCL_KERNEL_CH,
		NCCL_EVENTS_V7,
	};

	return events[version];
}

static int record_wanted_events(int version)
{
	const char *s = getenv("NCCL_PROFILE_EVENT_MASK");
	char *end;
	long mask = s ? strtol(s, &end, 0) : 0;

	return s && *s && !*end ? (int)mask : record_all_events(version);
}

static uint64_t record_limit_bytes(void)
{
	const char *s = getenv("NCCLINSP_RECORD_MIB");
	unsigned long mib = s ? strtoul(s, NULL, 10) : 0;

	return (uint64_t)(mib && mib <= 1 << 20 ? mib : MIB_DEFAULT) << 20;
}

static const char *record_advice(int r)
{
	static const struct { int error; const char *what; } table[] = {
		{ EEXIST,	": put %p into NCCLINSP_RECORD, or remove the file" },
		{ EINVAL,	": set NCCLINSP_RECORD to a file; only %p, %h and %% are known" },
		{ EBADF,	": the job has closed the file" },
		{ EFBIG,	": set NCCLINSP_RECORD_MIB to less than ulimit -f allows" },
		{ EOPNOTSUPP,	": this file system reserves no blocks; use a local one" },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].error == -r)
			return table[i].what;
	return "";
}

#define LOG_AS(level) (level), NCCL_LOG_INIT | NCCL_LOG_PROFILE, __FILE__, __LINE__

/* Once. */
static void record_tell(nccl_logger_fn *logger, int r)
{
	if (state.told)
		return;
	state.told = true;
	if (logger && r)
		logger(LOG_AS(NCCL_LOG_WARN), "ncclinsp: nothing is recorded: %s: %s%s",
		       store_path(), strerror(-r), record_advice(r));
	else if (logger)
		logger(LOG_AS(NCCL_LOG_INFO), "ncclinsp: recording into %s", store_path());
	else if (r)
		dprintf(STDERR_FILENO, "ncclinsp: nothing is recorded: %s: %s%s\n",
			store_path(), strerror(-r), record_advice(r));
}

static uint64_t record_put_init(const struct record_comm *comm, int mask)
{
	uint32_t bytes = (uint32_t)sizeof(struct record_init) + record_string_bytes(comm->name);
	struct record_head *head = record_begin(RECORD_INIT, comm->version, bytes);
	struct record_init *init = (struct record_init *)(head + 1);

	if (!head)
		return 0;
	*init = (struct record_init){ comm->id, comm->nnodes, comm->nranks, comm->rank,
				      (uint32_t)mask };
	record_put_string((uint8_t *)(init + 1), comm->name);
	record_publish(head, bytes);
	return head->object;
}

/* Never fails: NCCL would unload us under other communicators. */
static int recorder_init(void **context, int *mask, const struct record_comm *comm)
{
	const char *pattern = getenv("NCCLINSP_RECORD");
	int wanted, r;

	forks_watch(&state.watches_forks, recorder_forget_parent);
	pthread_mutex_lock(&state.lock);
	r = store_open(pattern ? pattern : "", record_limit_bytes(), comm->version);
	record_tell(comm->logger, r);
	wanted = r ? 0 : record_wanted_events(comm->version);
	state.open++;
	if (mask)
		__atomic_store_n(mask, wanted, __ATOMIC_RELAXED);
	if (context)
		*context = (void *)record_put_init(comm, wanted);
	pthread_mutex_unlock(&state.lock);
	return NCCL_SUCCESS;
}

static int recorder_finalize(void *context)
{
	pthread_mutex_lock(&state.lock);
	record_put_plain(RECORD_FINALIZE, context);
	if (state.open && --state.open == 0)
		store_close();
	pthread_mutex_unlock(&state.lock);
	return NCCL_SUCCESS;
}

#define INIT_BEFORE_V4(v)								\
	static int recorder_init_v##v(void **context, int *mask)			\
	{										\
		return recorder_init(context, mask, &(struct record_comm){ .version = (v) }); \
	}
INIT_BEFORE_V4(1)
INIT_BEFORE_V4(2)
INIT_BEFORE_V4(3)

static int recorder_init_v4(void **context, int *mask, const char *name, uint64_t id, int nnodes,
			    int nranks, int rank, nccl_logger_fn *logger)
{
	return recorder_init(context, mask,
			     &(struct record_comm){ 4, id, name, nnodes, nranks, rank, logger });
}

#define INIT_FROM_V5(v)									\
	static int recorder_init_v##v(void **context, uint64_t id, int *mask,		\
				      const char *name, int nnodes, int nranks,		\
				      int rank, nccl_logger_fn *logger)			\
	{										\
		return recorder_init(context, mask, &(struct record_comm){		\
			(v), id, name, nnodes, nranks, rank, logger });			\
	}
INIT_FROM_V5(5)
INIT_FROM_V5(6)
INIT_FROM_V5(7)

/* ---- events ---- */

static const char *record_string_at(const void *descr, uint32_t offset)
{
	const char *s;

	memcpy(&s, (const char *)descr + offset, sizeof(s));
	return s;
}

static int recorder_start(int version, void *context, void **handle, const void *descr)
{
	const struct shape *shape;
	struct record_head *head;
	uint32_t image, bytes;
	uint8_t *to;

	*handle = NULL;
	if (!descr)
		return NCCL_SUCCESS;
	shape = shape_of(version, shape_type(version, descr));
	image = record_padded(shape->bytes);
	bytes = (uint32_t)sizeof(uint64_t) + image;
	for (int i = 0; i < SHAPE_STRINGS && shape->string[i]; i++)
		bytes += record_string_bytes(record_string_at(descr, shape->string[i]));
	head = record_begin(RECORD_START, version, bytes);
	if (!head)
		return NCCL_SUCCESS;
	*handle = (void *)head->object;
	to = (uint8_t *)(head + 1);
	memcpy(to, &context, sizeof(uint64_t));
	memcpy(to + sizeof(uint64_t), descr, shape->bytes);
	to += sizeof(uint64_t) + image;
	for (int i = 0; i < SHAPE_STRINGS && shape->string[i]; i++)
		to = record_put_string(to, record_string_at(descr, shape->string[i]));
	record_publish(head, bytes);
	return NCCL_SUCCESS;
}

static int recorder_state(int version, void *handle, int value, const void *args, uint32_t bytes)
{
	struct record_head *head = record_begin(RECORD_STATE, version, sizeof(struct record_state));
	struct record_state *to = (struct record_state *)(head + 1);

	if (!head)
		return NCCL_SUCCESS;
	head->object = (uint64_t)handle;
	to->state = value;
	to->args_bytes = args ? bytes : 0;
	if (args && value != NCCL_GROUP_API_START_STOP && value != NCCL_GROUP_API_END_START)
		memcpy(to->args, args, bytes);
	record_publish(head, sizeof(*to));
	return NCCL_SUCCESS;
}

static int recorder_stop(void *handle)
{
	return record_put_plain(RECORD_STOP, handle);
}

/* ---- the tables ---- */

#define TABLE(v, argsv)									\
	static int recorder_start_v##v(void *context, void **handle,			\
				       struct nccl_descr_v##v *d)			\
	{										\
		return recorder_start(v, context, handle, d);				\
	}										\
	static int recorder_state_v##v(void *handle, int value,				\
				       union nccl_args_v##argsv *args)			\
	{										\
		return recorder_state(v, handle, value, args, sizeof(*args));		\
	}										\
	EXPORT extern const struct nccl_profiler_v##v ncclProfiler_v##v;		\
	EXPORT const struct nccl_profiler_v##v ncclProfiler_v##v = {			\
		"ncclinsp-record", recorder_init_v##v, recorder_start_v##v,		\
		recorder_stop, recorder_state_v##v, recorder_finalize,			\
	}
TABLE(1, 1);
TABLE(2, 1);
TABLE(3, 1);
TABLE(4, 4);
TABLE(5, 4);
TABLE(6, 4);
TABLE(7, 4);
