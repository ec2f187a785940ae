/* SPDX-License-Identifier: Apache-2.0 */
/* Network interfaces, read from a tree of files that stands for /sys; and what is said of them. */
#include "ncclinspd/around/nics.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "shmring/clock.h"
#include "tests/fixture.h"

#define MS		UINT64_C(1000000)
#define INTERVAL	(20 * MS)
#define CLASS		"sys/class/"
#define PORT		CLASS "infiniband/mlx5_0/ports/1/"
#define NET		CLASS "net/"

static char sys[128];
static struct nics *nics;

static void setup(void)
{
	snprintf(sys, sizeof(sys), "%s/sys", fx_tmpdir());
	fx_put_file(PORT "state", "4: ACTIVE\n");
	fx_put_file(PORT "rate", "400 Gb/sec (4X NDR)\n");
	fx_put_file(PORT "counters/symbol_error", "7\n");
	fx_put_file(PORT "counters/link_downed", "0\n");
	fx_put_file(PORT "hw_counters/out_of_sequence", "1000\n");
	fx_put_file(NET "eth0/device/vendor", "x\n");
	fx_put_file(NET "eth0/carrier", "1\n");
	fx_put_file(NET "eth0/speed", "100000\n");
	fx_put_file(NET "eth0/statistics/rx_crc_errors", "0\n");
	fx_put_file(NET "ib0/device/infiniband/x", "what is read as an RDMA port\n");
	fx_put_file(NET "lo/carrier", "1\n");
	ck_assert_int_eq(nics_new(&nics, sys, INTERVAL), 0);
}

static void teardown(void)
{
	char command[PATH_MAX];

	nics_free(nics);
	snprintf(command, sizeof(command), "rm -rf '%s'", sys);
	ck_assert_int_eq(system(command), 0);
}

/* What is told after a whole turn that began from now on. */
static uint32_t read_all(struct nic_health out[NICS_MOST])
{
	uint64_t from_ns = clock_ns(CLOCK_MONOTONIC);
	uint32_t n;

	nics_look(nics, true);
	for (int i = 0; i < 2000; i++) {
		n = nics_all(nics, clock_ns(CLOCK_MONOTONIC), out);
		if (n && out[0].read_ns > from_ns + INTERVAL)
			return n;
		nanosleep(&(struct timespec){ .tv_nsec = 5 * MS }, NULL);
	}
	ck_abort_msg("nothing is told");
}

static struct nic_health nic(const char *name)
{
	struct nic_health all[NICS_MOST];
	uint32_t n = read_all(all);

	for (uint32_t i = 0; i < n; i++)
		if (!strcmp(all[i].name, name))
			return all[i];
	ck_abort_msg("no %s", name);
}

/* The sentence about the worst; "": all are well. */
static const char *said(void)
{
	static char text[256];
	struct nic_health all[NICS_MOST];
	struct nic_cause cause;
	struct phrase phrase;

	phrase_start(&phrase, text, sizeof(text));
	if (nic_find_cause(all, read_all(all), &cause))
		nic_say_cause(&phrase, &cause);
	return text;
}

TEST(ports_and_devices_of_hardware_are_read)
{
	struct nic_health all[NICS_MOST], port, device;

	ck_assert_uint_eq(read_all(all), 2);
	port = nic("mlx5_0 port 1");
	ck_assert(port.rdma && port.up);
	ck_assert_uint_eq(port.rate_mbps, 400000);
	ck_assert_uint_eq(port.total[0], 7);
	ck_assert_uint_eq(port.lately[0], 0);
	device = nic("eth0");
	ck_assert(!device.rdma && device.up);
	ck_assert_uint_eq(device.rate_mbps, 100000);
	ck_assert_str_eq(said(), "");
}

TEST(nothing_is_read_while_nobody_wants_it)
{
	struct nic_health all[NICS_MOST];

	nanosleep(&(struct timespec){ .tv_nsec = 3 * INTERVAL }, NULL);
	ck_assert_uint_eq(nics_all(nics, clock_ns(CLOCK_MONOTONIC), all), 0);
	read_all(all);
	ck_assert_uint_eq(nics_all(nics, clock_ns(CLOCK_MONOTONIC) + NICS_STALE_NS, all), 0);
}

TEST(errors_are_told_and_few_repetitions_are_not)
{
	said();
	fx_put_file(PORT "hw_counters/out_of_sequence", "1099\n");
	ck_assert_str_eq(said(), "");
	fx_put_file(PORT "counters/symbol_error", "19\n");
	ck_assert_str_eq(said(), "mlx5_0 port 1 counted 12 symbol_error in the last minute");
	fx_put_file(PORT "counters/symbol_error", "0\n");	/* set back */
	ck_assert_uint_eq(nic("mlx5_0 port 1").lately[0], 0);
	for (uint32_t i = 0; i <= NICS_MINUTE; i++)
		said();
	ck_assert_str_eq(said(), "");
}

TEST(one_that_is_slower_than_it_was_is_worse)
{
	said();
	fx_put_file(PORT "counters/symbol_error", "99\n");
	fx_put_file(NET "eth0/speed", "25000\n");
	ck_assert_str_eq(said(), "eth0 runs at 25 of 100 Gb/s");
	fx_put_file(NET "eth0/speed", "-1\n");		/* it does not tell */
	ck_assert_str_eq(said(), "mlx5_0 port 1 counted 92 symbol_error in the last minute");
}

TEST(one_that_went_down_is_worst_until_it_is_up)
{
	fx_put_file(NET "eth1/device/vendor", "x\n");
	fx_put_file(NET "eth1/carrier", "0\n");	/* never up: nobody uses it */
	ck_assert_str_eq(said(), "");
	fx_put_file(PORT "state", "1: DOWN\n");
	ck_assert_str_eq(said(), "mlx5_0 port 1 is down");
	ck_assert(nic("mlx5_0 port 1").down_ns && nic("mlx5_0 port 1").down_real_ns);
	ck_assert_uint_eq(nic("mlx5_0 port 1").rate_mbps, UNKNOWN_U64);
	fx_put_file(PORT "state", "4: ACTIVE\n");
	ck_assert_str_eq(said(), "");
}

TEST(one_that_is_taken_out_is_forgotten)
{
	struct nic_health all[NICS_MOST];
	char from[PATH_MAX], to[PATH_MAX];

	ck_assert_uint_eq(read_all(all), 2);
	snprintf(from, sizeof(from), "%s/class/net/eth0", sys);
	snprintf(to, sizeof(to), "%s/eth0", sys);
	ck_assert_int_eq(rename(from, to), 0);
	ck_assert_uint_eq(read_all(all), 1);
}

int main(void)
{
	return fx_run(setup, teardown);
}
