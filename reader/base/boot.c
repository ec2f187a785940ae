/* SPDX-License-Identifier: Apache-2.0 */
/* Procfs has the id of the running boot, which tells its files from those of an earlier one. */
#include "reader/base/boot.h"

#include <fcntl.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/text.h"

bool boot_id_read(uint8_t id[16])
{
	CLEANUP(cleanup_closep) int fd = open("/proc/sys/kernel/random/boot_id",
					      O_RDONLY | O_CLOEXEC);
	char text[64];
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	int digits = 0;

	for (ssize_t i = 0; i < n && digits < 32; i++) {
		int digit = text_hex_digit(text[i]);

		if (digit < 0)
			continue;
		id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | digit);
		digits++;
	}
	return digits == 32;
}
