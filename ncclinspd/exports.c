/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures that leave the node: /metrics over TCP, by a second server that has nothing else,
 * and as a file.  Worth having, not worth failing for.
 */
#include <errno.h>
#include <string.h>

#include "ncclinspd/daemon.h"
#include "shmring/clock.h"
#include "util/list.h"

#define CONNECTIONS	16

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
}

void exports_stop(struct daemon *d)
{
	serve_close(d->scrape);
	textfile_free(d->textfile);
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
	return n;
}
