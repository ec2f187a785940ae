/* SPDX-License-Identifier: Apache-2.0 */
/* A process that may run on CPUs of another NUMA node only reaches its GPU the long way. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "cli/base/member.h"
#include "cli/doctor/doctor.h"
#include "judge/resources.h"
#include "reader/base/proc.h"
#include "util/numa.h"
#include "util/procstat.h"

/* 1: far from its GPU, and *place says how; 0: near it; -1: nobody knows. */
static int rank_place(const json_t *rank, const char *proc, const char *sys,
		      struct placement *place)
{
	char path[DOCTOR_PATH], status[8192], cpus[4096];
	uint64_t nodes, gpu = numa_of_pci(sys, member_text(rank, "pci_bus_id", ""));
	const char *list;

	snprintf(path, sizeof(path), "%s/%lld/status", proc,
		 (long long)json_integer_value(json_object_get(rank, "pid")));
	if (!gpu || !proc_read(AT_FDCWD, path, status, sizeof(status)))
		return -1;
	list = procstat_find(status, "Cpus_allowed_list:");
	snprintf(cpus, sizeof(cpus), "%.*s", (int)strcspn(list ?: "", "\n"), list ?: "");
	nodes = numa_of_cpus(sys, cpus);
	return nodes ? placement_find(cpus, nodes, gpu, false, place) : -1;
}

void doctor_judge_places(struct doctor *doctor, const json_t *answer, const char *proc,
			 const char *sys)
{
	struct placement place = { .nic = false }, first = place;
	size_t apart = 0, known = 0, i;
	char text[512], more[64] = "";
	json_t *rank, *worst = NULL;
	struct phrase phrase;

	json_array_foreach(json_object_get(answer, "ranks"), i, rank) {
		int far = strcmp(member_text(rank, "state", ""), "live") ? -1 :
			  rank_place(rank, proc, sys, &place);

		known += far >= 0;
		if (far > 0 && !apart++) {
			worst = rank;
			first = place;
		}
	}
	if (!apart && known)
		doctor_say(doctor, "placement", DOCTOR_OK, NULL,
			   "all %zu ranks may run on CPUs near their GPUs", known);
	if (!apart)
		return;
	phrase_start(&phrase, text, sizeof(text));
	placement_say(&phrase, &first);
	if (apart > 1)
		snprintf(more, sizeof(more), "; %zu more of %zu ranks are as far", apart - 1,
			 known);
	doctor_say(doctor, "placement", DOCTOR_WARNING,
		   "bind each process to the node of its GPU: srun --cpu-bind and "
		   "--gpu-bind=closest, numactl, or the Topology Manager of Kubernetes",
		   "process %lld %s%s",
		   (long long)json_integer_value(json_object_get(worst, "pid")), text, more);
}

void doctor_place(struct doctor *doctor)
{
	uint64_t nodes = numa_all(NUMA_SYS);
	json_t *answer = NULL;

	if (!doctor->status || !(nodes & (nodes - 1)) ||
	    client_get(doctor->cli->client, "/v1/ranks?fields=pid,pci_bus_id,state", &answer))
		return;
	doctor_judge_places(doctor, answer, "/proc", NUMA_SYS);
	json_decref(answer);
}
