/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inits of several communicators run at once, and at once with callbacks of
 * others: the lock orders inits and finalizes only, and what callbacks read is
 * in place before `wanted` is stored with release.
 */
#include "plugin/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "plugin/forks.h"
#include "plugin/gpu.h"
#include "plugin/identity.h"
#include "plugin/loaded.h"
#include "plugin/room.h"
#include "plugin/sweep.h"
#include "plugin/tag.h"

#define LANES_AHEAD	16	/* made when communicators are; more if threads come */
#define LOOK_NS		UINT64_C(1000000000)	/* the time for which a look holds, ... */
#define LOOK_BYTES	(UINT64_C(640) << 20)	/* the free space for each init that it saves */

struct plugin_process process_self;
__thread struct process_thread process_thread;

/* Only under the lock. */
static struct {
	pthread_mutex_t lock;
	uint32_t open;		/* communicators initialised and not finalized */
	uint32_t steered;	/* open ones of the NCCL whose mask is steered */
	bool told;		/* a message has said that the process is muted */
	int error;		/* why the process is muted; 0: it is not */
	/* The last look at the machine; inits often come by the hundred. */
	uint64_t looked_ns;	/* CLOCK_MONOTONIC */
	uint64_t looks_saved;	/* inits that may yet do without another one */
	uint64_t dir_bytes, shm_bytes;	/* free for segments, and in NCI_SHM_DIR */
	bool no_driver;		/* no GPU was identified */
	/* Indexed by the communicator's entry: another's may lie in a libnccl that is gone. */
	nccl_logger_fn *logger[SHMRING_COMMS];
	bool is_steered[SHMRING_COMMS];
	char dir[192];
	char file[64];
} state = { .lock = PTHREAD_MUTEX_INITIALIZER };

static _Atomic bool watches_forks;

__attribute__((constructor))
static void process_remember_loader(void)
{
	process_self.loaded_pid = getpid();
	process_self.generation = 1;	/* a thread's begins as 0: no lane yet */
	shmring_forget(&process_self.ring);
}

/* A clean end, of the process that made the file: the black box is not needed. */
__attribute__((destructor))
static void process_leave(void)
{
	struct nci_live *live = atomic_load_explicit(&process_self.live,
						     memory_order_acquire);
	char path[sizeof(state.dir) + sizeof(state.file) + 1];

	if (!live || process_self.pid != getpid())
		return;
	atomic_fetch_or_explicit(&live->flags, NCI_LIVE_EXITED, memory_order_release);
	snprintf(path, sizeof(path), "%s/%s", state.dir, state.file);
	unlink(path);
}

/* The one thread there is in a fresh child: nobody else looks at any of this. */
static void process_forget_parent(void)
{
	struct plugin_process *p = &process_self;

	atomic_store_explicit(&p->wanted, 0, memory_order_relaxed);
	atomic_store_explicit(&p->live, NULL, memory_order_relaxed);
	p->generation++;
	p->contexts = 0;
	p->pid = 0;
	steer_forget(p);
	shmring_forget(&p->ring);
	state.open = 0;
	state.steered = 0;
	pthread_mutex_init(&state.lock, NULL);
}

/* `random` 0: none, as long as nobody else has taken that name. */
static void segment_name(uint32_t random)
{
	int n = snprintf(state.file, sizeof(state.file), NCI_FILE_PREFIX "%u.%d.%llu",
			 (unsigned int)getuid(), (int)getpid(),
			 (unsigned long long)identity_start_time(getpid()));

	if (random)
		snprintf(state.file + n, sizeof(state.file) - (size_t)n, ".%u", random);
}

