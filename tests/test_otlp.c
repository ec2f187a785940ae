/* SPDX-License-Identifier: Apache-2.0 */
#include "ncclinspd/otlp/otlp_body.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ncclinspd/metrics/exposition.h"
#include "ncclinspd/otlp/otlp_post.h"
#include "tests/fixture.h"

#define SECOND_NS UINT64_C(1000000000)

static const struct otlp_self self = { "node7", "node7", 5 };
static struct exposition e;

static void setup(void)
{
	exposition_init(&e, false, 16 << 20);
}

static void teardown(void)
{
	exposition_deinit(&e);
}

static json_t *body_of(enum otlp_signal signal, struct otlp_text *t, uint32_t *n)
{
	struct json j;
	json_t *body;

	json_init(&j, 64 << 20);
	otlp_body_begin(&j, &otlp_forms[signal], &self);
	*n = otlp_forms[signal].write(&j, t, &self);
	otlp_body_end(&j);
	ck_assert_int_eq(json_error(&j), 0);
	body = json_loadb(j.text, j.bytes, 0, NULL);
	ck_assert_ptr_nonnull(body);
	json_deinit(&j);
	return body;
}

static json_t *items_of(json_t *body, enum otlp_signal signal)
{
	const struct otlp_form *f = &otlp_forms[signal];
	json_t *resource = json_array_get(json_object_get(body, f->resources), 0);

	return json_object_get(json_array_get(json_object_get(resource, f->scopes), 0), f->items);
}

static json_t *text_body(enum otlp_signal signal, const char *text)
{
	struct otlp_text t = { text, strlen(text), 7, 0, 0 };
	uint32_t n;

	return body_of(signal, &t, &n);
}

/* The value of an attribute, of the type of that name. */
static json_t *attribute(const json_t *item, const char *key, const char *type)
{
	size_t i;
	json_t *a;

	json_array_foreach(json_object_get(item, "attributes"), i, a)
		if (!strcmp(json_string_value(json_object_get(a, "key")), key))
			return json_object_get(json_object_get(a, "value"), type);
	return NULL;
}

TEST(labels_lose_the_escapes_of_the_text)
{
	struct otlp_text t = { .real_ns = 7 };
	json_t *body, *point;
	uint32_t n;

	exposition_family(&e, "x_ops_total", EXPOSITION_COUNTER, "Operations.");
	exposition_label(&e, "a", "1\"2\\3\n4 le=\"5\"} 6");
	exposition_label(&e, "b", "x");
	exposition_sample(&e, "", 0.5);
	t.text = e.out.text;
	t.bytes = e.out.bytes;
	body = body_of(OTLP_METRICS, &t, &n);
	point = json_array_get(json_object_get(json_object_get(
		json_array_get(items_of(body, OTLP_METRICS), 0), "sum"), "dataPoints"), 0);
	ck_assert_uint_eq(n, 1);
	ck_assert_str_eq(json_string_value(attribute(point, "a", "stringValue")),
			 "1\"2\\3\n4 le=\"5\"} 6");
	ck_assert_str_eq(json_string_value(attribute(point, "b", "stringValue")), "x");
	ck_assert(json_real_value(json_object_get(point, "asDouble")) == 0.5);
	ck_assert_str_eq(json_string_value(json_object_get(point, "startTimeUnixNano")), "5");
	json_decref(body);
}

TEST(a_long_text_goes_on_in_the_next_body_with_the_same_family)
{
	struct otlp_text t = { .real_ns = 7 };
	uint32_t bodies = 0, points = 0, n;
	char label[16];

	exposition_family(&e, "x", EXPOSITION_GAUGE, "X.");
	for (int i = 0; i < 20000; i++) {
		snprintf(label, sizeof(label), "%d", i);
		exposition_label(&e, "i", label);
		exposition_sample(&e, "", i);
		exposition_unlabel(&e, 0);
	}
	exposition_family(&e, "y", EXPOSITION_GAUGE, "Y.");
	exposition_sample(&e, "", 1);
	t.text = e.out.text;
	t.bytes = e.out.bytes;
	for (; t.at < t.bytes; bodies++) {
		json_t *body = body_of(OTLP_METRICS, &t, &n);
		json_t *first = json_array_get(items_of(body, OTLP_METRICS), 0);

		ck_assert_str_eq(json_string_value(json_object_get(first, "name")), "x");
		ck_assert_str_eq(json_string_value(json_object_get(first, "description")), "X.");
		points += n;
		json_decref(body);
	}
	ck_assert_uint_eq(points, 20001);
	ck_assert_uint_gt(bodies, 1);
}

