/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files in the directory of segments, of several users and over time: they come, are locked
 * and let go, change, shrink, are renamed and removed, in any order, while the daemon looks.
 * Whatever they did, in the end nothing of them is left in it: no process, no descriptor.
 *
 * Input: steps of 16 bytes, see struct step.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reader/read/life.h"
#include "tests/fixture.h"
#include "tests/fixture_daemon.h"

#define STEPS		16
#define SLOTS		8
#define HELPERS		4	/* slots of processes that live; the others' are long dead */
#define PAGE		4096
#define PIECES		16	/* of the file that every slot begins as */
#define KEEP_MS		60000	/* as fx_daemon_open() has it */

struct step {
	uint8_t what;		/* modulo: an action */
	uint8_t slot, zero[2];
	uint32_t where;		/* milliseconds, or a part of the file */
	uint64_t word;
};
_Static_assert(sizeof(struct step) == 16, "the input's layout");

static const uid_t uids[SLOTS] = { 0, 4001, 4001, 4002, 0, 4001, 4002, 4003 };

/* A process of another user, which holds locks when it is told to. */
static struct helper {
	pid_t pid;
	uint64_t start_time;
	int fd;
	bool holds;
} helpers[HELPERS];

static struct fx_daemon fx;
static int shm_fd = -1, descriptors;	/* 0: not counted yet */

/* The file as a plugin makes it, and its pieces that are not empty. */
static uint8_t *file;
static size_t file_bytes;
static struct {
	size_t at, bytes;
} pieces[PIECES];
static size_t npieces;
static struct nci_header header;

/* ---- helpers ----------------------------------------------------------------------- */

/* "L" and a name: open and lock it; else let go. */
static void help(int fd)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char text[160];
	int held = -1;
	ssize_t n;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while ((n = recv(fd, text, sizeof(text) - 1, 0)) > 0) {
		text[n] = '\0';
		if (held >= 0)
			close(held);
		held = *text == 'L' ? open(text + 1, O_RDWR | O_CLOEXEC | O_NONBLOCK) : -1;
		if (held >= 0)
			fcntl(held, F_SETLK, &lock);
		send(fd, "", 1, 0);
	}
	_exit(0);
}

static void start_helper(struct helper *h, uid_t uid)
{
	int pair[2];

	demand(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
	h->pid = fork();
	demand(h->pid >= 0);
	if (h->pid == 0) {
		if (geteuid() == 0)
			demand(setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0);
		help(pair[1]);
	}
	close(pair[1]);
	h->fd = pair[0];
	h->start_time = life_start_time(LIFE_PROC, h->pid);
	demand(h->start_time);
}

static void tell_helper(struct helper *h, const char *text)
{
	char done;

	if (*text != 'L' && !h->holds)
		return;
	h->holds = *text == 'L';
	demand(send(h->fd, text, strlen(text), 0) > 0);
	/* An alarm is libFuzzer's. */
	demand(TEMP_FAILURE_RETRY(recv(h->fd, &done, 1, 0)) == 1);
}

/* ---- files ------------------------------------------------------------------------- */

static pid_t pid_of(unsigned slot)
{
	return slot < HELPERS ? helpers[slot].pid : (pid_t)(4190000 + slot);
}

static uint64_t start_of(unsigned slot)
{
	return slot < HELPERS ? helpers[slot].start_time : 1000 + slot;
}

static uid_t uid_of(unsigned slot)
{
	static uid_t own = (uid_t)-1;

	if (own == (uid_t)-1)
		own = geteuid();
	return own == 0 ? uids[slot] : own;
}

static const char *name_of(unsigned slot)
{
	static char name[80];

	snprintf(name, sizeof(name), NCI_FILE_PREFIX "%u.%d.%llu", (unsigned)uid_of(slot),
		 (int)pid_of(slot), (unsigned long long)start_of(slot));
	return name;
}

static void make_template(void)
{
	static struct shmring ring;
	struct shmring_lane *lane;
	char name[80];

	fx_job_open(&ring, fx_tmpdir(), name);
	lane = shmring_lane_new(&ring, getpid());
	demand(lane);
	fx_job_publish_range(lane, 0, 20);
	fx_job_start(lane, 20);
	header = *ring.header;
	file_bytes = (size_t)lseek(ring.fd, 0, SEEK_END) / PAGE * PAGE;
	file = malloc(file_bytes);
	demand(pread(ring.fd, file, file_bytes, 0) == (ssize_t)file_bytes);
	for (size_t at = 0; at < file_bytes; at += PAGE) {
		static const uint8_t nothing[PAGE];

		if (!memcmp(file + at, nothing, PAGE))
			continue;
		if (!npieces || pieces[npieces - 1].at + pieces[npieces - 1].bytes < at)
			pieces[npieces++].at = at;
		pieces[npieces - 1].bytes += PAGE;
		demand(npieces < PIECES);
	}
}

static void make_file(unsigned slot)
{
	struct nci_header h = header;
	int fd = openat(shm_fd, name_of(slot), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW |
			O_NONBLOCK, 0600);

	if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0) {	/* something else bears that name */
		close(fd);
		return;
	}
	h.pid = (uint32_t)pid_of(slot);
	h.uid = uid_of(slot);
	h.start_time = start_of(slot);
	h.nonce = slot + 1;
	h.instance = slot + 1;
	for (size_t i = 0; i < npieces; i++)
		demand(pwrite(fd, file + pieces[i].at, pieces[i].bytes, (off_t)pieces[i].at) ==
		       (ssize_t)pieces[i].bytes);
	demand(pwrite(fd, &h, sizeof(h), 0) == sizeof(h) && ftruncate(fd, (off_t)file_bytes) == 0);
	demand(fchown(fd, uid_of(slot), (gid_t)-1) == 0);
	close(fd);
}

