/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_FIND_FILES_H
#define NCCLINSPD_FIND_FILES_H

/*
 * A row for each file that has a segment's name, for as long as it is there: so a broken one
 * is looked at once, not every time, and a new file under an old name (an exec, a reused pid)
 * is told apart by its inode.
 *
 * There are fewer rows than files that anybody may make.  A row of a live process, whose lock
 * the kernel names, stays; every other one makes room for a new file: that of the user who has
 * most of them, rubbish first.  A file without a row is met again by the next scan.
 */

#include "reader/read/segment.h"

struct shmdir;

enum file_state {
	FILE_NEW,		/* not ready yet; `seg` is open, or it could not be opened yet */
	FILE_WAITING,		/* waits for another one to end: too many are read */
	FILE_READ,		/* `seg` is attached */
	FILE_IGNORED,		/* broken, foreign, or read to its end */
};

struct file {
	char name[80];
	const struct shmdir *dir;	/* NULL: its container is gone */
	ino_t ino;
	uid_t uid;		/* its owner */
	uid_t account;		/* its owner's (accounts.h) */
	enum file_state state;
	bool held;		/* a live process holds it, as its only file here */
	pid_t holder;		/* process that holds it; 0: not known here */
	bool told;		/* it was read to its end: not to be read again */
	uint64_t since_ns;
	uint64_t asked_ns;	/* whether its process lives, or there is room by now */
	struct segment *seg;
	struct foreign foreign;	/* abi_major 0: the format is ours, or not known */
	bool there;		/* found by the scan in progress */
};

struct files {
	const struct shmdir *own;	/* the node's directory; others are containers' */
	uint32_t n, max;
	uint64_t no_row;	/* times that a file found none */
	struct file *row;
};

int files_init(struct files *files, const struct shmdir *own, uint32_t max);
/* Segments that are attached are not touched.  Zeroed is fine. */
void files_deinit(struct files *files);

struct file *files_find(struct files *files, const struct shmdir *dir, const char *name,
			ino_t ino);

/*
 * A new row, FILE_NEW, perhaps in place of another one; NULL: the user, or the container, has
 * its share, or all rows are of live processes.
 */
struct file *files_add(struct files *files, const struct shmdir *dir, const char *name,
		       ino_t ino, uid_t account);

/* A live process that has this number here holds one of the files. */
bool files_has_holder(const struct files *files, pid_t pid);

/* Say who holds it, by its segment, which is open; or that nobody is known to, if none is. */
void files_hold(struct files *files, struct file *f);

/* The number of files of that directory that are read now. */
uint32_t files_read_in(const struct files *files, const struct shmdir *dir);

/* The number of files that are not read because others are. */
uint32_t files_waiting(const struct files *files);

/* Begin and end a listing of that directory: what was not found is gone. */
void files_begin_scan(struct files *files, const struct shmdir *dir);
void files_end_scan(struct files *files, const struct shmdir *dir);

/* Leaves a directory that is gone; what is read of it is read to its end. */
void files_leave(struct files *files, const struct shmdir *dir);

/* The files in another format whose processes run, one after the other; *i is 0 at first. */
const struct foreign *files_next_foreign(const struct files *files, size_t *i);

#endif
