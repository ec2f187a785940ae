/* SPDX-License-Identifier: Apache-2.0 */
/* Many processes without the time that making them takes. */
#include "bench/jobs.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fixture.h"

static void jobs_must(bool well, const char *what)
{
	if (well)
		return;
	perror(what);
	exit(EXIT_FAILURE);
}

/* A segment's name has the pid in it; more than one of ours need another each. */
static void jobs_add(struct jobs *jobs)
{
	struct shmring *ring = &jobs->ring[jobs->n];
	char name[80], path[160], to[160];

	fx_job_open(ring, jobs->fx.dir, name);
	jobs->lane[jobs->n++] = shmring_lane_new(ring, gettid());
	ring->header->start_time += jobs->n;
	atomic_store_explicit(&ring->live->mask, NCI_EVENT_BIT(NCI_EV_COLL),
			      memory_order_relaxed);
	snprintf(path, sizeof(path), "%s/%s", jobs->fx.dir, name);
	snprintf(to, sizeof(to), "%s/ncclinsp.%u.%d.%llu", jobs->fx.dir, (unsigned)geteuid(),
		 (int)getpid(), (unsigned long long)ring->header->start_time);
	jobs_must(rename(path, to) == 0, "bench: rename");
}

static void jobs_keep(const struct jobs *jobs, int ready_fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (uint32_t i = 0; i < jobs->n; i++)
		jobs_must(fcntl(jobs->ring[i].fd, F_SETLK, &lock) == 0, "bench: lock");
	if (write(ready_fd, "", 1) == 1)
		pause();
	_exit(EXIT_FAILURE);
}

static void jobs_hand_over_locks(struct jobs *jobs)
{
	struct flock lock = { .l_type = F_UNLCK, .l_whence = SEEK_SET };
	int fd[2];
	char byte;

	for (uint32_t i = 0; i < jobs->n; i++)
		fcntl(jobs->ring[i].fd, F_SETLK, &lock);
	jobs_must(pipe(fd) == 0, "bench: pipe");
	jobs->keeper = fork();
	if (jobs->keeper == 0)
		jobs_keep(jobs, fd[1]);
	close(fd[1]);
	jobs_must(jobs->keeper > 0 && read(fd[0], &byte, 1) == 1, "bench: keeper");
	close(fd[0]);
}

void jobs_open(struct jobs *jobs, uint32_t n)
{
	const struct discover_config config = {
		.everybody = true, .max_segments = 2 * JOBS_MOST, .max_ended = 4,
		.keep_ns = UINT64_C(60000000000),
	};
	struct fx_daemon *fx = &jobs->fx;
	struct process *const *list;

	if (!fx_descriptors(4 * JOBS_MOST))
		exit(EXIT_FAILURE);
	snprintf(fx->dir, sizeof(fx->dir), "%s/shm", fx_tmpdir());
	mkdir(fx->dir, 0755);
	while (jobs->n < n)
		jobs_add(jobs);
	jobs_hand_over_locks(jobs);
	fx_daemon_open_with(fx, config);
	for (int i = 0; i < 100 && discover_processes(fx->discover, &list) < n; i++)
		discover_look(fx->discover, fx->now_ns += 100000000);
	if (discover_processes(fx->discover, &list) == n)
		return;
	fprintf(stderr, "bench: %u processes were not found\n", n);
	exit(EXIT_FAILURE);
}

void jobs_close(struct jobs *jobs)
{
	fx_daemon_close(&jobs->fx);
	kill(jobs->keeper, SIGKILL);
	waitpid(jobs->keeper, NULL, 0);
}

void jobs_write(struct jobs *jobs, uint32_t each, jobs_publish *publish)
{
	for (uint32_t i = 0; i < jobs->n; i++)
		for (uint32_t k = 0; k < each; k++)
			publish(jobs->lane[i], jobs->published + k);
	jobs->published += each;
}
