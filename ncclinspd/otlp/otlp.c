/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queues, and the thread that empties them.  What both sides share is under the lock, which
 * nobody holds while a text is read or a collector is asked.
 */
#include "ncclinspd/otlp/otlp.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ncclinspd/base/thread.h"
#include "ncclinspd/otlp/otlp_body.h"
#include "ncclinspd/otlp/otlp_post.h"
#include "shmring/clock.h"
#include "util/cleanup.h"
#include "util/log.h"
#include "util/unknown.h"

#define FLUSH_NS	UINT64_C(2000000000)	/* the end waits so long for the queues */
#define CLOSE_NS	UINT64_C(5000000000)	/* time for the thread */
#define BODY_MAX	(64u << 20)		/* one text, however long, is no longer than that */
#define REMIND_NS	UINT64_C(600000000000)	/* a failure that goes on is told so often */

static const char *const names[OTLP_SIGNAL_END] = { OTLP_SIGNALS(NAME_TEXT) };

struct otlp_item {
	char *text;
	size_t bytes;
	uint32_t n;
	uint64_t real_ns;
};

struct otlp_queue {
	/* under the lock */
	struct otlp_item items[OTLP_TEXTS];
	uint32_t first, n;
	size_t bytes;
	struct otlp_stats stats;
	/* the thread's */
	struct otlp_item item;		/* the text that is being read; NULL: none */
	struct otlp_text text;
	struct otlp_body body;		/* the request under way; NULL: none */
	uint32_t in_body;		/* its records, spans or points */
	unsigned tries;			/* failures of this body so far */
	uint64_t due_ns;		/* not sent before */
	uint64_t told_ns;		/* the last time its failure was told; 0: it works */
};

struct otlp {
	struct otlp_config config;
	struct otlp_self self;
	char host[256], instance[300];
	char url[OTLP_SIGNAL_END][sizeof(((struct otlp_config *)0)->endpoint) + 16];
	bool wanted[OTLP_SIGNAL_END];
	struct otlp_post *post;		/* the thread's */
	unsigned seed;			/* the thread's */
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t given, done;
	struct otlp_queue queue[OTLP_SIGNAL_END];
	bool stop, finished, left;
	uint64_t end_ns;		/* when all must be over, once it stops */
};

int otlp_signal(const char *name, size_t bytes)
{
	for (int i = 0; i < OTLP_SIGNAL_END; i++)
		if (strlen(names[i]) == bytes && !memcmp(names[i], name, bytes))
			return i;
	return -1;
}

/* ---- queues ------------------------------------------------------------------------------ */

/* Called under the lock; false: it is empty. */
static bool queue_take(struct otlp_queue *q, struct otlp_item *item)
{
	if (!q->n)
		return false;
	*item = q->items[q->first];
	q->first = (q->first + 1) % OTLP_TEXTS;
	q->n--;
	q->bytes -= item->bytes;
	return true;
}

static void queue_drop_oldest(struct otlp_queue *q)
{
	struct otlp_item item;

	if (!queue_take(q, &item))
		return;
	q->stats.dropped += item.n;
	free(item.text);
}

void otlp_put(struct otlp *o, enum otlp_signal signal, char *text, size_t bytes, uint32_t n,
	      uint64_t real_ns)
{
	struct otlp_queue *q = &o->queue[signal];

	pthread_mutex_lock(&o->lock);
	while (q->n == OTLP_TEXTS || (q->n && q->bytes + bytes > OTLP_BYTES))
		queue_drop_oldest(q);
	q->items[(q->first + q->n) % OTLP_TEXTS] = (struct otlp_item){ text, bytes, n, real_ns };
	q->n++;
	q->bytes += bytes;
	pthread_cond_signal(&o->given);
	pthread_mutex_unlock(&o->lock);
}

bool otlp_wants(const struct otlp *o, enum otlp_signal signal)
{
	return o && o->wanted[signal];
}

