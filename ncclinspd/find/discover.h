/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FIND_DISCOVER_H
#define NCCLINSPD_FIND_DISCOVER_H

/*
 * Segments appear, end, and are removed.  inotify tells of new ones; a scan
 * every few seconds finds what it missed; their locks are asked for who died.
 */

#include "ncclinspd/base/loop.h"
#include "reader/base/model.h"
#include "reader/read/drain.h"

struct discover;

struct discover_config {
	const char *dir;	/* directory of the segments */
	bool everybody;		/* all users' segments, not only our own */
	bool containers;	/* segments also in shared memory that a container has for itself */
	uint32_t max_segments;	/* read at the same time */
	uint32_t max_ended;	/* remembered after their end */
	struct memory *memory;	/* the oldest of these go where it is tight; NULL: never */
	uint64_t keep_ns;	/* time kept; if it died, while others of a communicator live */
	struct accounts *accounts;	/* looked at with each scan; NULL: each uid is one */
};

/*
 * Callbacks for what happens to processes; each may be NULL.  `ended`: all of its records
 * were delivered, p->last_slots is filled in, p->state says how.  `forgotten`: after this
 * call the process is gone.
 */
struct discover_hooks {
	void (*appeared)(void *arg, struct process *p, uint64_t now_ns);
	void (*ended)(void *arg, struct process *p, uint64_t now_ns);
	void (*forgotten)(void *arg, struct process *p);
	void *arg;
};

/*
 * Start watching, and look at what is there already.  A directory that does not
 * exist is waited for.  Config and hooks are copied, the texts are not.
 */
int discover_new(struct discover **out, struct loop *loop, struct drain *drain,
		 struct names *names, const struct discover_config *config,
		 const struct discover_hooks *hooks, uint64_t now_ns);

/* Forgets every process (its hook is called); files stay. */
void discover_free(struct discover *d);

/*
 * Does the work of ten times a second: which processes live, what is ready now, what is to
 * be forgotten, and now and then a scan of the directory.
 */
void discover_look(struct discover *d, uint64_t now_ns);

/*
 * All that live and the last that ended, in the order in which they appeared:
 * returns how many.  The list holds until the loop's next callback.
 */
size_t discover_processes(const struct discover *d, struct process *const **list);

/*
 * Running processes whose segments are in a format of another major version, from *i = 0
 * on; NULL: no more.  What it returns holds until the loop's next callback.
 */
const struct foreign *discover_next_foreign(const struct discover *d, size_t *i);

/*
 * Processes that hold their segments and are not read, since there are too many, from *i = 0
 * on: whose the next one is.  False: no more.
 */
bool discover_next_waiting(const struct discover *d, size_t *i, uid_t *uid);

/* Times that a file was not looked at, because all of these rows were of live processes. */
uint64_t discover_no_row(const struct discover *d, uint32_t *rows);

/* Figures of the containers; zeros: they are not looked for. */
struct containers_stats;
void discover_containers(const struct discover *d, struct containers_stats *stats);

/* Segments left alone: foreign, broken, or over the limit. */
uint64_t discover_refused(const struct discover *d);

/* Segments being read now. */
uint32_t discover_attached(const struct discover *d);

#endif