TEST(a_histogram_has_the_counts_between_its_bounds)
{
	static const char text[] =
		"# HELP h_seconds H.\n# TYPE h_seconds histogram\n"
		"h_seconds_bucket{role=\"9\",le=\"0.5\"} 2\n"
		"h_seconds_bucket{role=\"9\",le=\"1\"} 5\n"
		"h_seconds_bucket{role=\"9\",le=\"+Inf\"} 6\nh_seconds_sum{role=\"9\"} 4.25\n"
		"h_seconds_count{role=\"9\"} 6\n";
	json_t *body = text_body(OTLP_METRICS, text);
	json_t *metric = json_array_get(items_of(body, OTLP_METRICS), 0);
	json_t *point = json_array_get(json_object_get(json_object_get(metric, "histogram"),
						       "dataPoints"), 0);
	json_t *counts = json_object_get(point, "bucketCounts");
	json_t *bounds = json_object_get(point, "explicitBounds");

	ck_assert_str_eq(json_string_value(json_object_get(metric, "unit")), "s");
	ck_assert_uint_eq(json_array_size(bounds), 2);
	ck_assert(json_real_value(json_array_get(bounds, 0)) == 0.5);
	ck_assert_uint_eq(json_array_size(counts), 3);
	ck_assert_str_eq(json_string_value(json_array_get(counts, 0)), "2");
	ck_assert_str_eq(json_string_value(json_array_get(counts, 1)), "3");
	ck_assert_str_eq(json_string_value(json_array_get(counts, 2)), "1");
	ck_assert_str_eq(json_string_value(json_object_get(point, "count")), "6");
	json_decref(body);
}

/* FNV-1a of "0xf9bfbb9906e2743a/AllReduce/300" and of that and "/3", from another program. */
TEST(an_operation_has_the_same_ids_wherever_it_is_told_of)
{
	static const char ops[] =
		"[{\"started_at\":\"2026-11-23T13:12:01.764858280Z\","
		"\"stopped_at\":\"2026-11-23T13:12:01.824884328Z\",\"started_mono_ns\":1,"
		"\"comm_id\":\"0xf9bfbb9906e2743a\",\"func\":\"AllReduce\",\"seq\":300,"
		"\"rank\":3,\"token\":\"0x0000000000000001\",\"pid\":17,\"root\":null}]";
	static const char finding[] =
		"{\"kind\":\"stall\",\"comm_id\":\"0xf9bfbb9906e2743a\",\"severity\":\"critical\","
		"\"grade\":\"found\",\"active\":true,\"text\":\"it hangs\",\"ranks\":[3,-1],"
		"\"evidence\":{\"func\":\"AllReduce\",\"seq\":300}}";
	json_t *spans = text_body(OTLP_TRACES, ops), *logs = text_body(OTLP_LOGS, finding);
	const json_t *span = json_array_get(items_of(spans, OTLP_TRACES), 0);
	const json_t *log = json_array_get(items_of(logs, OTLP_LOGS), 0);

	ck_assert_str_eq(json_string_value(json_object_get(span, "traceId")),
			 "f9bfbb9906e2743ac4373111e281d798");
	ck_assert_str_eq(json_string_value(json_object_get(span, "spanId")), "029537ba18808172");
	ck_assert_str_eq(json_string_value(json_object_get(span, "startTimeUnixNano")),
			 "1795439521764858280");
	ck_assert_str_eq(json_string_value(attribute(span, "process.pid", "intValue")), "17");
	ck_assert_ptr_null(attribute(span, "nccl.root", "intValue"));
	ck_assert_ptr_null(attribute(span, "nccl.started_mono_ns", "intValue"));
	ck_assert_str_eq(json_string_value(json_object_get(log, "traceId")),
			 "f9bfbb9906e2743ac4373111e281d798");
	ck_assert_ptr_null(json_object_get(log, "spanId"));
	ck_assert_int_eq(json_integer_value(json_object_get(log, "severityNumber")), 18);
	ck_assert_str_eq(json_string_value(json_object_get(json_array_get(json_object_get(
		attribute(log, "nccl.ranks", "arrayValue"), "values"), 1), "intValue")), "-1");
	json_decref(spans);
	json_decref(logs);
}

