/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes a file in a directory, by its row (files.h), to a process that is read, and to its
 * end.
 */
#include "ncclinspd/find/discover.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ncclinspd/find/cgroup.h"
#include "ncclinspd/find/containers.h"
#include "ncclinspd/find/ended.h"
#include "ncclinspd/find/files.h"
#include "ncclinspd/find/shmdir.h"
#include "reader/base/accounts.h"
#include "reader/base/beneath.h"
#include "reader/base/memory.h"
#include "reader/read/life.h"
#include "util/cleanup.h"
#include "util/list.h"
#include "util/log.h"

#define LIFE_NS		LOOP_TURN_NS		/* between two questions who lives */
#define TURN		16	/* processes asked for at each; more take turns ... */
#define DYING_NS	UINT64_C(1000000000)	/* ... unless one has ended just now */
#define FRESH_NS	UINT64_C(1000000)	/* to the first second look at a new file */
#define SCAN_NS		UINT64_C(3000000000)	/* between two scans of the directory */
#define READY_NS	UINT64_C(10000000000)	/* time for a process to finish its segment */
#define FILES_PER_SEGMENT 4			/* rows for each segment that may be read */

struct discover {
	struct loop *loop;
	struct drain *drain;
	struct names *names;
	struct discover_config config;
	struct discover_hooks hooks;
	struct shmwatch watch;
	struct shmdir dir;
	struct containers *containers;	/* NULL: they are not looked for */
	struct loop_timer life;
	struct loop_timer fresh;
	uint64_t fresh_wait_ns;
	uint64_t since_ns;	/* we are here */
	uint64_t scan_ns;	/* when the next one is due */
	bool more;		/* processes, that could not yet be looked at for containers */
	struct files files;
	/*
	 * Processes of attached and ended segments.  Invariant: at most max_segments are
	 * attached, and at most max_ended have ended, but while one more is being looked
	 * at.
	 */
	LIST(struct process *) processes;
	uint32_t attached;
	uint32_t waiting;	/* files, at the last look */
	uint64_t ended_ns;	/* one was found to have, last */
	uint64_t refused;
	uint64_t last_id;
	struct log_rate rate;
};

/* ---- processes ------------------------------------------------------------- */

static void hook_call(void (*hook)(void *, struct process *, uint64_t),
		      const struct discover *d, struct process *p, uint64_t now_ns)
{
	if (hook)
		hook(d->hooks.arg, p, now_ns);
}

static void process_forget(struct discover *d, uint32_t i)
{
	struct process *p;

	assert(i < d->processes.n);
	p = d->processes.at[i];
	if (d->hooks.forgotten)
		d->hooks.forgotten(d->hooks.arg, p);
	drain_remove(d->drain, process_segment(p));
	segment_free(process_segment(p));
	list_remove(&d->processes, i);
}

static bool process_is_due(const struct discover *d, const struct process *p, uint64_t now_ns)
{
	uint64_t since_ns = p->awaited_ns ? p->awaited_ns : p->ended_ns;

	return p->state != PROCESS_LIVE && now_ns - since_ns >= d->config.keep_ns;
}

/* Runs at every end: more can end between two looks than there is room for. */
static void process_forget_first(struct discover *d)
{
	while (d->processes.n - d->attached > d->config.max_ended)
		process_forget(d,
			       ended_first(d->processes.at, d->processes.n, d->config.max_ended));
}

/* Forgets what ended long ago.  A call looks at one process that died, which takes time. */
static void process_forget_old(struct discover *d, uint64_t now_ns)
{
	bool looked = false;

	for (uint32_t i = 0; i < d->processes.n;) {
		struct process *p = d->processes.at[i];

		if (!process_is_due(d, p, now_ns) || (looked && p->state == PROCESS_DIED)) {
			i++;
			continue;
		}
		looked |= p->state == PROCESS_DIED;
		if (p->state == PROCESS_DIED &&
		    ended_is_awaited(d->processes.at, d->processes.n, p))
			p->awaited_ns = now_ns;
		else
			process_forget(d, i);
	}
}