/* Most of the file is empty: the places are in the pieces, and at their beginnings. */
static void change_file(unsigned slot, const struct step *s)
{
	const size_t piece = s->where % npieces;
	const size_t room = s->where >> 31 ? PAGE : pieces[piece].bytes;
	const size_t at = pieces[piece].at + s->where / npieces * 8 % room;
	int fd = openat(shm_fd, name_of(slot), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return;
	if (pwrite(fd, &s->word, sizeof(s->word), (off_t)at) < 0)
		demand(errno == EPIPE || errno == ESPIPE);
	close(fd);
}

static void cut_file(unsigned slot, const struct step *s)
{
	int fd = openat(shm_fd, name_of(slot), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0)
		return;
	if (ftruncate(fd, s->where * 16) < 0)
		demand(errno == EINVAL);
	close(fd);
}

static void remove_file(const char *name)
{
	if (unlinkat(shm_fd, name, 0) < 0 && errno == EISDIR)
		unlinkat(shm_fd, name, AT_REMOVEDIR);
}

/* A link, a FIFO or a directory in its place. */
static void put_other(unsigned slot, const struct step *s)
{
	const char *name = name_of(slot);

	remove_file(name);
	if (s->where % 3 == 0)
		demand(symlinkat("/etc/passwd", shm_fd, name) == 0);
	else if (s->where % 3 == 1)
		demand(mkfifoat(shm_fd, name, 0600) == 0);
	else
		demand(mkdirat(shm_fd, name, 0700) == 0);
}

static void lock_file(unsigned slot, bool lock)
{
	char text[160] = "U";

	if (slot >= HELPERS)
		return;
	if (lock)
		snprintf(text, sizeof(text), "L%s/%s", fx.dir, name_of(slot));
	tell_helper(&helpers[slot], text);
}

static void rename_file(unsigned slot, const struct step *s)
{
	char from[80];

	snprintf(from, sizeof(from), "%s", name_of(slot));
	if (renameat(shm_fd, from, shm_fd, name_of(s->where % SLOTS)) < 0)
		demand(errno == ENOENT || errno == EISDIR || errno == ENOTDIR);
}

/* ---- a run ------------------------------------------------------------------------- */

/* Pipes are a sanitizer's, when it asks for names. */
static int count_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;
	int n = 0;

	demand(dir);
	while ((entry = readdir(dir))) {
		char to[8] = "";

		if (readlinkat(dirfd(dir), entry->d_name, to, sizeof(to) - 1) > 0)
			n += !!strncmp(to, "pipe:", 5);
	}
	closedir(dir);
	return n;
}

static void begin(void)
{
	make_template();
	for (unsigned i = 0; i < HELPERS; i++)
		start_helper(&helpers[i], uids[i]);
	demand(chmod(fx_tmpdir(), 0755) == 0);
}

static void renew_daemon(void)
{
	int now;

	if (shm_fd >= 0) {
		close(shm_fd);
		fx_daemon_close(&fx);
		now = count_descriptors();
		demand(!descriptors || now <= descriptors);
		descriptors = now;
	} else {
		begin();
	}
	fx_daemon_open(&fx);
	shm_fd = open(fx.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	demand(shm_fd >= 0);
}

/* What holds in every moment. */
static void check_list(void)
{
	struct process *const *list;
	size_t n = discover_processes(fx.discover, &list);
	uint64_t last = 0;

	demand(discover_attached(fx.discover) <= n);
	for (size_t i = 0; i < n; i++) {
		bool known = false;

		for (unsigned k = 0; k < SLOTS; k++)
			known |= list[i]->uid == uid_of(k);
		demand(known && list[i]->id > last);
		last = list[i]->id;
	}
}

static void take(const struct step *s)
{
	unsigned slot = s->slot % SLOTS;

	switch (s->what % 12) {
	case 0: case 1:
		make_file(slot);
		break;
	case 2:
		lock_file(slot, true);
		break;
	case 3:
		lock_file(slot, false);
		break;
	case 4: case 5:
		change_file(slot, s);
		break;
	case 6:
		cut_file(slot, s);
		break;
	case 7:
		remove_file(name_of(slot));
		break;
	case 8:
		rename_file(slot, s);
		break;
	case 9:
		put_other(slot, s);
		break;
	case 10:
		fchmodat(shm_fd, name_of(slot), s->where & 0777, 0);
		break;
	default:
		fx_daemon_step(&fx, s->where % 5000);
		check_list();
	}
}

/* All leave; who ended is remembered for a while. */
static void end(void)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		lock_file(i, false);
		remove_file(name_of(i));
	}
	fx_daemon_step(&fx, 3000);
	fx_daemon_step(&fx, 3000);
	fx_daemon_step(&fx, KEEP_MS + 1000);
	for (unsigned i = 0; i < SLOTS && fx_process(&fx, 0); i++)	/* one dead at a time */
		fx_daemon_step(&fx, 100);
	demand(discover_attached(fx.discover) == 0);
	demand(!fx_process(&fx, 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct step step;

	if (fuzz_begins_anew())
		renew_daemon();
	for (int n = 0; n < STEPS && size >= sizeof(step); n++, size -= sizeof(step)) {
		memcpy(&step, data, sizeof(step));
		data += sizeof(step);
		take(&step);
	}
	end();
	return 0;
}