const char *otlp_url(const struct otlp *o, enum otlp_signal signal)
{
	return o->url[signal];
}

void otlp_read_stats(struct otlp *o, enum otlp_signal signal, struct otlp_stats *out)
{
	pthread_mutex_lock(&o->lock);
	*out = o->queue[signal].stats;
	pthread_mutex_unlock(&o->lock);
}

/* ---- bodies ------------------------------------------------------------------------------ */

/* The next text to be read: the rest of the last one, or one from the queue. */
static bool queue_next_text(struct otlp *o, struct otlp_queue *q)
{
	bool some;

	if (q->item.text && q->text.at < q->text.bytes)
		return true;
	free(q->item.text);
	q->item.text = NULL;
	pthread_mutex_lock(&o->lock);
	some = queue_take(q, &q->item);
	pthread_mutex_unlock(&o->lock);
	if (some)
		q->text = (struct otlp_text){ q->item.text, q->item.bytes, q->item.real_ns, 0, 0 };
	return some;
}

static void queue_make_body(struct otlp *o, struct otlp_queue *q, const struct otlp_form *form)
{
	CLEANUP(json_deinit) struct json j;

	json_init(&j, BODY_MAX);
	q->in_body = 0;
	otlp_body_begin(&j, form, &o->self);
	while (j.bytes < OTLP_BODY_BYTES && queue_next_text(o, q))
		q->in_body += form->write(&j, &q->text, &o->self);
	otlp_body_end(&j);
	q->tries = 0;
	if (json_error(&j) || !q->in_body) {
		pthread_mutex_lock(&o->lock);
		q->stats.dropped += q->in_body;
		pthread_mutex_unlock(&o->lock);
		return;
	}
	q->body.data = json_steal(&j, &q->body.bytes);
	otlp_post_pack(o->post, &q->body);
}

static void queue_free_body(struct otlp_queue *q)
{
	free(q->body.data);
	q->body = (struct otlp_body){ 0 };
}

/* ---- sending ----------------------------------------------------------------------------- */

/* Once when it begins, from time to time while it goes on, and when it is over. */
static void queue_tell(struct otlp *o, int signal, const struct otlp_answer *answer)
{
	struct otlp_queue *q = &o->queue[signal];
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	bool bad = answer->error || answer->rejected;

	if (bad && (!q->told_ns || now_ns - q->told_ns > REMIND_NS)) {
		q->told_ns = now_ns;
		log_say(LOG_WARN, "otlp: %s not %s otlp-endpoint=%s error=\"%s\"", names[signal],
			answer->outcome == OTLP_AGAIN ? "sent, will be tried again" : "accepted",
			o->config.endpoint, answer->why);
	} else if (!bad && q->told_ns) {
		q->told_ns = 0;
		log_say(LOG_INFO, "otlp: %s sent again otlp-endpoint=%s dropped=%" PRIu64,
			names[signal], o->config.endpoint, q->stats.dropped);
	}
}

/* Called under the lock. */
static void queue_count(struct otlp_queue *q, const struct otlp_answer *answer)
{
	uint64_t rejected = answer->rejected < q->in_body ? answer->rejected : q->in_body;

	q->stats.error = answer->error;
	if (answer->outcome == OTLP_TAKEN) {
		q->stats.last_ns = clock_ns(CLOCK_MONOTONIC);
		q->stats.sent += q->in_body - rejected;
		q->stats.dropped += rejected;
	} else if (answer->outcome == OTLP_REFUSED) {
		q->stats.dropped += q->in_body;
	}
}

static void queue_settle(struct otlp *o, int signal, const struct otlp_answer *answer)
{
	struct otlp_queue *q = &o->queue[signal];

	pthread_mutex_lock(&o->lock);
	queue_count(q, answer);
	pthread_mutex_unlock(&o->lock);
	queue_tell(o, signal, answer);
	if (answer->outcome == OTLP_AGAIN) {
		uint64_t wait_ns = otlp_post_wait_ns(q->tries++, &o->seed);

		q->due_ns = clock_ns(CLOCK_MONOTONIC) +
			    (answer->wait_ns ? answer->wait_ns : wait_ns);
	} else {
		queue_free_body(q);
	}
}

