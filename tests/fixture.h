/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FIXTURE_H
#define TESTS_FIXTURE_H

/* Shared set-up of the unit tests. */

#include <check.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * What check notes of each assertion that holds costs a system call: here it notes where the test
 * is for the first time, which a crash or a time limit then tells.
 */
#define _mark_point(file, line) ({						\
	static _Thread_local bool marked;					\
	if (!marked)								\
		(_mark_point)(file, line);					\
	marked = true;								\
})

#define FX_COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

struct fx_test {
	TTest test;
	int first, end;
	struct fx_test *next;
};

/*
 * A test is TEST(what_holds) { ... }, which fx_run() finds by itself.  That of TEST_LOOP() runs
 * with _i from `first` to `end - 1`.
 */
#define TEST(name)	TEST_LOOP(name, 0, 1)
#define TEST_LOOP(name, first, end)						\
static void name(int _i);							\
static __attribute__((constructor)) void name##_enter(void)			\
{										\
	static struct fx_test entered =						\
		{ { #name, name, __FILE__, __LINE__ }, (first), (end), NULL };	\
	fx_enter(&entered);							\
}										\
static void name(int _i __attribute__((unused)))

void fx_enter(struct fx_test *test);

/*
 * Run the tests in their order and report in TAP, which `prove` adds up.  Returns main()'s
 * exit status.  Each test runs in a process of its own (CK_FORK=no: in this one),
 * between set-up and teardown, which may be NULL.
 */
int fx_run(void (*setup)(void), void (*teardown)(void));

/*
 * Room for this many open files; a shell may have allowed fewer.  false, and said so: the
 * machine does not allow them.
 */
bool fx_descriptors(unsigned int n);

/* Say in the report why the running test proves nothing here; it returns then. */
void fx_skip(const char *why);

/*
 * A fresh directory in memory, as segments need it, removed with all it holds when the
 * test process exits.
 */
const char *fx_tmpdir(void);

/* A file below it, with the directories above it. */
__attribute__((format(printf, 2, 3)))
void fx_put_file(const char *name, const char *format, ...);

/*
 * A small tmpfs at this place that only the test sees, with mount's `options`
 * and MS_* flags.  false, and said so: not allowed here.
 */
bool fx_mount(const char *at, const char *options, unsigned long flags);

/*
 * The next number of a sequence that begins anew in each test, or where fx_seed()
 * puts it: for loops, one place for each _i.
 */
uint64_t fx_random(void);
void fx_seed(uint64_t n);

/*
 * In main(): other numbers each time, from a seed that is printed; SEED=... of the environment
 * has them again.
 */
void fx_seed_anew(void);

/* Where the build is: the plugin, the daemon, the simulator. */
const char *fx_build_path(const char *name);

#endif
