/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of the kernel at three times: now, and at two earlier ones 20 s apart, so that their
 * differences are those of the last 20 to 40 s.
 */
#include "ncclinspd/findings/resources.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reader/read/life.h"
#include "util/list.h"
#include "util/numa.h"
#include "util/procstat.h"
#include "util/utf8.h"

#define SECOND_NS	UINT64_C(1000000000)
#define PACE_NS		(4 * SECOND_NS)		/* time from one look to the next */
#define SLICE_NS	(20 * SECOND_NS)
#define GROUP_PATH	384	/* longer ones are not looked at */
#define LEVELS		8	/* groups from the process's own upwards */
#define KILL_COUNTS	4
#define THREADS		4	/* threads of a process whose faults are counted */
#define INITIAL_CGROUP_NS	0xeffffffb	/* its inode, as the kernel fixes it */

const struct resources_roots resources_roots = { LIFE_PROC, "/sys/fs/cgroup", NUMA_SYS };

/* Hierarchies of groups; v2 has one for all. */
enum hierarchy { CPU, MEMORY, PRESSURE, HIERARCHIES };

/* Counters of a group. */
enum level_count { PERIODS, THROTTLED, THROTTLED_NS, LIMIT_HITS, LEVEL_COUNTS };

enum {
	OWN_STALLED,					/* ns: CPU, memory, io */
	NODE_STALLED = OWN_STALLED + 3,
	FAULTS = NODE_STALLED + 3,
	OF_LEVELS = FAULTS + THREADS,
	COUNTS = OF_LEVELS + LEVELS * LEVEL_COUNTS
};

struct resources_sample {
	uint64_t ns;		/* 0: none was taken */
	uint64_t count[COUNTS];	/* UNKNOWN_U64 */
};

/* A group of hierarchy CPU, and of MEMORY at the same distance: the process's own is level 0. */
struct resources_level {
	double cpus;		/* its limit; 0: none */
	uint64_t period_ns;
	uint64_t bytes, limit_bytes;	/* UNKNOWN_U64: no limit */
};

enum groups {
	GROUPS_SAME,
	GROUPS_MOVED,		/* groups are others than the last time */
	GROUPS_GONE,		/* groups are gone with the process */
};

struct resources_watch {
	const struct resources_roots *roots;
	pid_t pid;
	pid_t tid[THREADS];	/* a ring; 0: none */
	uint32_t ntids;
	uint64_t start_time;
	char dir[HIERARCHIES][GROUP_PATH];	/* its own groups; "": not known */
	size_t top[HIERARCHIES];	/* so much of these is where the hierarchy is mounted */
	struct resources_level level[LEVELS];
	uint64_t kills[KILL_COUNTS][LEVELS];	/* kills for memory so far; a ring; UNKNOWN_U64 */
	uint32_t nkills;			/* counts since it is in these groups */
	struct resources_sample older, newer, last;
	uint64_t swapped_bytes;
	char cpu_path[GROUP_PATH], memory_path[GROUP_PATH];	/* the groups in the answer */
};

/* ---- groups ---------------------------------------------------------------------- */

/* The group `up` levels above this one; false: there is none. */
static bool group_path(const struct resources_watch *w, enum hierarchy h, uint32_t up,
		       char path[GROUP_PATH])
{
	if (!*w->dir[h])
		return false;
	memcpy(path, w->dir[h], GROUP_PATH);
	for (; up; up--) {
		if (strlen(path) <= w->top[h])
			return false;
		*strrchr(path, '/') = '\0';
	}
	return true;
}

static bool group_read(const char *group, const char *name, char *text, size_t size)
{
	return procstat_read(AT_FDCWD, text, size, "%s/%s", group, name);
}

/* A number that is the whole file; UNKNOWN_U64, also of "max" and "-1". */
static uint64_t group_number(const char *group, const char *name)
{
	char text[64];

	return group_read(group, name, text, sizeof(text)) ? procstat_number(text, "") :
							     UNKNOWN_U64;
}

static bool is_among(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (; *list; list += strcspn(list, ","), list += *list == ',')
		if (!strncmp(list, name, n) && (list[n] == ',' || !list[n]))
			return true;
	return false;
}

