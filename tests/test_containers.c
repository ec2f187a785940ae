/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel tells of containers, and directories of real ones that are hostile. */
#include "ncclinspd/find/containers.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ncclinspd/base/loop.h"
#include "ncclinspd/find/cgroup.h"
#include "ncclinspd/find/mounts.h"
#include "reader/base/beneath.h"
#include "reader/read/life.h"
#include "tests/fixture.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID2 "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define POD "11111111-2222-3333-4444-555555555555"
#define POD_ "11111111_2222_3333_4444_555555555555"

static const struct {
	const char *text, *container, *pod_uid;
} cgroups[] = {
	{ "0::/\n", "", "" },
	{ "0::/user.slice/user-1000.slice/session-3.scope\n", "", "" },
	{ "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n", "", "" },
	{ "0::/system.slice/docker-" ID ".scope\n", ID, "" },
	{ "4:memory:/docker/" ID "\n1:name=systemd:/docker/" ID "\n", ID, "" },
	{ "0::/\n9:cpuset:/docker/" ID "\n", ID, "" },
	{ "0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID
	  ".scope/container\n", ID, "" },
	{ "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_
	  ".slice/cri-containerd-" ID ".scope\n", ID, POD },
	{ "0::/../../kubepods-pod" POD_ ".slice/crio-" ID ".scope\n", ID, POD },
	{ "0::/kubepods/besteffort/pod" POD "/" ID "\n", ID, POD },
	{ "0::/kubepods/pod0123456789abcdef0123456789abcdef/" ID "\n", ID,
	  "0123456789abcdef0123456789abcdef" },
	{ "0::/machine.slice/machine-gpu\\x2d1.scope/payload/x\n", "gpu-1", "" },
	{ "0::/machine.slice/systemd-nspawn@a.service/payload\n", "a", "" },
	{ "0::/lxc.payload.web/init.scope\n", "web", "" },
	/* made by who is inside: the outermost counts */
	{ "0::/system.slice/docker-" ID ".scope/docker-" ID2 ".scope\n", ID, "" },
	{ "0::/kubepods/pod" POD "/" ID "/pod22222222-2222-3333-4444-555555555555/" ID2 "\n", ID,
	  POD },
	/* almost */
	{ "0::/docker/" ID "0\n", "", "" },
	{ "0::/docker/" ID "g\n", "", "" },
	{ "0::/kubepods/pod1111111-22222-3333-4444-555555555555/x\n", "", "" },
	{ "0::/machine.slice/machine-.scope\n", "", "" },
	{ "0::/lxc.payload.a\x1b[2Jb\n", "a?[2Jb", "" },
	{ "no colons " ID, "", "" },
	{ "::", "", "" },
	{ "", "", "" },
};

TEST_LOOP(a_control_group_s_path_names_the_container, 0, FX_COUNT(cgroups))
{
	char container[65], pod_uid[37];

	cgroup_parse(cgroups[_i].text, container, pod_uid);
	ck_assert_str_eq(container, cgroups[_i].container);
	ck_assert_str_eq(pod_uid, cgroups[_i].pod_uid);
}

#define ROOT  "20 1 0:40 / / rw - overlay overlay rw,lowerdir=/a:/b\n"
#define DEV   "21 20 0:41 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k\n"
#define SHM   "22 21 0:42 / /dev/shm rw,nosuid shared:5 - tmpfs shm rw,size=65536k\n"

