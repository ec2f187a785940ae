/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For LD_PRELOAD: the wall clock of another node.  CLOCK_REALTIME and its coarse form
 * are SKEWED_CLOCK_NS off (which may be negative); what has passed since boot is not.
 * A forked child looks at its own environment.  Where SKEWED_CLOCK_FILE is, its eight bytes
 * are what the clock is off, as of now: whoever writes there sets the clock.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define UNKNOWN		INT64_MIN
#define SECOND		1000000000

int clock_gettime(clockid_t id, struct timespec *ts);

static _Atomic int64_t skew_ns = UNKNOWN;
static const _Atomic int64_t *set_ns;	/* NULL: it is not set while it runs */
static int (*real)(clockid_t, struct timespec *);

static void forget(void)
{
	atomic_store_explicit(&skew_ns, UNKNOWN, memory_order_relaxed);
}

static void map_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*set_ns), PROT_READ, MAP_SHARED, fd, 0);

	if (at != MAP_FAILED)
		set_ns = at;
	if (fd >= 0)
		close(fd);
}

__attribute__((constructor)) static void begin(void)
{
	*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	if (getenv("SKEWED_CLOCK_FILE"))
		map_file(getenv("SKEWED_CLOCK_FILE"));
	pthread_atfork(NULL, NULL, forget);
}

static int64_t skew(void)
{
	int64_t ns = atomic_load_explicit(&skew_ns, memory_order_relaxed);
	const char *text;

	if (set_ns)
		return atomic_load_explicit(set_ns, memory_order_relaxed);
	if (ns != UNKNOWN)
		return ns;
	text = getenv("SKEWED_CLOCK_NS");
	ns = text ? strtoll(text, NULL, 10) : 0;
	atomic_store_explicit(&skew_ns, ns, memory_order_relaxed);
	return ns;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	int64_t ns;
	int r;

	if (!real)
		begin();
	r = real(id, ts);
	if (r || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE))
		return r;
	ns = ts->tv_nsec + skew() % SECOND;
	ts->tv_sec += skew() / SECOND + (ns >= SECOND) - (ns < 0);
	ts->tv_nsec = ns + (ns < 0 ? SECOND : 0) - (ns >= SECOND ? SECOND : 0);
	return 0;
}
