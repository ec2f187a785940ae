/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libcurl and zlib are loaded when an exporter is made, and not before: with what it brings along
 * libcurl would cost each daemon megabytes and milliseconds at its start, for something that most
 * do not use.  The package has both for ncclinsp(1).
 */
#include "ncclinspd/otlp/otlp_post.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "util/cleanup.h"
#include "util/list.h"
#include "util/text.h"

#define ANSWER_BYTES	65536		/* no collector has more to say */
#define HEADERS_BYTES	65536
#define HEADER_BYTES	8192
#define FIRST_WAIT_NS	UINT64_C(1000000000)
#define LONGEST_WAIT_NS	UINT64_C(64000000000)
#define BELIEVED_S	300		/* the longest Retry-After that is kept to */
#define MS_NS		1000000

#define CURL_CALLS(X) X(easy_init) X(easy_reset) X(easy_setopt) X(easy_perform) X(easy_getinfo)	\
	X(easy_strerror) X(easy_cleanup) X(slist_append) X(slist_free_all)

struct otlp_post {
	const struct otlp_config *config;
	CURL *curl;
	char error[CURL_ERROR_SIZE];
	struct {
#define X(name) __typeof__(curl_##name) *name;
		CURL_CALLS(X)
#undef X
		__typeof__(deflateInit2_) *deflate_init;
		__typeof__(deflate) *deflate;
		__typeof__(deflateBound) *deflate_bound;
		__typeof__(deflateEnd) *deflate_end;
	} call;
};

/* A request while it runs, with the beginning of its answer. */
struct post_run {
	bool (*stop)(void *arg);
	void *arg;
	char text[ANSWER_BYTES];
	size_t bytes;
};

/* ---- libraries -------------------------------------------------------------------------- */

static int post_load(struct otlp_post *p, char why[256])
{
	const struct {
		const char *name;
		void *to;
		const char *library;
	} calls[] = {
#define X(name) { "curl_" #name, &p->call.name, "libcurl.so.4" },
		CURL_CALLS(X)
#undef X
		{ "deflateInit2_", &p->call.deflate_init, "libz.so.1" },
		{ "deflate", &p->call.deflate, "libz.so.1" },
		{ "deflateBound", &p->call.deflate_bound, "libz.so.1" },
		{ "deflateEnd", &p->call.deflate_end, "libz.so.1" },
	};

	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		void *library = dlopen(calls[i].library, RTLD_NOW | RTLD_LOCAL);
		void *at = library ? dlsym(library, calls[i].name) : NULL;

		if (!at) {
			snprintf(why, 256, "%s", dlerror() ?: calls[i].library);
			return -ELIBACC;
		}
		memcpy(calls[i].to, &at, sizeof(at));
	}
	return 0;
}

CLEANUP_DEFINE(otlp_post_free, struct otlp_post)

int otlp_post_new(struct otlp_post **pp, const struct otlp_config *config, char why[256])
{
	CLEANUP(otlp_post_freep) struct otlp_post *p = calloc(1, sizeof(*p));
	int r;

	why[0] = '\0';
	if (!p)
		return -ENOMEM;
	p->config = config;
	r = post_load(p, why);
	if (r < 0)
		return r;
	p->curl = p->call.easy_init();
	if (!p->curl)
		return -ENOMEM;
	*pp = DISOWN(p);
	return 0;
}

/* The libraries stay: there is no other exporter in this process. */
void otlp_post_free(struct otlp_post *p)
{
	if (p && p->curl)
		p->call.easy_cleanup(p->curl);
	free(p);
}

void otlp_post_pack(const struct otlp_post *p, struct otlp_body *body)
{
	z_stream z = { .next_in = (Bytef *)body->data, .avail_in = (uInt)body->bytes };
	CLEANUP(cleanup_freep) char *packed = NULL;
	size_t room;

	body->gzip = false;
	if (!p->config->compression[0] ||
	    p->call.deflate_init(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16,
				 MAX_MEM_LEVEL, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
				 sizeof(z)) != Z_OK)
		return;
	room = p->call.deflate_bound(&z, body->bytes);
	packed = malloc(room);
	z.next_out = (Bytef *)packed;
	z.avail_out = packed ? (uInt)room : 0;
	if (packed && p->call.deflate(&z, Z_FINISH) == Z_STREAM_END) {
		char *plain = body->data;

		*body = (struct otlp_body){ packed, z.total_out, true };
		packed = plain;
	}
	p->call.deflate_end(&z);
}