static void hierarchy_set(struct resources_watch *w, enum hierarchy h, const char *below,
			  const char *path)
{
	char *dir = w->dir[h];
	int n = snprintf(dir, GROUP_PATH, "%s%s%s", w->roots->cgroup, below, path);

	w->top[h] = strlen(w->roots->cgroup) + strlen(below);
	if (n >= GROUP_PATH)
		*dir = '\0';
	else if (dir[n - 1] == '/')
		dir[n - 1] = '\0';
}

/* A line of /proc/<pid>/cgroup: number:controllers:path; v2 names no controllers, and is last. */
static void line_take(struct resources_watch *w, char *line)
{
	char *controllers = strchr(line, ':'), *path, file[PATH_MAX];
	bool only;

	path = controllers ? strchr(controllers + 1, ':') : NULL;
	/* A way up leads out of what is mounted here. */
	if (!path || path[1] != '/' || strstr(path, "/.."))
		return;
	*controllers++ = *path++ = '\0';
	if (is_among(controllers, "cpu"))
		hierarchy_set(w, CPU, "/cpu", path);
	if (is_among(controllers, "memory"))
		hierarchy_set(w, MEMORY, "/memory", path);
	if (*controllers)
		return;
	snprintf(file, sizeof(file), "%s/cgroup.controllers", w->roots->cgroup);
	only = !access(file, F_OK);
	for (enum hierarchy h = 0; h < HIERARCHIES; h++)
		if (!*w->dir[h])
			hierarchy_set(w, h, only ? "" : "/unified", path);
}

/* A process that begins to end is shown at the root by the kernel with v1. */
static bool groups_are_left(const struct resources_watch *w, const char *before)
{
	return strlen(before) > w->top[MEMORY] && strlen(w->dir[MEMORY]) == w->top[MEMORY];
}

/* Sets w->dir, which stays as it was where it is not to be read any more. */
static enum groups groups_find(struct resources_watch *w)
{
	char text[8192] = "", before[HIERARCHIES][GROUP_PATH], *rest;
	bool known, same;

	memcpy(before, w->dir, sizeof(before));
	memset(w->dir, 0, sizeof(w->dir));
	known = procstat_read(AT_FDCWD, text, sizeof(text), "%s/%d/cgroup", w->roots->proc,
			      (int)w->pid);
	if (known)
		for (char *line = strtok_r(text, "\n", &rest); line;
		     line = strtok_r(NULL, "\n", &rest))
			line_take(w, line);
	/* The order matters: had the number gone to another process before, that is seen here. */
	same = life_start_time(w->roots->proc, w->pid) == w->start_time;
	if (!known || !same || groups_are_left(w, before[MEMORY]))
		memcpy(w->dir, before, sizeof(before));
	if (!same)
		return GROUPS_GONE;
	return memcmp(before, w->dir, sizeof(before)) ? GROUPS_MOVED : GROUPS_SAME;
}

/* ---- counters -------------------------------------------------------------------- */

/* CPU time by wall time; 0: no limit. */
static double limit_read(const char *group, uint64_t *period_ns)
{
	char text[64];
	int64_t quota, period;

	if (group_read(group, "cpu.max", text, sizeof(text))) {
		if (sscanf(text, "%" SCNd64 " %" SCNd64, &quota, &period) != 2)
			return 0;
	} else {
		quota = (int64_t)group_number(group, "cpu.cfs_quota_us");	/* -1: none */
		period = (int64_t)group_number(group, "cpu.cfs_period_us");
	}
	if (quota <= 0 || period <= 0)
		return 0;
	*period_ns = (uint64_t)period * 1000;
	return (double)quota / (double)period;
}

static uint64_t times(uint64_t number, uint64_t factor)
{
	return number < UINT64_MAX / factor ? number * factor : UNKNOWN_U64;
}

static void level_read_cpu(struct resources_level *level, const char *group, uint64_t *count)
{
	char text[2048];

	level->cpus = limit_read(group, &level->period_ns);
	if (!level->cpus || !group_read(group, "cpu.stat", text, sizeof(text)))
		return;
	count[PERIODS] = procstat_number(text, "nr_periods ");
	count[THROTTLED] = procstat_number(text, "nr_throttled ");
	count[THROTTLED_NS] = times(procstat_number(text, "throttled_usec "), 1000);
	if (count[THROTTLED_NS] == UNKNOWN_U64)
		count[THROTTLED_NS] = procstat_number(text, "throttled_time ");
}

