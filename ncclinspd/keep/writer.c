/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop's side and the thread of a directory.  What they share is under the lock,
 * which nobody holds while the disk is asked.
 */
#include "ncclinspd/keep/writer.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/base/thread.h"
#include "ncclinspd/keep/store.h"
#include "shmring/clock.h"
#include "util/cleanup.h"
#include "util/list.h"
#include "util/log.h"

#define WAITING		4	/* files at a time */
#define OUTCOMES	8	/* newest outcomes that are remembered */
#define OPEN_NS		UINT64_C(1000000000)	/* a directory may take to answer at first */
#define READ_NS		UINT64_C(200000000)	/* ns for which the caller is held up at most */
#define CLOSE_NS	UINT64_C(5000000000)
#define HANGS_NS	UINT64_C(10000000000)
#define STEP_NS		UINT64_C(2000000000)	/* the most that passes from one look to the next */

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

static void writer_closep(struct writer **wp)
{
	writer_close(*wp);
}

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
	*wp = w;
	w = NULL;
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