/* ---- headers ------------------------------------------------------------------------------ */

/* Values in the configuration are as in a URL, so that they may have commas. */
static void value_decode(char *value)
{
	char *to = value;

	for (; *value; value++) {
		bool code = *value == '%' && text_hex_digit(value[1]) >= 0 &&
			    text_hex_digit(value[2]) >= 0;

		*to++ = code ? (char)(text_hex_digit(value[1]) << 4 | text_hex_digit(value[2])) :
			       *value;
		value += code ? 2 : 0;
	}
	*to = '\0';
}

static void headers_add(const struct otlp_post *p, struct curl_slist **list, const char *name,
			const char *value)
{
	char header[HEADER_BYTES];
	struct curl_slist *longer;

	snprintf(header, sizeof(header), "%s: %s", name, value);
	if (header[strcspn(header, "\r\n")])	/* it would be two */
		return;
	longer = p->call.slist_append(*list, header);
	*list = longer ? longer : *list;
}

/* NAME=VALUE, with `between` between them; blanks around either are no part of it. */
static void headers_add_all(const struct otlp_post *p, struct curl_slist **list, char *text,
			    const char *between, bool decode)
{
	char *rest = NULL;

	for (char *at = strtok_r(text, between, &rest); at; at = strtok_r(NULL, between, &rest)) {
		char *equals = strchr(at, '=');
		size_t n;

		at += strspn(at, " \t");
		if (!equals || equals <= at || *at == '#')
			continue;
		*equals++ = '\0';
		n = strcspn(at, " \t");
		at[n] = '\0';
		equals += strspn(equals, " \t");
		for (n = strlen(equals); n && strchr(" \t\r", equals[n - 1]); n--)
			equals[n - 1] = '\0';
		if (decode)
			value_decode(equals);
		headers_add(p, list, at, equals);
	}
}

/* Read each time: a secret may be replaced while the daemon runs.  0 or a negative errno. */
static int headers_add_file(const struct otlp_post *p, struct curl_slist **list)
{
	CLEANUP(cleanup_freep) char *text = calloc(1, HEADERS_BYTES);
	CLEANUP(cleanup_fclosep) FILE *file = NULL;

	if (!p->config->headers_file[0])
		return 0;
	file = fopen(p->config->headers_file, "re");
	if (!file || !text)
		return file ? -ENOMEM : -errno;
	if (fread(text, 1, HEADERS_BYTES - 1, file))
		headers_add_all(p, list, text, "\n", false);
	return 0;
}

/* ---- answers ------------------------------------------------------------------------------- */

static const struct status {
	long status;
	enum otlp_outcome outcome;
	int error;
} statuses[] = {
	{ 401, OTLP_REFUSED, -EACCES },
	{ 403, OTLP_REFUSED, -EACCES },
	{ 404, OTLP_REFUSED, -ENOENT },
	{ 413, OTLP_REFUSED, -EMSGSIZE },
	{ 429, OTLP_AGAIN, -EBUSY },
	{ 502, OTLP_AGAIN, -EHOSTDOWN },
	{ 503, OTLP_AGAIN, -EBUSY },
	{ 504, OTLP_AGAIN, -ETIMEDOUT },
	{ 0, OTLP_REFUSED, -EPROTO },
};

/* Integers of 64 bits may be strings. */
static uint64_t answer_count(const json_t *partial, const char *name)
{
	const json_t *value = json_object_get(partial, name);

	if (json_is_string(value))
		return strtoull(json_string_value(value), NULL, 10);
	return json_is_integer(value) ? (uint64_t)json_integer_value(value) : 0;
}

