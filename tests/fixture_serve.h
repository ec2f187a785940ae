/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FIXTURE_SERVE_H
#define TESTS_FIXTURE_SERVE_H

/*
 * A server over a state made by hand, and a client that speaks to it byte by
 * byte, both in this thread.  Time is fx.now_ns and moves only when told to.
 */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <jansson.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ncclinspd/compare/straggler.h"
#include "ncclinspd/findings/diagnose.h"
#include "ncclinspd/levels/steer.h"
#include "ncclinspd/metrics/metrics.h"
#include "ncclinspd/serve/serve.h"
#include "ncclinspd/sums/aggregate.h"
#include "ncclinspd/sums/oplog.h"
#include "ncclinspd/sums/queues.h"
#include "ncclinspd/sums/transferlog.h"
#include "reader/base/names.h"
#include "reader/join/reconstruct.h"
#include "tests/fixture.h"
#include "tests/fx_evidence.h"

#define FX_START_NS	UINT64_C(5000000000000)
#define FX_EPOCH_NS	UINT64_C(1700000000000000000)	/* CLOCK_REALTIME at FX_START_NS */
#define FX_SECOND	UINT64_C(1000000000)
#define FX_FUNC		"AllReduce"
#define FX_NAMES	8	/* kept, half of them of one user */
#define FX_COMM_ID	UINT64_C(0xd00dfeedcafe0001)

static struct {
	struct serve *serve;
	struct aggregate *aggregate;
	struct links *links;
	struct queues *queues;
	struct transferlog *transferlog;
	struct metrics *metrics;
	struct oplog *oplog;
	struct diagnose *diagnose;
	struct straggler *straggler;
	struct steer *steer;
	struct reconstruct *reconstruct;
	struct names *names;
	struct process *processes[8];
	struct foreign foreign[2];	/* abi_major 0: none */
	size_t nprocesses;
	struct live_slot slots[64];
	int nslots;
	uint32_t meanwhiles;	/* turns that the server gave its source */
	uint64_t spent_ns, part_ns;	/* time of answers so far, and what each turn adds to it */
	void (*turn)(void);	/* called at each, and when the server goes to work or rests */
	struct serve_ingest ingest;
	int snapshot;		/* what came of the newest; -EAGAIN: it is being written */
	uint64_t now_ns;
	int64_t set_ns;		/* what the wall clock was set by since the start */
	struct sockaddr_un addr;
} fx;

/* NULL, or what a test has made before it opens the server. */
static struct exemplars *fx_exemplars;
static bool fx_has_snapshots;
static struct accounts *fx_accounts_served;

static inline size_t fx_processes(void *arg, struct process *const **list)
{
	(void)arg;
	*list = fx.processes;
	return fx.nprocesses;
}

/* The slots are the first process's. */
static inline int fx_slots(void *arg, struct process *p, const struct live_slot **slots)
{
	(void)arg;
	*slots = fx.slots;
	return p == fx.processes[0] ? fx.nslots : 0;
}

static inline const struct foreign *fx_next_foreign(void *arg, size_t *i)
{
	(void)arg;
	return *i < 2 && fx.foreign[*i].abi_major ? &fx.foreign[(*i)++] : NULL;
}

static inline void fx_ingest(void *arg, struct serve_ingest *out)
{
	(void)arg;
	*out = fx.ingest;
}

static inline int fx_snapshot(void *arg, uint64_t now_ns, char *path, uint64_t *bytes,
			      uint64_t *ticket)
{
	(void)arg;
	(void)now_ns;
	strcpy(path, "/there/it-is");
	*bytes = 17;
	*ticket = 23;
	return 0;
}

static inline int fx_snapshot_outcome(void *arg, uint64_t ticket)
{
	(void)arg;
	ck_assert_uint_eq(ticket, 23);
	return fx.snapshot;
}

static inline int fx_steered(void *arg, uint64_t now_ns)
{
	(void)arg;
	return steer_changed(fx.steer, fx.processes, fx.nprocesses, now_ns);
}

