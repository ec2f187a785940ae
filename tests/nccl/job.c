/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job for the real libnccl: programs by name, one after the other.
 *
 *   nccl-job RANKS FIRST LOCAL DIRECTORY PROGRAM...
 *
 * This process has the ranks FIRST to FIRST + LOCAL - 1; all have one DIRECTORY,
 * where truth.FIRST is written (world.h).
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake.h"
#include "calls.h"
#include "switch.h"
#include "world.h"

#define TURNS	3
#define AFTERWARDS	100	/* operations, to see whether they are believed */
#define HELD_US	60000000	/* longer than that: a kernel that does not end by itself */
#define ORDINARY_US	40

static const struct world_options ordinary;

static void basic(struct job *job)
{
	struct world *w = world_new(job, "basic", ordinary);

	for (int i = 0; i < TURNS; i++)
		world_everything(w, i);
	world_destroy(w);
}

static void alltoall(struct job *job)
{
	struct world *w = world_new(job, "alltoall", ordinary);

	for (int i = 0; i < TURNS; i++) {
		world_alltoall(w, 2000, ncclFloat32, SELF_SKIPPED);
		world_alltoall(w, 2000, ncclFloat32, SELF_IN_PLACE);
		world_wait(w);
	}
	world_destroy(w);
}

/* Whoever sends to itself makes NCCL's counters drift. */
static void drift(struct job *job)
{
	struct world *w = world_new(job, "drift", ordinary);

	for (int i = 0; i < TURNS; i++) {
		world_collective(w, ALL_REDUCE, 1000, ncclFloat32, 0);
		world_alltoall(w, 2000, ncclFloat32, SELF_COPIED);
		world_alltoall(w, 64, ncclFloat32, SELF_NATIVE);
		world_wait(w);
	}
	for (int i = 0; i < AFTERWARDS; i++)
		world_collective(w, ALL_REDUCE, 1000, ncclFloat32, 0);
	world_destroy(w);
}

/* Worlds and parts of them, destroyed in another order than they were made. */
static void comms(struct job *job)
{
	struct world *a = world_new(job, "A", ordinary);
	struct world *b = world_new(job, "B", ordinary);
	struct world *part = world_split(a, 2, "A-part", ordinary);
	struct world *shared = world_split(b, 2, "B-shared",
					   (struct world_options){ .share = true });

	for (int i = 0; i < TURNS; i++) {
		world_everything(a, i);
		world_collective(b, ALL_REDUCE, 100, ncclFloat32, 0);
		world_collective(part, ALL_REDUCE, 200, ncclInt8, 0);
		world_collective(shared, ALL_GATHER, 64, ncclFloat32, 0);
		world_collective(shared, ALL_REDUCE, 10, ncclFloat32, 0);
	}
	world_destroy(a);
	world_collective(part, ALL_REDUCE, 300, ncclFloat32, 0);
	world_destroy(b);
	world_collective(shared, REDUCE_SCATTER, 128, ncclFloat32, 0);
	world_destroy(shared);
	world_collective(part, ALL_GATHER, 3, ncclFloat32, 0);
	world_destroy(part);
}

static void work_on(struct world *w)
{
	if (!w)
		return;
	for (int i = 0; i < TURNS; i++)
		world_collective(w, ALL_REDUCE, 1000, ncclFloat32, 0);
	world_destroy(w);
}

static void shrink(struct job *job)
{
	struct world *w = world_new(job, "whole", ordinary);
	struct world *smaller;

	world_everything(w, 0);
	world_wait(w);
	smaller = world_shrink(w, "less", ncclShrinkDefault);
	world_destroy(w);
	work_on(smaller);
}

/* Groups within groups, and several communicators in one. */
static void groups(struct job *job)
{
	struct world *a = world_new(job, "G", ordinary);
	struct world *b = world_new(job, "H", ordinary);

	for (int i = 0; i < TURNS; i++) {
		world_group_start();
		world_collective(a, ALL_REDUCE, 1000, ncclFloat32, 0);
		world_collective(a, ALL_REDUCE, 1 << 20, ncclFloat32, 0);
		world_collective(b, ALL_GATHER, 10, ncclFloat32, 0);
		world_collective(a, REDUCE_SCATTER, 10, ncclFloat32, 0);
		world_ring(a, 10, ncclFloat32);
		world_ring(b, 20, ncclFloat32);
		world_collective(b, ALL_REDUCE, 1, ncclInt8, 0);
		world_group_end();
	}
	world_destroy(b);
	world_destroy(a);
}

