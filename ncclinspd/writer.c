/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/zst.h"

#define DIRS		8
#define WAITING		4	/* files at a time, of each directory */
#define TEMPORARY	".new"

/* A file that is there. */
struct entry {
	char name[NAME_MAX + 1];
	uint64_t bytes;
};

struct stock {
	struct entry *at;
	uint32_t n, room;
};

struct writer_dir {
	struct writer *writer;
	int fd;
	char path[PATH_MAX];
	char prefix[96];
	char temporary[104];	/* what is being written; hidden */
	struct writer_limits limits;
	struct stock counted;		/* the thread's */
	/* by the writer's lock: */
	struct stock stock;
	unsigned waiting;
	char expired[NAME_MAX + 1];	/* what sorts before it is too old */
	struct writer_stats stats;
};

struct file {
	struct writer_dir *dir;
	char name[NAME_MAX + 1];
	char expired[NAME_MAX + 1];
	char *text;
	size_t bytes;
};

struct writer {
	unsigned ndirs;
	pthread_t thread;
	bool running;
	pthread_mutex_t lock;	/* of what follows */
	pthread_cond_t given, done;
	struct file waiting[DIRS * WAITING];
	unsigned n;
	bool stop;
};

/* ---- one file, in the thread ---------------------------------------------------- */