static inline void fx_steer_open(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/control", fx_tmpdir());
	ck_assert_int_eq(steer_new(&fx.steer, &(struct steer_config){ .control = path,
			 .levels = { .detail = true, .thrift = true } }, fx.now_ns), 0);
}

static inline void fx_metrics_open(bool fleet)
{
	const struct metrics_config config = { .host = "node \"7\"", .fleet = fleet };
	const struct metrics_source source = {
		.processes = fx_processes, .reconstruct = fx.reconstruct,
		.straggler = fx.straggler, .steer = fx.steer, .diagnose = fx.diagnose,
	};

	ck_assert_int_eq(metrics_new(&fx.metrics, &config, &source), 0);
}

static inline void fx_turn(void)
{
	if (fx.turn)
		fx.turn();
}

static inline void fx_meanwhile(void *arg)
{
	(void)arg;
	fx.meanwhiles++;
	fx.spent_ns += fx.part_ns;
	fx_turn();
}

static inline uint64_t fx_spent(void *arg)
{
	(void)arg;
	return fx.spent_ns;
}

static inline int fx_listen(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	fx.addr.sun_family = AF_UNIX;
	snprintf(fx.addr.sun_path, sizeof(fx.addr.sun_path), "%s/sock", fx_tmpdir());
	unlink(fx.addr.sun_path);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&fx.addr, sizeof(fx.addr)), 0);
	ck_assert_int_eq(listen(fd, 128), 0);
	return fd;
}

static inline void fx_serve_done(const struct op *op, uint64_t now_ns, void *arg)
{
	(void)arg;
	oplog_add(fx.oplog, op);
	diagnose_ops(fx.diagnose, &op, 1, now_ns);
	serve_op(fx.serve, op);
}

static inline void fx_finding(void *arg, const struct finding *f, uint64_t now_ns)
{
	(void)arg;
	(void)now_ns;
	serve_finding(fx.serve, f);
}

static inline void fx_diagnose_open(void)
{
	const struct diagnose_config config = { 0 };
	const struct diagnose_source source = {
		.host = "node7",
		.processes = fx_processes,
		.slots = fx_slots,
		.changed = fx_finding,
		.meanwhile = fx_meanwhile,
		.reconstruct = fx.reconstruct,
		.links = fx.links, .queues = fx.queues,
		.straggler = fx.straggler,
	};

	ck_assert_int_eq(diagnose_new(&fx.diagnose, &config, &source), 0);
}

/* `config` may be NULL. */
static inline void fx_serve_open(const struct serve_config *config)
{
	struct serve_config c = config ? *config : (struct serve_config){ 0 };
	struct serve_source source;

	memset(&fx, 0, sizeof(fx));
	fx.now_ns = FX_START_NS;
	ck_assert_int_eq(aggregate_new(&fx.aggregate, NULL, fx.now_ns), 0);
	ck_assert_int_eq(links_new(&fx.links, NULL, fx.now_ns), 0);
	ck_assert_int_eq(queues_new(&fx.queues, NULL), 0);
	ck_assert_int_eq(transferlog_new(&fx.transferlog, 0), 0);
	ck_assert_int_eq(oplog_new(&fx.oplog, 0), 0);
	ck_assert_int_eq(names_new(&fx.names, FX_NAMES), 0);
	ck_assert_int_eq(reconstruct_new(&fx.reconstruct, NULL, fx.names, fx_serve_done, NULL), 0);
	ck_assert_int_eq(straggler_new(&fx.straggler, NULL), 0);
	fx_diagnose_open();
	fx_steer_open();
	fx_metrics_open(false);
	source = (struct serve_source){
		.processes = fx_processes,
		.next_foreign = fx_next_foreign,
		.slots = fx_slots,
		.ingest = fx_ingest,
		.meanwhile = fx_meanwhile,
		.clock_ns = fx_spent,
		.snapshot = fx_has_snapshots ? fx_snapshot : NULL,
		.snapshot_outcome = fx_snapshot_outcome,
		.reconstruct = fx.reconstruct,
		.oplog = fx.oplog, .aggregate = fx.aggregate,
		.links = fx.links, .queues = fx.queues, .transferlog = fx.transferlog,
		.names = fx.names,
		.diagnose = fx.diagnose, .straggler = fx.straggler,
		.exemplars = fx_exemplars, .accounts = fx_accounts_served,
		.metrics = fx.metrics,
		.steered = fx_steered, .steer = fx.steer,
	};
	c.listen_fd = fx_listen();
	c.host = "node \"7\"";
	c.boot_id = "4c1b3c9a-0000-4000-8000-000000000001";
	c.started_mono_ns = FX_START_NS;
	c.started_real_ns = FX_EPOCH_NS;
	ck_assert_int_eq(serve_open(&fx.serve, &c, &source), 0);
}

