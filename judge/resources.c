/* SPDX-License-Identifier: Apache-2.0 */
/* The words for what a process lacks of its node, and from where on each is worth them. */
#include "judge/resources.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/numa.h"
#include "util/text.h"

/* Memory that files take is given back at a limit, so that to be near one is usual: no cause. */
#define NEAR_LIMIT	0.9

/* A page takes from 0.1 ms (a disk of the node) to 10 ms (one of a network) to come. */
#define LEAST_FAULTS	10

/* A list that is too long ends after one of its members. */
static void placement_set_cpus(struct placement *p, const char *cpus)
{
	static const char more[] = "...";
	char *end;

	if (snprintf(p->cpus, sizeof(p->cpus), "%s", cpus) < (int)sizeof(p->cpus))
		return;
	p->cpus[sizeof(p->cpus) - sizeof(more)] = '\0';
	end = strrchr(p->cpus, ',');
	strcpy(end ? end + 1 : p->cpus, more);
}

bool placement_find(const char *cpus, uint64_t nodes, uint64_t device_nodes, bool nic,
		    struct placement *out)
{
	if (!nodes || !device_nodes || (nodes & device_nodes))
		return false;
	placement_set_cpus(out, cpus);
	numa_list(nodes, out->nodes, sizeof(out->nodes));
	numa_list(device_nodes, out->device_nodes, sizeof(out->device_nodes));
	out->nic = nic;
	return true;
}

void placement_say(struct phrase *text, const struct placement *p)
{
	phrase_add(text, "may run only on CPUs %s, which are at NUMA node %s, but %s at node %s",
		   p->cpus, p->nodes, p->nic ? "this node's network interfaces are" : "its GPU is",
		   p->device_nodes);
}

void resources_say_throttled(struct phrase *text, const struct resources *r)
{
	phrase_add(text, "its cgroup (%s) was throttled for up to %.0f %% of the time: it may use "
		   "%.3g CPUs", r->cpu_cgroup, 100 * r->throttled, r->cpu_limit);
	if (r->throttled_periods >= 0)
		phrase_add(text, ", and had used them up in %.0f %% of the periods",
			   100 * r->throttled_periods);
	phrase_add(text, ". Raise that limit (cpu.max; with Kubernetes limits.cpu), or start fewer "
		   "threads in that cgroup");
}

/* A limit that was met meanwhile, or nearly so where the kernel does not count that. */
static bool resources_meet_limit(const struct resources *r)
{
	if (!r->memory_cgroup)
		return false;
	return r->limit_hits != UNKNOWN_U64 ? r->limit_hits > 0 :
	       (double)r->memory_bytes >= NEAR_LIMIT * (double)r->memory_limit_bytes;
}

void resources_say_memory(struct phrase *text, const struct resources *r)
{
	char bytes[TEXT_MAX], limit[TEXT_MAX], swapped[TEXT_MAX];

	phrase_add(text, "its cgroup waited for memory for %.0f %% of the time: ",
		   100 * r->memory_stalled);
	if (resources_meet_limit(r)) {
		text_bytes(bytes, sizeof(bytes), r->memory_bytes);
		text_bytes(limit, sizeof(limit), r->memory_limit_bytes);
		phrase_add(text, "%s of %s are used in %s", bytes, limit, r->memory_cgroup);
	} else if (2 * r->node_memory_stalled >= r->memory_stalled) {
		phrase_add(text, "the node is short of it (free, /proc/pressure/memory)");
	} else {
		phrase_add(text, "it met no limit that is known here (memory.pressure and "
			   "memory.events of its cgroups)");
	}
	if (r->swapped_bytes && r->swapped_bytes != UNKNOWN_U64) {
		text_bytes(swapped, sizeof(swapped), r->swapped_bytes);
		phrase_add(text, ", and %s of the process are swapped out", swapped);
	}
	phrase_add(text, resources_meet_limit(r) ? ". Raise that limit (memory.max; with "
		   "Kubernetes limits.memory), or use less" : ". See which processes have it");
}

bool resources_say_sleep(struct phrase *text, const struct resources *r, double sleeps)
{
	bool waits = r->io_stalled >= RESOURCES_LEAST && 2 * r->io_stalled >= sleeps;

	if (!waits && r->major_faults < LEAST_FAULTS)
		return false;
	if (waits)
		phrase_add(text, "its cgroup waited for disks for %.0f %% of the time",
			   100 * r->io_stalled);
	if (r->major_faults >= LEAST_FAULTS)
		phrase_add(text, "%s%.0f pages a second that it used had to be read from a disk "
			   "(major faults)", waits ? ", and " : "", r->major_faults);
	return true;
}

bool resources_say_node(struct phrase *text, const struct resources *r, double cost,
			const char *begin)
{
	bool memory = r->memory_stalled < 0 && resources_explain(r->node_memory_stalled, cost);
	bool io = r->io_stalled < 0 && resources_explain(r->node_io_stalled, cost);

	if (!memory && !io)
		return false;
	phrase_add(text, "%sprocesses of this node waited ", begin);
	if (memory)
		phrase_add(text, "for memory for %.0f %% of the time",
			   100 * r->node_memory_stalled);
	if (io)
		phrase_add(text, "%sfor disks for %.0f %%%s", memory ? ", " : "",
			   100 * r->node_io_stalled, memory ? "" : " of the time");
	phrase_add(text, " (/proc/pressure), perhaps this one among them");
	return true;
}
