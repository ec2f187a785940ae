/* SPDX-License-Identifier: Apache-2.0 */
/* Calls become lines; handles are 1 + the number of the event they stand for. */
#include "tests/sim/probe.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "nccl/profiler.h"

#define MAX_LINES	200000
#define MAX_EVENTS	100000
#define MAX_THREADS	256
#define MAX_KERNELS	20000
#define CONTEXT_BASE	0x10000000ull	/* contexts cannot be taken for events */

struct probe_line {
	short thread, rank;
	char text[108];
};

struct probe_event {
	uint64_t type;
	short rank;
	short stops;
	int kernel;			/* KernelCh: which of probe.kernel */
	int64_t seq;
};

static struct {
	pthread_mutex_t mutex;
	int mask, refuse, keep;
	uint64_t switch_type;
	int switch_mask;
	int *live_mask;
	int ncontexts, context_rank[256];
	struct probe_event event[MAX_EVENTS];
	int nevents;
	struct probe_line line[MAX_LINES];
	int nlines;
	int kind[MAX_THREADS];		/* PROBE_* by thread */
	int nthreads, generation;
	int strangers, stale;
	struct probe_kernel kernel[MAX_KERNELS];
	int nkernels, warps;
	char text[1 << 20];
} probe = { .mutex = PTHREAD_MUTEX_INITIALIZER };

static __thread int my_thread, my_generation = -1;

static const char *const type_names[] = {
	"Group", "Coll", "P2p", "ProxyOp", "ProxyStep", "ProxyCtrl", "KernelCh", "NetPlugin",
	"GroupApi", "CollApi", "P2pApi", "KernelLaunch", "CeColl", "CeSync", "CeBatch",
};

static const char *probe_type_name(uint64_t type)
{
	return type && type < 0x8000 ? type_names[__builtin_ctzll(type)] : "?";
}

void probe_reset(int mask, int refuse)
{
	pthread_mutex_lock(&probe.mutex);
	probe.mask = mask;
	probe.refuse = refuse;
	probe.keep = 0;
	probe.switch_type = 0;
	probe.ncontexts = 0;
	probe.nevents = 0;
	probe.nlines = 0;
	probe.nkernels = 0;
	probe.nthreads = 0;
	probe.generation++;
	probe.strangers = 0;
	probe.stale = 0;
	pthread_mutex_unlock(&probe.mutex);
}

void probe_switch_mask(uint64_t type, int mask)
{
	probe.switch_type = type;
	probe.switch_mask = mask;
}

void probe_keep_slot(int types)
{
	probe.keep = types;
}

static int thread_index(void)
{
	if (my_generation != probe.generation) {
		my_generation = probe.generation;
		my_thread = probe.nthreads < MAX_THREADS - 1 ? probe.nthreads++ : 0;
		probe.kind[my_thread] = 0;
	}
	return my_thread;
}

/* A proxy is a proxy, whoever launches is a callback until it makes an API call. */
static void learn_kind(uint64_t type)
{
	int *kind = &probe.kind[thread_index()];

	if (type & (NCCL_PROXY_CTRL | NCCL_PROXY_OP | NCCL_PROXY_STEP | NCCL_KERNEL_CH |
		    NCCL_NET_PLUGIN))
		*kind = PROBE_PROXY;
	else if (type & (NCCL_GROUP_API | NCCL_COLL_API | NCCL_P2P_API | NCCL_KERNEL_LAUNCH))
		*kind = PROBE_UNIT;
	else if (!*kind)
		*kind = PROBE_CALLBACK;
}

static void __attribute__((format(printf, 2, 3))) probe_put(int rank, const char *fmt, ...)
{
	struct probe_line *line = &probe.line[probe.nlines];
	va_list ap;

	if (probe.nlines == MAX_LINES)
		return;
	line->thread = thread_index();
	line->rank = rank;
	va_start(ap, fmt);
	vsnprintf(line->text, sizeof(line->text), fmt, ap);
	va_end(ap);
	probe.nlines++;
}

static struct probe_event *event_of(void *handle)
{
	uintptr_t n = (uintptr_t)handle;

	return n && n <= (uintptr_t)probe.nevents ? &probe.event[n - 1] : NULL;
}

static int probe_rank_of(void *context)
{
	uintptr_t n = (uintptr_t)context - CONTEXT_BASE;

	if (n < (uintptr_t)probe.ncontexts)
		return probe.context_rank[n];
	probe.strangers++;
	return -1;
}

