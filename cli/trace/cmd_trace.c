/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ncclinsp trace: what NCCL does, event by event, as a file for Perfetto's UI: of the next
 * seconds, or of what a black box or an exemplar holds.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/base/intake.h"
#include "cli/base/interrupt.h"
#include "cli/base/member.h"
#include "cli/common/cli.h"
#include "cli/common/label.h"
#include "cli/offline/segment.h"
#include "cli/trace/trace_file.h"
#include "cli/trace/trace_kernels.h"
#include "cli/trace/trace_otf2.h"
#include "util/list.h"
#include "util/text.h"

#define DEFAULT_NS UINT64_C(5000000000)
#define LINGER_NS  UINT64_C(500000000)	/* time until the last operations have been told */
#define PIDS_MOST  32			/* pids that a stream can be asked for */
#define WISHES	   16			/* wishes that a user may have */

struct session {
	struct cli *cli;
	struct trace trace;
	struct trace_out *out;		/* NULL: `otf2` it is */
	struct trace_otf2 *otf2;
	json_t *pids;		/* processes to draw; empty: all */
	json_t *bodies;		/* requests by which the level was raised */
	uint64_t until_ns;
	size_t processes;
};

/* ---- whom ------------------------------------------------------------------------ */

static bool pid_is_member(const struct cli *cli, const json_t *comms, const json_t *pid)
{
	json_each(comm, comms) {
		if (!label_matches(cli->comm, comm))
			continue;
		json_each(rank, json_object_get(comm, "local_ranks"))
			if (json_equal((json_t *)pid, json_object_get(rank, "pid")))
				return true;
	}
	return false;
}

/* Counts the pids in "4711,4712"; 0: it is no such list. */
static size_t session_count_pids(const char *list)
{
	size_t n = 0;
	int64_t pid;

	for (;; list++) {
		size_t len = strcspn(list, ",");
		char one[24];

		snprintf(one, sizeof(one), "%.*s", (int)len, list);
		if (text_parse_integer(one, 1, INT32_MAX, &pid))
			return 0;
		n++;
		list += len;
		if (!*list)
			return n;
	}
}

static bool pid_is_listed(const char *list, json_int_t pid)
{
	for (; *list; list += strcspn(list, ","), list += *list == ',')
		if (strtoll(list, NULL, 10) == pid)
			return true;
	return false;
}

static bool process_is_wanted(const struct cli *cli, const json_t *process, const json_t *comms)
{
	const json_t *pid = json_object_get(process, "pid");
	const char *job = json_string_value(report_get(process, "job.id"));

	if (!member_is(process, "state", "live"))
		return false;
	return (!cli->pids || pid_is_listed(cli->pids, json_integer_value(pid))) &&
	       (!cli->job || (job && !strcmp(job, cli->job))) &&
	       (!cli->comm || pid_is_member(cli, comms, pid));
}

static bool session_is_filtered(const struct cli *cli)
{
	return cli->pids || cli->job || cli->comm;
}

/* The processes that are meant; an exit code. */
static int session_choose(struct session *s, const json_t *processes, json_t *comms)
{
	json_each(process, processes)
		if (process_is_wanted(s->cli, process, comms))
			json_array_append(s->pids, json_object_get(process, "pid"));
	s->processes = json_array_size(s->pids);
	if (!s->processes) {
		fprintf(stderr, "ncclinsp: no process %s; ncclinsp ps lists them\n",
			session_is_filtered(s->cli) ? "that uses NCCL matches" : "uses NCCL");
		return CLI_NOTHING;
	}
	if (s->cli->pids && s->processes < session_count_pids(s->cli->pids))
		fprintf(stderr, "only %zu of the %zu processes given use NCCL now; ncclinsp ps "
			"lists them\n", s->processes, session_count_pids(s->cli->pids));
	if (session_is_filtered(s->cli) && s->processes > PIDS_MOST)
		return cli_reject("%zu processes match, but at most %d can be chosen: use --pid, "
				  "or trace all", s->processes, PIDS_MOST);
	return CLI_DONE;
}

