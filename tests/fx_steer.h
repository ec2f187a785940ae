/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FX_STEER_H
#define TESTS_FX_STEER_H

/*
 * What NCCL is asked for while a job runs: the plugin is linked in, NCCL's calls come
 * from here, and so does the time at which something is decided.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "plugin/process.h"
#include "plugin/steer_impl.h"
#include "tests/fixture.h"
#include "tests/plugin_driver.h"

#define SECOND	UINT64_C(1000000000)
#define MS	UINT64_C(1000000)
#define FAST	20000		/* groups per second: far above the budget */

static int mask;		/* NCCL's */
static void *context;
static struct steer_moment now;
static struct steer *const s = &process_self.steer;
static char path[256];
static struct nci_control file;

static inline const struct nci_steer *told(void)
{
	return &process_self.ring.header->steer;
}

static inline uint32_t reason(void)
{
	return atomic_load(&process_self.ring.live->reason);
}

static inline bool is_on(void)
{
	return mask & NCCL_KERNEL_CH;
}

/* ---- NCCL's calls -------------------------------------------------------------------- */

static inline void *start(uint64_t type, const char *func, int depth, bool captured)
{
	struct nccl_descr_v6 d = { .type = type };
	void *handle = NULL;

	if (type == NCCL_GROUP_API) {
		d.groupApi.groupDepth = depth;
		d.groupApi.graphCaptured = captured;
	} else if (type == NCCL_P2P_API) {
		d.p2pApi.func = func;
	} else if (type == NCCL_COLL_API) {
		d.collApi.func = func;
	}
	ncclProfiler_v6.startEvent(context, &handle, &d);
	return handle;
}

static inline void play(uint64_t type, const char *func)
{
	ncclProfiler_v6.stopEvent(start(type, func, 0, false));
}

static inline void decide_at(bool outermost)
{
	now.outermost = outermost;
	now.ticks = clock_ticks(process_self.clock);
	while (!steer_try(s))
		sched_yield();
	steer_decide(&process_self, &now);
	steer_leave(s);
}

/* The plugin's own look at the clock is not to decide anything. */
static inline void stop_group(void *group)
{
	bool outermost = process_thread.steer.ends;

	atomic_store(&s->quiet_from, 0);
	atomic_store(&s->quiet_ns, UINT64_MAX);
	atomic_store(&s->waits, 0);
	ncclProfiler_v6.stopEvent(group);
	decide_at(outermost);
}

static inline void collective(void)
{
	void *group = start(NCCL_GROUP_API, NULL, 1, false);

	play(NCCL_COLL_API, "AllReduce");
	play(NCCL_COLL, "AllReduce");
	stop_group(group);
}

static inline void send_recv(void)
{
	void *group = start(NCCL_GROUP_API, NULL, 2, false);

	play(NCCL_P2P_API, "Send");
	play(NCCL_P2P_API, "Recv");
	play(NCCL_P2P, "Send");
	play(NCCL_P2P, "Recv");
	stop_group(group);
}

static inline void pass(uint64_t ns)
{
	now.mono_ns += ns;
	now.real_ns += ns;
}

/* As if so many collectives had come and gone, the last of which is played. */
static inline void collectives(uint64_t n)
{
	struct nci_steer *out = &process_self.ring.header->steer;

	atomic_fetch_add(is_on() ? &out->groups_inside : &out->groups_outside, n - 1);
	atomic_fetch_add(is_on() ? &out->ops_inside : &out->ops_outside, n - 1);
	collective();
}

/* So much time with so many groups in a second: each of many is played, or one in some. */
static inline void run_for(uint64_t ns, uint64_t per_s)
{
	uint64_t at_once = per_s > 500 ? per_s / 500 : 1;

	for (uint64_t i = 0; i < ns / MS * per_s / 1000 / at_once; i++) {
		pass(1000 * MS / per_s * at_once);
		collectives(at_once);
	}
}

static inline void run_until(bool on, uint64_t most_ns)
{
	uint64_t end = now.mono_ns + most_ns;

	while (is_on() != on && now.mono_ns < end) {
		/* Those of a new communicator count one by one. */
		uint64_t at_once = atomic_load(&s->fresh) ? 1 : FAST / 1000;

		pass(SECOND / FAST * at_once);
		collectives(at_once);
	}
	ck_assert_int_eq(is_on(), on);
}

static inline void make_fast(void)
{
	run_for(9 * SECOND, FAST);
	run_until(false, SECOND);
}

/* Right after the begin of a burst, without the call that would look. */
static inline void go_to_burst(void)
{
	now.real_ns = (now.real_ns / (64 * SECOND) + 1) * 64 * SECOND + MS;
}

static inline void init(void)
{
	ck_assert_int_eq(ncclProfiler_v6.init(&context, 1, &mask, "c", 1, 2, 0, NULL), 0);
	now.mono_ns = clock_ns(CLOCK_MONOTONIC);
	now.real_ns = 1700000000 * SECOND;
}

static void setup(void)
{
	setenv("NCCLINSP_SHM_DIR", fx_tmpdir(), 1);
	snprintf(path, sizeof(path), "%s/control", fx_tmpdir());
	setenv("NCCLINSP_CONTROL", path, 1);
	setenv("NCCLINSP_LEVEL", "net", 1);
	memset(&file, 0, sizeof(file));
	file.magic = NCI_CONTROL_MAGIC;
	file.version = NCI_CONTROL_VERSION;
}

/* A control file with one entry, about this process. */
static inline void write_wish(uint32_t level, uint32_t sample, uint64_t until)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	file.entries = 1;
	file.entry[0] = (struct nci_control_entry){
		.instance = process_self.ring.header ? process_self.ring.header->instance : 0,
		.level = level, .sample = sample, .until_mono_ns = until,
		.wish = NCI_WISH_PERSON,
	};
	file.sequence++;
	file.checksum = nci_control_checksum(&file);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, &file, sizeof(file), 0), sizeof(file));
	close(fd);
}

#endif