static const char *parent_name(void *parent)
{
	const struct probe_event *e = event_of(parent);

	if (!parent)
		return "-";
	if (e)
		return probe_type_name(e->type);
	probe.strangers++;
	return "?";
}

/* ---- init and finalize ---- */

static int probe_init_any(void **context, int *mask, int rank)
{
	pthread_mutex_lock(&probe.mutex);
	probe.live_mask = mask;
	__atomic_store_n(mask, probe.mask, __ATOMIC_RELAXED);
	probe.context_rank[probe.ncontexts] = rank;
	*context = (void *)(CONTEXT_BASE + probe.ncontexts++);
	probe_put(rank, "init");
	pthread_mutex_unlock(&probe.mutex);
	return NCCL_SUCCESS;
}

static int probe_init_old(void **context, int *mask)
{
	return probe_init_any(context, mask, 0);
}

static int probe_init_v4(void **context, int *mask, const char *name, uint64_t hash, int nnodes,
			 int nranks, int rank, nccl_logger_fn *logger)
{
	(void)name; (void)hash; (void)nnodes; (void)nranks; (void)logger;
	return probe_init_any(context, mask, rank);
}

static int probe_init_v5(void **context, uint64_t id, int *mask, const char *name, int nnodes,
			 int nranks, int rank, nccl_logger_fn *logger)
{
	(void)name; (void)id; (void)nnodes; (void)nranks; (void)logger;
	return probe_init_any(context, mask, rank);
}

static int probe_finalize_any(void *context)
{
	pthread_mutex_lock(&probe.mutex);
	probe_put(probe_rank_of(context), "finalize");
	pthread_mutex_unlock(&probe.mutex);
	return NCCL_SUCCESS;
}

/* ---- events ---- */

/* What a start line says after the parent, for types whose layout all versions share. */
static void describe_common(char *to, size_t size, uint64_t type, const struct nccl_descr_v7 *d)
{
	*to = '\0';
	if (type == NCCL_PROXY_OP)
		snprintf(to, size, "channel=%d peer=%d steps=%d send=%d", d->proxyOp.channelId,
			 d->proxyOp.peer, d->proxyOp.nSteps, d->proxyOp.isSend);
	if (type == NCCL_PROXY_STEP)
		snprintf(to, size, "step=%d", d->proxyStep.step);
	if (type == NCCL_NET_PLUGIN)
		snprintf(to, size, "id=%lx", (unsigned long)d->netPlugin.id);
	if (type == NCCL_KERNEL_CH)
		snprintf(to, size, "channel=%d", d->kernelCh.channelId);
	if (type == NCCL_KERNEL_PHASE)
		snprintf(to, size, "%s", d->kernelPhase.phaseName);
	if (type == NCCL_GROUP_API)
		snprintf(to, size, "depth=%d graph=%d", d->groupApi.groupDepth,
			 d->groupApi.graphCaptured);
	if (type == NCCL_COLL_API)
		snprintf(to, size, "%s %zu %s graph=%d", d->collApi.func, d->collApi.count,
			 d->collApi.datatype, d->collApi.graphCaptured);
	if (type == NCCL_P2P_API)
		snprintf(to, size, "%s %zu %s", d->p2pApi.func, d->p2pApi.count,
			 d->p2pApi.datatype);
}

static void describe_v7(char *to, size_t size, const struct nccl_descr_v7 *d)
{
	describe_common(to, size, d->type, d);
	if (d->type == NCCL_COLL)
		snprintf(to, size, "group=%s %s seq=%d count=%zu %s %s %s channels=%d",
			 parent_name(d->coll.parentGroup), d->coll.func,
			 (int)d->coll.seqNumber, d->coll.count, d->coll.datatype, d->coll.algo,
			 d->coll.proto, d->coll.nChannels);
	if (d->type == NCCL_P2P)
		snprintf(to, size, "group=%s %s peer=%d count=%zu channels=%d",
			 parent_name(d->p2p.parentGroup), d->p2p.func, d->p2p.peer,
			 d->p2p.count, d->p2p.nChannels);
	if (d->type == NCCL_CE_COLL)
		snprintf(to, size, "%s seq=%d count=%zu %s", d->ceColl.func,
			 (int)d->ceColl.seqNumber, d->ceColl.count, d->ceColl.datatype);
	if (d->type == NCCL_CE_SYNC)
		snprintf(to, size, "complete=%d ranks=%d", d->ceCollSync.isComplete,
			 d->ceCollSync.nRanks);
	if (d->type == NCCL_CE_BATCH)
		snprintf(to, size, "ops=%d bytes=%zu", d->ceCollBatch.numOps,
			 d->ceCollBatch.totalBytes);
}

