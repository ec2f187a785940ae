/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/count.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile bool counting;
static volatile long allocations, locks, syscalls;

/* ---- interposed: the executable's symbols win over the C library's ------------ */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void *p);

void *malloc(size_t bytes)
{
	allocations += counting;
	return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	allocations += counting;
	return __libc_calloc(n, bytes);
}

void *realloc(void *p, size_t bytes)
{
	allocations += counting;
	return __libc_realloc(p, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
	allocations += counting;
	return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **p, size_t alignment, size_t bytes)
{
	allocations += counting;
	*p = __libc_memalign(alignment, bytes);
	return *p ? 0 : ENOMEM;
}

void free(void *p)
{
	allocations += counting;
	__libc_free(p);
}

#define LOCK(name, type)								\
	int name(type *lock)								\
	{										\
		static int (*next)(type *);						\
											\
		if (!next)								\
			*(void **)&next = dlsym(RTLD_NEXT, #name);			\
		locks += counting;							\
		return next(lock);							\
	}
LOCK(pthread_mutex_lock, pthread_mutex_t)
LOCK(pthread_mutex_trylock, pthread_mutex_t)
LOCK(pthread_rwlock_rdlock, pthread_rwlock_t)
LOCK(pthread_rwlock_wrlock, pthread_rwlock_t)
LOCK(pthread_spin_lock, pthread_spinlock_t)

/* ---- system calls: the kernel raises SIGSYS instead of doing them ------------- */

static void on_syscall(int signal)
{
	syscalls += counting;
}

#define ALLOW(nr)							\
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1),		\
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static bool trap_syscalls(void)
{
	static struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(SYS_rt_sigreturn),
		ALLOW(SYS_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
	};
	static struct sock_fprog program = { sizeof(filter) / sizeof(filter[0]), filter };

	signal(SIGSYS, on_syscall);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void count_here(struct count *result, void (*what)(void *), void *arg)
{
	bool trapped = trap_syscalls();

	allocations = locks = syscalls = 0;
	counting = true;
	what(arg);
	counting = false;
	result->allocations = allocations;
	result->locks = locks;
	result->syscalls = trapped ? syscalls : -1;
}

struct count count_in(void (*prepare)(void *), void (*what)(void *), void *arg)
{
	struct count *shared, result = { -1, -1, -1 };
	pid_t pid;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return result;
	*shared = result;
	pid = fork();
	if (pid == 0) {
		prepare(arg);
		count_here(shared, what, arg);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
	result = *shared;
	munmap(shared, sizeof(*shared));
	return result;
}
