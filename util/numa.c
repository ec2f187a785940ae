/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of CPUs become bits, since the kernel writes one set in more than one way. */
#include "util/numa.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/list.h"
#include "util/phrase.h"
#include "util/procstat.h"

#define CPUS	8192	/* the most that Linux is built for */

struct cpu_set_bits {
	uint64_t bit[CPUS / 64];
};

/* A list that says nonsense is cut there. */
static void cpus_parse(const char *text, struct cpu_set_bits *cpus)
{
	memset(cpus, 0, sizeof(*cpus));
	while (*text >= '0' && *text <= '9') {
		char *end;
		unsigned long first = strtoul(text, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (unsigned long i = first; i <= last && i < CPUS; i++)
			cpus->bit[i / 64] |= UINT64_C(1) << i % 64;
		text = *end == ',' ? end + 1 : end;
	}
}

static bool cpus_meet(const struct cpu_set_bits *a, const struct cpu_set_bits *b)
{
	for (size_t i = 0; i < ARRAY_LEN(a->bit); i++)
		if (a->bit[i] & b->bit[i])
			return true;
	return false;
}

/* The nodes with one of these CPUs, or with any. */
static uint64_t numa_find(const char *sys, const struct cpu_set_bits *wanted)
{
	struct cpu_set_bits cpus, none = { { 0 } };
	char line[4096];
	uint64_t nodes = 0;

	if (!procstat_read(AT_FDCWD, line, sizeof(line), "%s/devices/system/node/online", sys))
		return 0;
	cpus_parse(line, &cpus);	/* nodes are listed as CPUs are */
	for (uint32_t i = 0; i < NUMA_NODES; i++) {
		struct cpu_set_bits own;

		if (!(cpus.bit[0] >> i & 1) ||
		    !procstat_read(AT_FDCWD, line, sizeof(line),
				   "%s/devices/system/node/node%u/cpulist", sys, i))
			continue;
		cpus_parse(line, &own);
		if (wanted ? cpus_meet(&own, wanted) : memcmp(&own, &none, sizeof(own)) != 0)
			nodes |= UINT64_C(1) << i;
	}
	return nodes;
}

uint64_t numa_of_cpus(const char *sys, const char *cpus)
{
	struct cpu_set_bits wanted;

	cpus_parse(cpus, &wanted);
	return numa_find(sys, &wanted);
}

uint64_t numa_all(const char *sys)
{
	return numa_find(sys, NULL);
}

uint64_t numa_of_pci(const char *sys, const char *pci_bus_id)
{
	unsigned domain, bus, device, function;
	char line[32];
	long node;

	if (sscanf(pci_bus_id, "%8x:%2x:%2x.%1x", &domain, &bus, &device, &function) != 4)
		return 0;
	if (!procstat_read(AT_FDCWD, line, sizeof(line),
			   "%s/bus/pci/devices/%04x:%02x:%02x.%x/numa_node", sys, domain, bus,
			   device, function))
		return 0;
	node = strtol(line, NULL, 10);		/* -1: the firmware does not tell */
	return node >= 0 && node < NUMA_NODES ? (UINT64_C(1) << node) & numa_all(sys) : 0;
}

void numa_list(uint64_t nodes, char *text, size_t size)
{
	int32_t numbers[NUMA_NODES];
	uint32_t n = 0;
	struct phrase phrase;

	for (int32_t i = 0; i < NUMA_NODES; i++)
		if (nodes >> i & 1)
			*array_must_add(numbers, &n) = i;
	phrase_start(&phrase, text, size);
	phrase_add_list(&phrase, numbers, n);
}