static bool otlp_is_over(void *arg)
{
	struct otlp *o = arg;
	bool over;

	pthread_mutex_lock(&o->lock);
	over = o->stop && clock_ns(CLOCK_MONOTONIC) > o->end_ns;
	pthread_mutex_unlock(&o->lock);
	return over;
}

static void queue_send(struct otlp *o, int signal)
{
	struct otlp_queue *q = &o->queue[signal];
	struct otlp_answer answer;

	if (!q->body.data)
		queue_make_body(o, q, &otlp_forms[signal]);
	if (!q->body.data)
		return;
	otlp_post_send(o->post, o->url[signal], &q->body, otlp_forms[signal].rejected,
		       otlp_is_over, o, &answer);
	queue_settle(o, signal, &answer);
}

/* ---- the thread -------------------------------------------------------------------------- */

/* Called under the lock, like what follows. */
static bool queue_has_some(const struct otlp_queue *q)
{
	return q->body.data || q->n || (q->item.text && q->text.at < q->text.bytes);
}

/* The signal to send now, or -1, and when one is due. */
static int otlp_next(const struct otlp *o, uint64_t *due_ns)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	*due_ns = UINT64_MAX;
	for (int i = 0; i < OTLP_SIGNAL_END; i++) {
		const struct otlp_queue *q = &o->queue[i];

		if (queue_has_some(q) && q->due_ns <= now_ns)
			return i;
		if (queue_has_some(q) && q->due_ns < *due_ns)
			*due_ns = q->due_ns;
	}
	return -1;
}

static void otlp_loop(struct otlp *o)
{
	pthread_mutex_lock(&o->lock);
	while (!o->stop) {
		uint64_t due_ns;
		int signal = otlp_next(o, &due_ns);

		if (signal < 0) {
			thread_wait(&o->given, &o->lock, due_ns);
			continue;
		}
		pthread_mutex_unlock(&o->lock);
		queue_send(o, signal);
		pthread_mutex_lock(&o->lock);
	}
	pthread_mutex_unlock(&o->lock);
}

/* All that waits, once, as long as there is time and somebody takes it. */
static void otlp_flush(struct otlp *o)
{
	for (int i = 0; i < OTLP_SIGNAL_END; i++) {
		struct otlp_queue *q = &o->queue[i];
		unsigned tries = q->tries;
		bool some = true;

		while (some && !otlp_is_over(o) && q->tries <= tries) {
			queue_send(o, i);
			pthread_mutex_lock(&o->lock);
			some = queue_has_some(q);
			pthread_mutex_unlock(&o->lock);
		}
	}
}

/* The records, spans and points that nobody has taken by the end, but for those of an open text. */
static void otlp_tell_left(struct otlp *o)
{
	uint64_t left = 0;

	pthread_mutex_lock(&o->lock);
	for (int i = 0; i < OTLP_SIGNAL_END; i++) {
		const struct otlp_queue *q = &o->queue[i];

		left += q->body.data ? q->in_body : 0;
		for (uint32_t k = 0; k < q->n; k++)
			left += q->items[(q->first + k) % OTLP_TEXTS].n;
	}
	pthread_mutex_unlock(&o->lock);
	if (left)
		log_say(LOG_WARN, "otlp: dropped at the end items=%" PRIu64 " otlp-endpoint=%s",
			left, o->config.endpoint);
}

static void otlp_release(struct otlp *o)
{
	for (int i = 0; i < OTLP_SIGNAL_END; i++) {
		struct otlp_queue *q = &o->queue[i];

		while (q->n)
			queue_drop_oldest(q);
		free(q->item.text);
		queue_free_body(q);
	}
	pthread_cond_destroy(&o->done);
	pthread_cond_destroy(&o->given);
	pthread_mutex_destroy(&o->lock);
	free(o);
}