static int segment_make(struct plugin_process *p)
{
	const char *dir = getenv("NCCLINSP_SHM_DIR");
	uint32_t random;
	int r;

	if (!dir || !*dir)
		dir = NCI_SHM_DIR;
	if (dir[0] != '/' || strlen(dir) >= sizeof(state.dir))
		return -EINVAL;		/* it must still be right when the process ends */
	strcpy(state.dir, dir);
	if (access(dir, F_OK) == 0 && !room_is_memory(dir))
		return -EMEDIUMTYPE;
	segment_name(0);
	sweep_dead(dir, state.file, (int64_t)(clock_ns(CLOCK_REALTIME) / 1000000000));
	r = shmring_create(&p->ring, dir, state.file);
	if (r == -EEXIST) {
		identity_random(&random, sizeof(random));
		segment_name(random | 1);
		r = shmring_create(&p->ring, dir, state.file);
	}
	if (r)
		return r;
	p->pid = getpid();
	p->clock = identity_clock();
	p->quick_states = p->clock == PROCESS_COUNTER ? NCCL_STATE_END : 0;
	identity_fill(p->ring.header, p->clock);
	p->ring.header->nonce = (uint32_t)(p->contexts >> 32);
	intern_begin(&p->names, &p->ring);
	return 0;
}

/* The upper half of a user's pointer is never this large: no foreign context fits. */
static void contexts_draw(struct plugin_process *p)
{
	uint32_t nonce;

	identity_random(&nonce, sizeof(nonce));
	p->contexts = nci_context(nonce | UINT32_C(1) << 31, 0);
	for (size_t i = 0; i < SHMRING_COMMS; i++)
		atomic_store_explicit(&p->open[i], 0, memory_order_relaxed);
}

/* Two threads of a communicator call us: one that posts, and one that drives the network. */
static void segment_make_room(struct plugin_process *p)
{
	uint32_t threads = 1 + 2 * (state.open + 1);

	if (threads > LANES_AHEAD)
		threads = LANES_AHEAD;
	if (!atomic_load_explicit(&p->wanted, memory_order_relaxed))
		threads = 0;
	if (p->ring.header)
		shmring_prepare(&p->ring, state.dir_bytes, threads);
}

/* No communicator is open: environment, version and libnccl itself may be new. */
static void process_begin(struct plugin_process *p, const struct process_comm *comm,
			  uint32_t nccl_version, bool is_rccl)
{
	if (p->pid && p->pid != getpid())
		process_forget_parent();	/* a fork that ran no handlers */
	if (!p->ring.header) {
		contexts_draw(p);
		state.error = segment_make(p);
		if (state.error)
			return;
		shmring_ready(&p->ring);
		atomic_store_explicit(&p->live, p->ring.live, memory_order_release);
		p->generation++;
	}
	if (is_rccl)
		atomic_fetch_or_explicit(&p->ring.live->flags, NCI_LIVE_RCCL,
					 memory_order_relaxed);
	intern_reset(&p->names);
	steer_begin(p, comm->version, nccl_version, state.shm_bytes);
}

#define LOG_AS(level) (level), NCCL_LOG_INIT | NCCL_LOG_PROFILE, __FILE__, __LINE__

/* Each communicator takes its own share of shared memory on its first KernelCh. */
static void comm_watch(struct plugin_process *p, const struct process_comm *comm)
{
	if (state.error || !steer_one_more(p, state.shm_bytes) || !comm->logger)
		return;
	comm->logger(LOG_AS(NCCL_LOG_INFO), "ncclinsp: kernels are not timed any more: too little "
		     "free in " NCI_SHM_DIR " for one more communicator");
}

static uint32_t comm_cut_name(struct nci_comm *entry, const char *name)
{
	size_t bytes = name ? strlen(name) : 0;

	if (bytes > sizeof(entry->name))
		bytes = sizeof(entry->name);
	if (bytes)
		memcpy(entry->name, name, bytes);
	return (uint32_t)bytes;
}