/* One at each look: what follows may be enough. */
static void process_forget_where_tight(struct discover *d)
{
	struct memory *memory = d->config.memory;

	if (!memory || !memory->tight)
		return;
	for (uint32_t i = 0; i < d->processes.n; i++) {
		const struct process *p = d->processes.at[i];

		if (p->state == PROCESS_LIVE || !memory_is_tight_for(memory, p->account))
			continue;
		process_forget(d, i);
		memory->forgotten++;
		break;
	}
	memory->tight = false;
}

static int file_attach(struct discover *d, struct file *f, uint64_t now_ns)
{
	struct process *p = &f->seg->process, **place;
	int r = drain_add(d->drain, f->seg);

	if (r < 0)
		return r;
	place = list_add(&d->processes);
	if (!place) {
		drain_remove(d->drain, f->seg);
		return -ENOSPC;
	}
	*place = p;
	p->id = ++d->last_id;
	p->first_seen_ns = now_ns;
	p->contained |= f->dir != &d->dir;
	if (p->proven)
		cgroup_identify(p, LIFE_PROC, p->pid);
	d->attached++;
	f->state = FILE_READ;
	hook_call(d->hooks.appeared, d, p, now_ns);
	return 0;
}

/* Nothing more will be read of it; its process stays listed for a while. */
static void file_detach(struct discover *d, struct file *f, enum process_state state,
			uint64_t now_ns)
{
	struct segment *seg = f->seg;
	struct process *p = &seg->process;

	p->state = state;
	p->ended_ns = now_ns;
	hook_call(d->hooks.ended, d, p, now_ns);
	drain_remove(d->drain, seg);
	segment_close(seg);
	d->attached--;
	f->seg = NULL;
	f->held = false;
	f->state = FILE_IGNORED;
	if (state == PROCESS_EXITED)
		f->ino = 0;	/* it unlinked its file, and the number may serve again */
	process_forget_first(d);
}

/*
 * A killed process leaves its file behind; it has told us all it can.  In a container nothing
 * is touched: the next plugin there removes it, or it goes with the container.
 */
static void file_remove(struct discover *d, struct file *f)
{
	struct stat st;

	if (f->dir != &d->dir)
		return;
	if (beneath_stat(d->dir.fd, f->name, &st) == 0 && st.st_ino == f->ino &&
	    unlinkat(d->dir.fd, f->name, 0) == 0)
		f->ino = 0;
}

static void file_finish(struct discover *d, struct file *f, enum life life, uint64_t now_ns)
{
	bool died = life == LIFE_DIED;

	drain_finish(d->drain, f->seg);
	if (died)
		log_limited(&d->rate, now_ns, LOG_INFO,
			    "process died pid=%d command=%s in_flight=%u",
			    (int)f->seg->process.pid, f->seg->process.command,
			    f->seg->process.nlast_slots);
	file_detach(d, f, died ? PROCESS_DIED : PROCESS_EXITED, now_ns);
	f->told = true;
	if (died)
		file_remove(d, f);
}

/* Its process goes unlisted, without an end. */
static void file_unlist(struct discover *d, struct file *f, enum file_state state)
{
	uint32_t i = 0;

	while (i < d->processes.n && d->processes.at[i] != &f->seg->process)
		i++;
	process_forget(d, i);
	d->attached--;
	f->seg = NULL;
	f->state = state;
}

/* A segment that was caught lying: its process is not ours to judge. */
static void file_drop(struct discover *d, struct file *f, uint64_t now_ns)
{
	log_limited(&d->rate, now_ns, LOG_WARN, "segment refused, it is damaged or forged file=%s",
		    f->name);
	file_unlist(d, f, FILE_IGNORED);
	f->held = false;
	d->refused++;
}

/* ---- files ----------------------------------------------------------------- */

static void file_leave(struct file *f, enum file_state state)
{
	segment_free(f->seg);
	f->seg = NULL;
	f->state = state;
}

static void file_ignore(struct discover *d, struct file *f, enum log_level level, const char *why,
			uint64_t now_ns)
{
	if (f->seg)
		f->foreign = f->seg->foreign;
	file_leave(f, FILE_IGNORED);
	d->refused++;
	log_limited(&d->rate, now_ns, level, "segment skipped file=%s reason=\"%s\"",
		    f->name, why);
}

