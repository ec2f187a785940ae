/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two plugins behind an NCCL that loads one: ours, and the one of NCCLINSP_CHAIN.  It is a
 * library of its own, so that whoever has one plugin pays nothing for it.
 *
 * Each has a mask of its own, and NCCL's is both together.  Where the other one takes part in
 * nothing, NCCL is given our handle; where it does, our handle still, if that is unique, and the
 * other's stands beside it.  So ours is called as if it were alone: what may be forgotten
 * are handles of the other.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "chain/handles.h"
#include "nccl/profiler.h"
#include "nci/record.h"
#include "nci/token.h"
#include "plugin/forks.h"
#include "plugin/level.h"
#include "plugin/loaded.h"

LOADED_FIRST(dladdr);
LOADED_FIRST(dlerror);
LOADED_FIRST(dlopen);

#define EXPORT	__attribute__((visibility("default")))
#define CALLER	__builtin_extract_return_addr(__builtin_return_address(0))
#define OURS_IN	"libnccl-profiler-insp.so"
#define VARIABLE "NCCLINSP_CHAIN"
#define EVENT_SETS	16384	/* 3 MiB, touched as they are used */
#define COMM_SETS	1024

/* Handles that are neither's own: tokens of ours have at most one of these bits. */
#define CHAIN_BITS	(NCI_TOKEN_FREE | NCI_TOKEN_OWN)

EXPORT extern const struct nccl_profiler_v6 ncclProfiler_v6;

enum { OURS, OTHERS, PLUGINS };

/* Any version's table, but for its init. */
struct chain_table {
	const char *name;
	void *init;
	int (*start)(void *context, void **handle, void *descr);
	int (*stop)(void *handle);
	int (*state)(void *handle, int state, void *args);
	int (*finalize)(void *context);
};

