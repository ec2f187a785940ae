/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every file of the directory that has a segment's name has a row here for as
 * long as it is there: so a broken one is looked at once, not every time, and a
 * new file under an old name (an exec, a reused pid) is told apart by its inode.
 */
#include "ncclinspd/discover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ncclinspd/life.h"
#include "ncclinspd/shmdir.h"
#include "util/cleanup.h"
#include "util/log.h"

#define LIFE_NS		UINT64_C(100000000)	/* between two questions who lives */
#define FRESH_NS	UINT64_C(1000000)	/* to the first second look at a new file */
#define SCAN_NS		UINT64_C(3000000000)	/* between two scans of the directory */
#define READY_NS	UINT64_C(10000000000)	/* for a process to finish its segment */
#define FILES_PER_SEGMENT 4			/* rows for each segment that may be read */

enum file_state {
	FILE_NEW,		/* not ready yet; `seg` is open, or it could not be opened yet */
	FILE_WAITING,		/* for another one to end: too many are read */
	FILE_READ,		/* `seg` is attached */
	FILE_IGNORED,		/* broken, foreign, or read to its end */
};

struct file {
	char name[80];
	ino_t ino;
	enum file_state state;
	uint64_t since_ns;
	struct segment *seg;
	struct foreign foreign;	/* abi_major 0: the format is ours, or not known */
	bool there;		/* found by the scan in progress */
};

struct discover {
	struct loop *loop;
	struct drain *drain;
	struct names *names;
	struct discover_config config;
	struct discover_hooks hooks;
	struct shmdir dir;
	struct loop_timer life;
	struct loop_timer fresh;
	uint64_t fresh_wait_ns;
	uint64_t scan_ns;	/* when the next one is due */
	struct file *files;
	uint32_t nfiles, max_files;
	struct process **processes;	/* of attached and ended segments */
	uint32_t nprocesses, max_processes;
	uint32_t attached;
	uint64_t refused;
	uint64_t last_id;
	struct log_rate rate;
};

/* ---- processes ------------------------------------------------------------- */

static void call(void (*hook)(void *, struct process *, uint64_t),
		 const struct discover *d, struct process *p, uint64_t now_ns)
{
	if (hook)
		hook(d->hooks.arg, p, now_ns);
}

static void forget(struct discover *d, uint32_t i)
{
	struct process *p = d->processes[i];

	if (d->hooks.forgotten)
		d->hooks.forgotten(d->hooks.arg, p);
	drain_remove(d->drain, process_segment(p));
	segment_free(process_segment(p));
	d->nprocesses--;
	memmove(&d->processes[i], &d->processes[i + 1],
		(d->nprocesses - i) * sizeof(d->processes[0]));
}

/* Those that ended long ago, and the first of those that are too many. */
static void forget_old(struct discover *d, uint64_t now_ns)
{
	uint32_t ended = d->nprocesses - d->attached;

	for (uint32_t i = 0; i < d->nprocesses;) {
		const struct process *p = d->processes[i];

		if (p->state != PROCESS_LIVE && (ended > d->config.max_ended ||
						 now_ns - p->ended_ns >= d->config.keep_ns)) {
			forget(d, i);
			ended--;
		} else {
			i++;
		}
	}
}

static int attach(struct discover *d, struct file *f, uint64_t now_ns)
{
	struct process *p = &f->seg->process;
	int r = drain_add(d->drain, f->seg);

	if (r < 0)
		return r;
	p->id = ++d->last_id;
	p->first_seen_ns = now_ns;
	d->processes[d->nprocesses++] = p;
	d->attached++;
	f->state = FILE_READ;
	call(d->hooks.appeared, d, p, now_ns);
	return 0;
}

/* Nothing more will be read of it; its process stays listed for a while. */
static void detach(struct discover *d, struct file *f, enum process_state state,
		   uint64_t now_ns)
{
	struct segment *seg = f->seg;
	struct process *p = &seg->process;

	p->state = state;
	p->ended_ns = now_ns;
	call(d->hooks.ended, d, p, now_ns);
	drain_remove(d->drain, seg);
	segment_close(seg);
	d->attached--;
	f->seg = NULL;
	f->state = FILE_IGNORED;
	if (state == PROCESS_EXITED)
		f->ino = 0;	/* it unlinked its file, and the number may serve again */
}

