/* SPDX-License-Identifier: Apache-2.0 */
#ifndef UTIL_NUMA_H
#define UTIL_NUMA_H

/*
 * The NUMA nodes of CPUs and devices, as sysfs tells them; `sys` is where it is.  Nodes are bits,
 * of which later ones than the 64th are not known.  0: nothing is known.
 */

#include <stddef.h>
#include <stdint.h>

#define NUMA_NODES	64
#define NUMA_SYS	"/sys"

/* The nodes that have any of these CPUs, as the kernel lists them: "0-3,8". */
uint64_t numa_of_cpus(const char *sys, const char *cpus);

/* All nodes that have CPUs. */
uint64_t numa_all(const char *sys);

/* The node that a device at that place of the PCI bus is at; 0 also where that has no CPUs. */
uint64_t numa_of_pci(const char *sys, const char *pci_bus_id);

/* "0", "0-1,3" */
void numa_list(uint64_t nodes, char *text, size_t size);

#endif