static void answer_read_taken(struct otlp_answer *answer, const char *text, size_t bytes,
			      const char *rejected)
{
	json_t *reply = bytes ? json_loadb(text, bytes, 0, NULL) : json_object();
	const json_t *partial = json_object_get(reply, "partialSuccess");
	const char *why = json_string_value(json_object_get(partial, "errorMessage"));

	*answer = (struct otlp_answer){ .outcome = OTLP_TAKEN };
	if (json_is_object(reply)) {
		answer->rejected = answer_count(partial, rejected);
		snprintf(answer->why, sizeof(answer->why), "%s", why ?: "");
	} else {	/* whatever answers there, it is no collector */
		*answer = (struct otlp_answer){ .outcome = OTLP_REFUSED, .error = -EBADMSG,
						.why = "the answer is not OTLP" };
	}
	json_decref(reply);
}

void otlp_answer_read(struct otlp_answer *answer, long status, const char *text, size_t bytes,
		      const char *rejected)
{
	const struct status *s = statuses;

	if (status >= 200 && status < 300) {
		answer_read_taken(answer, text, bytes, rejected);
		return;
	}
	while (s->status && s->status != status)
		s++;
	*answer = (struct otlp_answer){ .outcome = s->outcome, .error = s->error };
	snprintf(answer->why, sizeof(answer->why), "HTTP status %ld%s%.*s", status,
		 bytes ? ": " : "", (int)(bytes < 160 ? bytes : 160), text);
}

/* ---- requests -------------------------------------------------------------------------------- */

static size_t post_take_text(char *text, size_t one, size_t n, void *arg)
{
	struct post_run *run = arg;

	if (n > sizeof(run->text) - run->bytes)
		return 0;	/* an end of it */
	memcpy(run->text + run->bytes, text, n);
	run->bytes += n;
	return n;
}

static int post_goes_on(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	const struct post_run *run = arg;

	(void)a, (void)b, (void)c, (void)d;
	return run->stop(run->arg);
}

static void post_set_tls(struct otlp_post *p)
{
	const struct otlp_config *c = p->config;

	if (c->certificate[0])
		p->call.easy_setopt(p->curl, CURLOPT_CAINFO, c->certificate);
	if (c->client_certificate[0])
		p->call.easy_setopt(p->curl, CURLOPT_SSLCERT, c->client_certificate);
	if (c->client_key[0])
		p->call.easy_setopt(p->curl, CURLOPT_SSLKEY, c->client_key);
}

/* No signal, no redirection, and an end to everything. */
static void post_set(struct otlp_post *p, const char *url, const struct otlp_body *body,
		     const struct curl_slist *headers, struct post_run *run)
{
	uint64_t timeout_ns = p->config->timeout_ns ? p->config->timeout_ns : OTLP_TIMEOUT_NS;

	p->call.easy_reset(p->curl);	/* connections stay */
	p->error[0] = '\0';
	p->call.easy_setopt(p->curl, CURLOPT_URL, url);
	p->call.easy_setopt(p->curl, CURLOPT_NOSIGNAL, 1L);
	p->call.easy_setopt(p->curl, CURLOPT_TIMEOUT_MS, (long)(timeout_ns / MS_NS));
	p->call.easy_setopt(p->curl, CURLOPT_USERAGENT, "ncclinspd/" NCCLINSP_VERSION);
	p->call.easy_setopt(p->curl, CURLOPT_HTTPHEADER, headers);
	p->call.easy_setopt(p->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->bytes);
	p->call.easy_setopt(p->curl, CURLOPT_POSTFIELDS, body->data);
	p->call.easy_setopt(p->curl, CURLOPT_WRITEFUNCTION, post_take_text);
	p->call.easy_setopt(p->curl, CURLOPT_WRITEDATA, run);
	p->call.easy_setopt(p->curl, CURLOPT_XFERINFOFUNCTION, post_goes_on);
	p->call.easy_setopt(p->curl, CURLOPT_XFERINFODATA, run);
	p->call.easy_setopt(p->curl, CURLOPT_NOPROGRESS, 0L);
	p->call.easy_setopt(p->curl, CURLOPT_ERRORBUFFER, p->error);
	post_set_tls(p);
}