/* Nothing is sent without libcurl, ever: each text is dropped as it comes. */
static void otlp_refuse_all(struct otlp *o, int error, const char *why)
{
	log_say(LOG_ERROR, "otlp: nothing can be sent error=\"%s: %s\"", strerror(-error), why);
	pthread_mutex_lock(&o->lock);
	while (!o->stop) {
		for (int i = 0; i < OTLP_SIGNAL_END; i++) {
			while (o->queue[i].n)
				queue_drop_oldest(&o->queue[i]);
			o->queue[i].stats.error = error;
		}
		thread_wait(&o->given, &o->lock, UINT64_MAX);
	}
	pthread_mutex_unlock(&o->lock);
}

static void *otlp_run(void *arg)
{
	struct otlp *o = arg;
	char why[256];
	bool left;
	int r = otlp_post_new(&o->post, &o->config, why);

	if (r < 0) {
		otlp_refuse_all(o, r, why);
	} else {
		otlp_loop(o);
		otlp_flush(o);
		otlp_tell_left(o);
	}
	otlp_post_free(o->post);
	pthread_mutex_lock(&o->lock);
	o->finished = true;
	left = o->left;
	pthread_cond_signal(&o->done);
	pthread_mutex_unlock(&o->lock);
	if (left)
		otlp_release(o);
	return NULL;
}

/* ---- life --------------------------------------------------------------------------------- */

static int otlp_start(struct otlp *o)
{
	pthread_mutex_init(&o->lock, NULL);
	thread_condition(&o->given);
	thread_condition(&o->done);
	return thread_begin(&o->thread, otlp_run, o);
}

static void otlp_set(struct otlp *o)
{
	const char *endpoint = o->config.endpoint;
	size_t n = strlen(endpoint);

	for (int i = 0; i < OTLP_SIGNAL_END; i++)
		snprintf(o->url[i], sizeof(o->url[i]), "%.*s%s",
			 (int)(n - (endpoint[n - 1] == '/')), endpoint, otlp_forms[i].path);
	for (const char *at = o->config.signals; *at; at += *at == ',') {
		n = strcspn(at, ",");
		if (otlp_signal(at, n) >= 0)
			o->wanted[otlp_signal(at, n)] = true;
		at += n;
	}
}

int otlp_new(struct otlp **op, const struct otlp_config *config, const struct otlp_self *self)
{
	struct otlp *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return -ENOMEM;
	o->config = *config;
	o->seed = (unsigned)self->started_ns;
	snprintf(o->host, sizeof(o->host), "%s", self->host);
	snprintf(o->instance, sizeof(o->instance), "%s", self->instance);
	o->self = (struct otlp_self){ o->host, o->instance, self->started_ns };
	otlp_set(o);
	r = otlp_start(o);
	if (r < 0)
		otlp_release(o);
	else
		*op = o;
	return r;
}

/* One that does not end in time is left to itself, with what it needs. */
static bool thread_ends(struct otlp *o)
{
	uint64_t until_ns = clock_ns(CLOCK_MONOTONIC) + CLOSE_NS;
	pthread_t thread = o->thread;
	bool finished;

	pthread_mutex_lock(&o->lock);
	o->stop = true;
	o->end_ns = clock_ns(CLOCK_MONOTONIC) + FLUSH_NS;
	pthread_cond_signal(&o->given);
	while (!o->finished && thread_wait(&o->done, &o->lock, until_ns))
		;
	finished = o->finished;
	o->left = !finished;
	pthread_mutex_unlock(&o->lock);
	if (finished)
		pthread_join(thread, NULL);
	else
		pthread_detach(thread);
	return finished;
}

void otlp_free(struct otlp *o)
{
	if (o && thread_ends(o))
		otlp_release(o);
}
