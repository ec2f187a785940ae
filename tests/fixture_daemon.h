/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FIXTURE_DAEMON_H
#define TESTS_FIXTURE_DAEMON_H

/*
 * The daemon's reading half over a directory of its own, and jobs that write
 * segments into it.  Time moves only when a test passes it on.
 */

#include <sys/types.h>

#include "ncclinspd/base/loop.h"
#include "ncclinspd/find/discover.h"
#include "reader/base/names.h"
#include "reader/read/drain.h"
#include "reader/time/ticks.h"
#include "shmring/producer.h"

/* What the sink and the hooks saw. */
struct fx_seen {
	uint64_t events;
	uint64_t last_parent;	/* fx_job_publish() numbers its records there */
	uint64_t disorder;	/* records of one lane that came out of order */
	uint64_t next[NCI_MAX_LANES];
	uint32_t appeared, ended, forgotten;
	enum process_state last_state;
	uint32_t last_in_flight;
	uint64_t events_at_end;		/* when the last one ended */
};

struct fx_daemon {
	char dir[64];
	struct loop *loop;
	struct ticks ticks;
	struct names *names;
	struct drain *drain;
	struct discover *discover;
	uint64_t now_ns;
	struct fx_seen seen;
};

void fx_daemon_open(struct fx_daemon *fx);

/* The same from a config of the test's own; dir is set. */
void fx_daemon_open_with(struct fx_daemon *fx, struct discover_config config);
void fx_daemon_close(struct fx_daemon *fx);

/* Where a segment of this name is; returns path. */
#define FX_PATH 160
const char *fx_shm_path(const struct fx_daemon *fx, const char *name, char path[FX_PATH]);

/* One look, one poll, `ms` later. */
void fx_daemon_step(struct fx_daemon *fx, uint64_t ms);

/* The i-th process listed, NULL: there are fewer. */
struct process *fx_process(const struct fx_daemon *fx, size_t i);

/* A process that this one plays: its segment, the name of that, and one lane. */
struct fx_job {
	struct shmring ring;
	struct shmring_lane *lane;
	char name[80];
};

/* A daemon that has found one such job. */
void fx_daemon_open_job(struct fx_daemon *fx, struct fx_job *job);

/* A segment of this process, ready, as the plugin makes it; `name` gets its file's. */
void fx_job_open(struct shmring *ring, const char *dir, char name[80]);

/* The file name of a segment of `pid`, which must run. */
void fx_job_name(char name[80], pid_t pid);

/* Publish ProxyStep number n (its parent), those from `from` on below `to`, or a two-line Coll. */
void fx_job_publish(struct shmring_lane *lane, uint64_t n);
void fx_job_publish_range(struct shmring_lane *lane, uint64_t from, uint64_t to);
void fx_job_publish_coll(struct shmring_lane *lane, uint64_t n);

/* Start an event and leave it in flight; returns its token. */
uint64_t fx_job_start(struct shmring_lane *lane, uint64_t n);

/*
 * A job in a process of its own: it makes a segment, runs `work`, and stops
 * itself (SIGSTOP) for the test to do what it likes with it.
 */
typedef void fx_work(struct shmring *ring, struct shmring_lane *lane);
pid_t fx_job_fork(const char *dir, fx_work *work, char name[80]);

/* The same as another user, which only root can; the directory is opened to everybody. */
pid_t fx_job_fork_as(uid_t uid, const char *dir, fx_work *work, char name[80]);
void fx_job_kill(pid_t pid);	/* SIGKILL, and wait */

/* Work that publishes FX_SOME records. */
#define FX_SOME 50
void fx_job_publish_some(struct shmring *ring, struct shmring_lane *lane);

#endif
