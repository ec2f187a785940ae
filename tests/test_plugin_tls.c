/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a process loads later must not cost a callback an allocation: the C library
 * grows a thread's table of thread-local storage when that is next looked up.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/fixture.h"
#include "tests/plugin_driver.h"

#define LIBRARIES 24	/* more than that table has room for */

static _Atomic unsigned int allocations, watching;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
#define WHY_NOT "a sanitizer has the allocator, or the compiler no descriptors"
#else
#define WHY_NOT NULL

/* These win over the C library's, for itself too. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);

void *malloc(size_t bytes)
{
	allocations += watching;
	return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
	allocations += watching;
	return __libc_calloc(n, bytes);
}

void *realloc(void *old, size_t bytes)
{
	allocations += watching;
	return __libc_realloc(old, bytes);
}
#endif

static struct pd pd;
static pthread_barrier_t barrier;

static void build(char *path, size_t room, unsigned int i)
{
	char command[2048];

	snprintf(path, room, "%s/libtls%u.so", fx_tmpdir(), i);
	snprintf(command, sizeof(command),
		 "echo '__thread char name%u[64]; char *get%u(void) { return name%u; }' | "
		 "cc -shared -fPIC -x c -o %s -", i, i, i, path);
	ck_assert_int_eq(system(command), 0);
}

static void *first_event_then_another(void *arg)
{
	struct nccl_descr_v6 d = { .type = NCCL_GROUP };
	void *h;

	(void)arg;
	pd.v6->startEvent(pd.context, &h, &d);
	pd.v6->stopEvent(h);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);		/* libraries were loaded meanwhile */
	watching = 1;
	pd.v6->startEvent(pd.context, &h, &d);
	pd.v6->stopEvent(h);
	watching = 0;
	return NULL;
}

TEST(libraries_loaded_later_cost_a_callback_no_allocation)
{
	pthread_t thread;
	char path[512];

	if (WHY_NOT) {
		fx_skip(WHY_NOT);
		return;
	}
	pd_open(&pd, "trace");
	pd_init(&pd);
	pthread_barrier_init(&barrier, NULL, 2);
	ck_assert_int_eq(pthread_create(&thread, NULL, first_event_then_another, NULL), 0);
	pthread_barrier_wait(&barrier);
	for (unsigned int i = 0; i < LIBRARIES; i++) {
		build(path, sizeof(path), i);
		ck_assert_ptr_nonnull(dlopen(path, RTLD_NOW | RTLD_LOCAL));
	}
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	ck_assert_uint_eq(allocations, 0);
	pd_read(&pd);
	ck_assert_uint_eq(pd.records, 2);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
