/* SPDX-License-Identifier: Apache-2.0 */
/* Joins ranks with what is read of the machine, for judge/, and gives sentences the time of day. */
#include "ncclinspd/findings/around.h"

#include <strings.h>
#include <time.h>

#include "ncclinspd/around/nics.h"
#include "ncclinspd/around/sensors.h"
#include "ncclinspd/findings/cpuwait.h"
#include "ncclinspd/findings/resources.h"
#include "util/numa.h"

/* The time of day; 0: not known. */
static void take_time(uint64_t real_ns, char since[16])
{
	time_t seconds = (time_t)(real_ns / 1000000000);
	struct tm shown;

	if (seconds && localtime_r(&seconds, &shown))
		strftime(since, 16, "%H:%M:%S", &shown);
}

bool around_find_gpu(const struct diagnose *dg, const struct comm *c, uint64_t now_ns,
		     struct gpu_cause *cause)
{
	struct sensors *sensors = diagnose_source(dg)->sensors;
	struct gpu_health all[SENSORS_GPUS];
	struct gpu_cause found;
	uint32_t n, i = 0;

	if (!sensors || !c->has_gpu)
		return false;
	n = sensors_gpus(sensors, now_ns, all);
	while (i < n && strcasecmp(all[i].pci_bus_id, c->pci_bus_id))
		i++;
	if (i == n || !gpu_find_cause(all, n, i, &found))
		return false;
	take_time(found.gpu.limited_real_ns, found.since);
	*cause = found;
	return true;
}

void around_find_nic(const struct diagnose *dg, uint64_t now_ns, struct nic_cause *cause)
{
	struct nics *nics = diagnose_source(dg)->nics;
	struct nic_health all[NICS_MOST];
	uint32_t n = nics ? nics_all(nics, now_ns, all) : 0;

	if (nic_find_cause(all, n, cause))
		take_time(cause->nic.down_real_ns, cause->since);
}

bool around_find_placement(const struct diagnose *dg, const struct process *p,
			   const struct comm *c, uint64_t now_ns, struct placement *out)
{
	struct nics *nics = diagnose_source(dg)->nics;
	struct nic_health all[NICS_MOST];
	uint32_t n = nics ? nics_all(nics, now_ns, all) : 0;
	uint64_t nodes = 0;
	pid_t tid;

	for (uint32_t i = 0; i < n; i++) {
		if (all[i].numa_node >= NUMA_NODES) {
			nodes = 0;	/* one may be anywhere */
			break;
		}
		nodes |= UINT64_C(1) << all[i].numa_node;
	}
	return cpuwait_threads(p->cpuwait, &tid, 1) &&
	       resources_place(&resources_roots, p->pid, tid,
			       c->has_gpu ? c->pci_bus_id : "", nodes, out);
}

bool around_find_xid(const struct diagnose *dg, const char *pci_bus_id, uint64_t since_ns,
		     int32_t pid, struct xid *xid)
{
	const struct sensors *sensors = diagnose_source(dg)->sensors;

	return sensors && kmsg_find(sensors_kmsg(sensors), pci_bus_id, since_ns, pid, xid);
}