static inline void fx_serve_close(void)
{
	serve_close(fx.serve);
	diagnose_free(fx.diagnose);
	straggler_free(fx.straggler);
	metrics_free(fx.metrics);
	steer_free(fx.steer);
	reconstruct_free(fx.reconstruct);
	names_free(fx.names);
	oplog_free(fx.oplog);
	aggregate_free(fx.aggregate);
	transferlog_free(fx.transferlog);
	links_free(fx.links);
	queues_free(fx.queues);
	for (size_t i = 0; i < fx.nprocesses; free(fx.processes[i++])) {
		free(fx.processes[i]->comms);
		free(fx.processes[i]->strings);
		free(fx.processes[i]->tags);
	}
}

static inline bool fx_is_due(void)
{
	struct pollfd fd = { .fd = serve_fd(fx.serve), .events = POLLIN };

	return poll(&fd, 1, 0) > 0 || !serve_timeout_ns(fx.serve, fx.now_ns);
}

/* Run the server as a loop does: while it has something to do, and never else. */
static inline void fx_pump(void)
{
	while (fx_is_due()) {
		fx_turn();
		serve_run(fx.serve, fx.now_ns,
			  FX_EPOCH_NS + fx.now_ns - FX_START_NS + (uint64_t)fx.set_ns);
		fx_turn();
	}
}

static inline void fx_pass(uint64_t ns)
{
	fx.now_ns += ns;
	fx_pump();
}

/* ---- what it knows -------------------------------------------------------- */

/* A process with one communicator and one name, FX_FUNC, attached and shown. */
static inline struct process *fx_process(pid_t pid, uid_t uid, int32_t rank)
{
	struct process *p = calloc(1, sizeof(*p));

	p->id = fx.nprocesses + 1;
	p->pid = pid;
	p->uid = uid;
	snprintf(p->file, sizeof(p->file), "ncclinsp.%u.%d.77", uid, pid);
	snprintf(p->command, sizeof(p->command), "train\xff.py");
	snprintf(p->plugin_version, sizeof(p->plugin_version), "0.1.0");
	p->api_version = 6;
	p->level = NCI_LEVEL_NET;
	p->steering = (struct steering){ .known = true, .mode = NCI_MODE_ALWAYS,
					 .sample = NCI_SAMPLE_BUDGET };
	p->mask = NCI_EVENT_BIT(NCI_EV_COLL) | NCI_EVENT_BIT(NCI_EV_KERNEL_CH) |
		  NCI_EVENT_BIT(NCI_EV_PROXY_OP);
	p->records = UINT64_C(1) << 60 | 1;
	p->loss.overrun = 3;
	p->loss.pool = 4;
	p->clock = (struct tick_clock){ .ticks = 1000, .mono_ns = FX_START_NS, .ns_per_tick = 1 };
	p->first_seen_ns = FX_START_NS;
	p->nstrings = 1;
	p->strings = calloc(1, sizeof(*p->strings));
	p->strings[0] = FX_FUNC;
	p->tags = calloc(1, sizeof(*p->tags));
	p->tags[0] = nci_tag_of_name(FX_FUNC, sizeof(FX_FUNC) - 1);
	p->ncomms = 1;
	p->comms = calloc(1, sizeof(*p->comms));
	p->comms[0] = (struct comm){ .ready = true, .has_id = true, .id = FX_COMM_ID, .rank = rank,
				     .nranks = 8, .nnodes = 2, .has_gpu = rank == 0,
				     .gpu_index = 5 };
	snprintf(p->comms[0].name, sizeof(p->comms[0].name), "dp");
	snprintf(p->comms[0].pci_bus_id, sizeof(p->comms[0].pci_bus_id), "0000:1b:00.0");
	p->comms[0].gpu_uuid[15] = 0xab;
	fx.processes[fx.nprocesses++] = p;
	ck_assert_int_eq(reconstruct_attach(fx.reconstruct, p), 0);
	return p;
}

