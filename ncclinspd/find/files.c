/* SPDX-License-Identifier: Apache-2.0 */
/* Anybody may make files without end, so a full table gives up the rows of the fullest user. */
#include "ncclinspd/find/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reader/base/accounts.h"
#include "reader/read/life.h"
#include "util/list.h"

int files_init(struct files *files, const struct shmdir *own, uint32_t max)
{
	*files = (struct files){ .own = own, .max = max };
	files->row = calloc(max, sizeof(files->row[0]));
	return files->row ? 0 : -ENOMEM;
}

void files_deinit(struct files *files)
{
	for (uint32_t i = 0; i < files->n; i++)
		if (files->row[i].state != FILE_READ)
			segment_free(files->row[i].seg);
	free(files->row);
	files->row = NULL;
	files->n = 0;
}

struct file *files_find(struct files *files, const struct shmdir *dir, const char *name,
			ino_t ino)
{
	for (uint32_t i = 0; i < files->n; i++) {
		struct file *f = &files->row[i];

		if (f->ino == ino && f->dir == dir && strcmp(f->name, name) == 0)
			return f;
	}
	return NULL;
}

/* The first to make room has the highest rank; 0: it stays. */
static int file_rank(const struct file *f)
{
	if (f->held || f->state == FILE_READ)
		return 0;
	if (f->told)
		return 1;	/* it would be news again */
	return f->state == FILE_NEW ? 2 : f->state == FILE_WAITING ? 3 : 4;
}

/* The account with most rows that can make room. */
static uid_t account_fullest(const struct files *files)
{
	struct accounts_tally t = { 0 };

	for (uint32_t i = 0; i < files->n; i++)
		*accounts_count(&t, files->row[i].account) += file_rank(&files->row[i]) > 0;
	return accounts_most(&t);
}

/* The limits that a new file meets: who has to make room for it. */
struct files_crowd {
	bool of_account;	/* its user has half of the rows */
	bool of_dir;		/* its container has a quarter of them */
	bool of_fullest;	/* all rows are in use */
	uid_t fullest;		/* account with most of them */
};

static bool crowd_has(const struct files_crowd *c, const struct file *f, const struct shmdir *dir,
		      uid_t account)
{
	return (!c->of_account || f->account == account) && (!c->of_dir || f->dir == dir) &&
	       (!c->of_fullest || accounts_are_same(f->account, c->fullest));
}

/* The oldest of the highest rank; NULL: all of them stay. */
static struct file *crowd_give_way(struct files *files, const struct files_crowd *c,
				   const struct shmdir *dir, uid_t account)
{
	struct file *first = NULL;

	for (uint32_t i = 0; i < files->n; i++) {
		struct file *f = &files->row[i];
		int rank = file_rank(f), best = first ? file_rank(first) : 0;

		if (rank && crowd_has(c, f, dir, account) &&
		    (rank > best || (rank == best && f->since_ns < first->since_ns)))
			first = f;
	}
	if (first)
		segment_free(first->seg);
	return first;
}

static struct file *files_find_room(struct files *files, const struct shmdir *dir, uid_t account)
{
	uint32_t of_account = 0, of_dir = 0;
	struct files_crowd c = { 0 };

	for (uint32_t i = 0; i < files->n; i++) {
		of_account += files->row[i].account == account;
		of_dir += files->row[i].dir == dir;
	}
	c.of_account = of_account >= files->max / 2;
	c.of_dir = dir != files->own && of_dir >= files->max / 4;
	c.of_fullest = !c.of_account && !c.of_dir && files->n == files->max;
	if (!c.of_account && !c.of_dir && !c.of_fullest)
		return list_take(files->row, &files->n, files->max, sizeof(files->row[0]));
	c.fullest = c.of_fullest ? account_fullest(files) : 0;
	return crowd_give_way(files, &c, dir, account);
}

struct file *files_add(struct files *files, const struct shmdir *dir, const char *name,
		       ino_t ino, uid_t account)
{
	struct file *f = strlen(name) < sizeof(f->name) ?
		files_find_room(files, dir, account) : NULL;

	if (!f) {
		files->no_row++;
		return NULL;
	}
	*f = (struct file){ .dir = dir, .ino = ino, .account = account };
	strcpy(f->name, name);
	return f;
}

bool files_has_holder(const struct files *files, pid_t pid)
{
	for (uint32_t i = 0; i < files->n; i++)
		if (files->row[i].held && files->row[i].holder == pid)
			return true;
	return false;
}

/* A process has one segment: any number of files that it locks would come before others'. */
void files_hold(struct files *files, struct file *f)
{
	pid_t holder = f->seg ? f->seg->host_pid : 0;

	f->held = false;
	f->held = f->seg && life_is_certain(f->seg) &&
		  !(holder && files_has_holder(files, holder));
	f->holder = f->held ? holder : 0;
}

uint32_t files_read_in(const struct files *files, const struct shmdir *dir)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < files->n; i++)
		n += files->row[i].state == FILE_READ && files->row[i].dir == dir;
	return n;
}

uint32_t files_waiting(const struct files *files)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < files->n; i++)
		n += files->row[i].state == FILE_WAITING;
	return n;
}

void files_begin_scan(struct files *files, const struct shmdir *dir)
{
	for (uint32_t i = 0; i < files->n; i++)
		files->row[i].there &= files->row[i].dir != dir;
}

/* A row whose segment is open stays: its process may have exited quickly. */
void files_end_scan(struct files *files, const struct shmdir *dir)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < files->n; i++) {
		const struct file *f = &files->row[i];

		if (f->there || f->seg || (f->dir && f->dir != dir))
			files->row[kept++] = *f;
	}
	files->n = kept;
}

void files_leave(struct files *files, const struct shmdir *dir)
{
	files_begin_scan(files, dir);
	files_end_scan(files, dir);
	for (uint32_t i = 0; i < files->n; i++)
		if (files->row[i].dir == dir)
			files->row[i].dir = NULL;
}

const struct foreign *files_next_foreign(const struct files *files, size_t *i)
{
	while (*i < files->n) {
		const struct foreign *f = &files->row[(*i)++].foreign;

		if (f->abi_major && life_start_time(LIFE_PROC, f->host_pid) == f->start_time)
			return f;
	}
	return NULL;
}
