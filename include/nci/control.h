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
 * there before.  So what happens by itself comes first, then what a person asks of the
 * node, then of a process; and when something has passed, what stands before it holds
 * again, whether or not there still is a daemon to say so.
 */

#include <stdbool.h>

#include "nci/segment.h"

#define NCI_CONTROL_PATH	"/run/ncclinsp/control"
#define NCI_CONTROL_MAGIC	UINT64_C(0x0a6c6f72746e6363)	/* "ccntrol\n", little-endian */
#define NCI_CONTROL_VERSION	2
#define NCI_CONTROL_ENTRIES	100

#define NCI_CONTROL_KEEP	UINT32_C(0xffffffff)	/* level or sample stays as it is */

/* Why the daemon asks for it; the plugin hands it on in nci_steer.cause. */
#define NCI_CAUSE_NONE		0
#define NCI_CAUSE_PERSON	1	/* somebody asked for it */
#define NCI_CAUSE_FINDING	2	/* a finding raised it for a while */
#define NCI_CAUSE_BUDGET	3	/* the callbacks cost more than the budget */
#define NCI_CAUSE_TRACE		4	/* a trace is being taken */

struct nci_control_entry {
	uint64_t instance;		/* nci_header.instance; 0: every process */
	uint64_t until_mono_ns;		/* CLOCK_MONOTONIC; from then on it is no more; 0: no end */
	uint32_t level;			/* NCI_LEVEL_OFF to NCI_LEVEL_TRACE, or NCI_CONTROL_KEEP */
	uint32_t sample;		/* NCI_SAMPLE_BUDGET or _ALL, or NCI_CONTROL_KEEP */
	uint32_t cause;			/* NCI_CAUSE_* */
	uint32_t zero[3];
};
NCI_ASSERT(sizeof(struct nci_control_entry) == 40, "control: an entry changed its size");

/*
 * Bursts are planned by the daemon, which knows the rates and the costs of all processes
 * of the node, and are the same for all of them: one of `burst_length_us` begins at each
 * multiple of `burst_period_ms` of CLOCK_REALTIME.  A plan that has run out is none.
 */
struct nci_control {
	uint64_t magic;			/* NCI_CONTROL_MAGIC */
	uint32_t version;		/* NCI_CONTROL_VERSION; leave others alone */
	uint32_t entries;		/* number of used entries in entry[], from the first */
	uint64_t sequence;		/* grows with every write, never 0 */
	uint64_t checksum;		/* nci_control_checksum() of everything else */
	uint64_t written_mono_ns;	/* CLOCK_MONOTONIC */
	uint8_t boot_id[16];		/* the kernel's boot id as the daemon sees it, binary;
					   zeros: not readable.  A file with another id that was
					   written later than now is of another boot */
	uint64_t burst_until_mono_ns;	/* CLOCK_MONOTONIC when the plan runs out; 0: no plan */
	uint32_t burst_period_ms;	/* a multiple of 1000, up to 3,600,000 */
	uint32_t burst_length_us;	/* 0: never; as long as the period: always on */
	uint32_t mode;			/* NCI_MODE_* for processes whose first communicator
					   comes now and whose environment names none; 0: their
					   own choice */
	uint32_t mode_s;		/* NCI_MODE_FIRST: for so many seconds */
	uint8_t zero[16];
	struct nci_control_entry entry[NCI_CONTROL_ENTRIES];	/* zeros behind the used ones */
};
NCI_ASSERT(sizeof(struct nci_control) == 4096, "control: the file is one page");
NCI_ASSERT(offsetof(struct nci_control, checksum) == 24, "control: checksum moved");
NCI_ASSERT(offsetof(struct nci_control, burst_until_mono_ns) == 56, "control: the plan moved");
NCI_ASSERT(offsetof(struct nci_control, entry) == 96, "control: entries moved");

/* The checksum over 64-bit words as they lie in memory, 0 in place of the checksum itself. */
static inline uint64_t nci_control_checksum(const struct nci_control *c)
{
	const uint64_t *word = (const uint64_t *)c;
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < sizeof(*c) / sizeof(*word); i++) {
		hash ^= i == offsetof(struct nci_control, checksum) / sizeof(*word) ? 0 : word[i];
		hash *= UINT64_C(0x100000001b3);
		hash ^= hash >> 32;	/* keeps two changes of a top bit from cancelling */
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
