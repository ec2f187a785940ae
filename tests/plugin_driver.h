/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PLUGIN_DRIVER_H
#define TESTS_PLUGIN_DRIVER_H

/*
 * NCCL's part towards the plugin, of any interface version: the library is loaded
 * and called through its tables (under a sanitizer: the same objects, linked in),
 * and what it wrote is read back from its segment as a daemon would.
 */

#include <stdbool.h>
#include <sys/types.h>

#include "nci/events.h"
#include "nci/segment.h"
#include "nccl/profiler.h"
#include "shmring/consumer.h"

#define PD_RECORDS	16384
#define PD_GARBAGE	0xa5	/* every byte that NCCL would not have set */

/* The library's tables: a sanitizer's build links it in. */
extern const struct nccl_profiler_v1 ncclProfiler_v1;
extern const struct nccl_profiler_v2 ncclProfiler_v2;
extern const struct nccl_profiler_v3 ncclProfiler_v3;
extern const struct nccl_profiler_v4 ncclProfiler_v4;
extern const struct nccl_profiler_v5 ncclProfiler_v5;
extern const struct nccl_profiler_v6 ncclProfiler_v6;
extern const struct nccl_profiler_v7 ncclProfiler_v7;

struct pd {
	const struct nccl_profiler_v1 *v1;
	const struct nccl_profiler_v2 *v2;
	const struct nccl_profiler_v3 *v3;
	const struct nccl_profiler_v4 *v4;
	const struct nccl_profiler_v5 *v5;
	const struct nccl_profiler_v6 *v6;
	const struct nccl_profiler_v7 *v7;
	void *lib;		/* NULL: linked in */
	pid_t loaded_pid;	/* the process that loaded the plugin */
	int version;		/* of the calls below; 6 unless changed */
	int mask;		/* as the plugin left it */
	void *context;		/* of the last pd_init() */
	char dir[256];		/* where segments are made */
	char control[300];	/* where a control file would be */
	/* What pd_read() saw. */
	int fd;			/* of the segment, -1: none yet */
	char path[512];
	struct nci_header header;
	struct nci_live live;
	struct nci_lane lane[NCI_MAX_LANES];
	struct shmring_reader reader[NCI_MAX_LANES];
	bool met[NCI_MAX_LANES];
	struct nci_slot record[PD_RECORDS];	/* since pd_init(), lane by lane at each read */
	unsigned int lanes;	/* of threads */
	unsigned int records;
};

/* What a started event says; zeroes are replaced by a sample of every field. */
struct pd_event {
	uint32_t type;		/* NCCL_* */
	void *context;		/* NULL: of the last pd_init() */
	void *parent;
	void *group;
	int step;
	int receive;
	void *payload;		/* of a NetPlugin */
	int32_t pid;		/* 0: this process */
	const char *func;
	uint8_t channel;
	uint8_t phase;
	bool eager;		/* a group that no graph captures */
	uint64_t tag;		/* version 7 */
	const char *variant;	/* ... of a symmetric kernel; NULL: it is none */
};

/* Load the library, point it to a fresh directory, ask for a level (NULL: default). */
void pd_open(struct pd *pd, const char *level);
void pd_load(struct pd *pd);	/* the tables alone */

/* A communicator with id 0x1234567890abcdef, "test", rank 1 of 4, on 2 nodes. */
void *pd_init(struct pd *pd);
void *pd_init_named(struct pd *pd, uint64_t id, const char *name, nccl_logger_fn *logger);
void pd_finalize(struct pd *pd, void *context);

/* Every byte that the version or the type does not use is garbage. */
void *pd_start(struct pd *pd, const struct pd_event *ev);
#define PD_START(pd, what, ...)								\
	pd_start((pd), &(struct pd_event){ .type = (what), ##__VA_ARGS__ })

/* args: the union's first word; NULL: a NULL pointer is passed. */
void pd_state(struct pd *pd, void *handle, int state, const uint64_t *args);
void pd_stop(struct pd *pd, void *handle);

/* Copy what is new; fails if there is no segment, or if it lies. */
void pd_read(struct pd *pd);

/* The n-th record of that type so far, from 0; NULL: not so many. */
const struct nci_record *pd_record(const struct pd *pd, uint8_t type, unsigned int n);
unsigned int pd_count(const struct pd *pd, uint8_t type);

/* The slot of an event in flight, as a reader sees it now; NULL: not in flight. */
const struct nci_record *pd_slot(struct pd *pd, void *handle);

/* A name of the string table; NULL for id 0. */
const char *pd_string(struct pd *pd, uint16_t id);
struct nci_comm pd_comm(struct pd *pd, unsigned int index);

/* Files in the directory whose name begins as a segment's. */
unsigned int pd_segments(const struct pd *pd);

#endif
