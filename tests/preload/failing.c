/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: memory, or a disk, that fails once or from then on.  FAILING is what and
 * which, counted from the start of the process: "memory:17" the 17th allocation, "memory:17-"
 * this one and all behind it, "disk:3" the third call that makes, writes, syncs or renames a
 * file.  When it happens the file FAILING_TOLD is made.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *at, size_t bytes);
void *__libc_memalign(size_t by, size_t bytes);

static struct cause {
	const char *name;
	long first;		/* 0: never */
	bool stays;
	_Atomic long calls;
} memory = { .name = "memory:" }, disk = { .name = "disk:" };

static void cause_read(struct cause *c, const char *text)
{
	char *end;

	if (strncmp(text, c->name, strlen(c->name)))
		return;
	c->first = strtol(text + strlen(c->name), &end, 10);
	c->stays = *end == '-';
}

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("FAILING");

	if (!text)
		return;
	cause_read(&memory, text);
	cause_read(&disk, text);
}

/* The C library itself crashes when it looks for users and has no memory (2.36). */
static _Thread_local bool looks_for_users;

struct group *getgrnam(const char *name)
{
	struct group *(*real)(const char *) = dlsym(RTLD_NEXT, "getgrnam");
	struct group *found;

	looks_for_users = true;
	found = real(name);
	looks_for_users = false;
	return found;
}

static bool cause_fails(struct cause *c)
{
	const char *told;
	long fd, n;

	if (looks_for_users)
		return false;
	n = atomic_fetch_add_explicit(&c->calls, 1, memory_order_relaxed) + 1;
	if (!c->first || n < c->first || (n > c->first && !c->stays))
		return false;
	told = n == c->first ? getenv("FAILING_TOLD") : NULL;
	fd = told ? syscall(SYS_openat, AT_FDCWD, told, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (fd >= 0)
		syscall(SYS_close, fd);
	errno = c == &memory ? ENOMEM : ENOSPC;
	return true;
}

/* ---- memory ------------------------------------------------------------------------ */

void *malloc(size_t bytes)
{
	return cause_fails(&memory) ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	return cause_fails(&memory) ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *at, size_t bytes)
{
	return cause_fails(&memory) ? NULL : __libc_realloc(at, bytes);
}

void *aligned_alloc(size_t by, size_t bytes)
{
	return cause_fails(&memory) ? NULL : __libc_memalign(by, bytes);
}

/* Pages of a program's own; the C library's are not asked for here. */
void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	if (flags & MAP_ANONYMOUS && cause_fails(&memory))
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

/* ---- files ------------------------------------------------------------------------- */

static bool is_file(int fd)
{
	struct stat st;

	return syscall(SYS_fstat, fd, &st) == 0 && S_ISREG(st.st_mode);
}

ssize_t write(int fd, const void *bytes, size_t n)
{
	return is_file(fd) && cause_fails(&disk) ? -1 : syscall(SYS_write, fd, bytes, n);
}

ssize_t pwrite(int fd, const void *bytes, size_t n, off_t at)
{
	return cause_fails(&disk) ? -1 : syscall(SYS_pwrite64, fd, bytes, n, at);
}

int fsync(int fd)
{
	return cause_fails(&disk) ? -1 : (int)syscall(SYS_fsync, fd);
}

int ftruncate(int fd, off_t bytes)
{
	return cause_fails(&disk) ? -1 : (int)syscall(SYS_ftruncate, fd, bytes);
}

int renameat(int from_fd, const char *from, int to_fd, const char *to)
{
	return cause_fails(&disk) ? -1 : (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, 0);
}

int rename(const char *from, const char *to)
{
	return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

int mkdir(const char *path, mode_t mode)
{
	return cause_fails(&disk) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

static int open_at(int dirfd, const char *path, int flags, mode_t mode)
{
	if (flags & (O_CREAT | O_TRUNC) && cause_fails(&disk))
		return -1;
	return (int)syscall(SYS_openat, dirfd, path, flags, mode);
}

int openat(int dirfd, const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	return open_at(dirfd, path, flags, mode);
}

int open(const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
	va_end(args);
	return open_at(AT_FDCWD, path, flags, mode);
}