/* A killed process leaves its file behind; it has told us all it can. */
static void remove_file(struct discover *d, struct file *f)
{
	struct stat st;

	if (fstatat(d->dir.fd, f->name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == f->ino &&
	    unlinkat(d->dir.fd, f->name, 0) == 0)
		f->ino = 0;
}

static void finish(struct discover *d, struct file *f, enum life life, uint64_t now_ns)
{
	bool died = life == LIFE_DIED;

	drain_finish(d->drain, f->seg);
	if (died)
		log_limited(&d->rate, now_ns, LOG_INFO,
			    "process died pid=%d command=%s in_flight=%u",
			    (int)f->seg->process.pid, f->seg->process.command,
			    f->seg->process.nlast_slots);
	detach(d, f, died ? PROCESS_DIED : PROCESS_EXITED, now_ns);
	if (died)
		remove_file(d, f);
}

/* A segment that was caught lying: its process is not ours to judge, and goes unlisted. */
static void drop(struct discover *d, struct file *f, uint64_t now_ns)
{
	uint32_t i = 0;

	log_limited(&d->rate, now_ns, LOG_WARN, "segment cannot be true, left alone file=%s",
		    f->name);
	while (d->processes[i] != &f->seg->process)
		i++;
	forget(d, i);
	d->attached--;
	d->refused++;
	f->seg = NULL;
	f->state = FILE_IGNORED;
}

/* ---- files ----------------------------------------------------------------- */

static void ignore(struct discover *d, struct file *f, enum log_level level, const char *why,
		   uint64_t now_ns)
{
	f->state = FILE_IGNORED;
	if (f->seg)
		f->foreign = f->seg->foreign;
	segment_free(f->seg);
	f->seg = NULL;
	d->refused++;
	log_limited(&d->rate, now_ns, level, "segment left alone file=%s reason=\"%s\"",
		    f->name, why);
}

/* No user may have more than three quarters of what can be read. */
static bool is_over_limit(const struct discover *d, const struct file *f)
{
	uint32_t limit = d->config.max_segments, of_user = 0;
	struct segment_name name;

	segment_parse_name(f->name, &name);
	for (uint32_t i = 0; i < d->nprocesses; i++)
		of_user += d->processes[i]->state == PROCESS_LIVE &&
			   d->processes[i]->uid == name.uid;
	return d->attached == limit || of_user >= limit - limit / 4;
}

/* What another look in a while may find changed. */
static bool is_passing(int outcome)
{
	return outcome == SEGMENT_NOT_READY || outcome == -EMFILE || outcome == -ENFILE ||
	       outcome == -ENOMEM;
}

static const char *reason(int outcome)
{
	if (outcome == SEGMENT_FOREIGN)
		return "its format is another version's, restart the older: job or daemon";
	if (outcome == SEGMENT_STALE)
		return "another boot";
	return outcome == SEGMENT_NOT_READY ? "was never ready" : strerror(-outcome);
}

static int open_file(struct discover *d, struct file *f)
{
	int r = f->seg ? 0 : segment_open(&f->seg, d->dir.fd, f->name, d->names);

	if (r < 0)
		return r;
	f->ino = f->seg->ino;
	return segment_check(f->seg);
}

static void try_open(struct discover *d, struct file *f, uint64_t now_ns)
{
	int r;

	if (is_over_limit(d, f)) {
		log_limited(&d->rate, now_ns, LOG_WARN, "too many segments limit=%u file=%s",
			    d->config.max_segments, f->name);
		d->refused += f->state != FILE_WAITING;
		f->state = FILE_WAITING;
		return;
	}
	r = open_file(d, f);
	if (r == 0)
		r = attach(d, f, now_ns);
	if (r == 0 || r == -ENOENT)
		return;		/* -ENOENT: the next scan drops the row */
	if (!is_passing(r) || now_ns - f->since_ns > READY_NS)
		ignore(d, f, r < 0 ? LOG_WARN : LOG_INFO, reason(r), now_ns);
}

static void check_life(struct discover *d, struct file *f, uint64_t now_ns)
{
	enum life life;

	if (f->seg->lies) {
		drop(d, f, now_ns);
		return;
	}
	life = life_of(f->seg);
	if (life != LIFE_ALIVE)
		finish(d, f, life, now_ns);
}

/* What to do about a file every LIFE_NS, by its state. */
static void (*const on_life[])(struct discover *, struct file *, uint64_t) = {
	[FILE_NEW] = try_open,
	[FILE_WAITING] = try_open,
	[FILE_READ] = check_life,
	[FILE_IGNORED] = NULL,
};

static struct file *find_file(struct discover *d, const char *name, ino_t ino)
{
	for (uint32_t i = 0; i < d->nfiles; i++)
		if (d->files[i].ino == ino && strcmp(d->files[i].name, name) == 0)
			return &d->files[i];
	return NULL;
}

/* No user may take more than half of the rows, so that nobody can blind us. */
static bool has_room(const struct discover *d, uid_t uid)
{
	uint32_t taken = 0;
	struct segment_name name;

	if (d->nfiles == d->max_files)
		return false;
	for (uint32_t i = 0; i < d->nfiles; i++)
		taken += segment_parse_name(d->files[i].name, &name) && name.uid == uid;
	return taken < d->max_files / 2;
}

static void look_soon(struct discover *d, uint64_t now_ns, uint64_t wait_ns)
{
	d->fresh_wait_ns = wait_ns;
	if (wait_ns < LIFE_NS)
		loop_arm(d->loop, &d->fresh, now_ns + wait_ns);
}

/* A file of that name is there. */
static void see(void *arg, const char *file, uint64_t now_ns)
{
	struct discover *d = arg;
	struct segment_name name;
	struct stat st;
	struct file *f;

	if (!segment_parse_name(file, &name) || strlen(file) >= sizeof(f->name))
		return;
	if (!d->config.everybody && name.uid != geteuid())
		return;
	if (fstatat(d->dir.fd, file, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	f = find_file(d, file, st.st_ino);
	if (!f) {
		if (!has_room(d, name.uid)) {
			log_limited(&d->rate, now_ns, LOG_WARN, "too many files uid=%u",
				    (unsigned)name.uid);
			return;
		}
		f = &d->files[d->nfiles++];
		*f = (struct file){ .ino = st.st_ino, .since_ns = now_ns };
		strcpy(f->name, file);
		try_open(d, f, now_ns);
	}
	f->there = true;
	if (f->state == FILE_NEW)
		look_soon(d, now_ns, FRESH_NS);
}

/* Rows whose file is gone; one that is open stays: its process may have exited quickly. */
static void sweep(struct discover *d)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < d->nfiles; i++)
		if (d->files[i].there || d->files[i].seg)
			d->files[kept++] = d->files[i];
	d->nfiles = kept;
}

/* ---- what happens when ------------------------------------------------------ */

static void scan(struct discover *d, uint64_t now_ns)
{
	for (uint32_t i = 0; i < d->nfiles; i++)
		d->files[i].there = false;
	if (shmdir_scan(&d->dir, now_ns) == 0)
		sweep(d);
}

void discover_look(struct discover *d, uint64_t now_ns)
{
	for (uint32_t i = 0; i < d->nfiles; i++)
		if (on_life[d->files[i].state])
			on_life[d->files[i].state](d, &d->files[i], now_ns);
	forget_old(d, now_ns);
	if (now_ns >= d->scan_ns || d->dir.missed) {
		scan(d, now_ns);
		d->scan_ns = now_ns + SCAN_NS;
	}
}

/*
 * A file is told of when it is made, which is a moment before it is ready; and a
 * process that begins with a burst overwrites its records within milliseconds.
 */
static void on_fresh_timer(void *arg, uint64_t now_ns)
{
	struct discover *d = arg;
	bool more = false;

	for (uint32_t i = 0; i < d->nfiles; i++) {
		struct file *f = &d->files[i];

		if (f->state != FILE_NEW || now_ns - f->since_ns > LIFE_NS)
			continue;
		try_open(d, f, now_ns);
		more |= f->state == FILE_NEW;
	}
	if (more)
		look_soon(d, now_ns, d->fresh_wait_ns * 2);
}

static void on_life_timer(void *arg, uint64_t now_ns)
{
	struct discover *d = arg;

	discover_look(d, now_ns);
	loop_arm(d->loop, &d->life, now_ns + LIFE_NS);
}

/* ---- from outside ---------------------------------------------------------- */

static void discover_freep(struct discover **d)
{
	discover_free(*d);
}

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
		.life = { .fn = on_life_timer, .arg = d },
		.fresh = { .fn = on_fresh_timer, .arg = d },
		.max_files = config->max_segments * FILES_PER_SEGMENT,
		.max_processes = config->max_segments + config->max_ended + 1,
	};
	shmdir_init(&d->dir, loop, config->dir, see, d);
	d->files = calloc(d->max_files, sizeof(d->files[0]));
	d->processes = calloc(d->max_processes, sizeof(d->processes[0]));
	if (!d->files || !d->processes)
		return -ENOMEM;
	on_life_timer(d, now_ns);
	*out = d;
	d = NULL;
	return 0;
}

void discover_free(struct discover *d)
{
	if (!d)
		return;
	loop_cancel(d->loop, &d->life);
	loop_cancel(d->loop, &d->fresh);
	shmdir_deinit(&d->dir);
	while (d->nprocesses)
		forget(d, d->nprocesses - 1);
	for (uint32_t i = 0; i < d->nfiles; i++)
		if (d->files[i].state != FILE_READ)
			segment_free(d->files[i].seg);
	free(d->processes);
	free(d->files);
	free(d);
}

size_t discover_processes(const struct discover *d, struct process *const **list)
{
	*list = d->processes;
	return d->nprocesses;
}

uint64_t discover_refused(const struct discover *d)
{
	return d->refused;
}

const struct foreign *discover_next_foreign(const struct discover *d, size_t *i)
{
	while (*i < d->nfiles) {
		const struct foreign *f = &d->files[(*i)++].foreign;

		if (f->abi_major && life_start_time(LIFE_PROC, f->host_pid) == f->start_time)
			return f;
	}
	return NULL;
}

uint32_t discover_attached(const struct discover *d)
{
	return d->attached;
}