/* The next number whose entry is not in use; NCI_COMM_NONE: all are. */
static uint32_t comm_next_number(struct plugin_process *p)
{
	uint32_t first = atomic_load_explicit(&p->ring.live->comms, memory_order_relaxed);

	for (uint32_t n = first; n - first < SHMRING_COMMS; n++) {
		if (atomic_load_explicit(&p->open[n % SHMRING_COMMS], memory_order_relaxed))
			continue;
		/* Whoever sees the number given away finds its entry empty, or published. */
		atomic_store_explicit(&p->ring.comms[n % SHMRING_COMMS].published, 0,
				      memory_order_relaxed);
		atomic_store_explicit(&p->ring.live->comms, n + 1, memory_order_release);
		return n % NCI_COMM_NUMBERS;
	}
	PROCESS_COUNT(no_comm);
	return NCI_COMM_NONE;
}

/* gpu may be NULL.  Number of the communicator; NCI_COMM_NONE: it finds no room. */
static uint32_t comm_add(struct plugin_process *p, const struct process_comm *comm,
			 const struct gpu_identity *gpu)
{
	uint32_t number = p->ring.header ? comm_next_number(p) : NCI_COMM_NONE;
	struct nci_comm *entry;

	if (number == NCI_COMM_NONE)
		return NCI_COMM_NONE;
	entry = &p->ring.comms[number % SHMRING_COMMS];
	atomic_thread_fence(memory_order_release);	/* a copy of what comes has it empty */
	memset((uint8_t *)entry + sizeof(entry->published), 0,
	       sizeof(*entry) - sizeof(entry->published));
	entry->comm_id = comm->has_id ? comm->id : 0;
	entry->rank = comm->has_id ? comm->rank : -1;
	entry->nranks = comm->has_id ? comm->nranks : 0;
	entry->nnodes = comm->has_id ? comm->nnodes : 0;
	entry->name_bytes = comm_cut_name(entry, comm->name);
	entry->init = clock_ticks(p->clock);
	entry->flags = comm->has_id ? NCI_COMM_HAS_ID : 0;
	if (gpu) {
		memcpy(entry->gpu_uuid, gpu->uuid, sizeof(entry->gpu_uuid));
		memcpy(entry->pci_bus_id, gpu->bus_id, sizeof(entry->pci_bus_id));
		entry->flags |= NCI_COMM_HAS_GPU;
	}
	atomic_store_explicit(&entry->published, number + 1, memory_order_release);
	atomic_store_explicit(&p->open[number % SHMRING_COMMS], number + 1,
			      memory_order_release);
	return number;
}

bool process_was_open(uint32_t comm)
{
	const struct plugin_process *p = &process_self;
	uint32_t given = atomic_load_explicit(&p->ring.live->comms, memory_order_relaxed);

	return comm < NCI_COMM_NUMBERS && (given > NCI_COMM_NUMBERS || comm < given);
}

static void comms_count_open(struct plugin_process *p)
{
	if (p->ring.header)
		atomic_store_explicit(&p->ring.live->comms_open, state.open,
				      memory_order_relaxed);
}

static void report_muted(nccl_logger_fn *logger)
{
	const char *dir = *state.dir ? state.dir : "NCCLINSP_SHM_DIR";
	const char *why = state.error == -EMEDIUMTYPE ? "It is not in memory (tmpfs)" :
			  strerror(-state.error);

	if (state.told)
		return;
	if (logger)
		logger(LOG_AS(NCCL_LOG_WARN), "ncclinsp: nothing is recorded: %s: %s", dir, why);
	else
		dprintf(STDERR_FILENO, "ncclinsp: nothing is recorded: %s: %s\n", dir, why);
	state.told = true;
}

