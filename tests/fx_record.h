/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FX_RECORD_H
#define TESTS_FX_RECORD_H

/* The recorder, linked in: NCCL's calls come from here, and what it wrote is loaded again. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/format.h"
#include "tests/fixture.h"
#include "tests/fixture_sim.h"
#include "tests/plugin_driver.h"
#include "tests/sim/replay.h"

static const void *const tables[] = {
	NULL, &ncclProfiler_v1, &ncclProfiler_v2, &ncclProfiler_v3, &ncclProfiler_v4,
	&ncclProfiler_v5, &ncclProfiler_v6, &ncclProfiler_v7,
};
static const int releases[] = { 0, 23, 25, 26, 27, 28, 30, 31 };

static const struct nccl_profiler_v6 *const v6 = &ncclProfiler_v6;
static char path[300];
static void *context;
static int mask;

/* Each test is a process of its own, and so has one file. */
static inline void use_file(const char *name)
{
	snprintf(path, sizeof(path), "%s/%s", fx_tmpdir(), name);
	setenv("NCCLINSP_RECORD", path, 1);
}

static inline void setup(void)
{
	use_file("calls.rec");
}

static inline void init(void)
{
	ck_assert_int_eq(v6->init(&context, 0xfedcba9876543210, &mask, "world", 2, 8, 3, NULL),
			 NCCL_SUCCESS);
}

static inline void *start_in(void *where, uint64_t type, void *parent)
{
	struct nccl_descr_v6 d = { .type = type, .parentObj = parent, .rank = 3 };
	void *handle = &d;

	v6->startEvent(where, &handle, &d);
	return handle;
}

static inline void *start(uint64_t type, void *parent)
{
	return start_in(context, type, parent);
}

static inline struct recording *load(const char *from)
{
	struct recording *rec = NULL;
	char err[300];

	ck_assert_msg(recording_load(&rec, from, err, sizeof(err)) == 0, "%s", err);
	return rec;
}

/* Without the times in front. */
static inline char *text_of(const char *from)
{
	struct recording *rec = load(from);
	char *text = NULL, *to, *p;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	recording_print(rec, f);
	fclose(f);
	recording_free(rec);
	for (to = p = text; *p; ) {
		p += strcspn(p, " ");
		do
			*to++ = *p;
		while (*p++ != '\n');
	}
	*to = 0;
	return text;
}

/* In a process of its own, which ends with `end_signal`, or well. */
static inline void in_child(void (*what)(int), int arg, int end_signal)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid) {
		what(arg);
		if (end_signal)
			raise(end_signal);
		exit(0);
	}
	waitpid(pid, &status, 0);
	ck_assert_int_eq(end_signal ? WTERMSIG(status) : WEXITSTATUS(status), end_signal);
}

#endif