/* v1 has a number that no memory reaches where there is no limit. */
static uint64_t memory_limit(const char *group)
{
	uint64_t high = group_number(group, "memory.high"), max = group_number(group, "memory.max");

	if (max == UNKNOWN_U64)
		max = group_number(group, "memory.limit_in_bytes");
	max = high < max ? high : max;
	return max && max < UINT64_C(1) << 60 ? max : UNKNOWN_U64;
}

static void level_read_memory(struct resources_level *level, const char *group, uint64_t *count)
{
	uint64_t high;
	char text[1024];

	level->limit_bytes = memory_limit(group);
	if (level->limit_bytes == UNKNOWN_U64)
		return;
	level->bytes = group_number(group, "memory.current");
	if (level->bytes == UNKNOWN_U64)
		level->bytes = group_number(group, "memory.usage_in_bytes");
	count[LIMIT_HITS] = group_number(group, "memory.failcnt");
	if (!group_read(group, "memory.events", text, sizeof(text)))
		return;
	count[LIMIT_HITS] = procstat_number(text, "max ");
	high = procstat_number(text, "high ");
	if (count[LIMIT_HITS] != UNKNOWN_U64 && high != UNKNOWN_U64)
		count[LIMIT_HITS] += high;
}

static uint64_t level_kills(const char *group)
{
	char text[1024];

	return group_read(group, "memory.events", text, sizeof(text)) ||
	       group_read(group, "memory.oom_control", text, sizeof(text)) ?
	       procstat_number(text, "oom_kill ") : UNKNOWN_U64;
}

/* `any`: the kernel may have killed somewhere since the last count. */
static void kills_count(struct resources_watch *w, bool any)
{
	const uint64_t *last = w->kills[(w->nkills + KILL_COUNTS - 1) % KILL_COUNTS];
	uint64_t *now = w->kills[w->nkills % KILL_COUNTS];
	char group[GROUP_PATH];

	w->nkills++;
	if (!any) {
		memcpy(now, last, sizeof(w->kills[0]));
		return;
	}
	for (uint32_t i = 0; i < LEVELS; i++)
		now[i] = group_path(w, MEMORY, i, group) ? level_kills(group) : UNKNOWN_U64;
}

/* Counts of other groups are no use. */
static enum groups groups_follow(struct resources_watch *w)
{
	enum groups found = groups_find(w);

	if (found == GROUPS_MOVED) {
		w->nkills = 0;
		kills_count(w, true);
	}
	return found;
}

/* The time for which some process waited, of three resources' files. */
static void stalls_read(uint64_t count[3], const char *dir, const char *ending)
{
	static const char *const names[] = { "cpu", "memory", "io" };
	char name[32], text[256];

	for (uint32_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *total;

		snprintf(name, sizeof(name), "%s%s", names[i], ending);
		if (!group_read(dir, name, text, sizeof(text)))
			continue;
		text[strcspn(text, "\n")] = '\0';	/* "some avg10=0.00 ... total=4711" */
		total = strstr(text, "total=");
		if (total && !strncmp(text, "some ", 5))
			count[i] = times(procstat_number(total, "total="), 1000);
	}
}

static void levels_read(struct resources_watch *w, struct resources_sample *now)
{
	char group[GROUP_PATH];

	for (uint32_t i = 0; i < LEVELS; i++) {
		struct resources_level *level = &w->level[i];
		uint64_t *count = &now->count[OF_LEVELS + i * LEVEL_COUNTS];

		level->cpus = 0;
		level->bytes = level->limit_bytes = UNKNOWN_U64;
		if (group_path(w, CPU, i, group))
			level_read_cpu(level, group, count);
		if (group_path(w, MEMORY, i, group))
			level_read_memory(level, group, count);
	}
}

/* ---- the thread ------------------------------------------------------------------ */

/* `status` is the text of its file. */
static bool thread_place(const struct resources_roots *roots, const char *status,
			 const char *pci_bus_id, uint64_t nic_nodes, struct placement *out)
{
	const char *list = procstat_find(status, "Cpus_allowed_list:");
	char cpus[4096];
	uint64_t nodes;

	if (!list)
		return false;
	snprintf(cpus, sizeof(cpus), "%.*s", (int)strcspn(list, "\n"), list);
	nodes = numa_of_cpus(roots->sys, cpus);
	if (nic_nodes & ~numa_all(roots->sys))
		nic_nodes = 0;		/* near one that has no CPUs may be anywhere */
	return placement_find(cpus, nodes, numa_of_pci(roots->sys, pci_bus_id), false, out) ||
	       placement_find(cpus, nodes, nic_nodes, true, out);
}

