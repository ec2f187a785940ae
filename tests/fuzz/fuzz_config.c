/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A configuration file of any text: what is wrong is told, and what is taken reads back as
 * it is shown.
 */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ncclinspd/config/config_rows.h"

static char path[] = "/dev/shm/ncclinsp-fuzz.XXXXXX";
static int fd = -1;
static unsigned told;

static void remove_file(void)
{
	unlink(path);
}

static void write_file(const uint8_t *data, size_t size)
{
	if (fd < 0) {
		fd = mkstemp(path);
		demand(fd >= 0);
		atexit(remove_file);
	}
	demand(ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
}

static void count(const char *line)
{
	demand(*line && !strchr(line, '\n'));
	told++;
}

/* A value as a file says it, and none is lost on the way. */
static void read_back(const struct config *c, const struct config_row *row)
{
	static struct config again;
	char value[CONFIG_VALUE_BYTES], shown[CONFIG_VALUE_BYTES];

	config_show(c, row, value);
	if (!*value)
		return;		/* a path that nobody has set */
	demand(row->set(&again, row, value) == 0);
	config_show(&again, row, shown);
	demand(!strcmp(value, shown));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char name[] = "ncclinspd", option[] = "--config";
	static struct config c;
	char *argv[] = { name, option, path, NULL };
	int r;

	write_file(data, size);
	told = 0;
	r = config_parse(&c, 3, argv, count);
	demand((r < 0) == (told > 0));
	for (const struct config_row *row = config_rows; row->name; row++)
		if (row->fallback && c.origin[row - config_rows].source == CONFIG_FROM_FILE)
			read_back(&c, row);
	return 0;
}