static int write_all(int fd, const char *text, size_t bytes)
{
	while (bytes) {
		ssize_t n = write(fd, text, bytes);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		text += n;
		bytes -= (size_t)n;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

static int write_beside(const struct file *file)
{
	const struct writer_dir *d = file->dir;
	const char *temporary = d->temporary;
	CLEANUP(cleanup_closep) int fd = -1;
	int r;

	fd = openat(d->fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		    d->limits.mode ? d->limits.mode : 0600);
	if (fd < 0)
		return -errno;
	r = write_all(fd, file->text, file->bytes);
	if (r == 0 && renameat(d->fd, temporary, d->fd, file->name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(d->fd, temporary, 0);
	else
		fsync(d->fd);	/* best effort: the file itself is safe */
	return r;
}

/* Somebody took the directory away.  The descriptor keeps its number: others read it. */
static bool make_dir_again(const struct writer_dir *d)
{
	CLEANUP(cleanup_closep) int fd = -1;

	mkdir(d->path, 0700);
	fd = open(d->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd >= 0 && dup3(fd, d->fd, O_CLOEXEC) >= 0;
}

static int write_file(struct file *file)
{
	char *packed;
	size_t bytes;
	int r;

	if (file->dir->limits.compressed) {
		r = zst_compress(file->text, file->bytes, &packed, &bytes);
		if (r < 0)
			return r;
		free(file->text);
		file->text = packed;
		file->bytes = bytes;
	}
	r = write_beside(file);
	if (r == -ENOENT && make_dir_again(file->dir))
		r = write_beside(file);
	return r;
}

/* ---- the oldest make room --------------------------------------------------------- */

static int walk(const struct writer_dir *d, writer_visit_fn *visit, void *arg)
{
	int fd = openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return -ENOTDIR;
	}
	while ((entry = readdir(dir))) {
		struct stat st;

		if (!strncmp(entry->d_name, d->prefix, strlen(d->prefix)) &&
		    fstatat(d->fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			visit(arg, entry->d_name, (uint64_t)st.st_size);
	}
	closedir(dir);
	return 0;
}

/* What there is: how many, how large, and the name that sorts first. */
struct survey {
	uint32_t files;
	uint64_t bytes;
	char oldest[NAME_MAX + 1];
};

static void add_to_survey(void *arg, const char *name, uint64_t bytes)
{
	struct survey *s = arg;

	s->files++;
	s->bytes += bytes;
	if (!*s->oldest || strcmp(name, s->oldest) < 0)
		snprintf(s->oldest, sizeof(s->oldest), "%s", name);
}

/* The newest stays, however large it is. */
static void prune(const struct writer_dir *d, const char *expired)
{
	while (d->limits.files) {
		struct survey s = { 0 };

		if (walk(d, add_to_survey, &s) < 0 || s.files <= 1 ||
		    (s.files <= d->limits.files && s.bytes <= d->limits.bytes &&
		     strcmp(s.oldest, expired) >= 0) ||
		    unlinkat(d->fd, s.oldest, 0) < 0)
			return;
	}
}

static void add_to_stock(void *arg, const char *name, uint64_t bytes)
{
	struct stock *stock = arg;

	if (stock->n == stock->room)
		return;
	stock->at[stock->n].bytes = bytes;
	snprintf(stock->at[stock->n++].name, NAME_MAX + 1, "%s", name);
}

static void take_stock(struct writer_dir *d)
{
	d->counted.n = 0;
	if (!d->counted.room)
		return;
	walk(d, add_to_stock, &d->counted);
}

static void show_stock(struct writer_dir *d)
{
	struct stock shown = d->stock;

	d->stock = d->counted;
	d->counted = shown;
}

/* ---- the thread --------------------------------------------------------------------- */

/* The file stays first in the queue while it is written. */
static void *run(void *arg)
{
	struct writer *w = arg;

	pthread_mutex_lock(&w->lock);
	for (;;) {
		struct file file;
		int r;

		while (!w->n && !w->stop)
			pthread_cond_wait(&w->given, &w->lock);
		if (!w->n)
			break;
		file = w->waiting[0];
		pthread_mutex_unlock(&w->lock);
		r = write_file(&file);
		if (r == 0)
			prune(file.dir, file.expired);
		take_stock(file.dir);
		free(file.text);
		pthread_mutex_lock(&w->lock);
		memmove(w->waiting, w->waiting + 1, --w->n * sizeof(w->waiting[0]));
		show_stock(file.dir);
		file.dir->stats.written += r == 0;
		file.dir->stats.failed += r < 0;
		file.dir->stats.error = r < 0 ? r : file.dir->stats.error;
		file.dir->stats.failing = r;
		file.dir->waiting--;
		pthread_cond_signal(&w->done);
	}
	pthread_mutex_unlock(&w->lock);
	return NULL;
}

/* Signals are for the main thread. */
static int start_thread(struct writer *w)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(&w->thread, NULL, run, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	w->running = r == 0;
	return -r;
}

/* ---- the loop's side ----------------------------------------------------------------- */

int writer_put(struct writer_dir *d, const char *name, char *text, size_t bytes)
{
	struct file file = { .dir = d, .text = text, .bytes = bytes };
	struct writer *w = d->writer;
	int r = -EBUSY;

	snprintf(file.name, sizeof(file.name), "%s", name);
	pthread_mutex_lock(&w->lock);
	snprintf(file.expired, sizeof(file.expired), "%s", d->expired);
	if (d->waiting < WAITING) {
		d->waiting++;
		w->waiting[w->n++] = file;
		pthread_cond_signal(&w->given);
		r = 0;
	}
	pthread_mutex_unlock(&w->lock);
	if (r < 0)
		free(text);
	return r;
}

void writer_expire(struct writer_dir *d, const char *name)
{
	pthread_mutex_lock(&d->writer->lock);
	snprintf(d->expired, sizeof(d->expired), "%s", name);
	pthread_mutex_unlock(&d->writer->lock);
}

void writer_read_stats(struct writer_dir *d, struct writer_stats *out)
{
	pthread_mutex_lock(&d->writer->lock);
	*out = d->stats;
	pthread_mutex_unlock(&d->writer->lock);
}

void writer_visit(struct writer_dir *d, writer_visit_fn *visit, void *arg)
{
	pthread_mutex_lock(&d->writer->lock);
	for (uint32_t i = 0; i < d->stock.n; i++)
		visit(arg, d->stock.at[i].name, d->stock.at[i].bytes);
	pthread_mutex_unlock(&d->writer->lock);
}

int writer_open(const struct writer_dir *d, const char *name)
{
	int fd = openat(d->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

/* ---- directories ----------------------------------------------------------------------- */

static int init_stock(struct stock *stock, const struct writer_limits *limits)
{
	stock->room = limits->files;
	if (!limits->files)
		return 0;
	stock->at = calloc(limits->files, sizeof(*stock->at));
	return stock->at ? 0 : -ENOMEM;
}

static void close_dirp(struct writer_dir **dp)
{
	writer_close_dir(*dp);
}

int writer_open_dir(struct writer_dir **dp, struct writer *w, const char *dir,
		    const char *prefix, const struct writer_limits *limits)
{
	CLEANUP(close_dirp) struct writer_dir *d = NULL;

	if (w->ndirs == DIRS)
		return -ENOSPC;
	d = calloc(1, sizeof(*d));
	if (!d)
		return -ENOMEM;
	d->writer = w;
	w->ndirs++;
	d->limits = *limits;
	snprintf(d->prefix, sizeof(d->prefix), "%s", prefix);
	snprintf(d->temporary, sizeof(d->temporary), ".%.*s" TEMPORARY,
		 (int)strlen(d->prefix) - 1, d->prefix);
	snprintf(d->path, sizeof(d->path), "%s", dir);
	d->fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->fd < 0)
		return -errno;
	if (init_stock(&d->stock, limits) < 0 || init_stock(&d->counted, limits) < 0)
		return -ENOMEM;
	unlinkat(d->fd, d->temporary, 0);	/* of a daemon that was killed */
	take_stock(d);
	show_stock(d);
	*dp = d;
	d = NULL;
	return 0;
}

void writer_close_dir(struct writer_dir *d)
{
	if (!d)
		return;
	pthread_mutex_lock(&d->writer->lock);
	while (d->waiting)
		pthread_cond_wait(&d->writer->done, &d->writer->lock);
	pthread_mutex_unlock(&d->writer->lock);
	d->writer->ndirs--;
	if (d->fd >= 0)
		close(d->fd);
	free(d->counted.at);
	free(d->stock.at);
	free(d);
}

int writer_new(struct writer **wp)
{
	struct writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->given, NULL);
	pthread_cond_init(&w->done, NULL);
	r = start_thread(w);
	if (r < 0)
		writer_free(w);
	else
		*wp = w;
	return r;
}

void writer_free(struct writer *w)
{
	if (!w)
		return;
	if (w->running) {
		pthread_mutex_lock(&w->lock);
		w->stop = true;
		pthread_cond_signal(&w->given);
		pthread_mutex_unlock(&w->lock);
		pthread_join(w->thread, NULL);
	}
	pthread_cond_destroy(&w->done);
	pthread_cond_destroy(&w->given);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