/* ---- the level ------------------------------------------------------------------- */

static json_t *session_body(const json_t *pid, const char *job, double seconds)
{
	json_t *body = json_pack("{s:s, s:s, s:f}", "level", "trace", "sample", "all", "for_s",
				 seconds);

	if (pid)
		json_object_set(body, "pid", (json_t *)pid);
	if (job)
		json_object_set_new(body, "job", json_string(job));
	return body;
}

static int session_put_level(struct session *s, json_t *body)
{
	json_t *answer;
	int r = client_put(s->cli->client, "/v1/level", body, &answer);

	if (r == 0) {
		json_decref(answer);
		json_array_append(s->bodies, body);
	}
	json_decref(body);
	return r;
}

/* Each by itself: of the node only who sees everything may ask it. */
static int session_raise_each(struct session *s, double seconds)
{
	int r = 0;

	if (s->processes > WISHES)
		return cli_reject("you have %zu processes, and the level of at most %d can be "
				  "raised at a time: choose by --job, --comm or --pid",
				  s->processes, WISHES);
	json_each(pid, s->pids)
		if (!r)
			r = session_put_level(s, session_body(pid, NULL, seconds));
	return r ? cli_fail(s->cli, r) : CLI_DONE;
}

/* Raises the level for the time of the trace: it falls back by itself, whatever becomes of us. */
static int session_raise_level(struct session *s, double seconds)
{
	int r;

	if (s->cli->job && !s->cli->comm && !s->cli->pids)
		r = session_put_level(s, session_body(NULL, s->cli->job, seconds));
	else if (session_is_filtered(s->cli))
		return session_raise_each(s, seconds);
	else
		r = session_put_level(s, session_body(NULL, NULL, seconds));
	if (r == -EACCES)
		return session_raise_each(s, seconds);
	return r ? cli_fail(s->cli, r) : CLI_DONE;
}

/* Sooner than was said: as short as it can be. */
static void session_lower_level(struct session *s)
{
	json_t *answer;

	json_each(body, s->bodies) {
		json_object_set_new(body, "for_s", json_real(0.1));
		if (client_put(s->cli->client, "/v1/level", body, &answer) == 0)
			json_decref(answer);
	}
}

/* ---- live ------------------------------------------------------------------------ */

static bool session_goes_on(void *arg)
{
	const struct session *s = arg;

	return !interrupt_came() && cli_now_ns() < s->until_ns &&
	       !(s->out && trace_out_error(s->out));
}

static int session_on_line(void *arg, const char *text, size_t len)
{
	struct session *s = arg;
	json_auto_t *line = intake_read(text, len, NULL);

	trace_take_line(&s->trace, line);
	return !session_goes_on(s);
}

static void session_put_target(const struct session *s, char *buf, size_t size)
{
	size_t i, used = (size_t)snprintf(buf, size, "/v1/stream?kinds=record,collective,process");
	const json_t *pid;

	if (!session_is_filtered(s->cli))
		return;
	json_array_foreach(s->pids, i, pid)
		used += (size_t)snprintf(buf + used, size - used, "%s%" PRId64, i ? "," : "&pid=",
					 (int64_t)json_integer_value(pid));
}

/* Asks for what is still open, and for what is wrong: they are told on request only. */
static void session_ask_for_the_rest(struct session *s)
{
	json_t *root;
	size_t k;

	if (client_get(s->cli->client, "/v1/inflight", &root) == 0) {
		json_each(row, json_object_get(root, "inflight"))
			for (k = 0; k < json_array_size(s->pids); k++)
				if (json_equal(json_array_get(s->pids, k),
					       json_object_get(row, "pid")))
					trace_inflight(&s->trace, row, cli_now_ns());
		json_decref(root);
	}
	if (client_get(s->cli->client, "/v1/findings", &root) == 0) {
		json_each(row, json_object_get(root, "findings"))
			trace_finding(&s->trace, row);
		json_decref(root);
	}
}