/* The limits that stand in the way of one more file. */
struct files_limits {
	struct accounts_tally read;		/* live processes */
	bool user, container, all;	/* limits that are reached */
};

/* No user may have more than three quarters of what can be read, no container more than one. */
static bool limits_find(const struct discover *d, const struct file *f, struct files_limits *l)
{
	uint32_t limit = d->config.max_segments;

	*l = (struct files_limits){ .all = d->attached == limit };
	for (uint32_t i = 0; i < d->processes.n; i++)
		*accounts_count(&l->read, d->processes.at[i]->account) +=
			d->processes.at[i]->state == PROCESS_LIVE;
	l->user = *accounts_count(&l->read, f->account) >= limit - limit / 4;
	l->container = f->dir != &d->dir && files_read_in(&d->files, f->dir) >= limit / 4;
	return l->user || l->container || l->all;
}

/*
 * The other file may have to go for this one if no live process is known to hold it, or if
 * its user would still have no less than this file's user.
 */
static bool limits_push_out(struct files_limits *l, const struct file *f, const struct file *other)
{
	if (other->state != FILE_READ || (l->container && other->dir != f->dir) ||
	    (l->user && other->account != f->account))
		return false;
	return !other->held || *accounts_count(&l->read, other->account) >
			       *accounts_count(&l->read, f->account) + 1;
}

/* A file that nobody holds goes before others, then the newest of the user with most files. */
static bool file_goes_before(struct files_limits *l, const struct file *f, const struct file *than)
{
	uint32_t n, of_than;

	if (!than || f->held != than->held)
		return !than || !f->held;
	n = *accounts_count(&l->read, f->account);
	of_than = *accounts_count(&l->read, than->account);
	return n > of_than || (n == of_than && f->seg->process.id > than->seg->process.id);
}

/* Read to its end, if it has one; else nothing more is read of a process that goes on. */
static void file_let_go(struct discover *d, struct file *f, uint64_t now_ns)
{
	enum life life = life_of(f->seg);

	log_limited(&d->rate, now_ns, LOG_WARN,
		    "too many processes, one is not read any more pid=%d uid=%u file=%s",
		    (int)f->seg->process.pid, (unsigned)f->uid, f->name);
	if (life == LIFE_ALIVE)
		file_unlist(d, f, FILE_WAITING);
	else
		file_finish(d, f, life, now_ns);
}

/* True: there is room, if need be since another one had to go. */
static bool file_make_room(struct discover *d, const struct file *f, uint64_t now_ns)
{
	struct file *first = NULL;
	struct files_limits l;

	if (!limits_find(d, f, &l))
		return true;
	for (uint32_t i = 0; f->held && i < d->files.n; i++) {
		struct file *other = &d->files.row[i];

		if (limits_push_out(&l, f, other) && file_goes_before(&l, other, first))
			first = other;
	}
	if (!first)
		return false;
	file_let_go(d, first, now_ns);
	return !limits_find(d, f, &l);
}

static int file_open(struct discover *d, struct file *f)
{
	int r = f->seg ? 0 : segment_open(&f->seg, f->dir ? f->dir->fd : -1, f->name, d->names);

	if (r < 0)
		return r;
	f->seg->memory = d->config.memory;
	f->ino = f->seg->ino;
	f->seg->process.account = f->account;
	r = segment_check(f->seg);
	files_hold(&d->files, f);
	return r;
}

/*
 * Files of dead processes stay in a container.  The daemon before has told of a file that
 * is older than this daemon: it would be news again with each of us.
 */
static bool file_is_old_story(const struct discover *d, const struct file *f)
{
	uint64_t made_ns = f->seg->process.first_mono_ns;

	return f->dir != &d->dir && made_ns && made_ns < d->since_ns &&
	       life_of(f->seg) == LIFE_DIED;
}

static void file_wait_for_room(struct discover *d, struct file *f, uint64_t now_ns)
{
	log_limited(&d->rate, now_ns, LOG_WARN,
		    "too many processes, one is not read limit=%u file=%s",
		    d->config.max_segments, f->name);
	d->refused += f->state != FILE_WAITING;
	file_leave(f, FILE_WAITING);
}