static const struct {
	const char *text;
	unsigned dev;		/* its minor; 0: nothing to be touched */
} tables[] = {
	{ ROOT DEV SHM, 42 },
	{ ROOT DEV "22 21 0:43 / /dev/pts rw - devpts devpts rw\n" SHM, 42 },
	{ ROOT DEV, 41 },
	{ ROOT SHM, 42 },
	{ ROOT, 0 },
	{ ROOT DEV SHM "23 22 0:44 / /dev/shm rw - tmpfs over rw\n", 44 },
	{ ROOT DEV SHM "23 22 0:44 / /dev/shm rw - fuse.sshfs over rw\n", 0 },
	{ ROOT DEV SHM "23 22 0:44 / /dev/shm/x rw - fuse.sshfs over rw\n", 42 },
	{ ROOT "21 20 0:41 / /dev rw - fuse dev rw\n" SHM, 0 },
	{ "20 1 0:40 / / rw - nfs4 server:/ rw\n" DEV SHM, 0 },
	{ "20 1 0:40 / / rw - fuse.fuse-overlayfs overlay rw\n" DEV SHM, 0 },
	{ DEV SHM, 0 },
	{ ROOT DEV "22 21 0:42 / /dev/shm rw - ext4 /dev/vda rw\n", 0 },
	{ ROOT DEV "22 21 0:42 /sub\\040dir /dev/shm rw master:1 propagate_from:2 - tmpfs s rw\n",
	  42 },
	{ ROOT DEV "22 21 0:42 / /dev/shm rw\n", 41 },
	{ ROOT "nonsense - tmpfs\n\n - \n22 21 x:42 / /dev/shm rw - tmpfs shm rw\n", 0 },
	{ "", 0 },
};

static bool find_shm(const char *text, size_t bytes, dev_t *dev)
{
	FILE *file = fmemopen((void *)(uintptr_t)text, bytes, "r");
	bool found;

	if (!file)
		return false;	/* of no byte there is none */
	found = mounts_find_shm(file, dev);
	fclose(file);
	return found;
}

TEST_LOOP(only_a_tmpfs_that_the_kernel_keeps_is_gone_to, 0, FX_COUNT(tables))
{
	const char *text = tables[_i].text;
	dev_t dev;

	ck_assert_int_eq(find_shm(text, strlen(text), &dev), tables[_i].dev != 0);
	if (tables[_i].dev)
		ck_assert_uint_eq(minor(dev), tables[_i].dev);
}

/* The rest of a long line must not be taken for a line. */
TEST(a_long_line_hides_nothing_and_pretends_nothing)
{
	static char text[40000];
	size_t n = (size_t)sprintf(text, "%s%s%s", ROOT, DEV, SHM);
	dev_t dev;

	n += (size_t)sprintf(text + n, "23 20 0:50 / /x rw - overlay o rw,lowerdir=");
	while (n % 8191 != strlen(ROOT DEV SHM) % 8191)
		text[n++] = 'a';
	n += (size_t)sprintf(text + n, "24 21 0:66 / /dev/shm rw - tmpfs fake rw\n");
	ck_assert(find_shm(text, n, &dev));
	ck_assert_uint_eq(minor(dev), 42);
}

/* ---- real ones --------------------------------------------------------------- */

/* The machine, and other tests, may have containers of their own: only ours are counted. */
static struct {
	struct loop *loop;
	struct shmwatch watch;
	struct shmdir own;
	struct containers *containers;
	struct stat ours;	/* the directory that is looked for */
	uint32_t seen, gone;
	char last[80];
} fx;

static bool is_ours(const struct shmdir *dir)
{
	struct stat st;

	return fstat(dir->fd, &st) == 0 && st.st_dev == fx.ours.st_dev &&
	       st.st_ino == fx.ours.st_ino;
}

static uint32_t on_see(void *arg, struct shmdir *dir, const char *file, ino_t ino, uint64_t now_ns)
{
	struct stat st;

	(void)arg;
	(void)now_ns;
	if (dir->path || file[0] == '.' || !is_ours(dir))
		return 0;
	ck_assert_int_eq(fstatat(dir->fd, file, &st, AT_SYMLINK_NOFOLLOW), 0);
	ck_assert(!ino || st.st_ino == ino);
	fx.seen++;
	snprintf(fx.last, sizeof(fx.last), "%.79s", file);
	return 0;
}

static void on_gone(void *arg, const struct shmdir *dir)
{
	(void)arg;
	fx.gone += is_ours(dir);
}

static void open_all(void)
{
	const struct containers_config config = { .proc = LIFE_PROC, .everybody = true };

	memset(&fx, 0, sizeof(fx));
	ck_assert_int_eq(loop_new(&fx.loop), 0);
	shmwatch_init(&fx.watch, fx.loop, on_see, NULL);
	shmdir_init(&fx.own, &fx.watch, fx_tmpdir());
	ck_assert_int_eq(containers_new(&fx.containers, &config, &fx.watch, &fx.own, on_gone, NULL),
			 0);
}

