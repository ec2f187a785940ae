/* SPDX-License-Identifier: Apache-2.0 */
/* What there is once per process: the segment, its end, forks, reloads. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plugin/identity.h"
#include "plugin/sweep.h"
#include "shmring/producer.h"
#include "plugin/level.h"
#include "tests/fixture.h"
#include "tests/plugin_driver.h"

static struct pd pd;

static void setup(void)
{
	pd_open(&pd, "trace");
}

/* Run in a child process; its exit status. */
static int in_child(void (*what)(void))
{
	int status;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		what();
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status), "signal %d", WTERMSIG(status));
	return WEXITSTATUS(status);
}

TEST(header_tells_who_the_process_is)
{
	char command[64] = "";
	FILE *comm;

	setenv("SLURM_JOB_ID", "4711", 1);
	setenv("LOCAL_RANK", "3", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "never", 1);
	setenv("NCCL_ALGO", "Tree", 1);
	pd_init(&pd);
	pd_read(&pd);
	ck_assert_uint_eq(pd.header.pid, (uint32_t)getpid());
	ck_assert_uint_eq(pd.header.uid, getuid());
	ck_assert_uint_ne(pd.header.start_time, 0);
	ck_assert_uint_ne(pd.header.instance, 0);
	ck_assert_uint_eq(pd.header.nonce, nci_context_nonce((uint64_t)pd.context));
	ck_assert_uint_ge(pd.header.nonce, UINT32_C(1) << 31);
	ck_assert_uint_ne(pd.header.boot_id[0] | pd.header.boot_id[1] | pd.header.boot_id[2], 0);
	ck_assert(pd.header.clock >= NCI_CLOCK_TSC && pd.header.clock <= NCI_CLOCK_MONOTONIC);
	ck_assert_uint_ne(pd.header.anchor.mono_ns, 0);
	ck_assert_str_eq(pd.header.plugin_version, NCCLINSP_VERSION);
	comm = fopen("/proc/self/comm", "r");
	ck_assert_ptr_nonnull(fgets(command, sizeof(command), comm));
	fclose(comm);
	command[strcspn(command, "\n")] = '\0';
	ck_assert_str_eq(pd.header.command, command);
	ck_assert_ptr_nonnull(memmem(pd.header.env, pd.header.env_bytes, "SLURM_JOB_ID=4711", 18));
	ck_assert_ptr_nonnull(memmem(pd.header.env, pd.header.env_bytes, "LOCAL_RANK=3", 13));
	ck_assert_ptr_nonnull(memmem(pd.header.env, pd.header.env_bytes, "NCCL_ALGO=Tree", 15));
	ck_assert_ptr_null(memmem(pd.header.env, sizeof(pd.header.env), "never", 5));
	ck_assert_uint_eq(pd.live.api_version, 6);
	ck_assert_uint_eq(pd.live.level, NCI_LEVEL_TRACE);
	ck_assert_uint_eq(pd.live.mask, (uint32_t)pd.mask);
}