static void describe_v1(char *to, size_t size, const struct nccl_descr_v1 *d)
{
	describe_common(to, size, d->type, (const void *)d);
	if (d->type == NCCL_COLL)
		snprintf(to, size, "%d seq=%d count=%zu %d %d %d hash=%d", d->coll.func,
			 (int)d->coll.seqNumber, d->coll.count, d->coll.datatype, d->coll.algo,
			 d->coll.proto, d->coll.commHash != 0);
}

#define DESCRIBE_NAMED(v)								\
	static void describe_v##v(char *to, size_t size, const struct nccl_descr_v##v *d) \
	{										\
		describe_common(to, size, d->type, (const void *)d);			\
		if (d->type == NCCL_COLL)						\
			snprintf(to, size, "%s seq=%d count=%zu %s %s %s",		\
				 d->coll.func, (int)d->coll.seqNumber, d->coll.count,	\
				 d->coll.datatype, d->coll.algo, d->coll.proto);	\
	}
DESCRIBE_NAMED(2)
DESCRIBE_NAMED(3)
DESCRIBE_NAMED(4)

#define DESCRIBE_LIKE_V7(v)								\
	static void describe_v##v(char *to, size_t size, const struct nccl_descr_v##v *d) \
	{										\
		describe_v7(to, size, (const void *)d);					\
	}
DESCRIBE_LIKE_V7(5)
DESCRIBE_LIKE_V7(6)

/* Remember what a new event needs to be told by. */
static void keep_details(int rank, const struct nccl_descr_v7 *d, struct probe_event *e)
{
	struct probe_event *parent = event_of(d->parentObj);

	if (!e)
		return;
	if (d->type == NCCL_COLL)
		probe.warps = d->coll.nWarps;
	e->seq = d->type == NCCL_COLL ? (int64_t)d->coll.seqNumber : -1;
	if (d->type != NCCL_KERNEL_CH || probe.nkernels == MAX_KERNELS)
		return;
	e->kernel = probe.nkernels;
	probe.kernel[probe.nkernels++] = (struct probe_kernel){
		.rank = rank, .channel = d->kernelCh.channelId, .start = d->kernelCh.pTimer,
		.parent_type = parent ? parent->type : 0, .parent_seq = parent ? parent->seq : -1 };
}

static void probe_start_any(void *context, void **handle, uint64_t type, void *parent,
			    const char *what)
{
	int rank = probe_rank_of(context);

	learn_kind(type);
	probe_put(rank, "%s S <%s%s%s", probe_type_name(type), parent_name(parent),
		  *what ? " " : "", what);
	if (probe.switch_type == type) {
		probe.switch_type = 0;
		__atomic_store_n(probe.live_mask, probe.switch_mask, __ATOMIC_RELAXED);
	}
	if (probe.keep & (int)type)
		return;
	*handle = NULL;
	if ((probe.refuse & (int)type) || probe.nevents == MAX_EVENTS)
		return;
	probe.event[probe.nevents++] = (struct probe_event){ .type = type, .rank = rank };
	*handle = (void *)(uintptr_t)probe.nevents;
}

static int probe_stop_any(void *handle)
{
	struct probe_event *e;

	pthread_mutex_lock(&probe.mutex);
	e = event_of(handle);
	probe_put(e ? e->rank : -1, "%s X", e ? probe_type_name(e->type) : "?");
	if (e && e->stops++)
		probe.stale++;
	pthread_mutex_unlock(&probe.mutex);
	return NCCL_SUCCESS;
}

/* Sizes are worth a word only where they are valid. */
static void probe_state_any(void *handle, int state, long size, int appended)
{
	struct probe_event *e = event_of(handle);
	int rank = e ? e->rank : -1;
	const char *name = e ? probe_type_name(e->type) : "?";

	if (e && e->stops)
		probe.stale++;
	if (state == NCCL_STEP_SEND_WAIT || state == NCCL_STEP_RECV_FLUSH_WAIT)
		probe_put(rank, "%s R %d %ld", name, state, size);
	else if (state == NCCL_CTRL_APPEND_END)
		probe_put(rank, "%s R %d %d", name, state, appended);
	else
		probe_put(rank, "%s R %d%s", name, state, size < 0 ? " null" : "");
}

