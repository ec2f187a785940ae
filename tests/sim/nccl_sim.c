/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl-sim: a scripted NCCL.  One process per process of the scenario, each of
 * which finds and drives a profiler library as NCCL does; this one writes the
 * truth meanwhile.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/sim/injected.h"
#include "tests/sim/loader.h"
#include "tests/sim/meet.h"
#include "tests/sim/player.h"
#include "tests/sim/pxn.h"
#include "tests/sim/truth.h"

#define EXIT_USAGE	2
#define EXIT_HUNG	3		/* of a child: as its scenario says */
#define START_NS	100000000	/* for inits, before model time 0 */
#define TRUTH_LIMIT	10000		/* launches of an endless scenario */
#define INJECTED_LIMIT	40000		/* the same, where it may be minutes to the first fault */
#define MAX_ENV		16

static pid_t children[SCENARIO_MAX_RANKS];
static volatile sig_atomic_t nchildren, stop;

/* Asked to stop: the children end what they do and finalize. */
static void sim_on_stop(int sig)
{
	stop = 1;
	for (int i = 0; i < nchildren; i++)
		kill(children[i], sig);
}

struct sim_options {
	const char *plugin, *truth, *injected, *scenario, *shm_dir, *pace, *asked;
	char *env[MAX_ENV];	/* N:NAME=VALUE */
	int api, hold_ms, nenv;
	long long seed;
};

static const char usage[] =
	"usage: nccl-sim [--plugin FILE] [--api vN] [--seed N] [--truth FILE]\n"
	"                [--injected FILE] [--asked FILE] [--pace none|real|N] [--hold MS]\n"
	"                [--shm-dir DIR] [--env NODE:NAME=VALUE]... SCENARIO\n"
	"Plays SCENARIO to the profiler library that NCCL_PROFILER_PLUGIN means, or FILE.\n";

/* NODE:NAME=VALUE, of which setenv() is to get the parts later. */
static int add_env(struct sim_options *o, char *text)
{
	char *colon;

	strtoul(text, &colon, 10);
	if (o->nenv == MAX_ENV || colon == text || *colon != ':' || !strchr(colon, '='))
		return -EINVAL;
	o->env[o->nenv++] = text;
	return 0;
}

static int sim_parse_options(int argc, char **argv, struct sim_options *o)
{
	static const struct option longs[] = {
		{ "plugin", 1, NULL, 'p' }, { "api", 1, NULL, 'a' }, { "seed", 1, NULL, 's' },
		{ "truth", 1, NULL, 't' }, { "pace", 1, NULL, 'c' }, { "hold", 1, NULL, 'o' },
		{ "shm-dir", 1, NULL, 'd' }, { "injected", 1, NULL, 'i' },
		{ "asked", 1, NULL, 'w' }, { "env", 1, NULL, 'e' },
		{ "help", 0, NULL, 'h' }, { NULL, 0, NULL, 0 }
	};
	char *end = "";
	int c;

	*o = (struct sim_options){ .seed = -1, .hold_ms = -1 };
	while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (c) {
		case 'p': o->plugin = optarg; break;
		case 't': o->truth = optarg; break;
		case 'i': o->injected = optarg; break;
		case 'w': o->asked = optarg; break;
		case 'c': o->pace = optarg; break;
		case 'd': o->shm_dir = optarg; break;
		case 's': o->seed = strtoll(optarg, &end, 0); break;
		case 'o': o->hold_ms = strtol(optarg, &end, 10); break;
		case 'a': o->api = strtol(optarg + (*optarg == 'v'), &end, 10);
			  if (o->api < 1 || o->api > NCCL_PROFILER_VERSIONS)
				  return -EINVAL;
			  break;
		case 'e': if (add_env(o, optarg))
				  return -EINVAL;
			  break;
		case 'h': fputs(usage, stdout); exit(EXIT_SUCCESS);
		default: return -EINVAL;
		}
		if (*end)
			return -EINVAL;
	}
	o->scenario = argv[optind];
	return optind + 1 == argc ? 0 : -EINVAL;
}

static int apply_options(const struct sim_options *o, struct scenario *scn)
{
	char *end = "";

	if (o->hold_ms >= 0)
		scn->hold_ns = o->hold_ms * 1000000LL;
	if (o->pace)
		scn->pace = !strcmp(o->pace, "none") ? 0 : !strcmp(o->pace, "real") ? 1 :
			    strtod(o->pace, &end);
	return *end || scn->pace < 0 ? -EINVAL : 0;
}

