/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon, from top to bottom: what it consists of, how it starts, what it
 * does when something happens, how it stops.  main() is at the end.
 *
 *     discover -> drain -> decode -> reconstruct -> aggregate, oplog -> serve
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ncclinspd/aggregate.h"
#include "ncclinspd/config.h"
#include "ncclinspd/discover.h"
#include "ncclinspd/drain.h"
#include "ncclinspd/instance.h"
#include "ncclinspd/loop.h"
#include "ncclinspd/names.h"
#include "ncclinspd/oplog.h"
#include "ncclinspd/reconstruct.h"
#include "ncclinspd/serve.h"
#include "ncclinspd/ticks.h"
#include "shmring/clock.h"

#define FIRST_TICKS_NS	UINT64_C(5000000)	/* between the first two pairs */
#define TICKS_NS	UINT64_C(1000000000)	/* between two pairs later */
#define SLICE_NS	100000

struct daemon {
	struct config config;
	struct instance instance;
	int listen_fd;			/* until serve has it */
	int ready_fd;			/* where our parent waits for us; -1: none does */
	struct loop *loop;
	struct ticks ticks;
	uint64_t ticks_wait_ns;
	uint64_t started_mono_ns, started_real_ns;
	struct names *names;
	struct reconstruct *reconstruct;
	struct aggregate *aggregate;
	struct oplog *oplog;
	struct drain *drain;
	struct discover *discover;
	struct serve *serve;
	struct loop_timer poll_timer, ticks_timer, serve_timer;
};

/* ---- data on its way -------------------------------------------------------- */

static void on_event(void *arg, struct process *p, const struct event *event, uint64_t now_ns)
{
	struct daemon *d = arg;

	reconstruct_event(d->reconstruct, p, event, now_ns);
}

static void on_op(const struct op *op, uint64_t now_ns, void *arg)
{
	struct daemon *d = arg;

	aggregate_add(d->aggregate, op, now_ns);
	oplog_add(d->oplog, op);
	if (d->serve)
		serve_op(d->serve, op);
}

static void on_appeared(void *arg, struct process *p, uint64_t now_ns)
{
	struct daemon *d = arg;
	int r = reconstruct_attach(d->reconstruct, p);

	if (r < 0)
		log_say(LOG_WARN, "operations of pid=%d cannot be followed error=\"%s\"",
			(int)p->pid, strerror(-r));
	log_say(LOG_DEBUG, "process appeared pid=%d command=%s", (int)p->pid, p->command);
	loop_arm(d->loop, &d->poll_timer, now_ns);	/* it may fill its lanes soon */
	if (d->serve)
		serve_process(d->serve, p);
}

static void on_ended(void *arg, struct process *p, uint64_t now_ns)
{
	struct daemon *d = arg;

	reconstruct_end(d->reconstruct, p, now_ns);
	if (d->serve)
		serve_process(d->serve, p);
}

static void on_forgotten(void *arg, struct process *p)
{
	struct daemon *d = arg;

	reconstruct_detach(d->reconstruct, p);
}

/* What only the events in flight can decide. */
static void settle(struct daemon *d, uint64_t now_ns)
{
	struct process *const *list;
	size_t n = discover_processes(d->discover, &list);

	for (size_t i = 0; i < n; i++) {
		const struct live_slot *slots;
		int count;

		if (list[i]->state != PROCESS_LIVE ||
		    !reconstruct_wants_slots(d->reconstruct, list[i], now_ns))
			continue;
		count = drain_slots(d->drain, list[i], &slots);
		if (count >= 0)
			reconstruct_settle(d->reconstruct, list[i], slots, (size_t)count, now_ns);
	}
}

static void on_poll_timer(void *arg, uint64_t now_ns)
{
	struct daemon *d = arg;
	uint64_t next_ns = drain_poll(d->drain, now_ns);

	settle(d, now_ns);
	reconstruct_flush(d->reconstruct, now_ns);
	loop_arm(d->loop, &d->poll_timer, next_ns);
}

/* ---- time ------------------------------------------------------------------- */

/* Often at first, when each pair makes the rate much better. */
static void on_ticks_timer(void *arg, uint64_t now_ns)
{
	struct daemon *d = arg;
	struct ticks_pair pair;

	ticks_read(d->ticks.clock.kind, &pair);
	ticks_observe(&d->ticks, &pair);
	loop_arm(d->loop, &d->ticks_timer, now_ns + d->ticks_wait_ns);
	if (d->ticks_wait_ns < TICKS_NS)
		d->ticks_wait_ns *= 2;
}

/* Two pairs before the first segment is read, so that no tick is without a time. */
static void start_ticks(struct daemon *d)
{
	const struct timespec wait = { .tv_nsec = FIRST_TICKS_NS };
	struct ticks_pair pair;

	ticks_init(&d->ticks, ticks_hardware());
	ticks_read(d->ticks.clock.kind, &pair);
	ticks_observe(&d->ticks, &pair);
	nanosleep(&wait, NULL);
	d->ticks_wait_ns = FIRST_TICKS_NS;
	d->ticks_timer = (struct loop_timer){ .fn = on_ticks_timer, .arg = d };
	on_ticks_timer(d, loop_clock_ns());
}

