/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCI_CONTROL_H
#define NCI_CONTROL_H

/*
 * The control file: what the daemon wants from the jobs of its node.  One file of
 * fixed size, NCI_CONTROL_PATH or what NCCLINSP_CONTROL names, made and written by
 * the daemon and by nobody else.
 *
 * It is written in place, by one pwrite of the whole, and never replaced while it
 * exists: a job keeps its descriptor.  It is read by one pread of the whole.  The two
 * are not atomic against each other; the checksum tells what is torn.  Who reads
 * something torn, short, of another version or of another boot of the machine keeps
 * what was in force, and looks again later.
 *
 * What is in force for a process: what its environment says, then each entry in the
 * order of the file whose `instance` is 0 or its own and whose time has not passed.
 * A field that says keep changes nothing, any other one takes the place of what was
 * there before.  So the node's entry comes first, then what a person wants of a
 * process, then what lasts a few seconds; and when that has passed, what stands before
 * it holds again, whether or not there still is a daemon to say so.
 */

#include <stdbool.h>

#include "nci/segment.h"

#define NCI_CONTROL_PATH	"/run/ncclinsp/control"
#define NCI_CONTROL_MAGIC	UINT64_C(0x0a6c6f72746e6363)	/* "ccntrol\n", little-endian */
#define NCI_CONTROL_VERSION	1
#define NCI_CONTROL_ENTRIES	100

#define NCI_CONTROL_KEEP	UINT32_C(0xffffffff)	/* as level and as sample: no change */

/* Why the daemon wants it; the plugin hands it on in nci_steer.wish. */
#define NCI_WISH_NONE		0
#define NCI_WISH_PERSON		1	/* somebody asked for it */
#define NCI_WISH_DETAIL		2	/* a finding raised it for a while */
#define NCI_WISH_THRIFT		3	/* the callbacks cost more than the budget */
#define NCI_WISH_TRACE		4	/* a trace is being taken */

/*
 *   offset  size  field           meaning
 *        0     8  instance        nci_header.instance; 0: every process
 *        8     8  until_mono_ns   CLOCK_MONOTONIC; from then on it is no more; 0: no end
 *       16     4  level           NCI_LEVEL_OFF to NCI_LEVEL_TRACE, or NCI_CONTROL_KEEP
 *       20     4  sample          NCI_SAMPLE_BUDGET or _ALL, or NCI_CONTROL_KEEP
 *       24     4  wish            NCI_WISH_*
 *       28     4  budget_ppm      of wall time that KernelCh may cost, up to 1,000,000;
 *                                 0: no change
 *       32     4  kernel_cost_ns  what KernelCh costs per group; 0: no change
 *       36     4  zero
 */
struct nci_control_entry {
	uint64_t instance;
	uint64_t until_mono_ns;
	uint32_t level;
	uint32_t sample;
	uint32_t wish;
	uint32_t budget_ppm;
	uint32_t kernel_cost_ns;
	uint32_t zero;
};
_Static_assert(sizeof(struct nci_control_entry) == 40, "control: an entry changed its size");

/*
 *   offset  size  field            meaning
 *        0     8  magic            NCI_CONTROL_MAGIC
 *        8     4  version          NCI_CONTROL_VERSION; leave others alone
 *       12     4  entries          of entry[] that are used, from the first
 *       16     8  sequence         grows with every write, never 0
 *       24     8  checksum         nci_control_checksum() of everything else
 *       32     8  written_mono_ns  CLOCK_MONOTONIC
 *       40    16  boot_id          of the kernel as the daemon sees it, binary; zeros: not
 *                                  readable.  Of another id, and written later than now:
 *                                  that is of another boot
 *       56    40  zero
 *       96  4000  entry            NCI_CONTROL_ENTRIES of them, zeros behind the used ones
 */
struct nci_control {
	uint64_t magic;
	uint32_t version;
	uint32_t entries;
	uint64_t sequence;
	uint64_t checksum;
	uint64_t written_mono_ns;
	uint8_t boot_id[16];
	uint8_t zero[40];
	struct nci_control_entry entry[NCI_CONTROL_ENTRIES];
};
_Static_assert(sizeof(struct nci_control) == 4096, "control: the file is one page");
_Static_assert(offsetof(struct nci_control, checksum) == 24, "control: checksum moved");
_Static_assert(offsetof(struct nci_control, entry) == 96, "control: entries moved");

/* Over 64-bit words as they lie in memory, 0 in place of the checksum itself. */
static inline uint64_t nci_control_checksum(const struct nci_control *c)
{
	const uint64_t *word = (const uint64_t *)c;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < sizeof(*c) / sizeof(*word); i++) {
		hash ^= i == offsetof(struct nci_control, checksum) / sizeof(*word) ? 0 : word[i];
		hash *= UINT64_C(0x100000001b3);
		hash ^= hash >> 32;	/* else two changes of a top bit would cancel */
	}
	return hash;
}

/* A whole file that was written as a whole; says nothing about the entries' values. */
static inline bool nci_control_is_whole(const struct nci_control *c)
{
	return c->magic == NCI_CONTROL_MAGIC && c->version == NCI_CONTROL_VERSION &&
	       c->sequence && c->entries <= NCI_CONTROL_ENTRIES &&
	       c->checksum == nci_control_checksum(c);
}

#endif
