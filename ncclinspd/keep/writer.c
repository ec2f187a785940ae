/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop's side and the thread of a directory.  What they share is under the lock,
 * which nobody holds while the disk is asked.
 *
 * A file is there whole or not at all, and the oldest make room: all system calls that
 * this takes are here, where they may block.
 */
#include "ncclinspd/keep/writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ncclinspd/base/dirs.h"
#include "ncclinspd/base/thread.h"
#include "shmring/clock.h"
#include "util/cleanup.h"
#include "util/list.h"
#include "util/log.h"
#include "util/zst.h"

#define TEMPORARY	".new"
#define EXPIRED_AT_ONCE	4	/* a clock that is wrong for a moment must not cost all there is */
#define WAITING		4	/* files at a time */
#define OUTCOMES	8	/* newest outcomes that are remembered */
#define OPEN_NS		UINT64_C(1000000000)	/* a directory may take to answer at first */
#define READ_NS		UINT64_C(200000000)	/* ns for which the caller is held up at most */
#define CLOSE_NS	UINT64_C(5000000000)
#define HANGS_NS	UINT64_C(10000000000)
#define STEP_NS		UINT64_C(2000000000)	/* the most that passes from one look to the next */

/* The directory, as the thread handles it: each call for it may block as long as a disk likes. */
struct store {
	int fd;			/* -1: not open */
	char path[PATH_MAX];
	char prefix[96];
	char temporary[104];	/* name of the file that is being written; hidden */
	char last[NAME_MAX + 1];	/* name of the file that was written last; "": nothing */
	struct writer_limits limits;
};

/* A file that is there. */
struct writer_entry {
	char name[NAME_MAX + 1];
	uint64_t bytes;
};

struct stock {
	LIST(struct writer_entry);
};

struct writer_file {
	char name[NAME_MAX + 1];
	char expired[NAME_MAX + 1];
	char ahead[NAME_MAX + 1];
	char *text;
	size_t bytes;
};

/* A request to read a file; it is another turn's by now if its caller has gone away. */
struct writer_reading {
	uint64_t turn;
	bool wanted, done;
	char name[NAME_MAX + 1];
	size_t most;
	int result;
	char *text;
	size_t bytes;
};

struct writer {
	struct store store;		/* the thread's */
	struct stock counted;		/* the thread's */
	pthread_t thread;
	bool running;			/* the loop's */
	uint64_t watched, looked_ns;	/* the loop's: `through`, and when it looked last */
	uint64_t stuck_ns;		/* the loop's: for how long that has been so */
	pthread_mutex_t lock;		/* lock of all that follows */
	pthread_cond_t given, done;
	struct stock stock;
	struct writer_file waiting[WAITING];
	uint32_t n;
	struct writer_reading reading;
	char expired[NAME_MAX + 1];	/* files that sort before it are too old */
	char ahead[NAME_MAX + 1];	/* files that sort after it were never true; "": all were */
	struct writer_stats stats;
	uint64_t taken, through;	/* files that were given; that the thread is done with */
	int outcome[OUTCOMES];		/* results of the newest of these, by their numbers */
	bool opened, busy, stop, left, finished;
	int open_error;
};

/* ---- the directory ------------------------------------------------------------------ */

static void store_init(struct store *s, const char *dir, const char *prefix,
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
	cleanup_closep(&s->fd);
	s->fd = fd;
	return 0;
}

/* Opens the directory, and removes what a daemon that was killed had half written. */
static int store_open(struct store *s)
{
	int r;

	r = s->limits.made ? dirs_make(s->path, s->limits.made) : 0;
	if (r == 0)
		r = dir_open(s);
	if (r == 0)
		unlinkat(s->fd, s->temporary, 0);
	return r;
}

/* Closes it, and removes what is not to stay. */
static void store_close(struct store *s)
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