/* ---- answers ---------------------------------------------------------------- */

static size_t source_processes(void *arg, struct process *const **list)
{
	struct daemon *d = arg;

	return discover_processes(d->discover, list);
}

static int source_slots(void *arg, struct process *p, const struct live_slot **slots)
{
	struct daemon *d = arg;

	return drain_slots(d->drain, p, slots);
}

static void source_ingest(void *arg, struct serve_ingest *out)
{
	struct daemon *d = arg;
	struct drain_totals sum;

	drain_sum(d->drain, &sum);
	*out = (struct serve_ingest){
		.records = sum.records,
		.bytes = sum.bytes,
		.lost = sum.lost,
		.before = sum.before,
		.rejected = sum.rejected + discover_refused(d->discover),
		.segments = discover_attached(d->discover),
		.poll_interval_ns = sum.poll_interval_ns,
	};
}

/* Many clients at once take longer than a busy lane takes to fill. */
static void source_meanwhile(void *arg)
{
	struct daemon *d = arg;
	uint64_t now_ns = loop_clock_ns();

	if (d->poll_timer.armed && now_ns >= d->poll_timer.at_ns)
		on_poll_timer(d, now_ns);
}

static void source_catch_up(void *arg)
{
	on_poll_timer(arg, loop_clock_ns());
}

static void run_server(void *arg, uint64_t now_ns)
{
	struct daemon *d = arg;

	serve_run(d->serve, now_ns, clock_ns(CLOCK_REALTIME));
}

/* At the end of a round: lines for streams may have come up. */
static void on_round(void *arg, uint64_t now_ns)
{
	struct daemon *d = arg;
	uint64_t wait_ns = serve_timeout_ns(d->serve, now_ns);

	if (wait_ns == UINT64_MAX)
		loop_cancel(d->loop, &d->serve_timer);
	else
		loop_arm(d->loop, &d->serve_timer, now_ns + wait_ns);
}

static void read_boot_id(char id[64])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, id, 63);

	if (fd >= 0)
		close(fd);
	id[n > 0 ? n : 0] = '\0';
	id[strcspn(id, "\n")] = '\0';
}

static int start_server(struct daemon *d)
{
	struct serve_source source = {
		.arg = d,
		.processes = source_processes,
		.slots = source_slots,
		.ingest = source_ingest,
		.meanwhile = source_meanwhile,
		.catch_up = source_catch_up,
		.reconstruct = d->reconstruct,
		.oplog = d->oplog,
		.aggregate = d->aggregate,
	};
	char host[256] = "", boot_id[64];
	struct serve_config config = {
		.listen_fd = d->listen_fd,
		.host = host,
		.loop = loop_backend(d->loop),
		.started_mono_ns = d->started_mono_ns,
		.started_real_ns = d->started_real_ns,
	};
	int r;

	gethostname(host, sizeof(host) - 1);
	read_boot_id(boot_id);
	config.boot_id = boot_id[0] ? boot_id : NULL;
	d->listen_fd = -1;
	r = serve_open(&d->serve, &config, &source);
	if (r < 0)
		return r;
	d->serve_timer = (struct loop_timer){ .fn = run_server, .arg = d };
	loop_hook(d->loop, on_round, d);
	return loop_add(d->loop, serve_fd(d->serve), run_server, d);
}

/* ---- start and stop --------------------------------------------------------- */

static void on_stop(void *arg, uint64_t now_ns)
{
	struct daemon *d = arg;

	(void)now_ns;
	log_say(LOG_DEBUG, "asked to stop");
	loop_stop(d->loop);
}

static int start_loop(struct daemon *d)
{
	int r = loop_new(&d->loop, d->config.loop);

	if (r < 0) {
		log_say(LOG_ERROR, "no event loop backend=%s error=\"%s\"",
			d->config.loop ? d->config.loop : "any", strerror(-r));
		return r;
	}
	signal(SIGPIPE, SIG_IGN);
	r = loop_signal(d->loop, SIGTERM, on_stop, d);
	if (r == 0)
		r = loop_signal(d->loop, SIGINT, on_stop, d);
	return r;
}

static int start_stages(struct daemon *d, uint64_t now_ns)
{
	struct reconstruct_limits limits = { 0 };
	struct aggregate_limits cells = { 0 };
	int r;

	if (getrandom(&limits.seed, sizeof(limits.seed), GRND_NONBLOCK) < 0)
		limits.seed = now_ns;
	cells.seed = limits.seed;
	r = names_new(&d->names, NAMES_DEFAULT);
	if (r == 0)
		r = reconstruct_new(&d->reconstruct, &limits, d->names, on_op, d);
	if (r == 0)
		r = aggregate_new(&d->aggregate, &cells, now_ns);
	if (r == 0)
		r = oplog_new(&d->oplog, OPLOG_DEFAULT);
	if (r == 0)
		r = drain_new(&d->drain, d->loop, &d->ticks.clock, on_event, d);
	return r;
}

