/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures that leave the node: /metrics over TCP, by a second server that has nothing else,
 * and as a file; findings, operations and metrics to an OpenTelemetry collector; findings to who
 * acts on them, and those that other nodes are to look at in detail.  Worth having, not worth
 * failing for.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ncclinspd/daemon.h"
#include "ncclinspd/metrics/exposition.h"
#include "shmring/clock.h"
#include "util/cleanup.h"
#include "util/json.h"
#include "util/list.h"

#define CONNECTIONS	16
#define METRICS_BYTES	(32u << 20)

static void scrape_run(void *arg, uint64_t now_ns)
{
	struct daemon *d = arg;

	serve_run(d->scrape, now_ns, clock_ns(CLOCK_REALTIME));
}

static int scrape_open(struct daemon *d, const struct serve_config *config,
		       const struct serve_source *source)
{
	struct serve_config c = *config;
	struct tcp_address address;
	int r = tcp_parse(d->config.metrics_listen, &address);

	if (r < 0)
		return r;
	c.listen_fd = tcp_listen(&address);
	if (c.listen_fd < 0)
		return c.listen_fd;
	c.metrics_only = true;
	c.connections = CONNECTIONS;
	r = serve_open(&d->scrape, &c, source);
	if (r < 0)
		return r;
	d->scrape_timer = (struct loop_timer){ .fn = scrape_run, .arg = d };
	r = loop_add(d->loop, serve_fd(d->scrape), scrape_run, d);
	if (r < 0) {
		serve_close(d->scrape);
		d->scrape = NULL;
	}
	return r;
}

static void textfile_on_timer(void *arg, uint64_t now_ns)
{
	struct daemon *d = arg;

	textfile_write(d->textfile, d->metrics, now_ns);
	loop_arm(d->loop, &d->textfile_timer, now_ns + TEXTFILE_NS);
}

static int textfile_open(struct daemon *d)
{
	int r = textfile_new(&d->textfile, d->config.metrics_textfile);

	if (r < 0)
		return r;
	d->textfile_timer = (struct loop_timer){ .fn = textfile_on_timer, .arg = d };
	loop_arm(d->loop, &d->textfile_timer, loop_clock_ns());
	return 0;
}

/* ---- OpenTelemetry --------------------------------------------------------------------- */

/* The exporter takes over what was written of it; what is not whole is not sent. */
static void otlp_give(struct daemon *d, enum otlp_signal signal, struct json *j, uint32_t n)
{
	size_t bytes;
	char *text;

	if (json_error(j) || !n)
		return;
	text = json_steal(j, &bytes);
	otlp_put(d->otlp, signal, text, bytes, n, clock_ns(CLOCK_REALTIME));
}

static void otlp_give_op(struct daemon *d, const struct op *op)
{
	CLEANUP(json_deinit) struct json j;

	json_init(&j, OTLP_BYTES);
	json_begin(&j, '[');
	serve_put_span(d->serve, op, &j);
	json_end(&j, ']');
	otlp_give(d, OTLP_TRACES, &j, 1);
}

void exports_op(struct daemon *d, const struct op *op)
{
	if (op->has_comm_id && op->seq != UNKNOWN_U64 && otlp_traces(&d->config.otlp, op->seq) &&
	    d->serve && otlp_wants(d->otlp, OTLP_TRACES))
		otlp_give_op(d, op);
}

static void otlp_give_finding(struct daemon *d, const struct finding *f)
{
	CLEANUP(json_deinit) struct json j;

	json_init(&j, OTLP_BYTES);
	serve_put_finding(d->serve, f, &j);
	otlp_give(d, OTLP_LOGS, &j, 1);
}

static void notify_on_timer(void *arg, uint64_t now_ns)
{
	struct daemon *d = arg;
	uint64_t next_ns = notify_run(d->notify, now_ns);

	if (next_ns)
		loop_arm(d->loop, &d->notify_timer, next_ns);
}

static void notify_give_finding(struct daemon *d, const struct finding *f)
{
	CLEANUP(json_deinit) struct json j;
	size_t bytes;
	char *text;

	json_init(&j, OTLP_BYTES);
	serve_put_finding(d->serve, f, &j);
	if (json_error(&j))
		return;
	text = json_steal(&j, &bytes);
	notify_put(d->notify, accounts_of(d->accounts, f->uid), text, bytes);
	notify_on_timer(d, loop_clock_ns());
}