/* -ENOTDIR: it cannot be read. */
static int store_visit(const struct store *s, writer_visit_fn *visit, void *arg)
{
	CLEANUP(cleanup_closedirp) DIR *dir = dirs_list(s->fd);
	struct dirent *entry;

	if (!dir)
		return -ENOTDIR;
	while ((entry = readdir(dir))) {
		struct stat st;

		if (name_is_ours(s, entry->d_name) &&
		    fstatat(s->fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			visit(arg, entry->d_name, (uint64_t)st.st_size);
	}
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

/*
 * `*text` (malloc'ed) is compressed in place where that is wanted.  What sorts before
 * `expired` goes, a few at a time, and others as far as the limits want: first what sorts
 * after `ahead` ("": nothing does), then the oldest, this one never.  0 or a negative errno.
 */
static int store_write(struct store *s, const char *name, char **text, size_t bytes,
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

static int store_read(const struct store *s, const char *name, size_t most, char **text,
		      size_t *bytes)
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

/* ---- ends ----------------------------------------------------------------------------- */

static void writer_release(struct writer *w)
{
	for (unsigned i = 0; i < w->n; i++)
		free(w->waiting[i].text);
	free(w->reading.text);
	free(w->counted.at);
	free(w->stock.at);
	pthread_cond_destroy(&w->done);
	pthread_cond_destroy(&w->given);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* ---- the thread ------------------------------------------------------------------------ */

static void stock_add(void *arg, const char *name, uint64_t bytes)
{
	struct writer_entry *entry = list_add((struct stock *)arg);

	if (!entry)
		return;
	entry->bytes = bytes;
	snprintf(entry->name, sizeof(entry->name), "%s", name);
}

static void stock_take(struct writer *w)
{
	w->counted.n = 0;
	if (w->counted.room)
		store_visit(&w->store, stock_add, &w->counted);
}

static void stock_show(struct writer *w)
{
	struct stock shown = w->stock;

	w->stock = w->counted;
	w->counted = shown;
}

/* The file stays first in the queue while it is written. */
static void writer_write_first(struct writer *w)
{
	struct writer_file file = w->waiting[0];
	int r;

	pthread_mutex_unlock(&w->lock);
	r = store_write(&w->store, file.name, &file.text, file.bytes, file.expired,
			file.ahead);
	stock_take(w);
	free(file.text);
	pthread_mutex_lock(&w->lock);
	array_remove(w->waiting, &w->n, 0);
	stock_show(w);
	w->outcome[++w->through % OUTCOMES] = r;
	w->stats.written += r == 0;
	w->stats.failed += r < 0;
	w->stats.error = r < 0 ? r : w->stats.error;
	w->stats.failing = r;
}

static void writer_read_wanted(struct writer *w)
{
	struct writer_reading mine = w->reading;
	char *text = NULL;
	size_t bytes = 0;
	int r;

	w->reading.wanted = false;
	pthread_mutex_unlock(&w->lock);
	r = store_read(&w->store, mine.name, mine.most, &text, &bytes);
	pthread_mutex_lock(&w->lock);
	if (w->reading.turn != mine.turn) {
		free(text);
		return;
	}
	w->reading.done = true;
	w->reading.result = r;
	w->reading.text = text;
	w->reading.bytes = bytes;
}

static void writer_open_store(struct writer *w)
{
	int r = store_open(&w->store);

	if (r == 0)
		stock_take(w);
	pthread_mutex_lock(&w->lock);
	stock_show(w);
	w->opened = true;
	w->open_error = r;
	w->stats.failing = r;
	pthread_cond_broadcast(&w->done);
}

static void *writer_run(void *arg)
{
	struct writer *w = arg;
	bool left;

	writer_open_store(w);
	for (;;) {
		while (!w->n && !w->reading.wanted && !w->stop)
			pthread_cond_wait(&w->given, &w->lock);
		if (!w->n && !w->reading.wanted)
			break;
		w->busy = true;
		if (w->reading.wanted)
			writer_read_wanted(w);
		else
			writer_write_first(w);
		w->busy = false;
		pthread_cond_broadcast(&w->done);
	}
	pthread_mutex_unlock(&w->lock);
	store_close(&w->store);
	pthread_mutex_lock(&w->lock);
	w->finished = true;
	left = w->left;
	pthread_cond_broadcast(&w->done);
	pthread_mutex_unlock(&w->lock);
	if (left)
		writer_release(w);
	return NULL;
}

static int thread_start(struct writer *w)
{
	int r = thread_begin(&w->thread, writer_run, w);

	w->running = r == 0;
	return r;
}

/* ---- the loop's side ----------------------------------------------------------------- */

/* Waits until `*flag`, or the time is over.  Called under the lock. */
static bool writer_wait_for(struct writer *w, const bool *flag, uint64_t wait_ns)
{
	uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + wait_ns;

	while (!*flag && thread_wait(&w->done, &w->lock, until_ns))
		;
	return *flag;
}

static void writer_count_failure(struct writer *w, int error)
{
	w->stats.failed++;
	w->stats.error = error;
	if (!w->stats.failing && error != -EBUSY)	/* busy alone says that all is well there */
		w->stats.failing = error;
}

int writer_put(struct writer *w, const char *name, char *text, size_t bytes)
{
	struct writer_file file = { .text = text, .bytes = bytes }, *place;
	int r = -EBUSY;

	snprintf(file.name, sizeof(file.name), "%s", name);
	pthread_mutex_lock(&w->lock);
	snprintf(file.expired, sizeof(file.expired), "%s", w->expired);
	snprintf(file.ahead, sizeof(file.ahead), "%s", w->ahead);
	place = array_add(w->waiting, &w->n);
	if (place) {
		*place = file;
		w->taken++;
		pthread_cond_signal(&w->given);
		r = 0;
	} else {
		writer_count_failure(w, r);
	}
	pthread_mutex_unlock(&w->lock);
	if (r < 0)
		free(text);
	return r;
}

uint64_t writer_last(struct writer *w)
{
	uint64_t ticket;

	pthread_mutex_lock(&w->lock);
	ticket = w->taken;
	pthread_mutex_unlock(&w->lock);
	return ticket;
}

int writer_outcome(struct writer *w, uint64_t ticket)
{
	int r;

	pthread_mutex_lock(&w->lock);
	r = w->through < ticket ? -EAGAIN : w->outcome[ticket % OUTCOMES];
	pthread_mutex_unlock(&w->lock);
	return r;
}

bool writer_is_full(struct writer *w)
{
	bool full;

	pthread_mutex_lock(&w->lock);
	full = w->n == WAITING;
	pthread_mutex_unlock(&w->lock);
	return full;
}

void writer_miss(struct writer *w, int error)
{
	pthread_mutex_lock(&w->lock);
	writer_count_failure(w, error);
	pthread_mutex_unlock(&w->lock);
}

void writer_expire(struct writer *w, const char *name)
{
	pthread_mutex_lock(&w->lock);
	snprintf(w->expired, sizeof(w->expired), "%s", name);
	pthread_mutex_unlock(&w->lock);
}

void writer_distrust(struct writer *w, const char *name)
{
	pthread_mutex_lock(&w->lock);
	snprintf(w->ahead, sizeof(w->ahead), "%s", name);
	pthread_mutex_unlock(&w->lock);
}

/* A step that is longer is the daemon's own absence: stopped, suspended or without a CPU. */
void writer_watch(struct writer *w, uint64_t now_ns)
{
	uint64_t step_ns = w->looked_ns ? now_ns - w->looked_ns : 0;

	pthread_mutex_lock(&w->lock);
	w->looked_ns = now_ns;
	w->stuck_ns += step_ns < STEP_NS ? step_ns : STEP_NS;
	if ((!w->n && w->opened) || w->through != w->watched)
		w->stuck_ns = 0;
	else if (w->stuck_ns >= HANGS_NS)
		w->stats.failing = w->stats.error = -ETIMEDOUT;
	w->watched = w->through;
	pthread_mutex_unlock(&w->lock);
}

void writer_read_stats(struct writer *w, struct writer_stats *out)
{
	pthread_mutex_lock(&w->lock);
	*out = w->stats;
	pthread_mutex_unlock(&w->lock);
}

void writer_visit(struct writer *w, writer_visit_fn *visit, void *arg)
{
	pthread_mutex_lock(&w->lock);
	for (uint32_t i = 0; i < w->stock.n; i++)
		visit(arg, w->stock.at[i].name, w->stock.at[i].bytes);
	pthread_mutex_unlock(&w->lock);
}

int writer_read(struct writer *w, const char *name, size_t most, char **text, size_t *bytes)
{
	struct writer_reading *reading = &w->reading;
	int r = -EAGAIN;

	pthread_mutex_lock(&w->lock);
	if (w->opened && !w->busy && !w->n) {
		*reading = (struct writer_reading){ .turn = reading->turn, .wanted = true,
						    .most = most };
		snprintf(reading->name, sizeof(reading->name), "%s", name);
		pthread_cond_signal(&w->given);
		if (writer_wait_for(w, &reading->done, READ_NS)) {
			r = reading->result;
			*text = reading->text;
			*bytes = reading->bytes;
		}
		*reading = (struct writer_reading){ .turn = reading->turn + 1 };
	}
	pthread_mutex_unlock(&w->lock);
	return r;
}

/* ---- life ------------------------------------------------------------------------------ */

static int stock_init(struct stock *stock, const struct writer_limits *limits)
{
	return limits->files ? list_init(stock, limits->files) : 0;
}

static void writer_init_sync(struct writer *w)
{
	pthread_mutex_init(&w->lock, NULL);
	thread_condition(&w->given);
	thread_condition(&w->done);
}

CLEANUP_DEFINE(writer_close, struct writer)

int writer_open(struct writer **wp, const char *dir, const char *prefix,
		const struct writer_limits *limits)
{
	CLEANUP(writer_closep) struct writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	writer_init_sync(w);
	store_init(&w->store, dir, prefix, limits);
	if (stock_init(&w->stock, limits) < 0 || stock_init(&w->counted, limits) < 0)
		return -ENOMEM;
	r = thread_start(w);
	if (r < 0)
		return r;
	pthread_mutex_lock(&w->lock);
	if (writer_wait_for(w, &w->opened, OPEN_NS))
		r = w->open_error;
	pthread_mutex_unlock(&w->lock);
	if (r < 0)
		return r;
	*wp = DISOWN(w);
	return 0;
}

/* It has had its time, or has nothing that could be lost.  Called under the lock. */
static bool thread_hangs(const struct writer *w)
{
	return w->stats.failing == -ETIMEDOUT || (!w->opened && !w->n);
}

/* False: the thread is left to itself, with what it needs. */
static bool thread_stop(struct writer *w)
{
	pthread_t thread = w->thread;
	bool finished;

	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_signal(&w->given);
	finished = writer_wait_for(w, &w->finished, thread_hangs(w) ? 0 : CLOSE_NS);
	if (!finished && w->n)
		log_say(LOG_WARN, "directory does not answer, files dropped files=%u dir=%s", w->n,
			w->store.path);
	w->left = !finished;
	pthread_mutex_unlock(&w->lock);
	if (!finished) {
		pthread_detach(thread);
		return false;
	}
	pthread_join(thread, NULL);
	writer_release(w);
	return true;
}

void writer_close(struct writer *w)
{
	if (!w)
		return;
	if (w->running)
		thread_stop(w);
	else
		writer_release(w);
}

int writer_make_dir(const char *dir, mode_t mode)
{
	const struct writer_limits limits = { .made = mode };
	struct writer *w;
	int r = writer_open(&w, dir, "dir-", &limits);

	if (r < 0)
		return r;
	return thread_stop(w) ? 0 : -ETIMEDOUT;
}
