/* SPDX-License-Identifier: Apache-2.0 */
/* How a process is found to be over, and what is kept of it. */
#include "ncclinspd/find/discover.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reader/base/memory.h"
#include "tests/fixture.h"
#include "tests/fixture_daemon.h"

static struct fx_daemon fx;
static char name[80];

static bool there(const char *file)
{
	char path[FX_PATH];

	return access(fx_shm_path(&fx, file, path), F_OK) == 0;
}

static void leave_three_in_flight(struct shmring *ring, struct shmring_lane *lane)
{
	fx_job_publish_some(ring, lane);
	for (uint64_t n = 0; n < 3; n++)
		fx_job_start(lane, n);
}

TEST(killed_process_is_drained_shown_and_its_file_removed)
{
	const struct process *p;
	pid_t pid;

	fx_daemon_open(&fx);
	pid = fx_job_fork(fx.dir, leave_three_in_flight, name);
	discover_look(fx.discover, fx.now_ns + UINT64_C(4000000000));
	ck_assert_uint_eq(fx.seen.appeared, 1);
	fx_job_kill(pid);
	fx_daemon_step(&fx, 100);
	p = fx_process(&fx, 0);
	ck_assert_uint_eq(fx.seen.events, 50);
	ck_assert_uint_eq(fx.seen.ended, 1);
	ck_assert_int_eq(fx.seen.last_state, PROCESS_DIED);
	ck_assert_uint_eq(fx.seen.last_in_flight, 3);
	ck_assert_int_eq(p->state, PROCESS_DIED);
	ck_assert_int_eq(p->last_slots[0].tid, pid);
	ck_assert(!there(name));
	ck_assert_uint_eq(discover_attached(fx.discover), 0);
	fx_daemon_step(&fx, 59000);
	ck_assert_ptr_nonnull(fx_process(&fx, 0));
	fx_daemon_step(&fx, 2000);
	ck_assert_ptr_null(fx_process(&fx, 0));
	ck_assert_uint_eq(fx.seen.forgotten, 1);
	ck_assert_uint_eq(fx.seen.appeared, 1);
	fx_daemon_close(&fx);
}

