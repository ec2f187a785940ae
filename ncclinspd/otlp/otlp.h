/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_OTLP_OTLP_H
#define NCCLINSPD_OTLP_OTLP_H

/*
 * Findings as logs, slow operations as traces and /metrics as metrics, pushed to an
 * OpenTelemetry collector: OTLP 1.x over HTTP, as JSON.
 *
 *     otlp_new(&o, &config, &self)
 *     otlp_put(o, OTLP_LOGS, text, ...)	as things happen: hands the text over, never waits
 *     otlp_free(o)
 *
 * A thread turns texts into requests and sends them.  What a collector does not take is tried
 * again and waits in a queue of OTLP_BYTES for each signal; then the oldest is dropped, and
 * counted.
 */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OTLP_BYTES	(8u << 20)	/* texts that wait, of each signal */
#define OTLP_TEXTS	4096		/* the most of them */

/*	signal    its name,  and the text that otlp_put() takes */
#define OTLP_SIGNALS(X)						\
	X(LOGS,    "logs")	/* a finding, as in /v1/findings */	\
	X(TRACES,  "traces")	/* an array of operations: object span of the schema */	\
	X(METRICS, "metrics")	/* Prometheus' text format */

enum otlp_signal {
#define X(NAME, text) OTLP_##NAME,
	OTLP_SIGNALS(X)
#undef X
	OTLP_SIGNAL_END
};

/* Paths and texts: "" is none. */
struct otlp_config {
	char endpoint[512];	/* the URL, but for the signal's path */
	char signals[32];	/* names, with commas between */
	char headers[1024];	/* NAME=VALUE, with commas between, values as in a URL */
	char headers_file[PATH_MAX];	/* NAME=VALUE on each line, read for each request */
	char certificate[PATH_MAX];	/* certificates to trust */
	char client_certificate[PATH_MAX], client_key[PATH_MAX];
	char compression[8];	/* "gzip" */
	uint64_t timeout_ns;	/* the longest request; 0: OTLP_TIMEOUT_NS */
	uint64_t interval_ns;	/* between two texts of metrics; 0: OTLP_INTERVAL_NS */
	uint32_t trace_every;	/* operations of such sequence numbers are traced; 0: none */
};

/* Is an operation of that number traced in any case?  The same on all nodes. */
static inline bool otlp_traces(const struct otlp_config *c, uint64_t seq)
{
	return c->trace_every && seq % c->trace_every == 0;
}

#define OTLP_TIMEOUT_NS		UINT64_C(10000000000)
#define OTLP_INTERVAL_NS	UINT64_C(60000000000)

/* The sender, as all that it sends tells. */
struct otlp_self {
	const char *host;
	const char *instance;
	uint64_t started_ns;	/* CLOCK_REALTIME */
};

/* Counts are of records, spans and data points. */
struct otlp_stats {
	uint64_t sent;		/* the collector has taken them */
	uint64_t dropped;	/* refused, or no room to wait */
	uint64_t last_ns;	/* when a request was taken, CLOCK_MONOTONIC; 0: none was */
	int error;		/* a negative errno while requests fail; else 0 */
};

struct otlp;

/* The number of the signal of that name, of `bytes` bytes; -1: there is none. */
int otlp_signal(const char *name, size_t bytes);

/* The texts are copied.  0 or a negative errno. */
int otlp_new(struct otlp **op, const struct otlp_config *config, const struct otlp_self *self);

/* Sends what waits, two seconds at most, without trying again. */
void otlp_free(struct otlp *o);

/* Is that signal sent at all?  `o` NULL: none is. */
bool otlp_wants(const struct otlp *o, enum otlp_signal signal);

/*
 * Send `text` (malloc'ed; the exporter's from now on) of that moment, which has `n` records,
 * spans or data points.  Takes a lock that nobody holds for longer than a few instructions.
 */
void otlp_put(struct otlp *o, enum otlp_signal signal, char *text, size_t bytes, uint32_t n,
	      uint64_t real_ns);

/* The place that a signal goes to; holds as long as the exporter. */
const char *otlp_url(const struct otlp *o, enum otlp_signal signal);

void otlp_read_stats(struct otlp *o, enum otlp_signal signal, struct otlp_stats *out);

#endif
