/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of NCCL, counted in processes that run without the plugin: each function gets a uprobe in
 * each process.  They are descriptors of this process, so that they go with it however it ends.
 */
#include "probe/attach.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "probe/attach.skel.h"
#include "probe/library.h"
#include "util/json.h"
#include "util/list.h"
#include "util/phrase.h"
#include "util/text.h"

#define PROCESSES	256
#define ANSWER_MOST	(64u << 20)

static const char *const names[CALLS_END] = {
#define X(name, collective, count, datatype, comm) [CALLS_##name] = #name,
	CALLS_FUNCTIONS(X)
#undef X
};

struct attach_process {
	int32_t pid;
	int pidfd;		/* readable when it has ended */
	struct library library;
};

struct attach {
	struct attach_process processes[PROCESSES];
	uint32_t nprocesses;
	struct attach_bpf *kernel;
	LIST(struct bpf_link *) links;
	struct phrase without;	/* processes that have no NCCL */
	bool refused;		/* the last failure was a lack of rights */
	uint64_t begin_ns, end_ns;	/* the time that was counted in */
};

__attribute__((format(printf, 1, 2)))
static void attach_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("ncclinsp-probe: ", stderr);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
}

/* ---- processes ----------------------------------------------------------------------- */

static void process_say_why(int32_t pid, int error)
{
	if (error == -EACCES || error == -EPERM)
		attach_say("process %d belongs to another user, which needs CAP_SYS_PTRACE: run "
			   "this as root", pid);
	else
		attach_say("process %d: %s", pid, strerror(-error));
}

static bool attach_add(struct attach *a, int32_t pid)
{
	struct attach_process *p = array_add(a->processes, &a->nprocesses);
	int r;

	if (!p) {
		attach_say("more than %d processes", PROCESSES);
		return false;
	}
	*p = (struct attach_process){ .pid = pid };
	p->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	r = p->pidfd < 0 ? -errno : library_find(pid, &p->library);
	if (!r)
		return true;
	a->nprocesses--;
	close(p->pidfd);
	if (r == -ENOENT) {
		phrase_add(&a->without, "%s%d", a->without.used ? ", " : "", (int)pid);
		return true;
	}
	a->refused = a->refused || r == -EACCES || r == -EPERM;
	process_say_why(pid, r);
	return true;
}

/* False: the list is none. */
static bool attach_add_all(struct attach *a, const char *pids)
{
	char one[16];
	int64_t pid;

	for (; *pids; pids += strcspn(pids, ","), pids += *pids == ',') {
		size_t n = strcspn(pids, ",");

		snprintf(one, sizeof(one), "%.*s", (int)(n < sizeof(one) ? n : sizeof(one)), pids);
		if (text_parse_integer(one, 1, INT32_MAX, &pid)) {
			attach_say("'%s' is not a process id; --attach takes a list such as "
				   "4711,4712", one);
			return false;
		}
		if (!attach_add(a, (int32_t)pid))
			return false;
	}
	return true;
}

/* ---- the kernel ------------------------------------------------------------------------ */

static int attach_on_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	return 0;
}

static int attach_fail(struct attach *a, const char *what, int error)
{
	a->refused = error == -EPERM || error == -EACCES;
	if (a->refused)
		attach_say("cannot %s: %s; run this as root, it needs CAP_BPF and CAP_PERFMON",
			   what, strerror(-error));
	else
		attach_say("cannot %s: %s (Linux 5.15 or newer with uprobes and BTF is needed)",
			   what, strerror(-error));
	return error;
}

static int attach_put_one(struct attach *a, uint32_t process, uint32_t function,
			  const struct bpf_program *program)
{
	const struct library *library = &a->processes[process].library;
	char path[32];
	struct bpf_link *link, **place;
	LIBBPF_OPTS(bpf_uprobe_opts, opts,
		    .bpf_cookie = CALLS_COOKIE(function, process, library->rank_at));

	snprintf(path, sizeof(path), "/proc/self/fd/%d", library->fd);
	link = bpf_program__attach_uprobe_opts(program, a->processes[process].pid, path,
					       library->at[function], &opts);
	if (!link)
		return -errno;
	place = list_append(&a->links);
	if (!place) {
		bpf_link__destroy(link);
		return -ENOMEM;
	}
	*place = link;
	return 0;
}