static int probe_state_new(void *handle, int state, union nccl_args_v4 *args)
{
	struct probe_event *e;

	pthread_mutex_lock(&probe.mutex);
	e = event_of(handle);
	if (state == NCCL_KERNEL_CH_STOP && e && probe.nkernels)
		probe.kernel[e->kernel].stop = args->kernelCh.pTimer;
	probe_state_any(handle, state, args ? (long)(args->proxyStep.transSize & 0x7fffffff) : -1,
			args ? args->proxyCtrl.appendedProxyOps : 0);
	pthread_mutex_unlock(&probe.mutex);
	return NCCL_SUCCESS;
}

static int probe_state_old(void *handle, int state, union nccl_args_v1 *args)
{
	pthread_mutex_lock(&probe.mutex);
	probe_state_any(handle, state, args ? (long)args->proxyOp.transSize : -1,
			args ? args->proxyCtrl.appendedProxyOps : 0);
	pthread_mutex_unlock(&probe.mutex);
	return NCCL_SUCCESS;
}

#define TABLE(v, init, state)								\
	static int start_v##v(void *context, void **handle, struct nccl_descr_v##v *d)	\
	{										\
		char what[96];								\
											\
		pthread_mutex_lock(&probe.mutex);					\
		describe_v##v(what, sizeof(what), d);					\
		probe_start_any(context, handle, d->type, d->parentObj, what);		\
		if (v > 4 && !(probe.keep & (int)d->type))				\
			keep_details(probe_rank_of(context), (const void *)d, event_of(*handle)); \
		pthread_mutex_unlock(&probe.mutex);					\
		return NCCL_SUCCESS;							\
	}										\
	static struct nccl_profiler_v##v table_v##v = {					\
		"probe", init, start_v##v, probe_stop_any, state, probe_finalize_any	\
	}
TABLE(1, probe_init_old, probe_state_old);
TABLE(2, probe_init_old, probe_state_old);
TABLE(3, probe_init_old, probe_state_old);
TABLE(4, probe_init_v4, probe_state_new);
TABLE(5, probe_init_v5, probe_state_new);
TABLE(6, probe_init_v5, probe_state_new);
TABLE(7, probe_init_v5, probe_state_new);

const void *probe_table(int version)
{
	const void *const tables[] = { NULL, &table_v1, &table_v2, &table_v3, &table_v4,
				       &table_v5, &table_v6, &table_v7 };

	return tables[version];
}

/* ---- what was seen ---- */

const char *probe_text(int kind, int rank)
{
	size_t used = 0;

	probe.text[0] = '\0';
	for (int i = 0; i < probe.nlines; i++) {
		const struct probe_line *line = &probe.line[i];

		if (probe.kind[line->thread] != kind || (rank >= 0 && line->rank != rank) ||
		    !strcmp(line->text, "init") ||
		    used + sizeof(line->text) + 2 > sizeof(probe.text))
			continue;
		used += sprintf(probe.text + used, "%s\n", line->text);
	}
	return probe.text;
}

int probe_count(const char *words)
{
	size_t len = strlen(words);
	int n = 0;

	for (int i = 0; i < probe.nlines; i++)
		n += !strncmp(probe.line[i].text, words, len);
	return n;
}

int probe_place(const char *words, int nth)
{
	size_t len = strlen(words);

	for (int i = 0; i < probe.nlines; i++)
		if (!strncmp(probe.line[i].text, words, len) && !nth--)
			return i;
	return -1;
}

int probe_thread(const char *words, int nth)
{
	int i = probe_place(words, nth);

	return i < 0 ? -1 : probe.line[i].thread;
}

int probe_kernels(const struct probe_kernel **kernels)
{
	*kernels = probe.kernel;
	return probe.nkernels;
}

int probe_warps(void)
{
	return probe.warps;
}

int probe_mixed_threads(void)
{
	int rank[MAX_THREADS], mixed = 0;
	bool seen[MAX_THREADS] = { false }, counted[MAX_THREADS] = { false };

	for (int i = 0; i < probe.nlines; i++) {
		int t = probe.line[i].thread;

		if (probe.kind[t] != PROBE_PROXY)
			continue;
		if (seen[t] && rank[t] != probe.line[i].rank && !counted[t]) {
			counted[t] = true;
			mixed++;
		}
		seen[t] = true;
		rank[t] = probe.line[i].rank;
	}
	return mixed;
}

int probe_strangers(void)
{
	return probe.strangers;
}

int probe_stale(void)
{
	return probe.stale;
}
