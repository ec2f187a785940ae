/* SPDX-License-Identifier: Apache-2.0 */
/* Reads how much of its time a CPU limit kept a process waiting: cpu.stat of its cgroups. */
#include "ncclinspd/findings/cpulimit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reader/base/proc.h"

#define SLICE_NS	UINT64_C(20000000000)	/* this slice and the one before count */

/* ---- the group ------------------------------------------------------------------- */

static bool file_read(const char *dir, const char *name, char *text, size_t size)
{
	char path[CPULIMIT_PATH + 32];

	return snprintf(path, sizeof(path), "%s/%s", dir, name) < (int)sizeof(path) &&
	       proc_read(AT_FDCWD, path, text, size);
}

/* CPUs; 0: no limit. */
static double limit_read(const char *dir)
{
	char text[64], period_text[64];
	int64_t quota, period;

	if (file_read(dir, "cpu.max", text, sizeof(text)))
		return sscanf(text, "%" SCNd64 " %" SCNd64, &quota, &period) == 2 && quota > 0 &&
		       period > 0 ? (double)quota / (double)period : 0;
	if (!file_read(dir, "cpu.cfs_quota_us", text, sizeof(text)) ||
	    !file_read(dir, "cpu.cfs_period_us", period_text, sizeof(period_text)))
		return 0;
	quota = strtoll(text, NULL, 10);	/* -1: none */
	period = strtoll(period_text, NULL, 10);
	return quota > 0 && period > 0 ? (double)quota / (double)period : 0;
}

/* The tightest limit from the group `path` of the hierarchy at `top` on upwards. */
static void hierarchy_look(struct cpulimit *l, const char *top, const char *path)
{
	char dir[CPULIMIT_PATH];
	size_t least = strlen(top);

	/* A way up leads out of what is mounted here. */
	if (strstr(path, "/..") ||
	    snprintf(dir, sizeof(dir), "%s%s", top, path) >= (int)sizeof(dir))
		return;
	while (strlen(dir) > least) {
		double cpus = limit_read(dir);

		if (cpus > 0 && (!*l->dir || cpus < l->cpus)) {
			l->cpus = cpus;
			memcpy(l->dir, dir, sizeof(dir));
		}
		*strrchr(dir, '/') = '\0';
	}
}

static bool is_among(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (; *list; list += strcspn(list, ","), list += *list == ',')
		if (!strncmp(list, name, n) && (list[n] == ',' || !list[n]))
			return true;
	return false;
}

/* A line of /proc/<pid>/cgroup: number:controllers:path; v2 names no controllers. */
static void line_look(struct cpulimit *l, const char *root, char *line)
{
	char top[CPULIMIT_PATH], *controllers = strchr(line, ':');
	char *path = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!path)
		return;
	*controllers++ = *path++ = '\0';
	if (*controllers && !is_among(controllers, "cpu"))
		return;
	snprintf(top, sizeof(top), "%s%s", root, *controllers ? "/cpu" : "");
	hierarchy_look(l, top, path);
}

static void group_find(struct cpulimit *l, const char *proc, const char *root, pid_t pid)
{
	char path[PATH_MAX], text[8192], *rest;

	snprintf(path, sizeof(path), "%s/%d/cgroup", proc, (int)pid);
	if (!proc_read(AT_FDCWD, path, text, sizeof(text)))
		return;
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		line_look(l, root, line);
}

/* ---- counting ---------------------------------------------------------------------- */

static bool count_read(const char *dir, struct cpulimit_count *count)
{
	const char *periods, *throttled;
	char text[1024];

	if (!file_read(dir, "cpu.stat", text, sizeof(text)))
		return false;
	periods = strstr(text, "nr_periods ");
	throttled = strstr(text, "nr_throttled ");
	return periods && throttled &&
	       sscanf(periods, "nr_periods %" SCNu64, &count->periods) == 1 &&
	       sscanf(throttled, "nr_throttled %" SCNu64, &count->throttled) == 1;
}

static void limit_count(struct cpulimit *l, const struct cpulimit_count *now, uint64_t now_ns)
{
	uint64_t number = now_ns / SLICE_NS;
	struct cpulimit_slice *slice = &l->slice[number % 2];

	if (slice->number != number)
		*slice = (struct cpulimit_slice){ .number = number };
	slice->sum.periods += now->periods - l->last.periods;
	slice->sum.throttled += now->throttled - l->last.throttled;
}

void cpulimit_look(struct cpulimit *l, const char *proc, const char *root, pid_t pid,
		   uint64_t now_ns)
{
	bool first = !l->looked;
	struct cpulimit_count now;

	if (first)
		group_find(l, proc, root, pid);
	l->looked = true;
	if (!*l->dir || !count_read(l->dir, &now))
		return;
	/* less than before: the group was made anew */
	if (!first && now.periods >= l->last.periods && now.throttled >= l->last.throttled)
		limit_count(l, &now, now_ns);
	l->last = now;
}

double cpulimit_throttled(const struct cpulimit *l, uint64_t now_ns)
{
	uint64_t number = now_ns / SLICE_NS;
	struct cpulimit_count sum = { 0 };

	for (int i = 0; i < 2; i++) {
		if (l->slice[i].number + 1 < number)
			continue;
		sum.periods += l->slice[i].sum.periods;
		sum.throttled += l->slice[i].sum.throttled;
	}
	return sum.periods ? (double)sum.throttled / (double)sum.periods : -1;
}