TEST(environment_that_does_not_fit_is_left_out_whole)
{
	char large[3000];

	memset(large, 'x', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	setenv("SLURM_JOB_NAME", large, 1);
	setenv("RANK", "1", 1);
	setenv("NCCL_NET_PLUGIN", large, 1);
	pd_init(&pd);
	pd_read(&pd);
	ck_assert_ptr_null(memchr(pd.header.env, 'x', sizeof(pd.header.env)));
	ck_assert_ptr_nonnull(memmem(pd.header.env, pd.header.env_bytes, "RANK=1", 7));
}

TEST(communicator_is_published_as_init_told_it)
{
	struct nci_comm comm;
	char name[200];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	pd_init(&pd);
	pd_init_named(&pd, 1, NULL, NULL);
	pd_init_named(&pd, 2, name, NULL);
	memset(name, 0, sizeof(name));	/* the application frees it after init */
	pd_read(&pd);
	comm = pd_comm(&pd, 0);
	ck_assert_uint_eq(comm.published, 1);
	ck_assert_uint_eq(comm.flags, NCI_COMM_HAS_ID);
	ck_assert_uint_eq(comm.comm_id, UINT64_C(0x1234567890abcdef));
	ck_assert_int_eq(comm.rank, 1);
	ck_assert_int_eq(comm.nranks, 4);
	ck_assert_int_eq(comm.nnodes, 2);
	ck_assert_uint_eq(comm.name_bytes, 4);
	ck_assert_mem_eq(comm.name, "test", 4);
	ck_assert_uint_eq(pd_comm(&pd, 1).name_bytes, 0);
	comm = pd_comm(&pd, 2);
	ck_assert_uint_eq(comm.name_bytes, sizeof(comm.name));
	ck_assert_uint_eq(comm.name[sizeof(comm.name) - 1], 'n');
}

TEST_LOOP(versions_that_tell_nothing_leave_it_unknown, 1, 4)
{
	pd.version = _i;
	pd_init(&pd);
	pd_read(&pd);
	ck_assert_uint_eq(pd_comm(&pd, 0).flags, 0);
	ck_assert_int_eq(pd_comm(&pd, 0).rank, -1);
	ck_assert_uint_eq(pd.live.api_version, _i);
}

TEST(segment_is_locked_while_the_process_lives)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int pipefd[2];
	char byte;
	pid_t pid;

	ck_assert_int_eq(pipe(pipefd), 0);
	pd_init(&pd);
	pd_read(&pd);
	pid = fork();
	if (pid == 0) {
		int fd = open(pd.path, O_RDONLY);

		_exit(fcntl(fd, F_GETLK, &lock) < 0 || lock.l_type == F_UNLCK ||
		      write(pipefd[1], "", 1) != 1);
	}
	ck_assert_int_eq(read(pipefd[0], &byte, 1), 1);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
}

static void start_and_exit(void)
{
	pd_init(&pd);
	PD_START(&pd, NCCL_COLL);
	exit(0);
}

static void start_and_die(void)
{
	pd_init(&pd);
	PD_START(&pd, NCCL_COLL);
}

TEST(clean_exit_removes_the_segment)
{
	ck_assert_int_eq(in_child(start_and_exit), 0);
	ck_assert_uint_eq(pd_segments(&pd), 0);
}

TEST(sudden_death_leaves_the_segment)
{
	ck_assert_int_eq(in_child(start_and_die), 0);
	ck_assert_uint_eq(pd_segments(&pd), 1);
}

static void exit_as_forked_child(void)
{
	exit(0);
}

TEST(forked_child_leaves_its_parents_segment_alone)
{
	pd_init(&pd);
	ck_assert_int_eq(in_child(exit_as_forked_child), 0);
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.flags, 0);
	ck_assert_uint_eq(pd_segments(&pd), 1);
}

TEST(child_of_a_fork_without_handlers_leaves_the_segment_too)
{
	pid_t pid;

	pd_init(&pd);
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid == 0)
		exit(0);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	pd_read(&pd);
	ck_assert_uint_eq(pd.live.flags, 0);
	ck_assert_uint_eq(pd_segments(&pd), 1);
}

static void *inherited;

static void act_as_forked_child(void)
{
	ck_assert_ptr_null(PD_START(&pd, NCCL_COLL));
	pd_state(&pd, inherited, NCCL_KERNEL_CH_STOP, NULL);
	pd_stop(&pd, inherited);
	pd_finalize(&pd, pd.context);
}

TEST(forked_child_is_muted_until_its_own_init)
{
	pd_init(&pd);
	inherited = PD_START(&pd, NCCL_KERNEL_CH);
	ck_assert_int_eq(in_child(act_as_forked_child), 0);
	pd_read(&pd);
	ck_assert_uint_eq(pd.records, 0);
	ck_assert_uint_eq(pd.live.comms_open, 1);
	pd_stop(&pd, inherited);
	pd_read(&pd);
	ck_assert_uint_eq(pd.records, 1);
}

static void init_as_forked_child(void)
{
	void *old = pd.context;

	pd_init(&pd);
	ck_assert_ptr_ne(pd.context, old);
	ck_assert_uint_eq(pd_segments(&pd), 2);
	ck_assert_ptr_null(PD_START(&pd, NCCL_COLL, .context = old));
	pd_stop(&pd, PD_START(&pd, NCCL_COLL));
	/* NCCL keeps the process id of whoever loaded the library. */
	pd_stop(&pd, PD_START(&pd, NCCL_PROXY_OP, .pid = pd.loaded_pid));
	pd_read(&pd);
	ck_assert_uint_eq(pd.records, 2);
	ck_assert_uint_eq(pd.header.pid, (uint32_t)getpid());
	ck_assert_uint_eq(pd_record(&pd, NCI_EV_PROXY_OP, 0)->form & NCI_FORM_FOREIGN, 0);
	exit(0);
}