static void work_alone(struct world *w, int local)
{
	for (size_t i = 0; i < TURNS; i++) {
		world_call(w, local, ALL_REDUCE, 1000 + i, ncclFloat32, 0);
		world_call(w, local, REDUCE_SCATTER, 500, ncclFloat32, 0);
		world_ring_call(w, local, 100, ncclInt32);
	}
}

/* A thread for each rank, from its init on. */
static void threads(struct job *job)
{
	struct world *w = world_new(job, "threads", (struct world_options){ .single = true });

	world_each(w, work_alone);
	world_each(w, work_alone);
	world_destroy(w);
}

static void nonblocking(struct job *job)
{
	struct world *w = world_new(job, "nonblocking",
				    (struct world_options){ .nonblocking = true });

	for (int i = 0; i < TURNS; i++)
		world_everything(w, i);
	world_destroy(w);
}

/* NCCL unloads the library with the last communicator, and loads it again. */
static void reload(struct job *job)
{
	static const char *const names[] = { "reload1", "reload2", "reload3", "reload4" };

	for (int i = 0; i < 4; i++) {
		struct world *w = world_new(job, names[i], ordinary);

		world_everything(w, i);
		world_destroy(w);
	}
}

/* Nothing to reduce is no operation; nothing to send is one. */
static void nothing(struct job *job)
{
	struct world *w = world_new(job, "nothing", ordinary);

	world_collective(w, ALL_REDUCE, 1, ncclFloat32, 0);
	world_collective(w, ALL_REDUCE, 0, ncclFloat32, 0);
	world_ring(w, 0, ncclInt8);
	world_collective(w, ALL_REDUCE, 1, ncclFloat32, 0);
	world_destroy(w);
}

static void large(struct job *job)
{
	struct world *w = world_new(job, "large", ordinary);

	world_collective(w, ALL_REDUCE, 2 << 20, ncclFloat32, 0);
	world_collective(w, ALL_GATHER, 1 << 20, ncclInt8, 0);
	world_ring(w, 8 << 20, ncclInt8);
	world_collective(w, ALL_REDUCE, 2 << 20, ncclFloat32, 0);
	world_destroy(w);
}

/* NCCL's own threads see later than the GPU that a kernel has ended. */
static void wait_and_see(struct world *w)
{
	world_wait(w);
	usleep(300000);
}

/* The last operation's kernel does not end by itself; those after it do. */
static struct world *in_the_middle(struct job *job, const char *name)
{
	struct world *w = world_new(job, name, ordinary);

	world_collective(w, ALL_REDUCE, 1000, ncclFloat32, 0);
	wait_and_see(w);
	fake_kernels_last(HELD_US);
	world_collective(w, ALL_REDUCE, 2 << 20, ncclFloat32, 0);
	fake_kernels_last(ORDINARY_US);
	return w;
}

static void aborted(struct job *job)
{
	world_abort(in_the_middle(job, "aborted"));
}

/* Whether this process has the last rank. */
static bool has_last(const struct job *job)
{
	return job->first + job->local == job->ranks;
}

/* The last process dies, and the others give up, as frameworks make them do. */
static void killed(struct job *job)
{
	struct world *w = in_the_middle(job, "killed");

	fflush(job->truth);
	if (has_last(job))
		kill(getpid(), SIGKILL);
	world_abort(w);
}

/* The last process does not come to an operation, and the others wait until somebody ends them. */
static void absent(struct job *job)
{
	struct world *w = world_new(job, "absent", ordinary);

	world_collective(w, ALL_REDUCE, 1000, ncclFloat32, 0);
	wait_and_see(w);
	fake_kernels_last(HELD_US);
	if (!has_last(job))
		world_collective(w, ALL_REDUCE, 2 << 20, ncclFloat32, 0);
	pause();
}

/* The same, where it dies before it. */
static void lost(struct job *job)
{
	struct world *w = world_new(job, "lost", ordinary);

	world_collective(w, ALL_REDUCE, 1000, ncclFloat32, 0);
	wait_and_see(w);
	fake_kernels_last(HELD_US);
	fflush(job->truth);
	if (has_last(job))
		kill(getpid(), SIGKILL);
	world_collective(w, ALL_REDUCE, 2 << 20, ncclFloat32, 0);
	pause();
}

