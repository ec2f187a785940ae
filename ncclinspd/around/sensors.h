/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCLINSPD_AROUND_SENSORS_H
#define NCCLINSPD_AROUND_SENSORS_H

/*
 * The state of the GPUs that communicators use, once a second.  A thread reads it, since NVIDIA's
 * library may hang.  Nobody waits for that thread: what it has not told for SENSORS_STALE_NS is
 * unknown.  While no GPU is in use the library is closed.
 *
 *     sensors_new(&sensors, &config)
 *     once a second: sensors_look()
 *     to judge:      sensors_gpus()
 */

#include <stddef.h>

#include "judge/gpu.h"
#include "ncclinspd/around/kmsg.h"
#include "reader/base/model.h"

struct sensors;

#define SENSORS_GPUS		64	/* a user's: three quarters of what others leave */
#define SENSORS_SAMPLES		10	/* the readings that clocks and limits are of */
#define SENSORS_STALE_NS	UINT64_C(5000000000)
#define SENSORS_WHY		192

struct sensors_config {
	bool off;		/* the library is not to be used */
	const char *library;	/* NULL: NVML_LIBRARY */
	const char *kernel_log;	/* its path; "": it is not to be read; NULL: KMSG_PATH */
	uint64_t interval_ns;	/* time from one reading to the next; 0: 1 s */
};

#define SENSORS_STATES(X)	\
	X(UNUSED,  "unused")	\
	X(PRESENT, "present")	\
	X(ABSENT,  "absent")

enum sensors_state {
#define X(NAME, text) SENSORS_##NAME,
	SENSORS_STATES(X)
#undef X
};

/* A source of what is known about the machine. */
struct sensors_source {
	name_t name;
	enum sensors_state state;
	char why[SENSORS_WHY];	/* "": it is present */
};

name_t sensors_state_text(enum sensors_state state);

/* 0, -ENOMEM, or why there is no thread. */
int sensors_new(struct sensors **out, const struct sensors_config *config);

/* Waits for the thread for a second at most, and not at all where the library hangs. */
void sensors_free(struct sensors *s);

/* The GPUs of the live processes are those to be read from now on; reads the kernel's log. */
void sensors_look(struct sensors *s, struct process *const *list, size_t n, uint64_t now_ns);

/* The GPUs that are to be read, with what is known of each.  Never waits. */
uint32_t sensors_gpus(struct sensors *s, uint64_t now_ns, struct gpu_health out[SENSORS_GPUS]);

/* The errors that the driver reported in the kernel's log. */
const struct kmsg *sensors_kmsg(const struct sensors *s);

/* Fills in source `i`; false: there is none. */
bool sensors_source(struct sensors *s, size_t i, uint64_t now_ns, struct sensors_source *out);

#endif