static int session_follow(struct session *s, uint64_t for_ns)
{
	uint64_t began_ns = cli_now_ns();
	char target[1024];
	int r;

	s->until_ns = began_ns + for_ns + LINGER_NS;
	s->trace.from_ns = began_ns;
	session_put_target(s, target, sizeof(target));
	r = client_stream(s->cli->client, target, session_on_line, session_goes_on, s);
	if (cli_now_ns() < began_ns + for_ns)
		session_lower_level(s);
	if (r < 0)
		return cli_fail(s->cli, r);
	if (session_goes_on(s))
		fprintf(stderr, "ncclinsp: the daemon ended the stream; what came is kept\n");
	session_ask_for_the_rest(s);
	return interrupt_came() ? CLI_INTERRUPTED : CLI_DONE;
}

static int session_take_live(struct session *s)
{
	uint64_t for_ns = s->cli->for_ns ? s->cli->for_ns : DEFAULT_NS;
	json_auto_t *processes = NULL, *comms = NULL;
	int r = client_get(s->cli->client, "/v1/processes", &processes), code;

	if (r == 0)
		r = client_get(s->cli->client, "/v1/comms", &comms);
	code = r ? cli_fail(s->cli, r) : CLI_DONE;
	if (!code)
		code = session_choose(s, json_object_get(processes, "processes"),
				      json_object_get(comms, "comms"));
	if (!code) {
		trace_who_read(s->trace.who, json_object_get(processes, "processes"),
			       json_object_get(comms, "comms"));
		code = session_raise_level(s, (double)for_ns * 1e-9);
	}
	return code ? code : session_follow(s, for_ns);
}

/* ---- from a segment -------------------------------------------------------------- */

static void on_event(const struct process *p, const struct event *event, void *arg)
{
	struct session *s = arg;

	trace_records_event(&s->trace, p, event);
}

/* The process's name, and what it left unfinished. */
static void take_rows(struct session *s, uint64_t until_ns)
{
	json_auto_t *processes = NULL, *comms = NULL, *inflight = NULL;

	client_get(s->cli->client, "/v1/processes", &processes);
	client_get(s->cli->client, "/v1/comms", &comms);
	client_get(s->cli->client, "/v1/inflight", &inflight);
	trace_who_read(s->trace.who, json_object_get(processes, "processes"),
		       json_object_get(comms, "comms"));
	json_each(row, json_object_get(inflight, "inflight"))
		trace_inflight(&s->trace, row, until_ns);
}

/* Draws what the segment holds and, of a process that runs, what comes in the time. */
static int take_segment(struct session *s)
{
	struct segment_source *source = s->cli->segment_source;
	uint64_t lost, until_ns;
	int r;

	s->until_ns = cli_now_ns() + (s->cli->for_ns ? s->cli->for_ns : DEFAULT_NS);
	segment_source_on_event(source, on_event, s);
	r = client_stream(s->cli->client, "", session_on_line, session_goes_on, s);
	if (r < 0)
		return CLI_FAILED;	/* the source has said why */
	lost = segment_source_lost(source, &until_ns);
	take_rows(s, until_ns);
	if (lost)
		trace_loss(&s->trace, 0, lost, s->trace.w.first_ns, until_ns,
			   "overwritten before they were read, or refused for lack of room");
	return interrupt_came() ? CLI_INTERRUPTED : CLI_DONE;
}

/* ---- from a file ----------------------------------------------------------------- */

static int session_tell_refused(const char *what, const char *why, int error)
{
	fprintf(stderr, "ncclinsp: cannot trace %s: %s\n", what, why);
	return error == -ESRCH ? CLI_NOTHING : CLI_FAILED;
}

static int session_take_file(struct session *s, const char *path)
{
	FILE *in = fopen(path, "re");
	const char *why;
	int r;

	if (!in)
		return session_tell_refused(path, strerror(errno), -errno);
	r = trace_read(&s->trace, in, &why);
	fclose(in);
	return r ? session_tell_refused(path, why, r) : CLI_DONE;
}

