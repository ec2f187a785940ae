/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of GPUs, in a file that has records as the kernel's log has them. */
#include "ncclinspd/around/kmsg.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/fixture.h"

#define SECOND	UINT64_C(1000000000)
#define GPU	"0000:3b:00.0"

static struct kmsg kmsg;
static char path[256];
static uint64_t now_ns;

static void put(const char *lines)
{
	FILE *out = fopen(path, "a");

	ck_assert_ptr_nonnull(out);
	fputs(lines, out);
	fclose(out);
}

static void setup(void)
{
	snprintf(path, sizeof(path), "%s/kmsg", fx_tmpdir());
	unlink(path);
	put("6,1,1000,-;Linux version 6.1\n SUBSYSTEM=none\n");
	kmsg_open(&kmsg, path);
	ck_assert_str_eq(kmsg.why, "");
	now_ns = 5000 * SECOND;
	kmsg_look(&kmsg, now_ns);
}

static void teardown(void)
{
	kmsg_close(&kmsg);
}

/* The error of GPU that is found, after these lines have come. */
static int32_t xid_of(const char *lines, int32_t pid)
{
	struct xid x = { .number = -1 };

	put(lines);
	now_ns += SECOND;
	kmsg_look(&kmsg, now_ns);
	return kmsg_find(&kmsg, GPU, now_ns - SECOND / 2, pid, &x) ? x.number : -1;
}

static const struct {
	const char *line;
	int32_t xid, pid;
} lines[] = {
	{ "3,2,7,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python, GPU has fallen off the "
	  "bus.\n", 79, 4711 },
	{ "3,2,7,-;NVRM: Xid (PCI:0000:3b:00): 31, pid='4711', name=python3, Ch 00000008\n", 31,
	  4711 },
	{ "3,2,7,-;NVRM: Xid (PCI:0000:3b:00): 119, pid='<unknown>', name=<unknown>, Timeout\n",
	  119,
	  UNKNOWN_I32 },
	{ "3,2,7,c;NVRM: Xid (PCI:0000:3B:00): 48, An uncorrectable double bit error\n", 48,
	  UNKNOWN_I32 },
	{ "3,2,7,-,caller=T4711;NVRM: Xid (PCI:0000:3b:00.0): 94, pid=1\n", 94, 1 },
	{ "3,2,7,-;NVRM: Xid (PCI:0000:3c:00): 79, pid=4711\n", -1, 0 },	/* another GPU */
	{ "3,2,7,-;NVRM: Xid (PCI:0001:3b:00): 79, pid=4711\n", -1, 0 },
	{ "3,2,7,-;NVRM: Xid (PCI:0000:3b:00): 45, pid=4711\n", -1, 0 },	/* no cause */
	{ "3,2,7,-;job says NVRM: Xid (PCI:0000:3b:00): 79, pid=4711\n", -1, 0 },
	{ "3,2,7,-;user: Xid (PCI:0000:3b:00): 79, pid=4711\n", -1, 0 },	/* not the driver */
	{ " NVRM: Xid (PCI:0000:3b:00): 79, pid=4711\n", -1, 0 },
	{ "3,2,7,-;NVRM: Xid (PCI:0000:3b", -1, 0 },
	{ "3,2,7,-;NVRM: Xid (PCI:\n", -1, 0 },
	{ "NVRM: Xid (PCI:0000:3b:00): 79, pid=4711\n", -1, 0 },
	{ ";NVRM: Xid (PCI:0000:3b:00): 79, pid=4711\n", -1, 0 },
	{ "3,2,7,-;NVRM: Xid (PCI:0000:3b:00): many\n", -1, 0 },
};

TEST_LOOP(an_error_of_the_gpu_is_read, 0, FX_COUNT(lines))
{
	struct xid x;

	ck_assert_int_eq(xid_of(lines[_i].line, 0), lines[_i].xid);
	if (lines[_i].xid < 0)
		return;
	ck_assert(kmsg_find(&kmsg, GPU, 0, 0, &x));
	ck_assert_int_eq(x.pid, lines[_i].pid);
	ck_assert_uint_eq(x.at_ns, now_ns);	/* the kernel's clock runs apart */
}

TEST(an_error_of_another_process_ended_this_one_not)
{
	ck_assert_int_eq(xid_of("3,2,7,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=4711\n", 12), -1);
	ck_assert_int_eq(xid_of("3,2,7,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=4711\n", 4711), 31);
	ck_assert_int_eq(xid_of("3,2,7,-;NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>'\n", 12),
			 79);
}

TEST(the_first_of_several_is_the_cause)
{
	ck_assert_int_eq(xid_of("3,2,7,-;NVRM: Xid (PCI:0000:3b:00): 45, pid=1\n"
				"3,3,7,-;NVRM: Xid (PCI:0000:3b:00): 74, pid=1\n SUBSYSTEM=pci\n"
				"3,4,7,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n", 0), 74);
}

TEST(what_was_there_before_the_start_has_the_kernels_time)
{
	struct xid x;

	kmsg_close(&kmsg);
	put("3,2,4000000000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=1\n");
	kmsg_open(&kmsg, path);
	kmsg_look(&kmsg, now_ns);
	ck_assert(kmsg_find(&kmsg, GPU, 0, 0, &x));
	ck_assert_uint_eq(x.at_ns, 4000 * SECOND);
	ck_assert(!kmsg_find(&kmsg, GPU, 4001 * SECOND, 0, &x));
}

TEST(only_the_newest_are_kept)
{
	struct xid x;
	char line[100];

	for (int i = 0; i < KMSG_XIDS + 10; i++) {
		snprintf(line, sizeof(line), "3,2,7,-;NVRM: Xid (PCI:0000:3b:00): %d, pid=1\n",
			 200 + i);
		put(line);
	}
	kmsg_look(&kmsg, now_ns);
	ck_assert_uint_eq(kmsg.n, KMSG_XIDS + 10);
	ck_assert(kmsg_find(&kmsg, GPU, 0, 0, &x));
	ck_assert_int_eq(x.number, 210);
}

TEST(a_log_that_cannot_be_read_is_told)
{
	struct xid x;

	kmsg_close(&kmsg);
	kmsg_open(&kmsg, "/nowhere/kmsg");
	kmsg_look(&kmsg, now_ns);
	ck_assert_str_eq(kmsg.why, "/nowhere/kmsg: No such file or directory");
	ck_assert(!kmsg_find(&kmsg, GPU, 0, 0, &x));
	kmsg_open(&kmsg, "");
	ck_assert_str_eq(kmsg.why, "switched off (kernel-log)");
}

int main(void)
{
	return fx_run(setup, teardown);
}
