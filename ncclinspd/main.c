/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start and stop of the daemon; main() is at the end.  daemon.h says what the daemon
 * consists of, flow.c which way the data goes.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "ncclinspd/background.h"
#include "ncclinspd/daemon.h"
#include "ncclinspd/keep/writer.h"
#include "ncclinspd/levels/kernels.h"
#include "reader/base/pool.h"
#include "shmring/clock.h"

#define SLICE_NS	100000
#define LOCK_LOOK_NS	UINT64_C(1000000000)

static void daemon_on_stop(void *arg, uint64_t now_ns)
{
	struct daemon *d = arg;

	manager_say(&d->manager, "STOPPING=1");
	log_say(LOG_DEBUG, "asked to stop");
	loop_stop(d->loop);
}

static void config_tell_on_stderr(const char *line)
{
	fprintf(stderr, "ncclinspd: %s\n", line);
}

static void config_tell_on_log(const char *line)
{
	log_say(LOG_ERROR, "configuration: %s", line);
}

/* The first thing that was wrong with a configuration; its reader clears it. */
static char wrong[sizeof(((struct config_reading *)0)->why)];

static void config_tell_wrong(const char *line)
{
	config_tell_on_log(line);
	if (!wrong[0])
		snprintf(wrong, sizeof(wrong), "%s", line);
}

static struct steer_config config_steering(const struct config *c)
{
	struct steer_config s = {
		.control = c->control,
		.levels = { .detail = c->auto_detail, .thrift = c->auto_thrift },
		.budget_ppm = c->kernel_budget_ppm, .kernel_cost_ns = c->kernel_cost_ns,
	};

	s.mode = kernels_parse_mode(c->kernels, &s.mode_s);
	return s;
}

static struct diagnose_times config_times(const struct config *c)
{
	return (struct diagnose_times){
		.stall_min_ns = c->stall_min_ns, .stall_max_ns = c->stall_max_ns,
		.not_joined_critical_ns = c->not_joined_critical_ns,
	};
}

/* All of the new configuration, or nothing: half of one is nobody's wish. */
static void daemon_reload(struct daemon *d)
{
	struct diagnose_times times;
	struct steer_config steering;
	struct config next;

	wrong[0] = '\0';
	if (config_parse(&next, d->argc, d->argv, config_tell_wrong) != CONFIG_RUN) {
		log_say(LOG_ERROR, "configuration refused, the one before stays in force");
		d->reading.refused_ns = loop_clock_ns();
		memcpy(d->reading.why, wrong, sizeof(wrong));
		return;
	}
	config_take_live(&d->config, &next, config_tell_on_log);
	d->reading = (struct config_reading){ .read_ns = loop_clock_ns() };
	times = config_times(&d->config);
	steering = config_steering(&d->config);
	log_set_level(d->config.log_level);
	diagnose_set_times(d->diagnose, &times);
	straggler_set_window(d->straggler, d->config.straggler_window_ns);
	steer_set(d->steer, &steering);
	flow_start_snapshots(d, loop_clock_ns());
	log_say(LOG_INFO, "configuration read file=%s", next.file_read ? next.file : "none");
}

static void daemon_on_reload(void *arg, uint64_t now_ns)
{
	struct daemon *d = arg;
	char text[64];

	snprintf(text, sizeof(text), "RELOADING=1\nMONOTONIC_USEC=%" PRIu64, now_ns / 1000);
	manager_say(&d->manager, text);
	daemon_reload(d);
	manager_say(&d->manager, "READY=1");
}

/* A sign of life: a timer that fires says that the loop goes round. */
static void daemon_on_alive_timer(void *arg, uint64_t now_ns)
{
	struct daemon *d = arg;
	char text[64];

	snprintf(text, sizeof(text), "WATCHDOG=1\nSTATUS=processes: %u",
		 discover_attached(d->discover));
	manager_say(&d->manager, text);
	loop_arm(d->loop, &d->alive_timer, now_ns + d->manager.watchdog_ns / 3);
}

/* Processes for which it runs hold a lock for as long as they live. */
static bool lock_is_held(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool held = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	return held;
}

static void daemon_on_lock_timer(void *arg, uint64_t now_ns)
{
	struct daemon *d = arg;

	if (!lock_is_held(d->config.while_locked))
		daemon_on_stop(d, now_ns);
	else
		loop_arm(d->loop, &d->lock_timer, now_ns + LOCK_LOOK_NS);
}