/* A seed from the command line is the scenario's: communicator ids depend on it. */
static int load_scenario(const struct sim_options *o, struct scenario **scnp)
{
	char err[512];
	int r = scenario_load(scnp, o->scenario, err, sizeof(err));

	if (r)
		fprintf(stderr, "nccl-sim: %s\n", err);
	else if (o->seed >= 0)
		scenario_reseed(*scnp, (uint64_t)o->seed);
	return r;
}

/* Find a library; with --plugin it must be there, else NCCL goes on without. */
static int load_plugin(const struct sim_options *o, const struct scenario *scn, int process,
		       struct loader *loader)
{
	const char *value = o->plugin ? o->plugin : getenv("NCCL_PROFILER_PLUGIN");
	int newest = loader_newest(scn->release);
	int r = loader_open(loader, value, scn->release, o->api ? o->api : newest, o->api);
	const char *why = r ? dlerror() : NULL;

	if (process)
		return r && o->plugin ? r : 0;
	if (!r)
		fprintf(stderr, "nccl-sim: NCCL 2.%d loaded %s, ncclProfiler_v%d\n", scn->release,
			loader->name, loader->version);
	else
		fprintf(stderr, "nccl-sim: NCCL 2.%d has no profiler: %s\n", scn->release,
			r == -ENOSYS ? "the library speaks no version that it knows" :
			why ? why : "none is wanted");
	return r && o->plugin ? r : 0;
}

/* Where the library writes: a %n in it is the process's node, as if each had a /dev/shm. */
static int node_set_shm_dir(const char *dir, int node)
{
	const char *n = strstr(dir, "%n");
	char path[PATH_MAX];
	int r;

	if (n)
		r = snprintf(path, sizeof(path), "%.*s%d%s", (int)(n - dir), dir, node, n + 2);
	else
		r = snprintf(path, sizeof(path), "%s", dir);
	if (r >= (int)sizeof(path))
		return -ENAMETOOLONG;
	return setenv("NCCLINSP_SHM_DIR", path, 1) ? -errno : 0;
}

static int set_env(const struct sim_options *o, int node)
{
	for (int i = 0; i < o->nenv; i++) {
		char *colon = strchr(o->env[i], ':'), *value = strchr(colon, '=');
		char name[128];

		if (atoi(o->env[i]) != node)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)(value - colon - 1), colon + 1);
		if (setenv(name, value + 1, 1))
			return -errno;
	}
	return 0;
}

static int child_main(const struct sim_options *o, const struct scenario *scn, int process,
		      const struct pace *pace, const struct player_shared *shared)
{
	int node = process / scn->processes_per_node;
	struct loader loader;
	struct player_plugin plugin;
	int r;

	prctl(PR_SET_TIMERSLACK, 1);	/* a host that wakes late makes all of them late */
	if ((o->shm_dir && node_set_shm_dir(o->shm_dir, node) < 0) || set_env(o, node) < 0)
		return EXIT_FAILURE;
	if (load_plugin(o, scn, process, &loader))
		return EXIT_FAILURE;
	plugin = (struct player_plugin){ loader.table, loader.version };
	r = player_run(scn, process, &plugin, pace, shared);
	if (r < 0)
		fprintf(stderr, "nccl-sim: process %d: %s\n", process, strerror(-r));
	loader_close(&loader);
	return r < 0 ? EXIT_FAILURE : r ? EXIT_HUNG : EXIT_SUCCESS;
}

static int start_children(const struct sim_options *o, const struct scenario *scn,
			  const struct pace *pace, const struct player_shared *shared)
{
	pid_t parent = getpid(), pid;

	for (int i = 0; i < scn->nprocesses; i++) {
		pid = fork();
		if (pid < 0) {
			perror("nccl-sim: fork");
			return -errno;
		}
		if (pid) {
			fprintf(stderr, "nccl-sim: process %d is pid %d\n", i, (int)pid);
			children[nchildren++] = pid;
			continue;
		}
		nchildren = 0;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent)
			_exit(EXIT_FAILURE);
		exit(child_main(o, scn, i, pace, shared));
	}
	if (stop)
		sim_on_stop(SIGTERM);
	return 0;
}