static int session_take_exemplar(struct session *s, const char *id)
{
	char target[128];
	const char *why;
	json_auto_t *root = NULL;
	int r;

	if (strspn(id, "0123456789TZ.-") != strlen(id) || strlen(id) > 64)
		return session_tell_refused(id, "this is no exemplar's id; ncclinsp exemplars "
					    "lists them", -ESRCH);
	snprintf(target, sizeof(target), "/v1/exemplars/%s", id);
	r = client_get(s->cli->client, target, &root);
	if (r == -ESRCH)
		return session_tell_refused(id, "there is no such exemplar; ncclinsp exemplars "
					    "lists them", r);
	if (r)
		return cli_fail(s->cli, r);
	r = trace_document(&s->trace, root, &why);
	return r ? session_tell_refused(id, why, r) : CLI_DONE;
}

/* The newest operations that the daemon knows, of the past unlike those of a live trace. */
static int session_take_remembered(struct session *s)
{
	static const char *const targets[] = {
		"/v1/processes", "/v1/comms", "/v1/collectives?limit=10000", "/v1/findings",
	};
	json_t *all = json_object(), *root;
	const char *why;
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(targets) && !r; i++) {
		r = client_get(s->cli->client, targets[i], &root);
		if (r)
			continue;
		json_object_update(all, root);
		json_decref(root);
	}
	if (r) {
		r = cli_fail(s->cli, r);
	} else {
		r = trace_answers(&s->trace, all, &why);
		r = r ? session_tell_refused("what ncclinspd remembers", why, r) : CLI_DONE;
	}
	json_decref(all);
	return r;
}

/* ---- and then -------------------------------------------------------------------- */

static void session_tell(const struct session *s, const struct trace *t, const char *path,
			 uint64_t size_bytes)
{
	uint64_t span_ns = t->w.last_ns - t->w.first_ns;
	char span[TEXT_MAX], bytes[TEXT_MAX];

	text_duration(span, sizeof(span), span_ns);
	text_bytes(bytes, sizeof(bytes), size_bytes);
	if (s->otf2)
		fprintf(stderr, "%s: %s, %" PRIu64 " slices\n", path, span, t->w.counts.slices);
	else
		fprintf(stderr, "%s: %s, %" PRIu64 " slices, %" PRIu64 " arrows, %s\n", path, span,
			t->w.counts.slices, t->w.counts.arrows, bytes);
	if (t->lost)
		fprintf(stderr, "%" PRIu64 " of %" PRIu64 " records are missing; the threads "
			"named \"lost\" show when: trace fewer processes (--pid, --comm)\n",
			t->lost, t->lost + t->nrecords);
	if (t->malformed)
		fprintf(stderr, "lines or records that could not be read: %" PRIu64 "\n",
			t->malformed);
	if (t->live && !t->nrecords)
		fputs("no records came: the processes make no NCCL calls, or do not follow the "
		      "level (ncclinsp level)\n", stderr);
	if (s->otf2)
		fprintf(stderr, "open %s/traces.otf2 in Vampir, or read it with otf2-print\n",
			path);
	else
		fputs("open it in https://ui.perfetto.dev or chrome://tracing\n", stderr);
}

/* The text by which the file names what it is made from. */
static const char *source_of(const struct cli *cli, bool live)
{
	if (cli->segment)
		return cli->segment;
	return live ? "live" : cli->argument ?: cli->exemplar ?: "remembered";
}

/* Returns 0, else the reason is in `why`. */
static int session_open(struct session *s, const char *path, char why[256])
{
	size_t n = strlen(path);
	int r;

	if (n > 5 && !strcmp(path + n - 5, ".otf2"))
		return trace_otf2_open(&s->otf2, path, why);
	r = trace_out_open(&s->out, path);
	snprintf(why, 256, "%s", strerror(-r));
	return r;
}