void exports_finding(struct daemon *d, const struct finding *f)
{
	if (d->serve && otlp_wants(d->otlp, OTLP_LOGS))
		otlp_give_finding(d, f);
	if (d->serve && d->notify && notify_wants(f))
		notify_give_finding(d, f);
}

static void otlp_give_exemplar(struct daemon *d, const struct exemplar *e)
{
	CLEANUP(json_deinit) struct json j;
	uint32_t n;

	json_init(&j, OTLP_BYTES);
	n = serve_exemplar_spans(d->serve, e, &j);
	otlp_give(d, OTLP_TRACES, &j, n);
}

void exports_exemplar(struct daemon *d, const struct exemplar *e)
{
	if (otlp_wants(d->otlp, OTLP_TRACES))
		otlp_give_exemplar(d, e);
}

static void otlp_on_timer(void *arg, uint64_t now_ns)
{
	CLEANUP(exposition_deinit) struct exposition e;
	struct daemon *d = arg;
	uint64_t interval_ns = d->config.otlp.interval_ns;
	size_t bytes;
	char *text;

	loop_arm(d->loop, &d->otlp_timer,
		 now_ns + (interval_ns ? interval_ns : OTLP_INTERVAL_NS));
	exposition_init(&e, false, METRICS_BYTES);
	metrics_write(d->metrics, &e, true, 0, now_ns);
	if (e.out.error)
		return;
	text = json_steal(&e.out, &bytes);
	otlp_put(d->otlp, OTLP_METRICS, text, bytes, (uint32_t)e.series,
		 clock_ns(CLOCK_REALTIME));
}

/* A user's daemon is another instance than the node's. */
void exports_start_otlp(struct daemon *d)
{
	char instance[HOST_NAME_MAX + 16];
	const struct otlp_self self = { d->config.node_name, instance, d->started_real_ns };
	int r;

	if (!d->config.otlp.endpoint[0])
		return;
	snprintf(instance, sizeof(instance), "%s", d->config.node_name);
	if (!d->config.everybody)
		snprintf(instance, sizeof(instance), "%s:%u", d->config.node_name, geteuid());
	r = otlp_new(&d->otlp, &d->config.otlp, &self);
	if (r < 0)
		log_say(LOG_WARN, "nothing is pushed otlp-endpoint=%s error=\"%s\"",
			d->config.otlp.endpoint, strerror(-r));
}

static void otlp_start_metrics(struct daemon *d)
{
	d->otlp_timer = (struct loop_timer){ .fn = otlp_on_timer, .arg = d };
	if (otlp_wants(d->otlp, OTLP_METRICS))
		loop_arm(d->loop, &d->otlp_timer, loop_clock_ns());
}

/* One for each signal. */
static size_t otlp_tell(const struct daemon *d, struct serve_exporter *e)
{
	size_t n = 0;

	for (int i = 0; i < OTLP_SIGNAL_END; i++) {
		enum otlp_signal signal = (enum otlp_signal)i;
		struct otlp_stats stats;

		if (!otlp_wants(d->otlp, signal))
			continue;
		otlp_read_stats(d->otlp, signal, &stats);
		e[n++] = (struct serve_exporter){ .kind = "otlp", .at = otlp_url(d->otlp, signal),
						  .done = stats.sent, .failed = stats.dropped,
						  .last_ns = stats.last_ns, .error = stats.error };
	}
	return n;
}

/* ---- all of them ------------------------------------------------------------------------ */

void exports_start(struct daemon *d, const struct serve_config *config,
		   const struct serve_source *source)
{
	if (d->config.metrics_listen[0])
		d->scrape_error = scrape_open(d, config, source);
	if (d->scrape_error < 0)
		log_say(LOG_WARN, "no metrics over TCP metrics-listen=%s error=\"%s\"",
			d->config.metrics_listen, strerror(-d->scrape_error));
	if (d->config.metrics_textfile[0])
		d->textfile_error = textfile_open(d);
	if (d->textfile_error < 0)
		log_say(LOG_WARN, "no metrics as a file metrics-textfile=%s error=\"%s\"",
			d->config.metrics_textfile, strerror(-d->textfile_error));
	otlp_start_metrics(d);
	if (d->config.raise_hosts[0] && raise_new(&d->raise, d->config.raise_hosts) < 0)
		log_say(LOG_WARN, "other nodes are not asked for detail: no memory");
	d->notify_timer = (struct loop_timer){ .fn = notify_on_timer, .arg = d };
	if (d->config.on_finding[0] && notify_new(&d->notify, d->config.on_finding) < 0)
		log_say(LOG_WARN, "findings are not sent: no memory");
}

