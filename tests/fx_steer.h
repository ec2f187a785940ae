/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FX_STEER_H
#define TESTS_FX_STEER_H

/*
 * What NCCL is asked for while a job runs: the plugin is linked in, NCCL's calls come
 * from here, and so does the time at which something is decided.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "plugin/steer.c"	/* its own functions as well */
#include "tests/fixture.h"
#include "tests/plugin_driver.h"

#define SECOND	UINT64_C(1000000000)
#define MS	UINT64_C(1000000)

static int mask;		/* NCCL's */
static void *context;
static struct steer_moment now;
static struct plugin_steer *const s = &process_self.steer;
static char path[256];
static struct nci_control file;

static inline const struct nci_steer *told(void)
{
	return &process_self.ring.header->steer;
}

static inline uint32_t seen(void)
{
	return atomic_load(&process_self.ring.live->seen);
}

static inline bool is_on(void)
{
	return mask & NCCL_KERNEL_CH;
}

/* ---- NCCL's calls -------------------------------------------------------------------- */

static inline void *start(uint64_t type, const char *func, int depth, bool captured)
{
	struct nccl_descr_v6 d = { .type = type, .rank = 1 };
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

static inline void broadcast(void *of, int root)
{
	struct nccl_descr_v6 d = { .type = NCCL_COLL_API };
	void *handle;

	d.collApi.func = "Broadcast";
	d.collApi.root = root;
	ncclProfiler_v6.startEvent(of, &handle, &d);
	ncclProfiler_v6.stopEvent(handle);
}

static inline void decide_in_turn(bool sent)
{
	now.sent = sent;
	now.ticks = clock_ticks(process_self.clock);
	steer_decide(&process_self, &now);
	steer_leave(s);
}

static inline void wait_for_turn(void)
{
	while (!steer_try(s))
		sched_yield();
}

static inline void decide(bool sent)
{
	wait_for_turn();
	decide_in_turn(sent);
}

/* The plugin's own look at the clock finds somebody at it, however long the call takes. */
static inline void stop_group(void *group)
{
	wait_for_turn();
	ncclProfiler_v6.stopEvent(group);
	decide_in_turn(process_thread.steer.sent);
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

/* Collectives, a hundred in a second. */
static inline void run_for(uint64_t ns)
{
	for (uint64_t i = 0; i < ns / (10 * MS); i++) {
		pass(10 * MS);
		collective();
	}
}

/* Right after the begin of a burst, or right before the next one, without a call that looks. */
static inline void go_to_burst(void)
{
	now.real_ns = (now.real_ns / s->period_ns + 1) * s->period_ns + MS;
}

static inline void leave_burst(void)
{
	now.real_ns = (now.real_ns / s->period_ns + 1) * s->period_ns - MS;
}

static inline void begin_at_a_time(void)
{
	now.mono_ns = clock_ns(CLOCK_MONOTONIC);
	now.real_ns = 1700000000 * SECOND + SECOND / 2;
}

/* A process that begins within a burst, which is by the real clock, begins with kernels timed. */
static inline void leave_real_burst(void)
{
	while ((clock_ns(CLOCK_REALTIME) + SECOND) % (STEER_PERIOD_MS * MS) <
	       SECOND + STEER_LENGTH_US * UINT64_C(1000))
		usleep(1000);
}

static inline void init(void)
{
	leave_real_burst();
	ck_assert_int_eq(ncclProfiler_v6.init(&context, 1, &mask, "c", 1, 2, 0, NULL), 0);
	begin_at_a_time();
}

static void setup(void)
{
	setenv("NCCLINSP_SHM_DIR", fx_tmpdir(), 1);
	snprintf(path, sizeof(path), "%s/control", fx_tmpdir());
	setenv("NCCLINSP_CONTROL", path, 1);
	setenv("NCCLINSP_SETTLE", "0", 1);
	memset(&file, 0, sizeof(file));
	file.magic = NCI_CONTROL_MAGIC;
	file.version = NCI_CONTROL_VERSION;
}

static inline void write_file(void)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	file.sequence++;
	file.checksum = nci_control_checksum(&file);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(pwrite(fd, &file, sizeof(file), 0), sizeof(file));
	close(fd);
}

/* A control file with one entry, about this process. */
static inline void write_entry(uint32_t level, uint32_t sample, uint64_t until)
{
	file.entries = 1;
	file.entry[0] = (struct nci_control_entry){
		.instance = process_self.ring.header ? process_self.ring.header->instance : 0,
		.level = level, .sample = sample, .until_mono_ns = until,
		.cause = NCI_CAUSE_PERSON,
	};
	write_file();
}

static inline void on_another_thread(void *(*run)(void *), void *arg)
{
	pthread_t thread;

	ck_assert_int_eq(pthread_create(&thread, NULL, run, arg), 0);
	pthread_join(thread, NULL);
}

#endif