static const struct {
	CURLcode code;
	int error;
} failures[] = {
	{ CURLE_COULDNT_RESOLVE_HOST, -EHOSTUNREACH },
	{ CURLE_COULDNT_CONNECT, -ECONNREFUSED },
	{ CURLE_OPERATION_TIMEDOUT, -ETIMEDOUT },
	{ CURLE_PEER_FAILED_VERIFICATION, -EKEYREJECTED },
	{ CURLE_SSL_CACERT_BADFILE, -EKEYREJECTED },
	{ CURLE_SSL_CERTPROBLEM, -EKEYREJECTED },
	{ CURLE_ABORTED_BY_CALLBACK, -ECANCELED },
};

/* No answer.  What is wrong at this end may be put right while it waits. */
static void answer_fail(struct otlp_answer *answer, const struct otlp_post *p, CURLcode code)
{
	*answer = (struct otlp_answer){ .outcome = OTLP_AGAIN, .error = -EIO };
	for (size_t i = 0; i < ARRAY_LEN(failures); i++)
		if (failures[i].code == code)
			answer->error = failures[i].error;
	snprintf(answer->why, sizeof(answer->why), "%s",
		 p->error[0] ? p->error : p->call.easy_strerror(code));
}

static void post_perform(struct otlp_post *p, struct post_run *run, const char *rejected,
			 struct otlp_answer *answer)
{
	CURLcode code = p->call.easy_perform(p->curl);
	curl_off_t after_s = 0;
	long status = 0;

	p->call.easy_getinfo(p->curl, CURLINFO_RESPONSE_CODE, &status);
	p->call.easy_getinfo(p->curl, CURLINFO_RETRY_AFTER, &after_s);
	if (code == CURLE_OK || (code == CURLE_WRITE_ERROR && status))
		otlp_answer_read(answer, status, run->text, run->bytes, rejected);
	else
		answer_fail(answer, p, code);
	if (answer->outcome == OTLP_AGAIN && after_s > 0)
		answer->wait_ns = (uint64_t)(after_s < BELIEVED_S ? after_s : BELIEVED_S) *
				  UINT64_C(1000000000);
}

void otlp_post_send(struct otlp_post *p, const char *url, const struct otlp_body *body,
		    const char *rejected, bool stop(void *arg), void *arg,
		    struct otlp_answer *answer)
{
	CLEANUP(cleanup_freep) struct post_run *run = calloc(1, sizeof(*run));
	char own[sizeof(p->config->headers)];
	struct curl_slist *headers = NULL;
	int r;

	*answer = (struct otlp_answer){ .outcome = OTLP_AGAIN, .error = -ENOMEM };
	if (!run)
		return;
	run->stop = stop;
	run->arg = arg;
	snprintf(own, sizeof(own), "%s", p->config->headers);
	headers_add(p, &headers, "Content-Type", "application/json");
	if (body->gzip)
		headers_add(p, &headers, "Content-Encoding", "gzip");
	headers_add_all(p, &headers, own, ",", true);
	r = headers_add_file(p, &headers);
	if (r < 0) {
		answer->error = r;
		snprintf(answer->why, sizeof(answer->why), "%.100s: %s", p->config->headers_file,
			 strerror(-r));
	} else {
		post_set(p, url, body, headers, run);
		post_perform(p, run, rejected, answer);
	}
	p->call.slist_free_all(headers);
}

/* Twice as long each time, and a quarter more or less: not all nodes at the same moment. */
uint64_t otlp_post_wait_ns(unsigned tries, unsigned *seed)
{
	uint64_t wait_ns = tries < 7 ? FIRST_WAIT_NS << tries : LONGEST_WAIT_NS;

	if (wait_ns > LONGEST_WAIT_NS)
		wait_ns = LONGEST_WAIT_NS;
	return wait_ns - wait_ns / 4 + (uint64_t)rand_r(seed) % (wait_ns / 2);
}