static bool thread_status(const struct resources_roots *roots, pid_t pid, pid_t tid, char *text,
			  size_t size)
{
	return procstat_read(AT_FDCWD, text, size, "%s/%d/task/%d/status", roots->proc, (int)pid,
			     (int)tid);
}

bool resources_place(const struct resources_roots *roots, pid_t pid, pid_t tid,
		     const char *pci_bus_id, uint64_t nic_nodes, struct placement *out)
{
	char text[8192];

	return thread_status(roots, pid, tid, text, sizeof(text)) &&
	       thread_place(roots, text, pci_bus_id, nic_nodes, out);
}

/* The place where its faults are counted; THREADS: not at all. */
static uint32_t thread_find(const struct resources_watch *w, pid_t tid)
{
	uint32_t i = 0;

	while (i < THREADS && w->tid[i] != (tid ?: w->pid))
		i++;
	return i;
}

/* Several may be asked about by turns. */
static void thread_add(struct resources_watch *w, pid_t tid)
{
	uint32_t i = w->ntids++ % THREADS;

	w->tid[i] = tid ?: w->pid;
	w->older.count[FAULTS + i] = w->newer.count[FAULTS + i] = UNKNOWN_U64;
	w->last.count[FAULTS + i] = UNKNOWN_U64;
}

static void threads_read(struct resources_watch *w, struct resources_sample *now)
{
	char text[8192];

	for (uint32_t i = 0; i < THREADS && w->tid[i]; i++)
		if (procstat_read(AT_FDCWD, text, sizeof(text), "%s/%d/task/%d/stat",
				  w->roots->proc, (int)w->pid, (int)w->tid[i]))
			now->count[FAULTS + i] = procstat_major_faults(text);
	if (thread_status(w->roots, w->pid, w->pid, text, sizeof(text)))
		w->swapped_bytes = times(procstat_number(text, "VmSwap:"), 1024);
}

/* ---- looking --------------------------------------------------------------------- */

/* One that was not looked at for long, or has moved, begins anew. */
static void samples_take(struct resources_watch *w, const struct resources_sample *now, bool same)
{
	bool anew = !same || !w->last.ns || now->ns > w->last.ns + SLICE_NS;

	if (anew || now->ns >= w->newer.ns + SLICE_NS) {
		w->older = anew ? *now : w->newer;
		w->newer = *now;
	}
	w->last = *now;
}

void resources_look(struct resources_watch *w, pid_t tid, uint64_t now_ns, uint32_t *looks)
{
	struct resources_sample now = { .ns = now_ns };
	char pressure[256];
	bool same;

	if (w && thread_find(w, tid) == THREADS)
		thread_add(w, tid);
	if (!w || !*looks || (w->last.ns && now_ns < w->last.ns + PACE_NS))
		return;
	--*looks;
	memset(now.count, 0xff, sizeof(now.count));	/* UNKNOWN_U64 */
	same = groups_follow(w) == GROUPS_SAME;
	levels_read(w, &now);
	/* The root has no such file, and what is stalled there is the node. */
	if (group_read(w->dir[PRESSURE], "cgroup.events", pressure, sizeof(pressure)))
		stalls_read(&now.count[OWN_STALLED], w->dir[PRESSURE], ".pressure");
	snprintf(pressure, sizeof(pressure), "%s/pressure", w->roots->proc);
	stalls_read(&now.count[NODE_STALLED], pressure, "");
	threads_read(w, &now);
	samples_take(w, &now, same);
}

/* ---- telling --------------------------------------------------------------------- */

/* The growth; UNKNOWN_U64, also where it was set back. */
static uint64_t watch_growth(const struct resources_watch *w, uint32_t i)
{
	uint64_t now = w->last.count[i], before = w->older.count[i];

	return now == UNKNOWN_U64 || before == UNKNOWN_U64 || now < before ? UNKNOWN_U64 :
	       now - before;
}

static double part_of(uint64_t part, uint64_t whole)
{
	return part == UNKNOWN_U64 || whole == UNKNOWN_U64 ? -1 :
	       !whole || !part ? 0 : part < whole ? (double)part / (double)whole : 1;
}