TEST(forked_child_that_uses_nccl_has_a_segment_of_its_own)
{
	pd_init(&pd);
	PD_START(&pd, NCCL_COLL);
	ck_assert_int_eq(in_child(init_as_forked_child), 0);
	ck_assert_uint_eq(pd_segments(&pd), 1);
	pd_read(&pd);
	ck_assert_uint_eq(pd.header.pid, (uint32_t)getpid());
}

TEST(reload_in_one_process_goes_on_in_the_same_segment)
{
	void *old = pd_init(&pd), *stale = PD_START(&pd, NCCL_COLL_API);

	for (int i = 1; i <= 5; i++) {
		pd_stop(&pd, PD_START(&pd, NCCL_GROUP));
		pd_finalize(&pd, pd.context);
		if (pd.lib)
			ck_assert_int_eq(dlclose(pd.lib), 0);
		pd_load(&pd);
		pd.mask = 0x55555;
		pd_init(&pd);
		ck_assert_int_eq((uint32_t)pd.mask, level_essence(NCCL_EVENTS_V6));
		ck_assert_ptr_ne(pd.context, old);
		ck_assert_ptr_null(PD_START(&pd, NCCL_GROUP, .context = old));
		pd_stop(&pd, stale);
	}
	pd_read(&pd);
	ck_assert_uint_eq(pd_segments(&pd), 1);
	ck_assert_uint_eq(pd_count(&pd, NCI_EV_GROUP), 5);
	ck_assert_uint_eq(pd_count(&pd, NCI_EV_COLL_API), 1);
	ck_assert_uint_eq(pd.live.comms, 6);
	ck_assert_uint_eq(pd.live.comms_open, 1);
	ck_assert_uint_eq(pd.lanes, 1);
}

TEST(names_at_an_address_that_was_mapped_anew_are_read_anew)
{
	static char name[16] = "OldName";
	const struct nci_ev_coll_api *ev;

	pd_init(&pd);
	pd_stop(&pd, PD_START(&pd, NCCL_COLL_API, .func = name));
	pd_finalize(&pd, pd.context);
	strcpy(name, "NewName");
	pd_init(&pd);
	pd_stop(&pd, PD_START(&pd, NCCL_COLL_API, .func = name));
	pd_read(&pd);
	ev = (const struct nci_ev_coll_api *)pd_record(&pd, NCI_EV_COLL_API, 1);
	ck_assert_str_eq(pd_string(&pd, ev->func), "NewName");
}

/* ---- what the dead left ---- */

static void leave_file(const char *name, int64_t age_s)
{
	struct timespec times[2] = { { .tv_sec = time(NULL) - age_s }, { 0, 0 } };
	char path[512];
	int fd;

	times[1] = times[0];
	snprintf(path, sizeof(path), "%s/%s", pd.dir, name);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(futimens(fd, times), 0);
	close(fd);
}

static bool is_there(const char *name)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", pd.dir, name);
	return access(path, F_OK) == 0;
}