static void close_all(void)
{
	containers_free(fx.containers);
	shmdir_deinit(&fx.own);
	shmwatch_deinit(&fx.watch);
	loop_free(fx.loop);
}

static struct shmdir *held(void)
{
	struct shmdir *dir;
	uint32_t at = 0;

	while ((dir = containers_next(fx.containers, &at)))
		if (is_ours(dir))
			return dir;
	return NULL;
}

/* After all processes were looked at. */
static struct shmdir *find_ours(void)
{
	while (containers_look(fx.containers, 0))
		;
	return held();
}

/* What `path` is for that process. */
static void ours_is(pid_t pid, const char *path)
{
	char full[300];

	snprintf(full, sizeof(full), "/proc/%d/root%s", (int)pid, path);
	ck_assert_int_eq(stat(full, &fx.ours), 0);
}

/* The /dev/shm of that process, which must have been found. */
static struct shmdir *find_in(pid_t pid)
{
	struct shmdir *dir;

	open_all();
	ours_is(pid, "/dev/shm");
	dir = find_ours();
	ck_assert_ptr_nonnull(dir);
	return dir;
}

static bool mount_shm(const char *arg)
{
	return mount("t", "/dev/shm", "tmpfs", 0, arg) == 0;
}

static bool leave_shm(const char *arg)
{
	(void)arg;
	return true;
}

/*
 * A process in a mount namespace, and in what `flags` say, that has done `prepare` to its
 * /dev/shm.  0: it may not do that here.
 */