static const struct {
	long status;
	const char *text;
	enum otlp_outcome outcome;
	uint64_t rejected;
	int error;
} answers[] = {
	{ 200, "", OTLP_TAKEN, 0, 0 },
	{ 200, "{}", OTLP_TAKEN, 0, 0 },
	{ 200, "{\"partialSuccess\":{\"rejectedSpans\":\"3\",\"errorMessage\":\"no\"}}",
	  OTLP_TAKEN, 3, 0 },
	{ 200, "{\"partialSuccess\":{\"rejectedSpans\":3}}", OTLP_TAKEN, 3, 0 },
	{ 200, "{\"partialSuccess\":{\"rejectedSpans\":{}}}", OTLP_TAKEN, 0, 0 },
	{ 200, "{\"partialSuccess\":7}", OTLP_TAKEN, 0, 0 },
	{ 200, "<html>", OTLP_REFUSED, 0, -EBADMSG },
	{ 200, "[]", OTLP_REFUSED, 0, -EBADMSG },
	{ 301, "", OTLP_REFUSED, 0, -EPROTO },
	{ 400, "bad\r\n", OTLP_REFUSED, 0, -EPROTO },
	{ 401, "", OTLP_REFUSED, 0, -EACCES },
	{ 404, "", OTLP_REFUSED, 0, -ENOENT },
	{ 429, "", OTLP_AGAIN, 0, -EBUSY },
	{ 500, "", OTLP_REFUSED, 0, -EPROTO },
	{ 502, "", OTLP_AGAIN, 0, -EHOSTDOWN },
	{ 503, "", OTLP_AGAIN, 0, -EBUSY },
	{ 504, "", OTLP_AGAIN, 0, -ETIMEDOUT },
	{ 0, "", OTLP_REFUSED, 0, -EPROTO },
};

TEST_LOOP(only_what_the_protocol_calls_retryable_is_tried_again, 0, FX_COUNT(answers))
{
	struct otlp_answer a;

	otlp_answer_read(&a, answers[_i].status, answers[_i].text, strlen(answers[_i].text),
			 "rejectedSpans");
	ck_assert_int_eq(a.outcome, answers[_i].outcome);
	ck_assert_uint_eq(a.rejected, answers[_i].rejected);
	ck_assert_int_eq(a.error, answers[_i].error);
}

TEST(waits_grow_and_end_at_little_more_than_a_minute)
{
	unsigned seed = 1;

	for (unsigned tries = 0; tries < 40; tries++) {
		uint64_t wait_ns = otlp_post_wait_ns(tries, &seed);
		uint64_t mean_ns = tries < 6 ? SECOND_NS << tries : 64 * SECOND_NS;

		ck_assert_uint_ge(wait_ns, mean_ns * 3 / 4);
		ck_assert_uint_le(wait_ns, mean_ns * 5 / 4);
	}
}

/* ---- queue and thread ---------------------------------------------------------------- */

/* It takes connections until it is closed; a request has an answer, or none ever. */
struct fx_collector {
	pthread_t thread;
	int fd;
	bool answers;
	_Atomic unsigned requests;
};

/* One request of some bytes: its end is that of its body. */
static bool connection_read(int fd)
{
	char text[65536];
	size_t n = 0, body;
	const char *length, *end = NULL;
	ssize_t r;

	while (!end && (r = read(fd, text + n, sizeof(text) - 1 - n)) > 0) {
		n += (size_t)r;
		text[n] = '\0';
		end = strstr(text, "\r\n\r\n");
	}
	length = end ? strstr(text, "Content-Length: ") : NULL;
	if (!length)
		return false;
	body = strtoul(length + 16, NULL, 10);
	for (n -= (size_t)(end + 4 - text); n < body; n += (size_t)r) {
		r = read(fd, text, sizeof(text));
		if (r <= 0)
			return false;
	}
	return true;
}