/*
 * The kernel adds up the time over all CPUs that waited, and counts a period in which any did.  To
 * use up a limit takes at least as many CPUs as it allows: no more than that part of the sum was
 * lost by each, in the mean.
 */
static double level_throttled(const struct resources_watch *w, uint32_t i, uint64_t window_ns)
{
	uint32_t at = OF_LEVELS + i * LEVEL_COUNTS;
	uint64_t ns = watch_growth(w, at + THROTTLED_NS), by_periods;
	double cpus = ceil(w->level[i].cpus);

	if (!w->level[i].cpus)
		return -1;
	by_periods = times(watch_growth(w, at + THROTTLED), w->level[i].period_ns);
	if (ns != UNKNOWN_U64 && cpus > 1)
		ns = (uint64_t)((double)ns / cpus);
	return part_of(ns < by_periods ? ns : by_periods, window_ns);
}

/* A user may have made the group, and named it. */
static void path_clean(char path[GROUP_PATH])
{
	utf8_clean(path, strlen(path));
}

static void tell_cpu(struct resources_watch *w, uint64_t window_ns, struct resources *out)
{
	for (uint32_t i = 0; i < LEVELS; i++) {
		double throttled = level_throttled(w, i, window_ns);
		bool tighter = throttled == out->throttled && w->level[i].cpus < out->cpu_limit;
		bool worse = !out->cpu_cgroup || throttled > out->throttled || tighter;

		if (!w->level[i].cpus || !worse || !group_path(w, CPU, i, w->cpu_path))
			continue;
		out->cpu_cgroup = w->cpu_path;
		out->cpu_limit = w->level[i].cpus;
		out->throttled = throttled;
		out->throttled_periods =
			part_of(watch_growth(w, OF_LEVELS + i * LEVEL_COUNTS + THROTTLED),
				watch_growth(w, OF_LEVELS + i * LEVEL_COUNTS + PERIODS));
	}
}

static void tell_memory(struct resources_watch *w, struct resources *out)
{
	double most = -1;

	/* One that was met goes before all that were not. */
	for (uint32_t i = 0; i < LEVELS; i++) {
		const struct resources_level *level = &w->level[i];
		bool known = level->bytes != UNKNOWN_U64 && level->limit_bytes != UNKNOWN_U64;
		uint64_t hits = watch_growth(w, OF_LEVELS + i * LEVEL_COUNTS + LIMIT_HITS);
		double met = hits && hits != UNKNOWN_U64 ? 1e6 : 0;
		double used = known ? met + (double)level->bytes / (double)level->limit_bytes : -1;

		if (used <= most || !group_path(w, MEMORY, i, w->memory_path))
			continue;
		most = used;
		out->memory_cgroup = w->memory_path;
		out->memory_bytes = level->bytes;
		out->memory_limit_bytes = level->limit_bytes;
		out->limit_hits = hits;
	}
}

bool resources_tell(struct resources_watch *w, pid_t tid, const char *pci_bus_id, uint64_t now_ns,
		    struct resources *out)
{
	uint64_t window_ns = w ? w->last.ns - w->older.ns : 0, faults;
	uint32_t thread;

	if (!window_ns || now_ns > w->last.ns + SLICE_NS)
		return false;
	thread = thread_find(w, tid);
	faults = thread < THREADS ? watch_growth(w, FAULTS + thread) : UNKNOWN_U64;
	*out = (struct resources){
		.throttled = -1, .throttled_periods = -1,
		.memory_bytes = UNKNOWN_U64, .memory_limit_bytes = UNKNOWN_U64,
		.limit_hits = UNKNOWN_U64, .swapped_bytes = w->swapped_bytes,
		.cpu_stalled = part_of(watch_growth(w, OWN_STALLED), window_ns),
		.memory_stalled = part_of(watch_growth(w, OWN_STALLED + 1), window_ns),
		.io_stalled = part_of(watch_growth(w, OWN_STALLED + 2), window_ns),
		.node_cpu_stalled = part_of(watch_growth(w, NODE_STALLED), window_ns),
		.node_memory_stalled = part_of(watch_growth(w, NODE_STALLED + 1), window_ns),
		.node_io_stalled = part_of(watch_growth(w, NODE_STALLED + 2), window_ns),
		.major_faults = faults == UNKNOWN_U64 ? -1 :
				(double)faults * 1e9 / (double)window_ns,
	};
	out->apart = *pci_bus_id && resources_place(w->roots, w->pid, tid ?: w->pid, pci_bus_id, 0,
						    &out->placement);
	tell_cpu(w, window_ns, out);
	tell_memory(w, out);
	path_clean(w->cpu_path);
	path_clean(w->memory_path);
	return true;
}