static pid_t contain(int flags, bool (*prepare)(const char *), const char *arg)
{
	char ok = 0;
	int fds[2];
	pid_t pid;

	ck_assert_int_eq(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		ok = unshare(CLONE_NEWNS | flags) == 0 &&
		     mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 && prepare(arg);
		if (write(fds[1], &ok, 1) == 1)
			pause();
		_exit(0);
	}
	close(fds[1]);
	if (read(fds[0], &ok, 1) != 1)
		ok = 0;
	close(fds[0]);
	if (ok)
		return pid;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	fx_skip("a mount namespace is refused here");
	return 0;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST_LOOP(shared_memory_of_a_container_is_held_until_its_last_process_is_gone, 0, 2)
{
	pid_t pid = contain(_i ? CLONE_NEWUSER : 0, mount_shm, "size=1m");

	if (!pid)
		return;
	open_all();
	ours_is(pid, "/dev/shm");
	ck_assert_ptr_nonnull(find_ours());
	ck_assert_ptr_nonnull(find_ours());
	end(pid);
	ck_assert_ptr_null(find_ours());
	ck_assert_uint_eq(fx.gone, 1);
	close_all();
}

/* The kernel gives a new namespace the number that the last one had. */
TEST(the_next_container_is_not_taken_for_the_last_one)
{
	pid_t pid = contain(0, mount_shm, "size=1m");

	if (!pid)
		return;
	open_all();
	for (uint32_t i = 0; i < 5; i++) {
		ours_is(pid, "/dev/shm");
		find_ours();	/* another one under that number: this is when it is noticed */
		ck_assert_ptr_nonnull(find_ours());
		end(pid);
		pid = contain(0, mount_shm, "size=1m");
		ck_assert_int_ne(pid, 0);
		ck_assert_ptr_null(find_ours());
		ck_assert_uint_eq(fx.gone, i + 1);
	}
	end(pid);
	close_all();
}

TEST(the_node_s_shared_memory_is_no_container_s)
{
	pid_t pid = contain(0, leave_shm, NULL);

	if (!pid)
		return;
	open_all();
	ours_is(pid, "/dev/shm");
	ck_assert_ptr_null(find_ours());
	end(pid);
	close_all();
}

/* /dev is a tmpfs, and its "shm" a link. */
static bool link_shm(const char *to)
{
	while (umount2("/dev/shm", MNT_DETACH) == 0)
		;	/* what lies hidden there would be what the kernel tells of */
	return mount("t", "/dev", "tmpfs", 0, "size=1m") == 0 && mkdir("/dev/real", 0777) == 0 &&
	       symlink(to, "/dev/shm") == 0;
}

static const struct {
	const char *link, *to;	/* what it is for the process that made it */
} traps[] = {
	{ "real", "/dev/real" },
	{ "/dev/real", "/dev/real" },
	{ "/etc", "/etc" },
	{ "../../../../etc", "/etc" },
	{ "/proc/1/root/etc", "/etc" },
};

TEST_LOOP(a_link_is_not_followed, 0, FX_COUNT(traps))
{
	pid_t pid = contain(0, link_shm, traps[_i].link);

	if (!pid)
		return;
	open_all();
	ours_is(pid, traps[_i].to);
	ck_assert_ptr_null(find_ours());
	end(pid);
	close_all();
}

/* A file of another file system, which may be one that does not answer, over one of its own. */
static bool cover(const char *arg)
{
	return mount_shm(arg) && close(open("/dev/shm/covered", O_CREAT | O_WRONLY, 0600)) == 0 &&
	       close(open("/dev/shm/plain", O_CREAT | O_WRONLY, 0600)) == 0 &&
	       mount("/proc/version", "/dev/shm/covered", NULL, MS_BIND, NULL) == 0;
}

TEST(a_file_that_something_is_mounted_over_is_let_be)
{
	pid_t pid = contain(0, cover, "size=1m");
	struct shmdir *dir;
	struct stat st;

	if (!pid)
		return;
	dir = find_in(pid);
	ck_assert_int_eq(beneath_open(dir->fd, "covered"), -EXDEV);
	ck_assert_int_eq(beneath_stat(dir->fd, "covered", &st), -EXDEV);
	ck_assert_int_eq(beneath_stat(dir->fd, "plain", &st), 0);
	ck_assert(S_ISREG(st.st_mode));
	end(pid);
	close_all();
}

static bool fill(const char *arg)
{
	char path[64];

	if (!mount_shm(arg))
		return false;
	for (int i = 0; i < 10000; i++) {
		snprintf(path, sizeof(path), "/dev/shm/%d", i);
		close(open(path, O_CREAT | O_WRONLY, 0600));
	}
	return true;
}

TEST(a_directory_full_of_files_is_listed_in_slices)
{
	pid_t pid = contain(0, fill, "size=64m");
	struct shmdir *dir;
	int slices = 1;

	if (!pid)
		return;
	dir = find_in(pid);
	while (shmdir_scan(dir, SHMDIR_WORK_IN, 0) == SHMDIR_MORE) {
		ck_assert_uint_le(fx.seen, (uint32_t)slices * SHMDIR_WORK_IN);
		slices++;
	}
	ck_assert_uint_eq(fx.seen, 10000);
	ck_assert_int_eq(slices, 10000 / SHMDIR_WORK_IN + 1);
	ck_assert_ptr_null(dir->list);
	ck_assert_int_eq(shmdir_scan(dir, UINT32_MAX, 0), 0);
	ck_assert_uint_eq(fx.seen, 20000);		/* and again, from its beginning */
	end(pid);
	close_all();
}

static void make_file(pid_t pid, const char *name)
{
	char path[300];

	snprintf(path, sizeof(path), "/proc/%d/root/dev/shm/%s", (int)pid, name);
	close(open(path, O_CREAT | O_WRONLY, 0600));
}

/* One file is told of; of thousands the rest is left to scans. */
TEST(a_flood_of_notices_is_not_followed)
{
	pid_t pid = contain(0, mount_shm, "size=16m");
	struct shmdir *dir;
	char name[16];

	if (!pid)
		return;
	dir = find_in(pid);
	make_file(pid, "one");
	while (!fx.seen)
		ck_assert_int_eq(loop_once(fx.loop, UINT64_MAX), 0);
	ck_assert_str_eq(fx.last, "one");
	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "%d", i);
		make_file(pid, name);
		loop_once(fx.loop, 0);
	}
	ck_assert_int_eq(dir->wd, -1);
	ck_assert_uint_eq(fx.seen, SHMDIR_NOTICES);
	ck_assert_int_eq(shmdir_scan(dir, UINT32_MAX, 0), 0);
	ck_assert_int_ge(dir->wd, 0);
	end(pid);
	close_all();
}

int main(void)
{
	return fx_run(NULL, NULL);
}