static void *fx_collector_run(void *arg)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
	struct fx_collector *c = arg;
	int fd;

	while ((fd = accept(c->fd, NULL, NULL)) >= 0) {
		while (connection_read(fd)) {
			c->requests++;
			if (c->answers && write(fd, answer, sizeof(answer) - 1) < 0)
				break;
		}
		close(fd);
	}
	return NULL;
}

static void fx_collector_open(struct fx_collector *c, struct otlp_config *config)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t bytes = sizeof(at);

	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(c->fd, (struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(listen(c->fd, 4), 0);
	getsockname(c->fd, (struct sockaddr *)&at, &bytes);
	*config = (struct otlp_config){ .signals = "logs", .compression = "gzip" };
	snprintf(config->endpoint, sizeof(config->endpoint), "http://127.0.0.1:%u/",
		 ntohs(at.sin_port));
	ck_assert_int_eq(pthread_create(&c->thread, NULL, fx_collector_run, c), 0);
}

static void fx_collector_close(struct fx_collector *c)
{
	shutdown(c->fd, SHUT_RDWR);
	pthread_join(c->thread, NULL);
	close(c->fd);
}

static void fx_put(struct otlp *o, size_t bytes)
{
	char *text = malloc(bytes);

	memset(text, ' ', bytes);
	memcpy(text, "{}", 2);
	otlp_put(o, OTLP_LOGS, text, bytes, 1, 7);
}

static bool fx_wait(bool done(void *arg), void *arg)
{
	for (int i = 0; i < 1000 && !done(arg); i++)
		poll(NULL, 0, 10);
	return done(arg);
}

static bool was_asked(void *arg)
{
	return ((struct fx_collector *)arg)->requests > 0;
}

static bool sent_all(void *arg)
{
	struct otlp_stats stats;

	otlp_read_stats(arg, OTLP_LOGS, &stats);
	return stats.sent == 300;
}

TEST(all_that_is_put_is_sent)
{
	struct fx_collector c = { .answers = true };
	struct otlp_config config;
	struct otlp_stats stats;
	struct otlp *o;

	fx_collector_open(&c, &config);
	ck_assert_int_eq(otlp_new(&o, &config, &self), 0);
	ck_assert(otlp_wants(o, OTLP_LOGS) && !otlp_wants(o, OTLP_TRACES));
	for (int i = 0; i < 300; i++)
		fx_put(o, 1000);
	ck_assert(fx_wait(sent_all, o));
	otlp_read_stats(o, OTLP_LOGS, &stats);
	ck_assert_uint_eq(stats.dropped, 0);
	ck_assert_int_eq(stats.error, 0);
	otlp_free(o);
	fx_collector_close(&c);
}

TEST(where_nobody_answers_the_oldest_is_dropped_and_counted)
{
	struct fx_collector c = { .answers = false };
	struct otlp_config config;
	struct otlp_stats stats;
	struct otlp *o;

	fx_collector_open(&c, &config);
	ck_assert_int_eq(otlp_new(&o, &config, &self), 0);
	fx_put(o, 10);
	ck_assert(fx_wait(was_asked, &c));
	for (int i = 0; i < 5; i++)
		fx_put(o, OTLP_BYTES / 2);
	otlp_read_stats(o, OTLP_LOGS, &stats);
	ck_assert_uint_eq(stats.dropped, 3);
	fx_put(o, 2 * OTLP_BYTES);	/* alone it has room, however large */
	otlp_read_stats(o, OTLP_LOGS, &stats);
	ck_assert_uint_eq(stats.dropped, 5);
	ck_assert_uint_eq(stats.sent, 0);
	otlp_free(o);			/* nor does this wait for an answer for long */
	fx_collector_close(&c);
}

int main(void)
{
	return fx_run(setup, teardown);
}
