/* SPDX-License-Identifier: Apache-2.0 */
/* Joins a rank with the readings of its GPU, for judge/, and gives sentences the time of day. */
#include "ncclinspd/findings/around.h"

#include <strings.h>
#include <time.h>

#include "ncclinspd/around/sensors.h"

static void cause_take_time(struct gpu_cause *cause)
{
	time_t since = (time_t)(cause->gpu.limited_real_ns / 1000000000);
	struct tm shown;

	if (since && localtime_r(&since, &shown))
		strftime(cause->since, sizeof(cause->since), "%H:%M:%S", &shown);
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
	cause_take_time(&found);
	*cause = found;
	return true;
}

bool around_find_xid(const struct diagnose *dg, const char *pci_bus_id, uint64_t since_ns,
		     int32_t pid, struct xid *xid)
{
	const struct sensors *sensors = diagnose_source(dg)->sensors;

	return sensors && kmsg_find(sensors_kmsg(sensors), pci_bus_id, since_ns, pid, xid);
}