/* Signals that end a process by default.  A failed write is behind XFSZ and PIPE: it is told. */
static void ignore_signals(void)
{
	static const int others[] = {
		SIGPIPE, SIGXFSZ, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR,
		SIGSTKFLT,
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		signal(others[i], SIG_IGN);
	for (int signo = SIGRTMIN; signo <= SIGRTMAX; signo++)
		signal(signo, SIG_IGN);
}

static int loop_start(struct daemon *d)
{
	int r = loop_new(&d->loop);

	if (r < 0) {
		log_say(LOG_ERROR, "no event loop error=\"%s\"", strerror(-r));
		return r;
	}
	r = loop_signal(d->loop, SIGTERM, daemon_on_stop, d);
	if (r == 0)
		r = loop_signal(d->loop, SIGINT, daemon_on_stop, d);
	if (r == 0)
		r = loop_signal(d->loop, SIGHUP, daemon_on_reload, d);
	return r;
}

static int stages_start(struct daemon *d, uint64_t now_ns)
{
	struct reconstruct_limits limits = { 0 };
	struct ranks_limits joints = { 0 };
	const struct ranks_hooks hooks = {
		.processes = answers_processes, .op = flow_op, .joint = flow_joint, .arg = d,
	};
	struct aggregate_limits cells = { 0 };
	struct links_limits links = { 0 };
	struct queues_limits queues = { 0 };
	struct straggler_config late = { .window_ns = d->config.straggler_window_ns };
	int r;

	if (getrandom(&limits.seed, sizeof(limits.seed), GRND_NONBLOCK) < 0)
		limits.seed = now_ns;
	memory_init(&d->memory, d->config.memory_max);
	limits.memory = &d->memory;
	cells.seed = links.seed = queues.seed = joints.seed = late.seed = limits.seed;
	r = names_new(&d->names, NAMES_DEFAULT);
	if (r == 0)
		r = reconstruct_new(&d->reconstruct, &limits, d->names, flow_done, d);
	if (r == 0)
		r = ranks_new(&d->ranks, &joints, &hooks);
	if (r == 0)
		r = straggler_new(&d->straggler, &late);
	if (r == 0) {
		reconstruct_tell_moved(d->reconstruct, flow_moved);
		reconstruct_tell_requests(d->reconstruct, flow_requested);
	}
	if (r == 0)
		r = aggregate_new(&d->aggregate, &cells, now_ns);
	if (r == 0)
		r = links_new(&d->links, &links, now_ns);
	if (r == 0)
		r = queues_new(&d->queues, &queues);
	if (r == 0)
		r = transferlog_new(&d->transferlog, TRANSFERLOG_DEFAULT);
	if (r == 0)
		r = oplog_new(&d->oplog, OPLOG_DEFAULT);
	if (r == 0)
		r = drain_new(&d->drain, &d->ticks.clock, flow_event, d);
	return r;
}

/* Worth having, not worth failing for. */
static void around_start(struct daemon *d)
{
	const struct sensors_config config = {
		.off = !d->config.gpu_sensors, .kernel_log = d->config.kernel_log,
	};
	int r = sensors_new(&d->sensors, &config);

	if (r == 0 && d->config.nics)
		r = nics_new(&d->nics, NULL, 0);
	if (r < 0)
		log_say(LOG_WARN, "gpus and network interfaces are not read error=\"%s\"",
			strerror(-r));
}

static int diagnose_start(struct daemon *d, uint64_t now_ns)
{
	const struct diagnose_config config = {
		.times = config_times(&d->config),
		.state_dir = d->config.state_dir,
		.ras = d->config.ras,
		.accounts = d->accounts,
	};
	const struct diagnose_source source = {
		.arg = d,
		.host = d->config.node_name,
		.processes = answers_processes,
		.slots = answers_slots,
		.changed = flow_finding,
		.gathered = flow_gathered,
		.meanwhile = answers_meanwhile,
		.outputs = exports_outputs,
		.unwatched = answers_unwatched,
		.waited_ns = answers_waited_ns,
		.reconstruct = d->reconstruct,
		.links = d->links,
		.queues = d->queues,
		.straggler = d->straggler,
		.sensors = d->sensors,
		.nics = d->nics,
		.probe = d->probe,
	};

	journal_open(&d->journal, getenv("JOURNAL_STREAM") ? JOURNAL_SOCKET : NULL);
	d->look_timer = (struct loop_timer){ .fn = flow_look, .arg = d };
	loop_arm(d->loop, &d->look_timer, now_ns + DAEMON_LOOK_NS);
	return diagnose_new(&d->diagnose, &config, &source);
}

static int steering_start(struct daemon *d, uint64_t now_ns)
{
	struct steer_config config = config_steering(&d->config);
	int r;

	config.levels.accounts = d->accounts;
	r = steer_new(&d->steer, &config, now_ns);

	if (r == 0)
		r = marks_new(&d->marks, d->names, d->accounts, d->config.control, now_ns);
	if (r == 0)
		flow_start_steering(d, now_ns);
	return r;
}

static void daemon_tell_missing(const struct daemon *d, const char *what, int error)
{
	if (error < 0)
		log_say(LOG_WARN, "no %s state-dir=%s error=\"%s\"", what, d->config.state_dir,
			strerror(-error));
}

/* Worth having, not worth failing for. */
static void files_start(struct daemon *d)
{
	const char *dir = d->config.state_dir;

	d->snapshot_timer = (struct loop_timer){ .fn = flow_snapshot, .arg = d };
	d->exemplar_timer = (struct loop_timer){ .fn = flow_exemplar, .arg = d };
	daemon_tell_missing(d, "black boxes", blackbox_new(&d->blackbox, dir, answers_snapshot, d));
	daemon_tell_missing(d, "exemplars",
			    exemplars_new(&d->exemplars, dir, answers_exemplar, d, d->accounts));
	daemon_tell_missing(d, "snapshots",
			    snapshots_new(&d->snapshots, dir, d->config.node_name, answers_interval,
					  d));
}

static int metrics_start(struct daemon *d)
{
	struct metrics_config config = {
		.host = d->config.node_name, .series = d->config.metrics_series,
		.fleet = !strcmp(d->config.metrics_profile, "fleet"),
		.peers = d->config.metrics_peers, .inspector = d->config.metrics_inspector,
		.accounts = d->accounts,
	};
	const struct metrics_source source = {
		.arg = d,
		.processes = answers_processes,
		.reconstruct = d->reconstruct,
		.links = d->links,
		.straggler = d->straggler,
		.steer = d->steer,
		.diagnose = d->diagnose,
		.otlp = d->otlp,
	};

	if (getrandom(&config.seed, sizeof(config.seed), GRND_NONBLOCK) < 0)
		config.seed = d->started_mono_ns;
	return metrics_new(&d->metrics, &config, &source);
}

static int discovery_start(struct daemon *d, uint64_t now_ns)
{
	const struct discover_config config = {
		.dir = d->config.shm_dir,
		.everybody = d->config.everybody,
		.containers = d->config.containers,
		.max_segments = d->config.max_segments,
		.max_ended = d->config.max_ended,
		.memory = &d->memory,
		.keep_ns = d->config.keep_ns,
		.accounts = d->accounts,
	};
	const struct discover_hooks hooks = {
		.appeared = flow_appeared,
		.ended = flow_ended,
		.forgotten = flow_forgotten,
		.arg = d,
	};

	d->poll_timer = (struct loop_timer){ .fn = flow_poll, .arg = d };
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

	if (sched_getscheduler(0) == SCHED_OTHER)	/* any other policy was chosen for us */
		syscall(SYS_sched_setattr, 0, &attr, 0);
}

static int server_start(struct daemon *d)
{
	int r = manager_socket(d->config.socket);

	if (r < 0 && r != -ENOENT) {
		log_say(LOG_ERROR, "socket activation must pass exactly one listening unix socket");
		return r;
	}
	r = instance_open(&d->instance, d->config.socket, r);
	if (r >= 0)
		d->listen_fd = r;
	return r;
}

static void daemon_tell_ready(struct daemon *d)
{
	background_ready(&d->ready_fd, d->no_state ? NULL : d->config.state_dir);
	manager_say(&d->manager, "READY=1");
	d->alive_timer = (struct loop_timer){ .fn = daemon_on_alive_timer, .arg = d };
	if (d->manager.watchdog_ns)
		loop_arm(d->loop, &d->alive_timer, loop_clock_ns());
	d->lock_timer = (struct loop_timer){ .fn = daemon_on_lock_timer, .arg = d };
	if (*d->config.while_locked)
		loop_arm(d->loop, &d->lock_timer, loop_clock_ns());
}

static int daemon_start(struct daemon *d)
{
	uint64_t now_ns = loop_clock_ns();
	int r;

	d->started_mono_ns = d->reading.read_ns = now_ns;
	d->started_real_ns = clock_ns(CLOCK_REALTIME);
	umask(022);
	raise_file_limit();
	ask_for_short_slice();
	pool_use_fresh_pages();
	r = writer_make_dir(d->config.state_dir, 0755);
	if (r == -ETIMEDOUT) {
		log_say(LOG_WARN, "state-dir does not answer, nothing is written until it does "
			"state-dir=%s", d->config.state_dir);
		d->no_state = true;
	} else if (r < 0) {
		log_say(LOG_ERROR, "cannot make state-dir=%s error=\"%s\"", d->config.state_dir,
			strerror(-r));
		return r;
	}
	r = server_start(d);
	if (r < 0)
		return r;
	r = loop_start(d);
	if (r < 0)
		return r;
	flow_start_ticks(d);
	r = accounts_new(&d->accounts, ACCOUNTS_SUBUID, ACCOUNTS_PASSWD);
	if (r == 0)
		files_start(d);
	if (r == 0)
		r = stages_start(d, now_ns);
	around_start(d);
	if (r == 0 && *d->config.probe)
		r = probelink_new(&d->probe, d->loop, d->config.probe, flow_waited, d);
	if (r == 0)
		r = diagnose_start(d, now_ns);
	if (r == 0)
		r = steering_start(d, now_ns);
	exports_start_otlp(d);
	if (r == 0)
		r = metrics_start(d);
	if (r == 0)
		r = discovery_start(d, loop_clock_ns());
	if (r == 0)
		r = answers_start(d);
	if (r == 0)
		flow_start_snapshots(d, now_ns);
	if (r < 0)
		log_say(LOG_ERROR, "cannot start error=\"%s\"", strerror(-r));
	else
		daemon_tell_ready(d);
	return r;
}

/* Undoes the start in the other order; each of these accepts what was never made. */
static void daemon_stop(struct daemon *d)
{
	instance_close(&d->instance);
	exports_stop(d);
	serve_close(d->serve);
	d->serve = NULL;
	blackbox_free(d->blackbox);
	exemplars_free(d->exemplars);
	d->blackbox = NULL;
	d->exemplars = NULL;
	snapshots_free(d->snapshots);
	d->snapshots = NULL;
	discover_free(d->discover);
	drain_free(d->drain);
	metrics_free(d->metrics);
	otlp_free(d->otlp);
	marks_free(d->marks);
	steer_free(d->steer);
	diagnose_free(d->diagnose);
	sensors_free(d->sensors);
	nics_free(d->nics);
	probelink_free(d->probe);
	journal_close(&d->journal);
	oplog_free(d->oplog);
	transferlog_free(d->transferlog);
	queues_free(d->queues);
	links_free(d->links);
	aggregate_free(d->aggregate);
	straggler_free(d->straggler);
	ranks_free(d->ranks);
	reconstruct_free(d->reconstruct);
	names_free(d->names);
	accounts_free(d->accounts);
	loop_free(d->loop);
	if (d->listen_fd >= 0)
		close(d->listen_fd);
}

int main(int argc, char **argv)
{
	static struct daemon d = { .instance.lock = -1, .listen_fd = -1, .ready_fd = -1,
				  .journal.fd = -1 };
	int r = config_parse(&d.config, argc, argv, config_tell_on_stderr);

	ignore_signals();
	d.argc = argc;
	d.argv = argv;
	if (r != CONFIG_RUN)
		return r < 0 ? 2 : EXIT_SUCCESS;
	log_set_level(d.config.log_level);
	manager_open(&d.manager);
	if (!d.config.foreground)
		r = background_enter(&d.ready_fd);
	if (r == 0)
		r = daemon_start(&d);
	if (r == 0) {
		r = loop_run(d.loop);
		if (r < 0)
			log_say(LOG_ERROR, "event loop failed error=\"%s\"", strerror(-r));
	}
	daemon_stop(&d);
	manager_close(&d.manager);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
