/* SPDX-License-Identifier: Apache-2.0 */
/* A process that may run on CPUs of another NUMA node only reaches its GPU the long way. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/doctor/doctor.h"
#include "judge/resources.h"
#include "util/numa.h"
#include "util/procstat.h"

/* 1: far from its GPU, and *place says how; 0: near it; -1: nobody knows. */
static int rank_place(const json_t *rank, long long pid, const char *proc, const char *sys,
		      struct placement *place)
{
	char status[8192], cpus[4096];
	uint64_t nodes, gpu = numa_of_pci(sys, member_text(rank, "pci_bus_id", ""));
	const char *list;

	if (!gpu || !procstat_read(AT_FDCWD, status, sizeof(status), "%s/%lld/status", proc, pid))
		return -1;
	list = procstat_find(status, "Cpus_allowed_list:");
	snprintf(cpus, sizeof(cpus), "%.*s", (int)strcspn(list ?: "", "\n"), list ?: "");
	nodes = numa_of_cpus(sys, cpus);
	return nodes ? placement_find(cpus, nodes, gpu, false, place) : -1;
}

/* A process has a rank in each of its communicators, of one GPU or of several. */
static int process_place(const json_t *process, const json_t *ranks, long long pid,
			 const char *proc, const char *sys, struct placement *place)
{
	int far = -1;

	json_each(rank, ranks)
		if (far < 1 && member_is(rank, "state", "live") &&
		    json_equal(json_object_get(rank, "pid"), json_object_get(process, "pid"))) {
			int one = rank_place(rank, pid, proc, sys, place);

			far = one > far ? one : far;
		}
	return far;
}

void doctor_judge_places(struct doctor *doctor, const json_t *jobs, const json_t *processes,
			 const json_t *ranks, const char *proc, const char *sys)
{
	struct placement place = { .nic = false }, first = place;
	size_t apart = 0, known = 0;
	char text[512], more[64] = "";
	struct phrase phrase;
	long long worst = 0;

	json_each(process, processes) {
		long long pid = member_is(process, "state", "live") ?
				doctor_own_pid(jobs, process) : 0;
		int far = pid ? process_place(process, ranks, pid, proc, sys, &place) : -1;

		known += far >= 0;
		if (far > 0 && !apart++) {
			worst = pid;
			first = place;
		}
	}
	if (!apart && known)
		doctor_say(doctor, "placement", DOCTOR_OK, NULL,
			   "all %zu processes may run on CPUs near their GPUs", known);
	if (!apart)
		return;
	phrase_start(&phrase, text, sizeof(text));
	placement_say(&phrase, &first);
	if (apart > 1)
		snprintf(more, sizeof(more), "; so it is for %zu of %zu processes", apart, known);
	doctor_say(doctor, "placement", DOCTOR_WARNING,
		   "bind each process to the node of its GPU: srun --cpu-bind and "
		   "--gpu-bind=closest, numactl, or the Topology Manager of Kubernetes",
		   "process %lld %s%s", worst, text, more);
}

void doctor_place(struct doctor *doctor)
{
	uint64_t nodes = numa_all(NUMA_SYS);
	json_auto_t *processes = NULL, *ranks = NULL;
	json_t *jobs;

	if (!doctor->status || !(nodes & (nodes - 1)) ||
	    client_get(doctor->cli->client, "/v1/processes?fields=pid,segment,state", &processes))
		return;
	if (!client_get(doctor->cli->client, "/v1/ranks?fields=pid,pci_bus_id,state", &ranks)) {
		jobs = doctor_scan("/proc", doctor_shm_dir(), NULL);
		doctor_judge_places(doctor, jobs, json_object_get(processes, "processes"),
				    json_object_get(ranks, "ranks"), "/proc", NUMA_SYS);
		json_decref(jobs);
	}
}
