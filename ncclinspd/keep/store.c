/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is there whole or not at all, and the oldest make room: all system calls that
 * this takes are here, where they may block.
 */
#include "ncclinspd/keep/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ncclinspd/base/dirs.h"
#include "util/cleanup.h"
#include "util/zst.h"

#define TEMPORARY	".new"
#define EXPIRED_AT_ONCE	4	/* a clock that is wrong for a moment must not cost all there is */

void store_init(struct store *s, const char *dir, const char *prefix,
		const struct writer_limits *limits)
{
	*s = (struct store){ .fd = -1, .limits = *limits };
	snprintf(s->path, sizeof(s->path), "%s", dir);
	snprintf(s->prefix, sizeof(s->prefix), "%s", prefix);
	snprintf(s->temporary, sizeof(s->temporary), ".%.*s" TEMPORARY,
		 (int)strlen(s->prefix) - 1, s->prefix);
}

static int dir_open(struct store *s)
{
	int fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (s->fd >= 0)
		close(s->fd);
	s->fd = fd;
	return 0;
}

int store_open(struct store *s)
{
	int r;

	r = s->limits.made ? dirs_make(s->path, s->limits.made) : 0;
	if (r == 0)
		r = dir_open(s);
	if (r == 0)
		unlinkat(s->fd, s->temporary, 0);
	return r;
}

void store_close(struct store *s)
{
	if (s->fd < 0)
		return;
	if (s->limits.fleeting && *s->last)
		unlinkat(s->fd, s->last, 0);
	close(s->fd);
	s->fd = -1;
}

/* ---- one file ---------------------------------------------------------------------- */

static int file_write_all(int fd, const char *text, size_t bytes)
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

static int file_write_beside(const struct store *s, const char *name, const char *text,
			     size_t bytes)
{
	CLEANUP(cleanup_closep) int fd = -1;
	int r;

	fd = openat(s->fd, s->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		    s->limits.mode ? s->limits.mode : 0600);
	if (fd < 0)
		return -errno;
	r = file_write_all(fd, text, bytes);
	if (r == 0 && renameat(s->fd, s->temporary, s->fd, name) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(s->fd, s->temporary, 0);
	else
		fsync(s->fd);	/* best effort: the file itself is safe */
	return r;
}

/* Somebody may have taken the directory away: what is written there is nowhere then. */
static int dir_find(struct store *s)
{
	struct stat ours, there;

	if (s->fd < 0)
		return store_open(s);
	if (fstat(s->fd, &ours) == 0 && stat(s->path, &there) == 0 &&
	    ours.st_dev == there.st_dev && ours.st_ino == there.st_ino)
		return 0;
	mkdir(s->path, 0700);
	return dir_open(s);
}

static int text_compress(char **text, size_t *bytes)
{
	char *packed;
	int r = zst_compress(*text, *bytes, &packed, bytes);

	if (r < 0)
		return r;
	free(*text);
	*text = packed;
	return 0;
}

/* ---- the oldest make room -------------------------------------------------------------- */

/* The prefix of one host may be how that of another begins: "node1-", "node1-a-". */
static bool name_is_ours(const struct store *s, const char *name)
{
	static const char stamp[] = "00000000T000000.";
	size_t prefix = strlen(s->prefix);

	if (strncmp(name, s->prefix, prefix))
		return false;
	for (size_t i = 0; s->limits.stamped && stamp[i]; i++) {
		char c = name[prefix + i];

		if (stamp[i] == '0' ? c < '0' || c > '9' : c != stamp[i])
			return false;
	}
	return true;
}

int store_visit(const struct store *s, writer_visit_fn *visit, void *arg)
{
	int fd = openat(s->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir) {
		if (fd >= 0)
			close(fd);
		return -ENOTDIR;
	}
	while ((entry = readdir(dir))) {
		struct stat st;

		if (name_is_ours(s, entry->d_name) &&
		    fstatat(s->fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			visit(arg, entry->d_name, (uint64_t)st.st_size);
	}
	closedir(dir);
	return 0;
}

/*
 * A count of what there is: how many files, how large, and, beside the one just written,
 * which may go.
 */
struct survey {
	const char *written, *ahead;
	uint32_t files;
	uint64_t bytes;
	char oldest[NAME_MAX + 1];
	char astray[NAME_MAX + 1];	/* name from a clock that was ahead; "": none is */
};

static void survey_take_first(char first[NAME_MAX + 1], const char *name)
{
	if (!*first || strcmp(name, first) < 0)
		snprintf(first, NAME_MAX + 1, "%s", name);
}

static void survey_add(void *arg, const char *name, uint64_t bytes)
{
	struct survey *survey = arg;

	survey->files++;
	survey->bytes += bytes;
	if (!strcmp(name, survey->written))
		return;
	survey_take_first(survey->oldest, name);
	if (*survey->ahead && strcmp(name, survey->ahead) > 0)
		survey_take_first(survey->astray, name);
}

/* The file that is to go next, or NULL. */
static const char *survey_find_victim(const struct store *s, const struct survey *survey,
				      const char *expired, bool *is_expired)
{
	*is_expired = false;
	if (!*survey->oldest)
		return NULL;
	if (survey->files > s->limits.files || survey->bytes > s->limits.bytes)
		return *survey->astray ? survey->astray : survey->oldest;
	*is_expired = strcmp(survey->oldest, expired) < 0;
	return *is_expired ? survey->oldest : NULL;
}

/* The newest stays, however large it is, and whatever the clock said before. */
static void store_prune(const struct store *s, const char *expired, const char *ahead)
{
	for (int left = EXPIRED_AT_ONCE; s->limits.files && left;) {
		struct survey survey = { .written = s->last, .ahead = ahead };
		const char *victim;
		bool is_expired;

		if (store_visit(s, survey_add, &survey) < 0)
			return;
		victim = survey_find_victim(s, &survey, expired, &is_expired);
		if (!victim || unlinkat(s->fd, victim, 0) < 0)
			return;
		left -= is_expired;
	}
}

/* ---- from the thread ----------------------------------------------------------------- */

int store_write(struct store *s, const char *name, char **text, size_t bytes,
		const char *expired, const char *ahead)
{
	int r = 0;

	if (s->limits.compressed)
		r = text_compress(text, &bytes);
	if (r == 0)
		r = dir_find(s);
	if (r == 0)
		r = file_write_beside(s, name, *text, bytes);
	if (r < 0)
		return r;
	snprintf(s->last, sizeof(s->last), "%s", name);
	store_prune(s, expired, ahead);
	return 0;
}

int store_read(const struct store *s, const char *name, size_t most, char **text, size_t *bytes)
{
	CLEANUP(cleanup_closep) int fd = -1;
	CLEANUP(cleanup_freep) char *buffer = NULL;
	struct stat st;
	size_t used = 0, size;
	ssize_t n = 1;

	fd = openat(s->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -ENOENT;
	size = (uint64_t)st.st_size < most ? (size_t)st.st_size : most;
	buffer = malloc(size + 1);
	if (!buffer)
		return -ENOMEM;
	while (used < size && n) {
		n = read(fd, buffer + used, size - used);
		if (n < 0)
			return -errno;
		used += (size_t)n;
	}
	*text = buffer;
	*bytes = used;
	buffer = NULL;
	return 0;
}