/* The places of what a version's descriptors carry; all have the parent at the same one. */
static const struct {
	uint16_t bytes;
	uint16_t coll_group, p2p_group;		/* 0: they have none */
} shapes[NCCL_PROFILER_VERSIONS + 1] = {
#define SHAPE(v, coll_at, p2p_at) [v] = { sizeof(struct nccl_descr_v##v), coll_at, p2p_at }
	SHAPE(1, 0, 0), SHAPE(2, 0, 0), SHAPE(3, 0, 0), SHAPE(4, 0, 0),
#define GROUPS(v) SHAPE(v, offsetof(struct nccl_descr_v##v, coll.parentGroup),	\
			offsetof(struct nccl_descr_v##v, p2p.parentGroup))
	GROUPS(5), GROUPS(6), GROUPS(7),
};
#define PARENT_AT	offsetof(struct nccl_descr_v7, parentObj)
#define FIRST_WIDE_TYPE	5

/* One version of the interface, and so mostly the process's one NCCL. */
static struct chain_side {
	const struct chain_table *table[PLUGINS];	/* NULL: takes no part */
	int *_Atomic nccl_mask;		/* NULL: no communicator is open */
	_Atomic int mask[PLUGINS];
	uint32_t open, unlisted;	/* communicators, and those that `comms` has not */
	nccl_logger_fn *logger;
	_Atomic uint64_t wanted;	/* the second one's mask above the events it brings */
} sides[NCCL_PROFILER_VERSIONS + 1];

static struct {
	pthread_mutex_t lock;
	void *library[PLUGINS];
	bool opened;
	bool told;
	_Atomic bool watches_forks;
	_Atomic uint64_t unique;
} chain = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct handle_entry event_entries[EVENT_SETS][HANDLES_WAYS];
static struct handle_entry comm_entries[COMM_SETS][HANDLES_WAYS];
static struct handles events = { .set = event_entries, .nsets = EVENT_SETS };
static struct handles comms = { .set = comm_entries, .nsets = COMM_SETS, .keeps = true };

/* The NCCL whose init is under way in this thread. */
static __thread const void *caller_of_init;

/* Ours asks the library that called it, which is this one. */
EXPORT int ncclGetVersion(int *version);
EXPORT int ncclGetVersion(int *version)
{
	*version = caller_of_init ? (int)loaded_nccl_version(caller_of_init) : 0;
	return *version ? NCCL_SUCCESS : NCCL_SYSTEM_ERROR;
}

/* ---- forks -------------------------------------------------------------------- */

/* Handles of another process, which PXN brings, are not taken for our own. */
static void chain_number_anew(void)
{
	atomic_store(&chain.unique, (uint64_t)getpid() << 32);
}

/* The thread that holds the lock, or opens the libraries, may not be there in the child. */
static void chain_forget_parent(void)
{
	pthread_mutex_init(&chain.lock, NULL);
	chain_number_anew();
}

/* ---- the two libraries -------------------------------------------------------- */

static void chain_say(nccl_logger_fn *logger, const char *text)
{
	if (logger)
		logger(NCCL_LOG_WARN, NCCL_LOG_INIT, __FILE__, __LINE__, "%s", text);
	else
		fprintf(stderr, "%s\n", text);
}

static void *ours_open(void)
{
	char path[PATH_MAX];
	const char *slash;
	Dl_info info;

	if (!first_dladdr(&chain, &info) || !info.dli_fname)
		return NULL;
	slash = strrchr(info.dli_fname, '/');
	snprintf(path, sizeof(path), "%.*s" OURS_IN,
		 slash ? (int)(slash + 1 - info.dli_fname) : 0, info.dli_fname);
	return first_dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* A file, or what NCCL_PROFILER_PLUGIN may have: X for libnccl-profiler-X.so. */
static void *others_open(const char *name)
{
	char file[NAME_MAX];

	if (strchr(name, '/') || strstr(name, ".so") ||
	    snprintf(file, sizeof(file), "libnccl-profiler-%s.so", name) >= (int)sizeof(file))
		return first_dlopen(name, RTLD_NOW | RTLD_LOCAL);
	return first_dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

/* Our plugin, or this library. */
static bool others_are_ours(void)
{
	return chain.library[OTHERS] && (chain.library[OTHERS] == chain.library[OURS] ||
		loaded_symbol(chain.library[OTHERS], "ncclProfiler_v6") == &ncclProfiler_v6);
}

static void chain_open(nccl_logger_fn *logger)
{
	const char *name = getenv(VARIABLE);
	char text[2 * PATH_MAX];

	chain_number_anew();
	chain.library[OURS] = ours_open();
	if (!chain.library[OURS]) {
		snprintf(text, sizeof(text), "ncclinsp: nothing is recorded: " OURS_IN
			 " does not load beside libnccl-profiler-insp-chain.so: %s",
			 first_dlerror());
		chain_say(logger, text);
	}
	if (!name || !*name) {
		chain_say(logger, "ncclinsp: " VARIABLE " is not set, so there is no second "
			  "plugin: set it to that plugin's file");
		return;
	}
	chain.library[OTHERS] = others_open(name);
	if (others_are_ours()) {
		chain.library[OTHERS] = NULL;
		chain_say(logger, "ncclinsp: " VARIABLE " names ncclinsp's own plugin, so there "
			  "is no second one");
	} else if (!chain.library[OTHERS]) {
		snprintf(text, sizeof(text), "ncclinsp: " VARIABLE "=%s does not load, so there is "
			 "no second plugin: %s", name, first_dlerror());
		chain_say(logger, text);
	}
}

static void side_open(struct chain_side *side, int version, int *mask, nccl_logger_fn *logger)
{
	char symbol[32], text[PATH_MAX];

	for (int i = 0; i < PLUGINS; i++)
		atomic_store(&side->mask[i], 0);
	atomic_store(&side->nccl_mask, mask);
	side->logger = logger;
	snprintf(symbol, sizeof(symbol), "ncclProfiler_v%d", version);
	for (int i = 0; i < PLUGINS; i++)
		if (chain.library[i])
			side->table[i] = loaded_symbol(chain.library[i], symbol);
	if (!chain.library[OTHERS] || side->table[OTHERS])
		return;
	snprintf(text, sizeof(text), "ncclinsp: " VARIABLE "=%s has no %s, which this NCCL asks "
		 "for, so it is not called: build it for this NCCL", getenv(VARIABLE), symbol);
	chain_say(logger, text);
}

/* ---- masks -------------------------------------------------------------------- */

/* NCCL's is both plugins' together, whatever another thread changes meanwhile. */
static void side_update_mask(struct chain_side *side)
{
	int *mask = atomic_load_explicit(&side->nccl_mask, memory_order_acquire);
	int seen, both;

	if (!mask)
		return;
	do {
		seen = __atomic_load_n(mask, __ATOMIC_ACQUIRE);
		both = atomic_load(&side->mask[OURS]) | atomic_load(&side->mask[OTHERS]);
	} while (seen != both &&
		 !__atomic_compare_exchange_n(mask, &seen, both, false,
					      __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

/* The events that NCCL would start for the other, if that were alone. */
static uint32_t side_wanted(struct chain_side *side, int version)
{
	uint32_t mask = (uint32_t)atomic_load_explicit(&side->mask[OTHERS], memory_order_relaxed);
	uint64_t wanted = atomic_load_explicit(&side->wanted, memory_order_relaxed);
	struct level level;

	if (wanted >> 32 == mask)
		return (uint32_t)wanted;
	level_take_mask(&level, version, mask);
	wanted = (uint64_t)mask << 32 | level.wanted | level.mask;
	atomic_store_explicit(&side->wanted, wanted, memory_order_relaxed);
	return (uint32_t)wanted;
}

/* ---- communicators ------------------------------------------------------------ */

/* A communicator that both are about to be told of. */
struct opening {
	struct chain_side *side;
	const void *table[PLUGINS];
	void *context[PLUGINS];
	int *mask[PLUGINS];
	bool failed[PLUGINS];
	bool joined;		/* it is of the NCCL whose mask is the side's */
};

static uint64_t number_of(const void *handle)
{
	return (uint64_t)(uintptr_t)handle;
}

static void *handle_of(uint64_t number)
{
	return (void *)(uintptr_t)number;	/* NOLINT: NCCL carries it, nobody follows it */
}

static uint64_t chain_unique(void)
{
	return CHAIN_BITS | atomic_fetch_add_explicit(&chain.unique, 1, memory_order_relaxed);
}

static void opening_begin(struct opening *o, int version, const void *caller, int *mask,
			  nccl_logger_fn *logger)
{
	struct chain_side *side = &sides[version];

	*o = (struct opening){ .side = side, .mask = { mask } };
	caller_of_init = caller;
	forks_watch(&chain.watches_forks, chain_forget_parent);
	pthread_mutex_lock(&chain.lock);
	if (!chain.opened)
		chain_open(logger);
	chain.opened = true;	/* not before: a child of a fork meanwhile opens them itself */
	if (!side->open)
		side_open(side, version, mask, logger);
	o->joined = mask && side->nccl_mask == mask;
	side->open += o->joined;
	o->table[OURS] = side->table[OURS];
	if (o->joined)
		o->table[OTHERS] = side->table[OTHERS];
	else if (!chain.told)
		chain_say(logger, "ncclinsp: a second NCCL in this process: only ncclinsp is "
			  "called for it");
	chain.told |= !o->joined;
	for (int i = 0; o->joined && i < PLUGINS; i++)
		o->mask[i] = (int *)&side->mask[i];
	pthread_mutex_unlock(&chain.lock);
}

/* No room for one more communicator, of which the other knows already. */
static void opening_unlist(struct opening *o)
{
	const struct chain_table *other = o->table[OTHERS];

	if (!o->failed[OTHERS])
		other->finalize(o->context[OTHERS]);
	pthread_mutex_lock(&chain.lock);
	o->side->unlisted++;
	chain_say(o->side->logger, "ncclinsp: too many communicators are open: the second plugin "
		  "is not called for this one");
	pthread_mutex_unlock(&chain.lock);
}

static int opening_end(struct opening *o, void **context)
{
	const struct handle_pair pair = {
		.ours = number_of(o->context[OURS]), .others = number_of(o->context[OTHERS]),
		.flag = !o->failed[OTHERS],
	};
	uint64_t key = pair.ours;

	caller_of_init = NULL;
	/* All of which ours records nothing have the same. */
	if (!key || nci_context_comm(key) == NCI_COMM_NONE)
		key = chain_unique();
	if (o->joined && !handles_add(&comms, key, &pair)) {
		opening_unlist(o);
		key = pair.ours;
	}
	if (o->table[OTHERS] && o->failed[OTHERS])
		chain_say(o->side->logger, "ncclinsp: the second plugin's init failed: it is not "
			  "called for this communicator");
	if (context)
		*context = handle_of(o->joined ? key : pair.ours);
	side_update_mask(o->side);
	return NCCL_SUCCESS;
}

#define INIT(v, logger, params, args)							\
	static int chain_init_v##v params						\
	{										\
		void **const given = context;						\
		struct opening o;							\
											\
		opening_begin(&o, v, CALLER, mask, logger);				\
		for (int i = 0; i < PLUGINS; i++) {					\
			const struct nccl_profiler_v##v *table = o.table[i];		\
											\
			context = &o.context[i];					\
			mask = o.mask[i];						\
			o.failed[i] = !table || table->init args != NCCL_SUCCESS;	\
		}									\
		return opening_end(&o, given);						\
	}
#define INIT_BEFORE_V4(v) INIT(v, NULL, (void **context, int *mask), (context, mask))
#define INIT_FROM_V5(v) INIT(v, logger,							\
	(void **context, uint64_t id, int *mask, const char *name, int nnodes, int nranks,	\
	 int rank, nccl_logger_fn *logger),						\
	(context, id, mask, name, nnodes, nranks, rank, logger))
INIT_BEFORE_V4(1)
INIT_BEFORE_V4(2)
INIT_BEFORE_V4(3)
INIT(4, logger, (void **context, int *mask, const char *name, uint64_t id, int nnodes,
		 int nranks, int rank, nccl_logger_fn *logger),
     (context, mask, name, id, nnodes, nranks, rank, logger))
INIT_FROM_V5(5)
INIT_FROM_V5(6)
INIT_FROM_V5(7)

/* A communicator has gone, and with the last one maybe its NCCL. */
static void side_close(struct chain_side *side, bool listed)
{
	uint64_t forgotten = 0;
	char text[256];

	pthread_mutex_lock(&chain.lock);
	if (listed || side->unlisted) {
		side->unlisted -= !listed;
		side->open--;
	}
	if (!side->open) {
		atomic_store(&side->nccl_mask, NULL);
		forgotten = atomic_exchange(&events.forgotten, 0);
	}
	snprintf(text, sizeof(text), "ncclinsp: %" PRIu64 " events were too many to be kept for "
		 "the second plugin, which was not told of their end", forgotten);
	if (forgotten)
		chain_say(side->logger, text);
	pthread_mutex_unlock(&chain.lock);
}

static int chain_finalize(int version, void *context)
{
	struct chain_side *side = &sides[version];
	struct handle_pair pair;
	bool listed = handles_find(&comms, number_of(context), &pair);

	if (listed) {
		if (pair.flag)
			side->table[OTHERS]->finalize(handle_of(pair.others));
		handles_remove(&comms, number_of(context));
		context = handle_of(pair.ours);
	}
	if (side->table[OURS])
		side->table[OURS]->finalize(context);
	side_update_mask(side);
	side_close(side, listed);
	return NCCL_SUCCESS;
}

/* ---- events ------------------------------------------------------------------- */

/* Both handles behind the one that NCCL carries.  False: the other takes no part in it. */
static bool event_find(const void *handle, struct handle_pair *pair)
{
	bool found = handles_find(&events, number_of(handle), pair);

	if ((number_of(handle) & CHAIN_BITS) != CHAIN_BITS)
		pair->ours = number_of(handle);
	return found;
}

static void copy_put_handle(int plugin, unsigned char *copy, size_t at)
{
	struct handle_pair pair;
	void *handle;

	memcpy(&handle, copy + at, sizeof(handle));
	event_find(handle, &pair);
	handle = handle_of(plugin == OURS ? pair.ours : pair.others);
	memcpy(copy + at, &handle, sizeof(handle));
}

/* The event that the descriptor starts, with handles of that plugin; NULL: it refused. */
static void *plugin_start(const struct chain_side *side, int plugin, int version, void *context,
			  uint64_t type, const void *descr)
{
	_Alignas(8) unsigned char copy[sizeof(struct nccl_descr_v7)];
	size_t group = type == NCCL_COLL ? shapes[version].coll_group :
		       type == NCCL_P2P ? shapes[version].p2p_group : 0;
	void *handle = NULL;

	memcpy(copy, descr, shapes[version].bytes);
	copy_put_handle(plugin, copy, PARENT_AT);
	if (group)
		copy_put_handle(plugin, copy, group);
	side->table[plugin]->start(context, &handle, copy);
	return handle;
}

static bool is_leaf(uint64_t type)
{
	return type == NCCL_PROXY_STEP || type == NCCL_NET_PLUGIN || type == NCCL_KERNEL_PHASE;
}

static int chain_start(int version, void *context, void **handle, const void *descr)
{
	struct chain_side *side = &sides[version];
	struct handle_pair comm, before, pair = { 0 };
	uint64_t type, key;
	bool known;

	*handle = NULL;
	if (!descr)
		return NCCL_SUCCESS;
	type = version < FIRST_WIDE_TYPE ? *(const uint8_t *)descr : *(const uint64_t *)descr;
	known = handles_find(&comms, number_of(context), &comm);
	if (side->table[OURS])
		pair.ours = number_of(plugin_start(side, OURS, version, known ?
				      handle_of(comm.ours) : context, type, descr));
	if (known && comm.flag && type & side_wanted(side, version))
		pair.others = number_of(plugin_start(side, OTHERS, version,
						     handle_of(comm.others), type, descr));
	pair.flag = is_leaf(type);
	key = pair.ours && !(pair.ours & CHAIN_BITS) ? pair.ours : chain_unique();
	/* A step that NCCL starts again is the same one to ours, and another one to the other. */
	if (pair.flag && pair.others && handles_find(&events, key, &before))
		handles_remove(&events, key);
	*handle = handle_of(pair.others && handles_add(&events, key, &pair) ? key : pair.ours);
	side_update_mask(side);
	return NCCL_SUCCESS;
}

static int chain_stop(int version, void *handle)
{
	struct chain_side *side = &sides[version];
	struct handle_pair pair;

	if (event_find(handle, &pair)) {
		side->table[OTHERS]->stop(handle_of(pair.others));
		(pair.flag ? handles_remove : handles_end)(&events, number_of(handle));
	}
	if (pair.ours && side->table[OURS])
		side->table[OURS]->stop(handle_of(pair.ours));
	side_update_mask(side);
	return NCCL_SUCCESS;
}

static int chain_state(int version, void *handle, int state, void *args)
{
	struct chain_side *side = &sides[version];
	struct handle_pair pair;
	bool found = event_find(handle, &pair);

	if (pair.ours && side->table[OURS])
		side->table[OURS]->state(handle_of(pair.ours), state, args);
	if (found)
		side->table[OTHERS]->state(handle_of(pair.others), state, args);
	side_update_mask(side);
	return NCCL_SUCCESS;
}

/* ---- the tables --------------------------------------------------------------- */

#define TABLE(v, argsv)									\
	static int chain_start_v##v(void *context, void **handle, struct nccl_descr_v##v *descr) \
	{										\
		return chain_start(v, context, handle, descr);				\
	}										\
	static int chain_stop_v##v(void *handle)					\
	{										\
		return chain_stop(v, handle);						\
	}										\
	static int chain_state_v##v(void *handle, int state, union nccl_args_v##argsv *args)	\
	{										\
		return chain_state(v, handle, state, args);				\
	}										\
	static int chain_finalize_v##v(void *context)					\
	{										\
		return chain_finalize(v, context);					\
	}										\
	EXPORT extern const struct nccl_profiler_v##v ncclProfiler_v##v;		\
	EXPORT const struct nccl_profiler_v##v ncclProfiler_v##v = {			\
		"ncclinsp-chain", chain_init_v##v, chain_start_v##v, chain_stop_v##v,	\
		chain_state_v##v, chain_finalize_v##v,					\
	}
TABLE(1, 1);
TABLE(2, 1);
TABLE(3, 1);
TABLE(4, 4);
TABLE(5, 4);
TABLE(6, 4);
TABLE(7, 4);