static void file_try_open(struct discover *d, struct file *f, uint64_t now_ns)
{
	int r = file_open(d, f);

	if (r == 0 && file_is_old_story(d, f)) {
		file_leave(f, FILE_IGNORED);
		f->told = true;
	} else if (r == 0 && !file_make_room(d, f, now_ns)) {
		file_wait_for_room(d, f, now_ns);
	} else if (r == 0) {
		r = file_attach(d, f, now_ns);
	}
	if (r == 0 || r == -ENOENT)
		return;		/* -ENOENT: the next scan drops the row */
	if (!segment_is_passing(r) || now_ns - f->since_ns > READY_NS)
		file_ignore(d, f, r < 0 ? LOG_WARN : LOG_INFO, segment_reason(r), now_ns);
}

/* Some of `n` files are asked after at each look, all of them in turns. */
static bool file_is_turn(struct file *f, uint32_t n, uint64_t now_ns)
{
	if (now_ns < f->asked_ns + n / TURN * LIFE_NS)
		return false;
	f->asked_ns = now_ns;
	return true;
}

static void file_try_again(struct discover *d, struct file *f, uint64_t now_ns)
{
	if (file_is_turn(f, d->waiting, now_ns) && file_make_room(d, f, now_ns))
		file_try_open(d, f, now_ns);
}

/* A row that stays because a process held its file: does one still? */
static uint32_t file_ask_again(struct discover *d, struct file *f)
{
	const struct foreign *other = &f->foreign;

	if (f->state == FILE_IGNORED && f->held)
		f->held = other->abi_major &&
			  life_start_time(LIFE_PROC, other->host_pid) == other->start_time;
	if (f->state != FILE_WAITING)
		return SHMDIR_STAT;
	if (file_open(d, f) < 0)
		files_hold(&d->files, f);
	file_leave(f, FILE_WAITING);
	return SHMDIR_OPEN;
}

/*
 * A process has one segment, the one that it holds.  Another one is from before an exec, under
 * another name, or was never a plugin's; its file stays, and is not read again.
 */
static bool file_is_superseded(const struct discover *d, const struct file *f)
{
	return !f->held && f->seg->host_pid && files_has_holder(&d->files, f->seg->host_pid);
}

static void file_check_life(struct discover *d, struct file *f, uint64_t now_ns)
{
	enum life life;
	ino_t ino = f->ino;

	if (f->seg->lies) {
		file_drop(d, f, now_ns);
		return;
	}
	if (!file_is_turn(f, d->attached, now_ns) && now_ns >= d->ended_ns + DYING_NS)
		return;
	life = life_of(f->seg);
	if (f->held != life_is_certain(f->seg))
		files_hold(&d->files, f);
	if (life != LIFE_ALIVE) {
		d->ended_ns = now_ns;
		file_finish(d, f, life, now_ns);
	} else if (file_is_superseded(d, f)) {
		file_finish(d, f, LIFE_EXITED, now_ns);
		f->ino = ino;
	}
}

/* Actions on a file every LIFE_NS, by its state. */
static void (*const on_life[])(struct discover *, struct file *, uint64_t) = {
	[FILE_NEW] = file_try_open,
	[FILE_WAITING] = file_try_again,
	[FILE_READ] = file_check_life,
	[FILE_IGNORED] = NULL,
};

static void discover_look_soon(struct discover *d, uint64_t now_ns, uint64_t wait_ns)
{
	d->fresh_wait_ns = wait_ns;
	if (wait_ns < LIFE_NS)
		loop_arm(d->loop, &d->fresh, now_ns + wait_ns);
}

/* A file that has no row yet gets one, if there is any, and is opened. */
static struct file *file_meet(struct discover *d, struct shmdir *dir, const char *file,
			      const struct stat *st, uint64_t now_ns)
{
	struct file *f = files_add(&d->files, dir, file, st->st_ino,
				   accounts_of(d->config.accounts, st->st_uid));

	if (!f) {
		log_limited(&d->rate, now_ns, LOG_WARN, "too many files, one is skipped uid=%u",
			    (unsigned)st->st_uid);
		return NULL;
	}
	f->uid = st->st_uid;
	f->since_ns = now_ns;
	file_try_open(d, f, now_ns);
	return f;
}

