/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that says it is a trace of PyTorch's profiler: it is refused with a reason, or the parts
 * of each GPU's time add up to it.
 */
#include "tests/fuzz/fuzz.h"

#include <string.h>
#include <sys/mman.h>

#include "cli/kernels/kernels.h"

static json_int_t value_of(const json_t *row, const char *key)
{
	json_int_t value = json_integer_value(json_object_get(row, key));

	demand(value >= 0);
	return value;
}

static void check_row(const json_t *row)
{
	demand(value_of(row, "time_ns") == value_of(row, "compute_ns") +
	       value_of(row, "exposed_ns") + value_of(row, "idle_ns"));
	demand(value_of(row, "comm_ns") == value_of(row, "hidden_ns") +
	       value_of(row, "exposed_ns"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	json_t *rows = json_array(), *row;
	char path[64], why[KERNELS_WHY];
	struct kernels k;
	size_t i;

	if (fd < 0)
		fd = memfd_create("kernels", 0);
	demand(fd >= 0 && !ftruncate(fd, 0) && pwrite(fd, data, size, 0) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (kernels_read(&k, path, why))
		demand(*why);
	else
		kernels_sum(&k, rows);
	json_array_foreach(rows, i, row)
		check_row(row);
	kernels_deinit(&k);
	json_decref(rows);
	return 0;
}