/* A collective that was posted and whose kernels never came. */
static inline void fx_post(struct process *p, uint64_t seq, uint64_t token, uint64_t ticks)
{
	struct nci_ev_coll coll = {
		.type = NCI_EV_COLL, .form = 2, .comm = 0, .serial = 1, .token = token,
		.start = ticks, .stop = ticks + 50, .seq = seq, .count = 1024, .func = 1,
		.cont = NCI_LINE_CONT, .channels = 2, .rank = p->comms[0].rank,
	};
	struct event ev = { .rec = (const struct nci_record *)&coll, .comm = p->comms };

	if (p->mask & NCI_EVENT_BIT(NCI_EV_KERNEL_CH))
		coll.form |= NCI_FORM_WATCHED;
	reconstruct_event(fx.reconstruct, p, &ev, fx.now_ns);
}

/* A send that was posted and may use fewer channels than the four planned: one has run. */
static inline void fx_settle(struct process *p, uint64_t token, uint64_t ticks)
{
	struct nci_ev_p2p send = {
		.type = NCI_EV_P2P, .form = 2 | NCI_FORM_WATCHED, .serial = 1, .token = token,
		.start = ticks, .stop = ticks + 50, .count = 1024, .func = 1, .channels = 4,
		.cont = NCI_LINE_CONT, .rank = p->comms[0].rank, .peer = p->comms[0].rank + 1,
	};
	struct nci_ev_kernel_ch kernel = {
		.type = NCI_EV_KERNEL_CH, .form = 1, .serial = 2, .token = token | 1 << 20,
		.parent = token, .start = ticks + 60, .stop = ticks + 70,
	};
	struct event ev = { .rec = (const struct nci_record *)&send, .comm = p->comms };

	reconstruct_event(fx.reconstruct, p, &ev, fx.now_ns);
	ev.rec = (const struct nci_record *)&kernel;
	reconstruct_event(fx.reconstruct, p, &ev, fx.now_ns);
}

/* ---- the client -------------------------------------------------------- */

static inline int fx_connect(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(connect(fd, (struct sockaddr *)&fx.addr, sizeof(fx.addr)), 0);
	fx_pump();
	return fd;
}

/*
 * Connect as somebody else, which root may: the kernel notes who it is at this
 * moment.  The server is not run before we are root again.
 */
static inline int fx_connect_as(uid_t uid, gid_t extra_group)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(chmod(fx_tmpdir(), 0755), 0);
	ck_assert_int_eq(chmod(fx.addr.sun_path, 0666), 0);
	ck_assert_int_eq(setgroups(1, &extra_group), 0);
	ck_assert_int_eq(setegid(uid), 0);
	ck_assert_int_eq(seteuid(uid), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&fx.addr, sizeof(fx.addr)), 0);
	ck_assert_int_eq(seteuid(0), 0);
	ck_assert_int_eq(setegid(0), 0);
	ck_assert_int_eq(setgroups(0, NULL), 0);
	fx_pump();
	return fd;
}

static inline void fx_send(int fd, const char *text, size_t bytes)
{
	bool full = false;

	while (bytes) {
		ssize_t n = send(fd, text, bytes, MSG_NOSIGNAL);
		int error = errno;

		fx_pump();
		if (n < 0 && error == EAGAIN && !full) {
			full = true;
			continue;
		}
		if (n < 0)
			return;		/* refused, or not read: it gets a stream */
		full = false;
		text += n;
		bytes -= (size_t)n;
	}
	fx_pump();
}