/* One that has a row, or gets one; NULL: it is not looked at. */
static struct file *file_find(struct discover *d, struct shmdir *dir, const char *file,
			      uint32_t *cost, uint64_t now_ns)
{
	struct stat st;
	struct file *f;

	*cost = SHMDIR_STAT;
	if (beneath_stat(dir->fd, file, &st) < 0 ||
	    (!d->config.everybody && st.st_uid != geteuid()))
		return NULL;
	f = files_find(&d->files, dir, file, st.st_ino);
	if (f) {
		*cost = file_ask_again(d, f);
		return f;
	}
	f = file_meet(d, dir, file, &st, now_ns);
	if (f)
		*cost = SHMDIR_OPEN;
	return f;
}

/* A file of that name is there; of one that is read, its number is all that need be known. */
static uint32_t file_see(void *arg, struct shmdir *dir, const char *file, ino_t ino,
			 uint64_t now_ns)
{
	struct discover *d = arg;
	struct segment_name name;
	uint32_t cost = 0;
	struct file *f;

	if (!segment_parse_name(file, &name))
		return 0;
	f = ino ? files_find(&d->files, dir, file, ino) : NULL;
	if (!f || f->state != FILE_READ)
		f = file_find(d, dir, file, &cost, now_ns);
	if (!f)
		return cost;
	f->there = true;
	if (f->state == FILE_NEW)
		discover_look_soon(d, now_ns, FRESH_NS);
	return cost;
}

/* ---- what happens when ------------------------------------------------------ */

/* The directory may come later, or again: said once each time, for nothing else would show it. */
static void scan_tell(struct discover *d, struct shmdir *dir, int r, uint64_t now_ns)
{
	if (r == dir->error || !dir->path)
		return;
	if (r < 0)
		log_limited(&d->rate, now_ns, LOG_WARN,
			    "no jobs are seen, trying again shm-dir=%s error=\"%s\"", dir->path,
			    strerror(-r));
	else
		log_limited(&d->rate, now_ns, LOG_INFO, "jobs are seen from now on shm-dir=%s",
			    dir->path);
	dir->error = r;
}

/* Another slice of a scan that is not through, and a new one where one is wanted. */
static void dir_scan(struct discover *d, struct shmdir *dir, bool wanted, uint32_t work,
		     uint64_t now_ns)
{
	int r;

	dir->missed |= wanted;
	if (!dir->list && !dir->missed)
		return;
	if (!dir->list)
		files_begin_scan(&d->files, dir);
	r = shmdir_scan(dir, work, now_ns);
	if (r == SHMDIR_MORE) {
		log_limited(&d->rate, now_ns, LOG_WARN,
			    "many files in %s, looking at some at a time",
			    dir->path ? dir->path : "a container's shared memory");
		return;
	}
	if (!r)
		files_end_scan(&d->files, dir);
	scan_tell(d, dir, r, now_ns);
}

static void dir_on_gone(void *arg, const struct shmdir *dir)
{
	struct discover *d = arg;

	files_leave(&d->files, dir);
}

static void discover_scan(struct discover *d, uint64_t now_ns)
{
	bool all = now_ns >= d->scan_ns;
	struct shmdir *dir;
	uint32_t at = 0;

	if (all)
		d->scan_ns = now_ns + SCAN_NS;
	if (all && d->config.accounts)
		accounts_look(d->config.accounts);
	dir_scan(d, &d->dir, all, SHMDIR_WORK, now_ns);
	if (!d->containers)
		return;
	if (all || d->more)
		d->more = containers_look(d->containers, now_ns);
	while ((dir = containers_next(d->containers, &at)))
		dir_scan(d, dir, all, SHMDIR_WORK_IN, now_ns);
}

/* Look at files that a live process holds, or at all others. */
static void discover_look_at_files(struct discover *d, bool held, uint64_t now_ns)
{
	for (uint32_t i = 0; i < d->files.n; i++) {
		struct file *f = &d->files.row[i];

		if (f->held == held && on_life[f->state])
			on_life[f->state](d, f, now_ns);
	}
}

void discover_look(struct discover *d, uint64_t now_ns)
{
	d->waiting = files_waiting(&d->files);
	discover_look_at_files(d, true, now_ns);
	discover_look_at_files(d, false, now_ns);
	process_forget_old(d, now_ns);
	process_forget_where_tight(d);
	discover_scan(d, now_ns);
}

