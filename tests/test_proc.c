/* SPDX-License-Identifier: Apache-2.0 */
/* What procfs tells: the numbers that nvidia-smi gives GPUs. */
#include <stdio.h>
#include <sys/stat.h>

#include "fixture.h"
#include "reader/base/proc.h"
#include "util/unknown.h"

static void gpus_add(const char *place)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", fx_tmpdir(), place);
	ck_assert_int_eq(mkdir(path, 0700), 0);
}

TEST(gpus_are_counted_in_the_order_of_their_places_on_the_bus)
{
	static const char *const places[] = { "0001:1b:00.0", "0000:c1:00.0", "0000:0a:00.0",
					      "0000:3b:00.0" };

	for (size_t i = 0; i < FX_COUNT(places); i++)
		gpus_add(places[i]);
	ck_assert_int_eq(proc_gpu_index(fx_tmpdir(), "0000:0a:00.0"), 0);
	ck_assert_int_eq(proc_gpu_index(fx_tmpdir(), "0000:3b:00.0"), 1);
	ck_assert_int_eq(proc_gpu_index(fx_tmpdir(), "00000000:C1:00.0"), 2);
	ck_assert_int_eq(proc_gpu_index(fx_tmpdir(), "0001:1b:00.0"), 3);
}

TEST(number_of_a_gpu_that_is_not_listed_is_unknown)
{
	gpus_add("0000:3b:00.0");
	gpus_add("by-uuid");
	ck_assert_int_eq(proc_gpu_index(fx_tmpdir(), "0000:3c:00.0"), UNKNOWN_I32);
	ck_assert_int_eq(proc_gpu_index(fx_tmpdir(), ""), UNKNOWN_I32);
	ck_assert_int_eq(proc_gpu_index("/nowhere", "0000:3b:00.0"), UNKNOWN_I32);
	ck_assert_int_eq(proc_gpu_index(fx_tmpdir(), "0000:3b:00.0"), 0);
}

int main(void)
{
	return fx_run(NULL, NULL);
}
