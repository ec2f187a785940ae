/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_NIC_H
#define JUDGE_NIC_H

/*
 * Does a network interface of a node fail: from what the kernel counts of it.  Which one a
 * channel goes through nobody tells; one that fails is worth a word beside a slow link.
 */

#include <stdbool.h>
#include <stdint.h>

#include "util/phrase.h"
#include "util/unknown.h"

/*
 * Counters: of RDMA ports (counters/ and hw_counters/ of Linux' sysfs, whose names these
 * are), and of network devices (statistics/).  The least of it in a minute that is worth a word:
 * errors of a link that works do not come, but some transfers are always made again.
 */
#define NIC_COUNTS(X)							\
	X(true,  "counters",	"symbol_error", 1)			\
	X(true,  "counters",	"link_error_recovery", 1)		\
	X(true,  "counters",	"link_downed", 1)			\
	X(true,  "counters",	"port_rcv_errors", 1)			\
	X(true,  "counters",	"local_link_integrity_errors", 1)	\
	X(true,  "counters",	"excessive_buffer_overrun_errors", 1)	\
	X(true,  "counters",	"port_xmit_discards", 100)		\
	X(true,  "hw_counters",	"local_ack_timeout_err", 10)		\
	X(true,  "hw_counters",	"packet_seq_err", 100)			\
	X(true,  "hw_counters",	"out_of_sequence", 100)			\
	X(true,  "hw_counters",	"rx_icrc_encapsulated", 1)		\
	X(false, "statistics",	"rx_crc_errors", 1)			\
	X(false, "statistics",	"rx_errors", 10)			\
	X(false, "statistics",	"tx_errors", 10)			\
	X(false, "statistics",	"tx_carrier_errors", 1)

enum {
#define X(rdma, directory, name, least) + 1
	NIC_COUNT = 0 NIC_COUNTS(X)
#undef X
};

/* One counter. */
struct nic_count {
	bool rdma;
	name_t directory, name;
	uint64_t least;
};

extern const struct nic_count nic_counts[NIC_COUNT];

struct nic_health {
	char name[48];		/* "mlx5_0 port 1", "eth0" */
	bool rdma;
	uint64_t read_ns;	/* when it was read last, CLOCK_MONOTONIC */
	uint64_t numa_node;	/* UNKNOWN_U64 */
	bool up;
	uint64_t down_ns;	/* when it went down, CLOCK_MONOTONIC; 0: it is up, or never was */
	uint64_t down_real_ns;	/* the same by CLOCK_REALTIME */
	uint64_t rate_mbps;	/* UNKNOWN_U64 */
	uint64_t most_mbps;	/* the most that was seen; 0: it never told */
	uint64_t total[NIC_COUNT];	/* UNKNOWN_U64: it does not count that */
	uint64_t lately[NIC_COUNT];	/* the last minute's part; UNKNOWN_U64 */
};

/* Faults, the worst last. */
enum nic_fault { NIC_WELL, NIC_COUNTS_ERRORS, NIC_SLOWER, NIC_DOWN };

struct nic_cause {
	struct nic_health nic;
	enum nic_fault fault;
	uint32_t count;		/* NIC_COUNTS_ERRORS: which */
	char since[16];		/* NIC_DOWN: time of day; "": not known */
};

/* Sets all of *cause but `since`, to the worst of these; false: nothing is wrong. */
bool nic_find_cause(const struct nic_health *all, uint32_t n, struct nic_cause *cause);

/* "mlx5_0 port 1 is down since 12:03:10", "eth0 runs at 25 of 100 Gb/s" */
void nic_say_cause(struct phrase *text, const struct nic_cause *cause);

/* Its word in rows; NULL: none. */
name_t nic_fault_text(enum nic_fault fault);

#endif