/* A process that has ended meanwhile is no failure: it calls nothing more. */
static int attach_put(struct attach *a)
{
	const struct bpf_program *const programs[CALLS_END] = {
#define X(name, collective, count, datatype, comm) [CALLS_##name] = a->kernel->progs.on_##name,
		CALLS_FUNCTIONS(X)
#undef X
	};

	for (uint32_t i = 0; i < a->nprocesses; i++) {
		for (uint32_t f = 0; f < CALLS_END; f++) {
			int r = a->processes[i].library.at[f] ?
				attach_put_one(a, i, f, programs[f]) : 0;

			if (r == -ESRCH)
				break;
			if (r)
				return attach_fail(a, "attach", r);
		}
	}
	return 0;
}

static int attach_load(struct attach *a)
{
	const struct rlimit files = { 65536, 65536 };
	int r;

	setrlimit(RLIMIT_NOFILE, &files);	/* two for each probe; the hard limit is root's */
	libbpf_set_print(attach_on_libbpf);
	a->kernel = attach_bpf__open_and_load();
	r = a->kernel ? 0 : -errno;
	return r ? attach_fail(a, "load the program", r) : attach_put(a);
}

/* The kernel waits for all its CPUs at each of them: 0.1 s. */
static void attach_remove(struct attach *a)
{
	for (uint32_t i = 0; i < a->links.n; i++)
		bpf_link__destroy(a->links.at[i]);
	list_deinit(&a->links);
}

/* ---- time -------------------------------------------------------------------------------- */

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static bool attach_some_live(const struct attach *a)
{
	for (uint32_t i = 0; i < a->nprocesses; i++) {
		struct pollfd at = { .fd = a->processes[i].pidfd, .events = POLLIN };

		if (poll(&at, 1, 0) == 0)
			return true;
	}
	return false;
}

static void signals_block(sigset_t *ends)
{
	sigemptyset(ends);
	sigaddset(ends, SIGINT);
	sigaddset(ends, SIGTERM);
	sigaddset(ends, SIGHUP);
	sigprocmask(SIG_BLOCK, ends, NULL);
}

static void attach_count(struct attach *a, const sigset_t *ends, uint32_t seconds)
{
	const struct timespec second = { .tv_sec = 1 };
	int signal = -1;

	a->begin_ns = now_ns();
	a->kernel->bss->counting = true;
	attach_say("counting calls of %" PRIu32 " process%s for %" PRIu32 " s; Ctrl-C ends it",
		   a->nprocesses, a->nprocesses == 1 ? "" : "es", seconds);
	while (seconds-- && attach_some_live(a) && signal < 0)
		while ((signal = sigtimedwait(ends, NULL, &second)) < 0 && errno == EINTR)
			continue;
	a->kernel->bss->counting = false;
	a->end_ns = now_ns();
}

/* ---- the answer ---------------------------------------------------------------------------- */

static void put_comm(const struct attach *a, struct json *j, const struct calls_comm_key *key)
{
	json_member_i64(j, "pid", a->processes[key->process % PROCESSES].pid);
	json_member_hex64(j, "comm_id", key->id);
	json_key(j, "rank");
	if (key->rank >= 0)
		json_put_i64(j, key->rank);
	else
		json_put_null(j);
	json_key(j, "nranks");
	if (key->rank >= 0)
		json_put_i64(j, key->nranks);
	else
		json_put_null(j);
}

static void put_call(struct json *j, uint32_t function, uint32_t datatype, uint64_t count)
{
	json_member_string(j, "func", function < CALLS_END ? names[function] : NULL);
	json_member_u64(j, "datatype", datatype);
	json_member_u64(j, "count", count);
}