static int start_discovery(struct daemon *d, uint64_t now_ns)
{
	const struct discover_config config = {
		.dir = d->config.shm_dir,
		.everybody = d->config.everybody,
		.max_segments = d->config.max_segments,
		.max_ended = d->config.max_ended,
		.keep_ns = d->config.keep_ns,
	};
	const struct discover_hooks hooks = {
		.appeared = on_appeared,
		.ended = on_ended,
		.forgotten = on_forgotten,
		.arg = d,
	};

	d->poll_timer = (struct loop_timer){ .fn = on_poll_timer, .arg = d };
	loop_arm(d->loop, &d->poll_timer, now_ns);
	return discover_new(&d->discover, d->loop, d->drain, d->names, &config, &hooks, now_ns);
}

static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max < 65536 ? limit.rlim_max : 65536;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/*
 * A short slice makes the scheduler run us soon after each timer, for our few
 * microseconds, also where every core is busy (Linux 6.12; before, it is ignored).
 */
static void ask_for_short_slice(void)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = sizeof(attr), .nice = getpriority(PRIO_PROCESS, 0),
		   .runtime = SLICE_NS };

	if (sched_getscheduler(0) == SCHED_OTHER)	/* else somebody has decided */
		syscall(SYS_sched_setattr, 0, &attr, 0);
}

/* Whoever forked us may go: from here on somebody answers. */
static void tell_ready(struct daemon *d)
{
	char path[PATH_MAX + 16];
	int log, null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (d->ready_fd < 0)
		return;
	snprintf(path, sizeof(path), "%s/ncclinspd.log", d->config.state_dir);
	log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
	if (write(d->ready_fd, "", 1) < 0)
		log_say(LOG_WARN, "nobody waits for us");
	close(d->ready_fd);
	d->ready_fd = -1;
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(log < 0 ? null : log, STDERR_FILENO);
	if (log >= 0)
		close(log);
	close(null);
}

static int start(struct daemon *d)
{
	uint64_t now_ns = loop_clock_ns();
	int r;

	d->started_mono_ns = now_ns;
	d->started_real_ns = clock_ns(CLOCK_REALTIME);
	umask(022);
	raise_file_limit();
	ask_for_short_slice();
	r = instance_make_dir(d->config.state_dir, 0755);
	if (r < 0) {
		log_say(LOG_ERROR, "cannot make state-dir=%s error=\"%s\"", d->config.state_dir,
			strerror(-r));
		return r;
	}
	r = instance_open(&d->instance, d->config.socket);
	if (r < 0)
		return r;
	d->listen_fd = r;
	r = start_loop(d);
	if (r < 0)
		return r;
	start_ticks(d);
	r = start_stages(d, now_ns);
	if (r == 0)
		r = start_discovery(d, loop_clock_ns());
	if (r == 0)
		r = start_server(d);
	if (r < 0)
		log_say(LOG_ERROR, "cannot start error=\"%s\"", strerror(-r));
	else
		tell_ready(d);
	return r;
}

/* In the other order; each of these accepts what was never made. */
static void stop(struct daemon *d)
{
	instance_close(&d->instance);
	serve_close(d->serve);
	d->serve = NULL;
	discover_free(d->discover);
	drain_free(d->drain);
	oplog_free(d->oplog);
	aggregate_free(d->aggregate);
	reconstruct_free(d->reconstruct);
	names_free(d->names);
	loop_free(d->loop);
	if (d->listen_fd >= 0)
		close(d->listen_fd);
}

/*
 * The child goes on; the parent waits until it is ready or gone and never
 * returns.  Before anything is open: an io_uring belongs to who made it.
 */
static int go_to_background(struct daemon *d)
{
	int fd[2];
	pid_t pid;
	char byte;

	if (pipe2(fd, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid < 0)
		return -errno;
	if (pid > 0) {
		close(fd[1]);
		_exit(read(fd[0], &byte, 1) == 1 ? EXIT_SUCCESS : EXIT_FAILURE);
	}
	close(fd[0]);
	setsid();
	d->ready_fd = fd[1];
	return 0;
}

int main(int argc, char **argv)
{
	static struct daemon d = { .instance.lock = -1, .listen_fd = -1, .ready_fd = -1 };
	int r = config_parse(&d.config, argc, argv);

	if (r != CONFIG_RUN)
		return r < 0 ? 2 : EXIT_SUCCESS;
	log_set_level(d.config.log_level);
	if (!d.config.foreground)
		r = go_to_background(&d);
	if (r == 0)
		r = start(&d);
	if (r == 0) {
		r = loop_run(d.loop);
		if (r < 0)
			log_say(LOG_ERROR, "event loop failed error=\"%s\"", strerror(-r));
	}
	stop(&d);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