void resources_count_kills(struct resources_watch *w, bool any)
{
	/* Where nobody was killed, it is seen at each fourth count whether it has moved. */
	if (w && ((!any && w->nkills % KILL_COUNTS) || groups_follow(w) == GROUPS_SAME))
		kills_count(w, any);
}

struct resources_kills resources_kills(struct resources_watch *w)
{
	struct resources_kills told = { .limit_bytes = UNKNOWN_U64 };
	const uint64_t *before;

	if (!w || groups_follow(w) == GROUPS_MOVED)
		return told;
	before = w->kills[w->nkills > KILL_COUNTS ? w->nkills % KILL_COUNTS : 0];
	for (uint32_t i = 0; i < LEVELS; i++) {
		uint64_t now;

		if (!group_path(w, MEMORY, i, w->memory_path))
			break;
		now = level_kills(w->memory_path);
		if (now == UNKNOWN_U64 || before[i] == UNKNOWN_U64 || now < before[i] ||
		    (i && now == before[i]))
			continue;
		told.cgroup = w->memory_path;
		told.above = i;
		told.kills = now - before[i];
		told.limit_bytes = memory_limit(w->memory_path);
		path_clean(w->memory_path);
		break;
	}
	return told;
}

/* ---- sources ---------------------------------------------------------------------- */

static void cgroup_tell(const struct resources_roots *roots, struct sensors_source *out)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/self/ns/cgroup", roots->proc);
	if (!stat(path, &st) && st.st_ino != INITIAL_CGROUP_NS)
		snprintf(out->why, sizeof(out->why), "the daemon has a cgroup namespace of its "
			 "own: it sees only groups below its own");
	snprintf(path, sizeof(path), "%s/cgroup.controllers", roots->cgroup);
	if (!access(path, F_OK))
		return;
	snprintf(path, sizeof(path), "%s/cpu", roots->cgroup);
	if (access(path, F_OK))
		snprintf(out->why, sizeof(out->why), "no cgroups are mounted at %s", roots->cgroup);
}

static void pressure_tell(const struct resources_roots *roots, struct sensors_source *out)
{
	char text[256];

	errno = 0;
	if (!procstat_read(AT_FDCWD, text, sizeof(text), "%s/pressure/memory", roots->proc))
		snprintf(out->why, sizeof(out->why), "%.111s/pressure/memory: %s (psi=1 for the "
			 "kernel?)", roots->proc, strerror(errno));
}

static void numa_tell(const struct resources_roots *roots, struct sensors_source *out)
{
	uint64_t nodes = numa_all(roots->sys);

	if (!nodes)
		snprintf(out->why, sizeof(out->why), "%.128s/devices/system/node cannot be read",
			 roots->sys);
	else if (!(nodes & (nodes - 1)))
		snprintf(out->why, sizeof(out->why), "all CPUs are at one node");
}

bool resources_source(const struct resources_roots *roots, size_t i, struct sensors_source *out)
{
	static const struct {
		name_t name;
		void (*tell)(const struct resources_roots *roots, struct sensors_source *out);
	} sources[] = {
		{ "cgroup", cgroup_tell }, { "pressure", pressure_tell }, { "numa", numa_tell },
	};

	if (i >= ARRAY_LEN(sources))
		return false;
	*out = (struct sensors_source){ .name = sources[i].name, .state = SENSORS_PRESENT };
	sources[i].tell(roots, out);
	if (*out->why)
		out->state = sources[i].tell == numa_tell && numa_all(roots->sys) ? SENSORS_UNUSED :
										    SENSORS_ABSENT;
	return true;
}

/* ---- life ------------------------------------------------------------------------ */

struct resources_watch *resources_new(const struct resources_roots *roots, pid_t pid,
				      uint64_t start_time)
{
	struct resources_watch *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->roots = roots;
	w->pid = pid;
	w->start_time = start_time;
	w->swapped_bytes = UNKNOWN_U64;
	groups_find(w);
	kills_count(w, true);
	return w;
}

void resources_free(struct resources_watch *w)
{
	free(w);
}