/* Once per first init.  NCCL's logger takes a lock of its own, never ours. */
static void report_begin(const struct plugin_process *p, nccl_logger_fn *logger)
{
	const struct plugin_steer *s = &p->steer;
	const char *kernels = s->mode == NCI_MODE_NEVER && s->seen & NCI_SEEN_API ?
			      ", kernels are not timed: NCCL is older than 2.28" :
			      s->seen & NCI_SEEN_SCARCE ?
			      ", kernels are not timed: too little free in " NCI_SHM_DIR : "";

	if (state.error) {
		report_muted(logger);
		return;
	}
	if (logger)
		logger(LOG_AS(NCCL_LOG_INFO),
		       "ncclinsp " NCCLINSP_VERSION ": active, level %s, events 0x%x%s, %s/%s%s",
		       level_name(s->now.level), s->now.mask, kernels, state.dir, state.file,
		       s->env.misspelt ? ", a variable with a bad value is ignored" : "");
}

static void report_end(nccl_logger_fn *logger, const struct plugin_process *p)
{
	uint64_t lines = 0, refused = 0;
	uint32_t lanes;

	if (!logger || !p->ring.header)
		return;
	lanes = atomic_load_explicit(&p->ring.live->lanes, memory_order_relaxed);
	for (uint32_t i = 0; i < lanes; i++) {
		const struct nci_lane *lane = &p->ring.directory[i];

		lines += atomic_load_explicit(&lane->end, memory_order_relaxed);
		refused += atomic_load_explicit(&lane->pool_full, memory_order_relaxed);
	}
	refused += atomic_load_explicit(&p->ring.live->no_lane, memory_order_relaxed);
	logger(LOG_AS(NCCL_LOG_INFO),
	       "ncclinsp: last communicator is gone, %llu lines from %u lanes, %llu events refused",
	       (unsigned long long)lines, lanes, (unsigned long long)refused);
}

static void mask_set(struct plugin_process *p, const struct process_comm *comm, uint32_t number,
		     int *mask)
{
	bool steered = false;

	if (state.error)
		__atomic_store_n(mask, 0, __ATOMIC_RELAXED);
	else
		steered = steer_mask(p, comm->version, mask);
	state.steered += steered;
	if (number != NCI_COMM_NONE)
		state.is_steered[number % SHMRING_COMMS] = steered;
}

/* An init finds these out about machine and libraries before it takes the lock for good. */
struct surroundings {
	bool fresh;		/* no look is needed: the last one will do */
	bool has_gpu;
	bool is_rccl;
	uint32_t nccl_version;
	uint64_t memory;
	struct gpu_identity gpu;
};

static void surroundings_ask(struct surroundings *s, const struct process_comm *comm)
{
	s->nccl_version = loaded_nccl_version(comm->caller);
	s->is_rccl = loaded_is_rccl((const void *)(uintptr_t)comm->logger);
	s->memory = room_in_cgroups();
	s->fresh = false;
}

/* Each communicator may have another GPU; cgroups may take a while. */
static void surroundings_look(struct surroundings *s, const struct process_comm *comm)
{
	bool no_driver;

	pthread_mutex_lock(&state.lock);
	s->fresh = state.open && state.looks_saved &&
		   clock_ns(CLOCK_MONOTONIC) - state.looked_ns < LOOK_NS;
	state.looks_saved -= s->fresh;
	no_driver = s->fresh && state.no_driver;
	pthread_mutex_unlock(&state.lock);
	s->has_gpu = !no_driver && gpu_identify(&s->gpu);
	if (!s->fresh)
		surroundings_ask(s, comm);
}

static void surroundings_keep(const struct surroundings *s)
{
	state.looked_ns = clock_ns(CLOCK_MONOTONIC);
	state.no_driver = !s->has_gpu;
	state.shm_bytes = room_in(NCI_SHM_DIR, s->memory);
}

/* The directory is known, once there is a segment. */
static void surroundings_keep_dir(const struct surroundings *s)
{
	uint64_t shm = state.shm_bytes;

	state.dir_bytes = room_in(state.dir, s->memory);
	state.looks_saved = (shm < state.dir_bytes ? shm : state.dir_bytes) / LOOK_BYTES;
}

