/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FIND_CONTAINERS_H
#define NCCLINSPD_FIND_CONTAINERS_H

/*
 * Shared memory that containers have for themselves.  A process in another mount
 * namespace may have another /dev/shm than we; it is opened through /proc/<pid>/root, once
 * for each such directory, and held until nobody is left who has it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "ncclinspd/find/shmdir.h"

struct containers;

struct containers_config {
	const char *proc;	/* path of procfs */
	bool everybody;		/* all users' containers, not only our own */
};

struct containers_stats {
	uint32_t found;		/* directories that are held now */
	uint32_t unseen;	/* processes of containers that we may not look into */
	uint64_t left_out;	/* directories, namespaces and processes beyond what is looked at */
};

/* `gone`: nobody has that directory any more; it is closed behind this. */
typedef void containers_gone(void *arg, const struct shmdir *dir);

/* `own`: the node's directory, which is none of a container.  `gone` gets `arg`. */
int containers_new(struct containers **out, const struct containers_config *config,
		   struct shmwatch *watch, const struct shmdir *own, containers_gone *gone,
		   void *arg);
void containers_free(struct containers *c);

/*
 * Go through the processes of the node.  What is new is looked at, as many as a call may:
 * true if there are more.
 */
bool containers_look(struct containers *c, uint64_t now_ns);

/* One after the other, *at being 0 at first; NULL: that was all. */
struct shmdir *containers_next(struct containers *c, uint32_t *at);

void containers_read_stats(const struct containers *c, struct containers_stats *stats);

#endif