/* One rank is given up, with all that was under way; the others go on. */
static void rescue(struct job *job)
{
	struct world *w = in_the_middle(job, "before");
	struct world *smaller = world_shrink(w, "after", ncclShrinkAbort);

	world_abort(w);
	work_on(smaller);
}

/* The program ends and leaves everything as it is. */
static void careless(struct job *job)
{
	struct world *w = world_new(job, "careless", ordinary);

	world_everything(w, 0);
	wait_and_see(w);
}

static void fork_one(struct job *job, void (*end)(int status))
{
	int status = 1;
	pid_t pid;

	fflush(job->truth);
	pid = fork();
	if (pid == 0)
		end(0);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status) {
		fprintf(stderr, "fork: child ended with %d\n", status);
		exit(1);
	}
}

static void run_another(int status)
{
	execlp("true", "true", (char *)NULL);
	_exit(status + 1);
}

/* Children that end, cleanly or not, or become something else. */
static void forks(struct job *job)
{
	struct world *w = world_new(job, "forks", ordinary);

	world_everything(w, 0);
	fork_one(job, _exit);
	world_everything(w, 1);
	fork_one(job, exit);
	world_everything(w, 2);
	fork_one(job, run_another);
	world_everything(w, 3);
	world_destroy(w);
}

static const struct {
	const char *name;
	void (*run)(struct job *job);
} programs[] = {
	{ "basic", basic },
	{ "alltoall", alltoall },
	{ "drift", drift },
	{ "comms", comms },
	{ "shrink", shrink },
	{ "groups", groups },
	{ "threads", threads },
	{ "nonblocking", nonblocking },
	{ "reload", reload },
	{ "nothing", nothing },
	{ "large", large },
	{ "aborted", aborted },
	{ "killed", killed },
	{ "absent", absent },
	{ "lost", lost },
	{ "rescue", rescue },
	{ "careless", careless },
	{ "forks", forks },
	{ "bursts", switch_bursts },
	{ "senders", switch_senders },
	{ "beside", switch_beside },
	{ "levels", switch_levels },
	{ "allgatherv", calls_allgatherv },
	{ "alltoall-once", calls_alltoall_once },
	{ "calls", calls_random },
};

static int run(struct job *job, const char *name)
{
	for (size_t i = 0; i < sizeof(programs) / sizeof(*programs); i++) {
		if (strcmp(programs[i].name, name) != 0)
			continue;
		programs[i].run(job);
		return 0;
	}
	fprintf(stderr, "nccl-job: no program '%s'\n", name);
	return 2;
}

/* What hangs tells where, before it ends as alarm() would have it. */
static void on_limit(int number)
{
	char pid[16];
	pid_t child;

	snprintf(pid, sizeof(pid), "%d", getpid());
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
	child = fork();
	if (!child) {
		dup2(STDOUT_FILENO, STDERR_FILENO);
		execlp("gdb", "gdb", "-nx", "-batch", "-p", pid, "-ex", "thread apply all bt 12",
		       (char *)NULL);
		_exit(127);
	}
	waitpid(child, NULL, 0);
	signal(number, SIG_DFL);
	raise(number);
}

int main(int argc, char **argv)
{
	struct job job;
	char path[4096];
	int status = 0;

	if (argc == 2 && !strcmp(argv[1], "version") && !ncclGetVersion(&status))
		return printf("%d\n", status) < 0;
	if (argc < 6) {
		fprintf(stderr, "usage: nccl-job RANKS FIRST LOCAL DIRECTORY PROGRAM...\n"
				"       nccl-job version\n");
		return 2;
	}
	job.ranks = atoi(argv[1]);
	job.first = atoi(argv[2]);
	job.local = atoi(argv[3]);
	job.directory = argv[4];
	if (job.local < 1 || job.local > WORLD_LOCAL || job.ranks % job.local) {
		fprintf(stderr, "nccl-job: LOCAL is 1 to %d and divides RANKS\n", WORLD_LOCAL);
		return 2;
	}
	snprintf(path, sizeof(path), "%s/truth.%d", job.directory, job.first);
	job.truth = fopen(path, "w");
	if (!job.truth) {
		perror(path);
		return 1;
	}
	signal(SIGALRM, on_limit);
	for (int i = 5; i < argc && !status; i++) {
		alarm(JOB_LIMIT_S);
		status = run(&job, argv[i]);
	}
	fclose(job.truth);
	return status;
}