/* Takes the lock, which is not held while the loader is asked. */
static void process_lock(struct surroundings *s, const struct process_comm *comm)
{
	pthread_mutex_lock(&state.lock);
	if (!s->fresh || state.open)
		return;
	pthread_mutex_unlock(&state.lock);
	surroundings_ask(s, comm);	/* the others have gone meanwhile */
	pthread_mutex_lock(&state.lock);
}

/* The lock is ours: true for the first communicator. */
static bool process_enter(struct plugin_process *p, const struct process_comm *comm,
			  struct surroundings *s)
{
	bool first = state.open == 0;

	if (!s->fresh)
		surroundings_keep(s);
	if (first)
		process_begin(p, comm, s->nccl_version, s->is_rccl);
	else
		comm_watch(p, comm);
	if (!s->fresh)
		surroundings_keep_dir(s);
	segment_make_room(p);
	return first;
}

uint64_t process_init(const struct process_comm *comm, int *mask)
{
	struct plugin_process *p = &process_self;
	struct surroundings s = { .has_gpu = false };
	uint64_t context;
	uint32_t number;
	bool first;

	forks_watch(&watches_forks, process_forget_parent);
	surroundings_look(&s, comm);
	process_lock(&s, comm);
	first = process_enter(p, comm, &s);
	number = comm_add(p, comm, s.has_gpu ? &s.gpu : NULL);
	if (number != NCI_COMM_NONE)
		state.logger[number % SHMRING_COMMS] = comm->logger;
	context = nci_context((uint32_t)(p->contexts >> 32), number);
	state.open++;
	comms_count_open(p);
	if (mask)
		mask_set(p, comm, number, mask);
	if (first)
		report_begin(p, comm->logger);
	pthread_mutex_unlock(&state.lock);
	tag_attach();
	return context;
}

/* True: that was an open communicator. */
static bool comm_close(struct plugin_process *p, uint64_t context)
{
	uint32_t number = nci_context_comm(context), i = number % SHMRING_COMMS;

	if (state.open == 0 || context >> 32 != p->contexts >> 32)
		return false;
	if (number == NCI_COMM_NONE)
		return true;
	if (!process_is_open(number))
		return false;
	atomic_store_explicit(&p->ring.comms[i].finalize, clock_ticks(p->clock),
			      memory_order_relaxed);
	atomic_fetch_add_explicit(&p->ring.live->comms_ended, 1, memory_order_release);
	atomic_store_explicit(&p->open[i], 0, memory_order_relaxed);
	return true;
}

/* NCCL's library may be unmapped when its last one is gone, whatever another NCCL has open. */
static void mask_forget(struct plugin_process *p, uint32_t number)
{
	bool last = number != NCI_COMM_NONE && state.is_steered[number % SHMRING_COMMS] &&
		    --state.steered == 0;

	if (last || state.open == 0)
		steer_end(p);
	if (state.open == 0)
		state.steered = 0;
}

void process_finalize(uint64_t context)
{
	struct plugin_process *p = &process_self;
	uint32_t number = nci_context_comm(context);

	pthread_mutex_lock(&state.lock);
	if (comm_close(p, context)) {
		state.open--;
		comms_count_open(p);
		mask_forget(p, number);
		if (state.open == 0 && number != NCI_COMM_NONE)
			report_end(state.logger[number % SHMRING_COMMS], p);
	}
	pthread_mutex_unlock(&state.lock);
}

struct shmring_lane *process_lane_slowly(struct process_thread *thread)
{
	struct plugin_process *p = &process_self;
	uint32_t generation = p->generation;
	const struct shmring_lane *lane;

	if (!atomic_load_explicit(&p->live, memory_order_acquire))
		return NULL;
	lane = shmring_lane_new(&p->ring, (pid_t)syscall(SYS_gettid));
	thread->lane = lane ? *lane : (struct shmring_lane){ 0 };
	thread->generation = generation;
	thread->usual = lane && p->clock == PROCESS_COUNTER ? generation : 0;
	return process_lane_known();
}