/* What has arrived, as one text that the caller frees. */
static inline char *fx_receive(int fd, bool *closed)
{
	size_t bytes = 0, room = 1 << 16;
	char *text = malloc(room);
	ssize_t n;

	for (;;) {
		fx_pump();
		if (room - bytes < 4096)
			text = realloc(text, room *= 2);
		n = recv(fd, text + bytes, room - bytes - 1, 0);
		if (n <= 0)
			break;
		bytes += (size_t)n;
	}
	if (closed)
		*closed = !n || (n < 0 && errno != EAGAIN);
	text[bytes] = '\0';
	return text;
}

static inline int fx_status(const char *answer)
{
	return strncmp(answer, "HTTP/1.1 ", 9) ? 0 : atoi(answer + 9);
}

static inline const char *fx_body(const char *answer)
{
	const char *body = strstr(answer, "\r\n\r\n");

	ck_assert_msg(body, "no end of headers in: %.200s", answer);
	return body + 4;
}

/* Undo chunked transfer, in place. */
static inline void fx_unchunk(char *answer)
{
	char *to = (char *)(uintptr_t)fx_body(answer), *from = to;
	unsigned long bytes;

	if (!strstr(answer, "Transfer-Encoding: chunked"))
		return;
	while ((bytes = strtoul(from, &from, 16))) {
		memmove(to, from + 2, bytes);
		to += bytes;
		from += 2 + bytes + 2;
	}
	*to = '\0';
}

static inline char *fx_finish(int fd)
{
	char *answer = fx_receive(fd, NULL);

	close(fd);
	fx_pump();
	if (*answer)
		fx_unchunk(answer);
	return answer;
}

/* Over `fd`, which is closed then; `body` may be NULL. */
static inline char *fx_send_over(int fd, const char *method, const char *target, const char *body)
{
	char text[8192], length[64] = "";

	if (body)
		snprintf(length, sizeof(length), "Content-Length: %zu\r\n", strlen(body));
	snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: x\r\n%s\r\n%s", method, target,
		 length, body ? body : "");
	fx_send(fd, text, strlen(text));
	return fx_finish(fd);
}

static inline char *fx_ask_over(int fd, const char *method, const char *target)
{
	return fx_send_over(fd, method, target, NULL);
}

static inline char *fx_ask_text(const char *method, const char *target)
{
	return fx_ask_over(fx_connect(), method, target);
}

/* The object of an answer (taken over), a new reference, if its status is `status`. */
static inline json_t *fx_parse(char *answer, const char *asked, int status)
{
	json_t *value = json_loads(fx_body(answer), 0, NULL), *finding, *evidence;
	size_t i;

	ck_assert_msg(fx_status(answer) == status, "%s: %.600s", asked, answer);
	ck_assert_msg(value, "%s: no JSON: %.2000s", asked, fx_body(answer));
	json_array_foreach(json_object_get(value, "findings"), i, finding)
		if ((evidence = json_object_get(finding, "evidence")))
			fx_evidence_is_explained(evidence);
	free(answer);
	return value;
}

static inline json_t *fx_get_over(int fd, const char *target, int status)
{
	return fx_parse(fx_ask_over(fd, "GET", target), target, status);
}

static inline json_t *fx_put_over(int fd, const char *target, const char *body, int status)
{
	return fx_parse(fx_send_over(fd, "PUT", target, body), body, status);
}

static inline json_t *fx_get(const char *target, int status)
{
	return fx_get_over(fx_connect(), target, status);
}

/* A member by its path, as "a.b"; NULL: none. */
static inline json_t *fx_at(json_t *value, const char *path)
{
	char part[64];

	while (value && *path) {
		size_t bytes = strcspn(path, ".");

		snprintf(part, sizeof(part), "%.*s", (int)bytes, path);
		value = json_is_array(value) ? json_array_get(value, (size_t)atoi(part))
					     : json_object_get(value, part);
		path += bytes + (path[bytes] == '.');
	}
	return value;
}

static inline const char *fx_text(json_t *value, const char *path)
{
	return json_string_value(fx_at(value, path));
}

static inline uint64_t fx_number(json_t *value, const char *path)
{
	json_t *number = fx_at(value, path);

	ck_assert_msg(json_is_integer(number), "%s is no whole number", path);
	return (uint64_t)json_integer_value(number);
}

#endif