static void put_rows(const struct attach *a, struct json *j)
{
	int fd = bpf_map__fd(a->kernel->maps.rows);
	struct calls_key key, *before = NULL;
	uint64_t calls;

	while (bpf_map_get_next_key(fd, before, &key) == 0) {
		before = &key;
		if (bpf_map_lookup_elem(fd, &key, &calls))
			continue;
		json_begin(j, '{');
		put_comm(a, j, &key.comm);
		put_call(j, key.function, key.datatype, key.count);
		json_member_u64(j, "calls", calls);
		json_end(j, '}');
	}
}

static void put_comms(const struct attach *a, struct json *j)
{
	int fd = bpf_map__fd(a->kernel->maps.comms);
	struct calls_comm_key key, *before = NULL;
	struct calls_comm comm;

	while (bpf_map_get_next_key(fd, before, &key) == 0) {
		before = &key;
		if (bpf_map_lookup_elem(fd, &key, &comm))
			continue;
		json_begin(j, '{');
		put_comm(a, j, &key);
		json_member_u64(j, "calls", comm.calls);
		json_key(j, "last");
		json_begin(j, '[');
		for (uint64_t i = comm.calls < CALLS_KEPT ? 0 : comm.calls - CALLS_KEPT;
		     i < comm.calls; i++) {
			const struct calls_call *call = &comm.kept[i % CALLS_KEPT];

			json_begin(j, '{');
			json_member_u64(j, "at_mono_ns", call->at_ns);
			put_call(j, call->function, call->datatype, call->count);
			json_end(j, '}');
		}
		json_end(j, ']');
		json_end(j, '}');
	}
}

static void put_processes(const struct attach *a, struct json *j)
{
	for (uint32_t i = 0; i < a->nprocesses; i++) {
		json_begin(j, '{');
		json_member_i64(j, "pid", a->processes[i].pid);
		json_member_string(j, "library", a->processes[i].library.path);
		json_end(j, '}');
	}
}

static int attach_print(const struct attach *a)
{
	struct json j;
	int r;

	json_init(&j, ANSWER_MOST);
	json_begin(&j, '{');
	json_key(&j, "seconds");
	json_put_double(&j, (double)(a->end_ns - a->begin_ns) / 1e9);
	json_member_u64(&j, "end_mono_ns", a->end_ns);
	json_member_u64(&j, "lost", a->kernel->bss->lost);
	json_key(&j, "processes");
	json_begin(&j, '[');
	put_processes(a, &j);
	json_end(&j, ']');
	json_key(&j, "comms");
	json_begin(&j, '[');
	put_comms(a, &j);
	json_end(&j, ']');
	json_key(&j, "calls");
	json_begin(&j, '[');
	put_rows(a, &j);
	json_end(&j, ']');
	json_end(&j, '}');
	json_newline(&j);
	r = json_error(&j);
	if (!r && fwrite(j.text, 1, j.bytes, stdout) != j.bytes)
		r = -EIO;
	json_deinit(&j);
	return r || fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}

int attach_run(const char *pids, uint32_t seconds)
{
	static struct attach a;
	char without[256];
	sigset_t ends;
	int code = EXIT_FAILURE;

	prctl(PR_SET_PDEATHSIG, SIGTERM);	/* nobody would read the answer */
	signals_block(&ends);
	phrase_start(&a.without, without, sizeof(without));
	if (!attach_add_all(&a, pids))
		return 2;
	if (a.without.used)
		attach_say("without NCCL, and not counted: %s. No file that they have mapped has "
			   "NCCL's symbols: it is not loaded yet, or linked in and stripped",
			   without);
	if (a.nprocesses && !attach_load(&a)) {
		attach_count(&a, &ends, seconds);
		code = attach_print(&a);
	} else if (a.refused) {
		code = ATTACH_NO_RIGHT;
	}
	attach_remove(&a);
	attach_bpf__destroy(a.kernel);
	return code;
}