void exports_stop(struct daemon *d)
{
	serve_close(d->scrape);
	textfile_free(d->textfile);
	raise_free(d->raise);
	notify_free(d->notify);
	d->notify = NULL;
	d->raise = NULL;
	d->scrape = NULL;
	d->textfile = NULL;
}

void exports_round(struct daemon *d, uint64_t now_ns)
{
	if (d->scrape)
		answers_arm(d, d->scrape, &d->scrape_timer, now_ns);
}

static void scrape_tell(const struct daemon *d, struct serve_exporter *e)
{
	*e = (struct serve_exporter){ .kind = "tcp", .at = d->config.metrics_listen,
				      .failed = UNKNOWN_U64, .error = d->scrape_error };
	if (d->scrape)
		e->done = serve_collected(d->scrape, &e->last_ns);
}

static void textfile_tell(const struct daemon *d, struct serve_exporter *e)
{
	struct textfile_stats stats = { .error = d->textfile_error };

	if (d->textfile)
		textfile_read_stats(d->textfile, &stats);
	*e = (struct serve_exporter){ .kind = "textfile", .at = d->config.metrics_textfile,
				      .done = stats.written, .failed = stats.failed,
				      .last_ns = stats.last_ns, .error = stats.error };
}

static void snapshots_tell(const struct daemon *d, struct serve_exporter *e)
{
	struct snapshots_stats stats;

	snapshots_read_stats(d->snapshots, &stats);
	*e = (struct serve_exporter){ .kind = "snapshots", .at = snapshots_dir(d->snapshots),
				      .done = stats.written, .failed = stats.failed,
				      .last_ns = stats.last_ns, .error = stats.error };
}

static void raise_tell_exporter(const struct daemon *d, struct serve_exporter *e)
{
	struct raise_stats stats;

	raise_read_stats(d->raise, &stats);
	*e = (struct serve_exporter){ .kind = "raise", .at = d->config.raise_hosts,
				      .done = stats.asked, .failed = stats.failed,
				      .last_ns = stats.last_ns, .error = stats.error };
}

static void notify_tell(const struct daemon *d, struct serve_exporter *e)
{
	struct notify_stats stats;

	notify_read_stats(d->notify, &stats);
	*e = (struct serve_exporter){ .kind = "on-finding", .at = d->config.on_finding,
				      .done = stats.told, .failed = stats.dropped,
				      .last_ns = stats.last_ns, .error = stats.error };
}

void exports_watch(struct daemon *d, uint64_t now_ns)
{
	d->noutputs = 0;
	if (d->snapshots)
		snapshots_watch(d->snapshots, now_ns, array_must_add(d->outputs, &d->noutputs));
	if (d->blackbox)
		blackbox_watch(d->blackbox, now_ns, array_must_add(d->outputs, &d->noutputs));
	if (d->exemplars)
		exemplars_watch(d->exemplars, now_ns, array_must_add(d->outputs, &d->noutputs));
	if (d->textfile)
		textfile_watch(d->textfile, now_ns, array_must_add(d->outputs, &d->noutputs));
}

size_t exports_outputs(void *arg, const struct writer_output **list)
{
	const struct daemon *d = arg;

	*list = d->outputs;
	return d->noutputs;
}

size_t exports_list(void *arg, struct serve_exporter out[SERVE_EXPORTERS])
{
	struct daemon *d = arg;
	size_t n = 0;

	out[n] = (struct serve_exporter){ .kind = "socket", .at = d->config.socket,
					  .failed = UNKNOWN_U64 };
	out[n].done = serve_collected(d->serve, &out[n].last_ns);
	n++;
	if (d->config.metrics_listen[0])
		scrape_tell(d, &out[n++]);
	if (d->config.metrics_textfile[0])
		textfile_tell(d, &out[n++]);
	if (d->snapshots && d->config.snapshot_interval_ns)
		snapshots_tell(d, &out[n++]);
	if (d->raise)
		raise_tell_exporter(d, &out[n++]);
	if (d->notify)
		notify_tell(d, &out[n++]);
	return n + otlp_tell(d, out + n);
}
