/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/find/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/find/life.h"

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

/*
 * So that nobody can blind us: no user takes more than half of the rows, and no container
 * a quarter of them, where one may be many users.
 */
static bool has_room(const struct files *files, const struct shmdir *dir, uid_t account)
{
	uint32_t of_user = 0, of_dir = 0;

	if (files->n == files->max)
		return false;
	for (uint32_t i = 0; i < files->n; i++) {
		of_user += files->row[i].account == account;
		of_dir += files->row[i].dir == dir;
	}
	return of_user < files->max / 2 && (dir == files->own || of_dir < files->max / 4);
}

struct file *files_add(struct files *files, const struct shmdir *dir, const char *name,
		       ino_t ino, uid_t account)
{
	struct file *f;

	if (strlen(name) >= sizeof(f->name) || !has_room(files, dir, account))
		return NULL;
	f = &files->row[files->n++];
	*f = (struct file){ .dir = dir, .ino = ino, .account = account };
	strcpy(f->name, name);
	return f;
}

uint32_t files_read_in(const struct files *files, const struct shmdir *dir)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < files->n; i++)
		n += files->row[i].state == FILE_READ && files->row[i].dir == dir;
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