static bool process_dies(const struct scenario *scn, int process)
{
	for (int i = 0; i < scn->nfaults; i++)
		if (scn->fault[i].kind == FAULT_KILL && scn->fault[i].rank == process)
			return true;
	return false;
}

static bool ended_well(const struct scenario *scn, int process, int status)
{
	if (WIFEXITED(status) && (!WEXITSTATUS(status) || WEXITSTATUS(status) == EXIT_HUNG))
		return true;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && process_dies(scn, process))
		return true;
	fprintf(stderr, "nccl-sim: process %d failed, wait status 0x%x\n", process, status);
	return false;
}

static int process_of(pid_t pid)
{
	int i = 0;

	while (i < nchildren && children[i] != pid)
		i++;
	return i;
}

/* Whether every process ended the way its scenario says. */
static bool await_children(const struct scenario *scn, struct meet *meet)
{
	int left = nchildren, status;
	bool ok = true;
	pid_t pid;

	while (left) {
		pid = waitpid(-1, &status, 0);
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0 || process_of(pid) == nchildren)
			return false;
		meet_bury(meet, scn, process_of(pid));
		ok &= ended_well(scn, process_of(pid), status);
		left--;
	}
	return ok;
}

static int sim_write_file(const char *path, uint64_t limit,
			  int64_t (*write)(FILE *, const struct scenario *, const struct pace *,
					   uint64_t),
			  const struct scenario *scn, const struct pace *pace)
{
	FILE *f = fopen(path, "we");
	int64_t r = f ? write(f, scn, pace, scenario_is_endless(scn) ? limit : UINT64_MAX) : -errno;

	if (f && fclose(f) && r >= 0)
		r = -errno;
	if (r < 0)
		fprintf(stderr, "nccl-sim: %s: %s\n", path, strerror((int)-r));
	return r < 0 ? (int)r : 0;
}

static int sim_write_files(const struct sim_options *o, const struct scenario *scn,
			   const struct pace *pace)
{
	int r = o->truth ? sim_write_file(o->truth, TRUTH_LIMIT, truth_write, scn, pace) : 0;

	return r || !o->injected ? r : sim_write_file(o->injected, INJECTED_LIMIT, injected_write,
						      scn, pace);
}

/* What the processes are to have in common, before there are any. */
static int scenario_share(const struct sim_options *o, const struct scenario *scn,
			  struct player_shared *shared)
{
	int r = pxn_new(&shared->pxn, scn);

	shared->meet = NULL;
	shared->asked_fd = -1;
	if (!r)
		r = meet_new(&shared->meet, scn);
	if (r || !o->asked)
		return r;
	shared->asked_fd = open(o->asked, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC,
				  0666);
	if (shared->asked_fd >= 0)
		return 0;
	r = -errno;
	fprintf(stderr, "nccl-sim: %s: %s\n", o->asked, strerror(-r));
	return r;
}

static void unshare_all(const struct scenario *scn, struct player_shared *shared)
{
	pxn_free(shared->pxn, scn);
	meet_free(shared->meet);
	if (shared->asked_fd >= 0)
		close(shared->asked_fd);
}

static int sim_run(const struct sim_options *o, const struct scenario *scn)
{
	struct pace pace = { .factor = scn->pace, .base_ns = pace_now() + START_NS,
			     .stop = &stop };
	struct sigaction action = { .sa_handler = sim_on_stop };
	struct player_shared shared;
	int r = scenario_share(o, scn, &shared);

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	if (!r)
		r = start_children(o, scn, &pace, &shared);
	if (!r)
		r = sim_write_files(o, scn, &pace);
	if (!r && !await_children(scn, shared.meet))
		r = -ECHILD;
	unshare_all(scn, &shared);
	return r ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct scenario *scn;
	struct sim_options o;
	int status = EXIT_USAGE;

	if (sim_parse_options(argc, argv, &o)) {
		fputs(usage, stderr);
		return EXIT_USAGE;
	}
	if (load_scenario(&o, &scn))
		return EXIT_USAGE;
	if (apply_options(&o, scn))
		fputs(usage, stderr);
	else
		status = sim_run(&o, scn);
	scenario_free(scn);
	return status;
}