/* Whatever bears a segment's name: only what was read as one is ours to remove. */
TEST(what_is_no_segment_stays_where_it_is)
{
	char rubbish[64], other[64], path[FX_PATH], link_path[FX_PATH];
	pid_t pid;
	int fd;

	fx_daemon_open(&fx);
	pid = fx_job_fork(fx.dir, leave_three_in_flight, name);
	snprintf(rubbish, sizeof(rubbish), "ncclinsp.%u.1.1", (unsigned)geteuid());
	snprintf(other, sizeof(other), "ncclinsp.%u.1.2", (unsigned)geteuid());
	fd = open(fx_shm_path(&fx, rubbish, path), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	ck_assert_int_eq(ftruncate(fd, 1 << 20), 0);
	close(fd);
	ck_assert_int_eq(link(fx_shm_path(&fx, name, path), fx_shm_path(&fx, other, link_path)), 0);
	discover_look(fx.discover, fx.now_ns + UINT64_C(4000000000));
	fx_job_kill(pid);
	fx_daemon_step(&fx, 30000);
	ck_assert(!there(name));
	ck_assert(there(rubbish));
	ck_assert(there(other));
	ck_assert_uint_eq(fx.seen.appeared, 1);
	unlink(link_path);
	unlink(fx_shm_path(&fx, rubbish, path));
	fx_daemon_close(&fx);
}

TEST(process_that_nobody_waits_for_is_dead_as_well)
{
	siginfo_t info;
	pid_t pid;

	fx_daemon_open(&fx);
	pid = fx_job_fork(fx.dir, fx_job_publish_some, name);
	fx_daemon_step(&fx, 4000);
	kill(pid, SIGKILL);
	ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	fx_daemon_step(&fx, 100);
	ck_assert_int_eq(fx.seen.last_state, PROCESS_DIED);
	fx_daemon_close(&fx);
}

TEST(black_box_of_a_process_that_died_before_us_is_read)
{
	char dir[80];
	pid_t pid;

	snprintf(dir, sizeof(dir), "%s/shm", fx_tmpdir());
	mkdir(dir, 0755);
	pid = fx_job_fork(dir, leave_three_in_flight, name);
	fx_job_kill(pid);
	fx_daemon_open(&fx);
	ck_assert_uint_eq(fx.seen.appeared, 1);
	fx_daemon_step(&fx, 100);
	ck_assert_uint_eq(fx.seen.events, 50);
	ck_assert_int_eq(fx.seen.last_state, PROCESS_DIED);
	ck_assert_uint_eq(fx.seen.last_in_flight, 3);
	ck_assert(!there(name));
	fx_daemon_close(&fx);
}

static void say_goodbye(struct shmring *ring, struct shmring_lane *lane)
{
	char path[FX_PATH], file[80];

	fx_job_publish_some(ring, lane);
	atomic_store_explicit(&ring->live->flags, NCI_LIVE_EXITED, memory_order_relaxed);
	fx_job_name(file, getpid());
	unlink(fx_shm_path(&fx, file, path));
}

static void say_goodbye_late(struct shmring *ring, struct shmring_lane *lane)
{
	raise(SIGSTOP);
	say_goodbye(ring, lane);
}

TEST(process_that_said_goodbye_has_exited)
{
	int status;
	pid_t pid;

	fx_daemon_open(&fx);
	pid = fx_job_fork(fx.dir, say_goodbye_late, name);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(fx.seen.appeared, 1);
	kill(pid, SIGCONT);
	ck_assert_int_eq(waitpid(pid, &status, WUNTRACED), pid);
	fx_daemon_step(&fx, 100);
	ck_assert_uint_eq(fx.seen.ended, 0);	/* it still runs */
	fx_job_kill(pid);
	fx_daemon_step(&fx, 100);
	ck_assert_int_eq(fx.seen.last_state, PROCESS_EXITED);
	ck_assert_uint_eq(fx.seen.events, 50);
	ck_assert(!there(name));
	fx_daemon_close(&fx);
}

TEST(lost_lock_alone_does_not_make_a_running_process_dead)
{
	char path[FX_PATH];
	struct shmring ring;

	fx_daemon_open(&fx);
	fx_job_open(&ring, fx.dir, name);	/* ours: F_GETLK never shows one's own lock */
	close(open(fx_shm_path(&fx, name, path), O_RDONLY));	/* and this drops it */
	fx_daemon_step(&fx, 4000);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(fx.seen.appeared, 1);
	ck_assert_uint_eq(fx.seen.ended, 0);
	fx_daemon_close(&fx);
}

TEST(new_file_under_the_old_name_is_a_new_segment)
{
	struct shmring old, new;

	fx_daemon_open(&fx);
	fx_job_open(&old, fx.dir, name);
	fx_daemon_step(&fx, 4000);
	shmring_forget(&old);			/* an exec does this */
	fx_job_open(&new, fx.dir, name);
	fx_daemon_step(&fx, 4000);
	fx_daemon_step(&fx, 100);
	ck_assert_uint_eq(fx.seen.appeared, 2);
	ck_assert_uint_eq(fx.seen.ended, 1);
	ck_assert_int_eq(fx.seen.last_state, PROCESS_EXITED);
	ck_assert_uint_eq(discover_attached(fx.discover), 1);
	fx_daemon_close(&fx);
}

TEST(process_that_exits_at_once_is_read_to_its_end)
{
	struct shmring_lane *lane;
	struct shmring ring;
	char path[FX_PATH];

	fx_daemon_open(&fx);
	fx_job_open(&ring, fx.dir, name);
	atomic_store_explicit(&ring.header->ready, 0, memory_order_relaxed);
	loop_once(fx.loop, UINT64_MAX);		/* seen, and not ready */
	ck_assert_uint_eq(fx.seen.appeared, 0);
	lane = shmring_lane_new(&ring, gettid());
	fx_job_publish_some(&ring, lane);
	shmring_ready(&ring);
	unlink(fx_shm_path(&fx, name, path));
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(fx.seen.appeared, 1);
	ck_assert_uint_eq(fx.seen.events, 50);
	fx_daemon_step(&fx, 100);
	ck_assert_int_eq(fx.seen.last_state, PROCESS_EXITED);
	fx_daemon_close(&fx);
}

TEST(what_others_wrote_is_known_before_a_process_is_over)
{
	struct shmring_lane *lane;
	struct shmring ring;
	pid_t pid;

	fx_daemon_open(&fx);
	pid = fx_job_fork(fx.dir, fx_job_publish_some, name);
	fx_job_open(&ring, fx.dir, name);
	lane = shmring_lane_new(&ring, gettid());
	fx_daemon_step(&fx, 4000);
	fx_job_publish_some(&ring, lane);
	fx_job_kill(pid);
	discover_look(fx.discover, fx.now_ns);
	ck_assert_uint_eq(fx.seen.ended, 1);
	ck_assert_uint_eq(fx.seen.events_at_end, 100);
	fx_daemon_close(&fx);
}

TEST(only_the_last_that_ended_are_remembered)
{
	fx_daemon_open_with(&fx, (struct discover_config){
		.everybody = true, .max_segments = 2, .max_ended = 2,
		.keep_ns = UINT64_C(60000000000) });
	for (int i = 0; i < 4; i++) {
		pid_t pid = fx_job_fork(fx.dir, fx_job_publish_some, name);

		fx_daemon_step(&fx, 4000);
		fx_job_kill(pid);
		fx_daemon_step(&fx, 100);
	}
	ck_assert_uint_eq(fx.seen.ended, 4);
	ck_assert_uint_eq(fx.seen.forgotten, 2);
	ck_assert_uint_eq(fx_process(&fx, 0)->id, 3);
	ck_assert_uint_eq(fx_process(&fx, 1)->id, 4);
	ck_assert_ptr_null(fx_process(&fx, 2));
	fx_daemon_close(&fx);
}

static struct memory memory;	/* the daemon of a test that fails points to it */

TEST(oldest_that_ended_goes_where_memory_is_tight)
{
	memory = (struct memory){ .most = 1 << 20 };
	fx_daemon_open_with(&fx, (struct discover_config){
		.everybody = true, .max_segments = 2, .max_ended = 4,
		.memory = &memory, .keep_ns = UINT64_C(60000000000) });
	for (int i = 0; i < 3; i++) {
		pid_t pid = fx_job_fork(fx.dir, fx_job_publish_some, name);

		fx_daemon_step(&fx, 4000);
		fx_job_kill(pid);
		fx_daemon_step(&fx, 100);
	}
	ck_assert_uint_eq(fx.seen.forgotten, 0);
	memory.tight = true;
	memory.tight_account = getuid() + 1;
	discover_look(fx.discover, fx.now_ns);
	ck_assert_uint_eq(fx.seen.forgotten, 0);	/* another user's would not help */
	memory.tight = true;
	memory.tight_account = getuid();
	discover_look(fx.discover, fx.now_ns);
	discover_look(fx.discover, fx.now_ns);
	ck_assert_uint_eq(fx.seen.forgotten, 1);
	ck_assert_uint_eq(memory.forgotten, 1);
	ck_assert_uint_eq(fx_process(&fx, 0)->id, 2);
	fx_daemon_close(&fx);
}

#define STRANGER 77

TEST(many_ends_of_one_user_do_not_push_out_another_s)
{
	if (geteuid() != 0) {
		fx_skip("only root can be somebody else");
		return;
	}
	fx_daemon_open_with(&fx, (struct discover_config){
		.everybody = true, .max_segments = 4, .max_ended = 4,
		.keep_ns = UINT64_C(60000000000) });
	for (int i = 0; i < 7; i++) {
		pid_t pid = fx_job_fork_as(i ? geteuid() : STRANGER, fx.dir,
					   fx_job_publish_some, name);

		fx_daemon_step(&fx, 4000);
		fx_job_kill(pid);
		fx_daemon_step(&fx, 100);
	}
	ck_assert_uint_eq(fx.seen.ended, 7);
	ck_assert_uint_eq(fx.seen.forgotten, 3);
	ck_assert_uint_eq(fx_process(&fx, 0)->uid, STRANGER);
	ck_assert_uint_eq(fx_process(&fx, 1)->id, 5);
	ck_assert_uint_eq(fx_process(&fx, 3)->id, 7);
	fx_daemon_close(&fx);
}

static void join_a_pair(struct shmring *ring, struct shmring_lane *lane)
{
	struct nci_comm *comm = &ring->comms[0];

	comm->flags = NCI_COMM_HAS_ID;
	comm->comm_id = 17;
	comm->nranks = 2;
	atomic_store_explicit(&ring->live->comms, 1, memory_order_relaxed);
	atomic_store_explicit(&comm->published, 1, memory_order_release);
	fx_job_publish_some(ring, lane);
}

/* With as many communicators of others in its segment as it likes. */
TEST(another_user_s_process_waits_for_nobody)
{
	char other[80];
	pid_t dead;

	if (geteuid() != 0) {
		fx_skip("only root can be somebody else");
		return;
	}
	fx_daemon_open(&fx);
	dead = fx_job_fork(fx.dir, join_a_pair, name);
	fx_job_fork_as(STRANGER, fx.dir, join_a_pair, other);
	fx_daemon_step(&fx, 4000);
	ck_assert_uint_eq(discover_attached(fx.discover), 2);
	fx_job_kill(dead);
	fx_daemon_step(&fx, 100);
	fx_daemon_step(&fx, 61000);
	ck_assert_uint_eq(fx.seen.forgotten, 1);
	fx_daemon_close(&fx);
}

TEST(who_died_is_remembered_while_others_wait_for_it)
{
	char other[80];
	pid_t dead, alive;

	fx_daemon_open(&fx);
	dead = fx_job_fork(fx.dir, join_a_pair, name);
	fx_daemon_step(&fx, 4000);
	alive = fx_job_fork(fx.dir, join_a_pair, other);
	fx_daemon_step(&fx, 4000);
	fx_job_kill(dead);
	fx_daemon_step(&fx, 100);
	fx_daemon_step(&fx, 200000);
	ck_assert_int_eq(fx_process(&fx, 0)->state, PROCESS_DIED);
	fx_job_kill(alive);
	fx_daemon_step(&fx, 100);
	fx_daemon_step(&fx, 59000);
	ck_assert_uint_eq(fx.seen.ended, 2);
	fx_daemon_step(&fx, 2000);
	fx_daemon_step(&fx, 60000);
	ck_assert_ptr_null(fx_process(&fx, 0));
	ck_assert_uint_eq(fx.seen.forgotten, 2);
	fx_daemon_close(&fx);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