/* A process that only its lock shows: it may be in another pid namespace. */
static pid_t lock_elsewhere(const char *name)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int pipefd[2];
	char byte;
	pid_t pid;

	ck_assert_int_eq(pipe(pipefd), 0);
	pid = fork();
	if (pid == 0) {
		int dir = open(pd.dir, O_RDONLY | O_DIRECTORY);

		if (fcntl(openat(dir, name, O_RDWR), F_SETLK, &lock) == 0 &&
		    write(pipefd[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	close(pipefd[1]);
	ck_assert_int_eq(read(pipefd[0], &byte, 1), 1);
	return pid;
}

TEST(old_files_of_dead_processes_are_removed_and_no_others)
{
	char dead[64], fresh[64], alive[64], foreign[64], second[64];
	pid_t locker;

	snprintf(dead, sizeof(dead), "ncclinsp.%u.%d.1", getuid(), getpid());
	snprintf(fresh, sizeof(fresh), "ncclinsp.%u.4194399.5", getuid());
	snprintf(alive, sizeof(alive), "ncclinsp.%u.4194399.6", getuid());
	snprintf(foreign, sizeof(foreign), "ncclinsp.%u.4194399.7", getuid() + 1);
	snprintf(second, sizeof(second), "ncclinsp.%u.4194399.8.4711", getuid());
	leave_file(dead, SWEEP_AGE_S + 5);	/* our own pid, in another life */
	leave_file(second, SWEEP_AGE_S + 5);
	leave_file(fresh, SWEEP_AGE_S - 30);
	leave_file(alive, SWEEP_AGE_S + 5);
	leave_file(foreign, SWEEP_AGE_S + 5);
	leave_file("ncclinsp.0.x", SWEEP_AGE_S + 5);
	leave_file("other", SWEEP_AGE_S + 5);
	locker = lock_elsewhere(alive);
	pd_init(&pd);
	kill(locker, SIGKILL);
	ck_assert_int_eq(waitpid(locker, NULL, 0), locker);
	ck_assert(is_there(alive));
	ck_assert(!is_there(dead));
	ck_assert(!is_there(second));
	ck_assert(is_there(fresh));
	ck_assert(is_there(foreign));
	ck_assert(is_there("ncclinsp.0.x"));
	ck_assert(is_there("other"));
}

/* ---- who is in the way ---- */

static void own_name(char name[80])
{
	snprintf(name, 80, NCI_FILE_PREFIX "%u.%d.%llu", getuid(), (int)getpid(),
		 (unsigned long long)identity_start_time(getpid()));
}

/* What is recorded is in a file of another name, which ends in a number nobody can guess. */
static void check_another_name_is_taken(void)
{
	char name[80];

	own_name(name);
	pd_init(&pd);
	pd_stop(&pd, PD_START(&pd, NCCL_GROUP));
	ck_assert_uint_eq(pd_segments(&pd), 2);
	snprintf(pd.path, sizeof(pd.path), "%s/%s", pd.dir, name);
	ck_assert_int_eq(remove(pd.path), 0);
	pd_read(&pd);
	ck_assert_uint_eq(pd_count(&pd, NCI_EV_GROUP), 1);
	ck_assert_uint_eq(pd.header.pid, (uint32_t)getpid());
	ck_assert_ptr_nonnull(strstr(pd.path, name));
	ck_assert_int_eq(strstr(pd.path, name)[strlen(name)], '.');
}

TEST(name_that_another_process_holds_is_left_to_it)
{
	char name[80];
	pid_t locker;

	own_name(name);
	leave_file(name, 0);
	locker = lock_elsewhere(name);
	check_another_name_is_taken();
	kill(locker, SIGKILL);
	ck_assert_int_eq(waitpid(locker, NULL, 0), locker);
}

/* In a child, whose name is known when it is there. */
static void squat_and_record(void)
{
	char name[80];

	ck_assert_int_eq(setreuid(77, 0), 0);		/* to be named as the stranger will be */
	own_name(name);
	ck_assert_int_eq(setreuid(0, 0), 0);
	leave_file(name, 0);
	ck_assert_int_eq(setresuid(77, 77, 77), 0);
	pd_init(&pd);
	pd_stop(&pd, PD_START(&pd, NCCL_GROUP));
	_exit((int)pd_segments(&pd));
}

static void squat_and_exit(void)
{
	char name[80], path[512];

	own_name(name);
	snprintf(path, sizeof(path), "%s/%s", pd.dir, name);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	pd_init(&pd);
	ck_assert_uint_eq(pd_segments(&pd), 2);
	ck_assert_int_eq(rmdir(path), 0);
	exit(0);
}

TEST(name_that_cannot_be_had_mutes_nobody)
{
	char name[80], path[512];

	own_name(name);
	snprintf(path, sizeof(path), "%s/%s", pd.dir, name);
	ck_assert_int_eq(mkdir(path, 0700), 0);
	check_another_name_is_taken();
}

/* What another user left in a sticky directory cannot be removed. */
TEST(file_of_another_user_under_one_s_name_mutes_nobody)
{
	if (geteuid() != 0) {
		fx_skip("only root can be two users");
		return;
	}
	ck_assert_int_eq(chmod(fx_tmpdir(), 0711), 0);
	ck_assert_int_eq(chmod(pd.dir, 01777), 0);
	ck_assert_int_eq(in_child(squat_and_record), 2);
}

TEST(clean_exit_removes_a_segment_of_another_name_too)
{
	ck_assert_int_eq(in_child(squat_and_exit), 0);
	ck_assert_uint_eq(pd_segments(&pd), 0);
}

int main(void)
{
	return fx_run(setup, NULL);
}