/*
 * A file is told of when it is made, which is a moment before it is ready; and a
 * process that begins with a burst overwrites its records within milliseconds.
 */
static void discover_on_fresh_timer(void *arg, uint64_t now_ns)
{
	struct discover *d = arg;
	bool more = false;

	for (uint32_t i = 0; i < d->files.n; i++) {
		struct file *f = &d->files.row[i];

		if (f->state != FILE_NEW || now_ns - f->since_ns > LIFE_NS)
			continue;
		file_try_open(d, f, now_ns);
		more |= f->state == FILE_NEW;
	}
	if (more)
		discover_look_soon(d, now_ns, d->fresh_wait_ns * 2);
}

static void discover_on_life_timer(void *arg, uint64_t now_ns)
{
	struct discover *d = arg;

	discover_look(d, now_ns);
	loop_arm(d->loop, &d->life, loop_next_turn_ns(now_ns));
}

/* ---- from outside ---------------------------------------------------------- */

/* Worth having, not worth failing for. */
static void discover_look_for_containers(struct discover *d)
{
	const struct containers_config config = { LIFE_PROC, d->config.everybody };
	int r = containers_new(&d->containers, &config, &d->watch, &d->dir, dir_on_gone, d);

	if (r < 0)
		log_say(LOG_WARN, "containers are not watched error=\"%s\"", strerror(-r));
}

CLEANUP_DEFINE(discover_free, struct discover)

int discover_new(struct discover **out, struct loop *loop, struct drain *drain,
		 struct names *names, const struct discover_config *config,
		 const struct discover_hooks *hooks, uint64_t now_ns)
{
	CLEANUP(discover_freep) struct discover *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	*d = (struct discover){
		.loop = loop,
		.drain = drain,
		.names = names,
		.config = *config,
		.hooks = *hooks,
		.since_ns = now_ns,
		.life = { .fn = discover_on_life_timer, .arg = d },
		.fresh = { .fn = discover_on_fresh_timer, .arg = d },
	};
	shmwatch_init(&d->watch, loop, file_see, d);
	shmdir_init(&d->dir, &d->watch, config->dir);
	if (list_init(&d->processes, config->max_segments + config->max_ended + 1) < 0 ||
	    files_init(&d->files, &d->dir, config->max_segments * FILES_PER_SEGMENT) < 0)
		return -ENOMEM;
	if (config->containers)
		discover_look_for_containers(d);
	discover_on_life_timer(d, now_ns);
	*out = DISOWN(d);
	return 0;
}

void discover_free(struct discover *d)
{
	if (!d)
		return;
	loop_cancel(d->loop, &d->life);
	loop_cancel(d->loop, &d->fresh);
	containers_free(d->containers);
	shmdir_deinit(&d->dir);
	shmwatch_deinit(&d->watch);
	while (d->processes.n)
		process_forget(d, d->processes.n - 1);
	files_deinit(&d->files);
	list_deinit(&d->processes);
	free(d);
}

size_t discover_processes(const struct discover *d, struct process *const **list)
{
	*list = d->processes.at;
	return d->processes.n;
}

void discover_containers(const struct discover *d, struct containers_stats *stats)
{
	*stats = (struct containers_stats){ 0 };
	if (d->containers)
		containers_read_stats(d->containers, stats);
}

uint64_t discover_refused(const struct discover *d)
{
	return d->refused;
}

const struct foreign *discover_next_foreign(const struct discover *d, size_t *i)
{
	return files_next_foreign(&d->files, i);
}

bool discover_next_waiting(const struct discover *d, size_t *i, uid_t *uid)
{
	while (*i < d->files.n) {
		const struct file *f = &d->files.row[(*i)++];

		if (f->state != FILE_WAITING || !f->held)
			continue;
		*uid = f->uid;
		return true;
	}
	return false;
}

uint64_t discover_no_row(const struct discover *d, uint32_t *rows)
{
	*rows = d->files.max;
	return d->files.no_row;
}

uint32_t discover_attached(const struct discover *d)
{
	return d->attached;
}