static void session_drop(struct session *s)
{
	if (s->out)
		trace_out_drop(s->out);
	trace_otf2_drop(s->otf2);
}

static int session_close(struct session *s, char why[256])
{
	bool here = s->trace.live && !s->cli->segment;
	uint64_t left_out = 0;
	int r;

	if (s->otf2) {
		if (here)
			gethostname(s->trace.host, sizeof(s->trace.host) - 1);
		r = trace_otf2_close(s->otf2, *s->trace.host ? s->trace.host : "node",
				     here ? (uint64_t)cli_real_offset_ns() : 0, why, &left_out);
		if (left_out)
			fprintf(stderr, "%" PRIu64 " slices had no room and are missing: trace "
				"for a shorter time, or fewer processes\n", left_out);
		return r;
	}
	r = trace_out_close(s->out);
	snprintf(why, 256, "%s", strerror(-r));
	return r;
}

static int session_finish(struct session *s, const char *path, int code)
{
	uint64_t size_bytes;
	char why[256];
	int r;

	if (code && code != CLI_INTERRUPTED) {
		trace_finish(&s->trace, "");
		session_drop(s);
		return code;
	}
	trace_finish(&s->trace, source_of(s->cli, s->trace.live));
	size_bytes = s->out ? trace_out_bytes(s->out) : 0;
	r = session_close(s, why);
	if (r == 0) {
		session_tell(s, &s->trace, path, size_bytes);
		return code;
	}
	if (r != -EPIPE)
		fprintf(stderr, "ncclinsp: cannot write %s: %s\n", path, why);
	return CLI_FAILED;
}

static int session_take(struct session *s)
{
	if (s->cli->segment_source)
		return take_segment(s);
	if (s->cli->argument)
		return session_take_file(s, s->cli->argument);
	if (s->cli->exemplar)
		return session_take_exemplar(s, s->cli->exemplar);
	return s->trace.kernels ? session_take_remembered(s) : session_take_live(s);
}

int cmd_trace(struct cli *cli)
{
	struct session s = { .cli = cli };
	bool live = !cli->argument && !cli->exemplar && !cli->kernels.count;
	struct trace_kernels *kernels = NULL;
	char why[256];
	int r, code;

	if (!cli->path)
		return cli_reject("trace needs -o FILE (.json, .json.gz, .json.zst, .otf2), or "
				  "-o - for stdout");
	if (!live && (session_is_filtered(cli) || cli->for_ns))
		return cli_reject("--for, --pid, --job and --comm go with a live trace, not with "
				  "a file, an exemplar or --kernels");
	if (cli->pids && !session_count_pids(cli->pids))
		return cli_reject("'%s' does not fit --pid: process ids, such as 4711 or "
				  "4711,4712", cli->pids);
	if (!!cli->argument + !!cli->exemplar + !!cli->segment > 1)
		return cli_reject("give only one of: a file, --segment, --exemplar");
	if (cli->segment && session_is_filtered(cli))
		return cli_reject("--pid, --job and --comm do not go with --segment: a segment is "
				  "of one process");
	if (cli->segment && cli->kernels.count)
		return cli_reject("--kernels goes with a file or a daemon, not with --segment");
	kernels = cli->kernels.count ? trace_kernels_new(cli->kernels.text, cli->kernels.count)
				     : NULL;
	if (cli->kernels.count && !kernels)
		return CLI_FAILED;
	interrupt_catch();
	r = session_open(&s, cli->path, why);
	if (r < 0) {
		fprintf(stderr, "ncclinsp: cannot write %s: %s\n", cli->path, why);
		trace_kernels_free(kernels);
		return CLI_FAILED;
	}
	s.pids = json_array();
	s.bodies = json_array();
	trace_init(&s.trace, s.out, live);
	s.trace.w.otf2 = s.otf2;
	s.trace.kernels = kernels;
	code = session_finish(&s, cli->path, session_take(&s));
	trace_kernels_free(kernels);
	json_decref(s.pids);
	json_decref(s.bodies);
	return code;
}
