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

#define WAITING		4	/* files at a time */
#define TEMPORARY	".new"

struct file {
	char name[NAME_MAX + 1];
	char *text;
	size_t bytes;
};

struct writer {
	int dir;
	char prefix[32];
	struct writer_limits limits;
	pthread_t thread;
	bool running;
	pthread_mutex_t lock;	/* of what follows */
	pthread_cond_t changed;
	struct file waiting[WAITING];
	unsigned n;
	bool stop;
	struct writer_stats stats;
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

static int write_file(const struct writer *w, const struct file *file)
{
	char temporary[sizeof(w->prefix) + sizeof(TEMPORARY)];
	CLEANUP(cleanup_closep) int fd = -1;
	int r;

	snprintf(temporary, sizeof(temporary), ".%.*s" TEMPORARY, (int)strlen(w->prefix) - 1,
		 w->prefix);
	fd = openat(w->dir, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	r = write_all(fd, file->text, file->bytes);
	if (r == 0 && renameat(w->dir, temporary, w->dir, file->name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(w->dir, temporary, 0);
	else
		fsync(w->dir);	/* best effort: the file itself is safe */
	return r;
}

/* ---- the oldest make room --------------------------------------------------------- */

/* What there is: how many, how large, and the name that sorts first. */
struct survey {
	uint32_t files;
	uint64_t bytes;
	char oldest[NAME_MAX + 1];
};

static int survey(const struct writer *w, struct survey *out)
{
	int fd = openat(w->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	*out = (struct survey){ 0 };
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return -ENOTDIR;
	}
	while ((entry = readdir(dir))) {
		struct stat st;

		if (strncmp(entry->d_name, w->prefix, strlen(w->prefix)) ||
		    fstatat(w->dir, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		out->files++;
		out->bytes += (uint64_t)st.st_size;
		if (!*out->oldest || strcmp(entry->d_name, out->oldest) < 0)
			snprintf(out->oldest, sizeof(out->oldest), "%s", entry->d_name);
	}
	closedir(dir);
	return 0;
}

/* The newest stays, however large it is. */
static void prune(const struct writer *w)
{
	struct survey s;

	while (survey(w, &s) == 0 && s.files > 1 &&
	       (s.files > w->limits.files || s.bytes > w->limits.bytes))
		if (unlinkat(w->dir, s.oldest, 0) < 0)
			return;
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
			pthread_cond_wait(&w->changed, &w->lock);
		if (!w->n)
			break;
		file = w->waiting[0];
		pthread_mutex_unlock(&w->lock);
		r = write_file(w, &file);
		if (r == 0)
			prune(w);
		free(file.text);
		pthread_mutex_lock(&w->lock);
		memmove(w->waiting, w->waiting + 1, --w->n * sizeof(w->waiting[0]));
		w->stats.written += r == 0;
		w->stats.failed += r < 0;
		w->stats.error = r < 0 ? r : w->stats.error;
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

int writer_put(struct writer *w, const char *name, char *text, size_t bytes)
{
	struct file file = { .text = text, .bytes = bytes };
	int r = -EBUSY;

	snprintf(file.name, sizeof(file.name), "%s", name);
	pthread_mutex_lock(&w->lock);
	if (w->n < WAITING) {
		w->waiting[w->n++] = file;
		pthread_cond_signal(&w->changed);
		r = 0;
	}
	pthread_mutex_unlock(&w->lock);
	if (r < 0)
		free(text);
	return r;
}

void writer_read_stats(struct writer *w, struct writer_stats *out)
{
	pthread_mutex_lock(&w->lock);
	*out = w->stats;
	pthread_mutex_unlock(&w->lock);
}

static void writer_freep(struct writer **wp)
{
	writer_free(*wp);
}

int writer_new(struct writer **wp, const char *dir, const char *prefix,
	       const struct writer_limits *limits)
{
	CLEANUP(writer_freep) struct writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->limits = *limits;
	snprintf(w->prefix, sizeof(w->prefix), "%s", prefix);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->changed, NULL);
	w->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (w->dir < 0)
		return -errno;
	r = start_thread(w);
	if (r < 0)
		return r;
	*wp = w;
	w = NULL;
	return 0;
}

void writer_free(struct writer *w)
{
	if (!w)
		return;
	if (w->running) {
		pthread_mutex_lock(&w->lock);
		w->stop = true;
		pthread_cond_signal(&w->changed);
		pthread_mutex_unlock(&w->lock);
		pthread_join(w->thread, NULL);
	}
	if (w->dir >= 0)
		close(w->dir);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}
