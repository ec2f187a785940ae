/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only the form of a file is known here, not the names in it.  A file that is larger than 64 KiB,
 * or no text, is refused before anything of it is taken.
 */
#include "ncclinspd/config/config_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/text.h"

#define LARGEST 65536

/* ---- reading ------------------------------------------------------------------- */

static int file_read_all(int fd, char *text, size_t room, size_t *bytes)
{
	ssize_t n;

	for (*bytes = 0; *bytes < room; *bytes += (size_t)n) {
		n = read(fd, text + *bytes, room - *bytes);
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
	}
	return -EFBIG;
}

/* Whoever makes a FIFO of it must not hold the daemon up. */
int config_file_read(const char *path, char **text)
{
	CLEANUP(cleanup_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	CLEANUP(cleanup_freep) char *all = calloc(1, LARGEST + 1);
	struct stat st;
	size_t bytes;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EMEDIUMTYPE;
	if (!all)
		return -ENOMEM;
	r = file_read_all(fd, all, LARGEST + 1, &bytes);
	if (r < 0)
		return r;
	if (strlen(all) != bytes)
		return -EBADMSG;
	*text = DISOWN(all);
	return 0;
}

const char *config_file_error(int r)
{
	if (r == -EFBIG)
		return "larger than 64 KiB";
	if (r == -EBADMSG)
		return "not a text file";
	return r == -EMEDIUMTYPE ? "not a file" : strerror(-r);
}

/* ---- lines --------------------------------------------------------------------- */

void config_file_walk(char *text, config_line_fn *fn, void *arg)
{
	unsigned number = 0;

	while (text) {
		char *line = strsep(&text, "\n"), *value;

		number++;
		line = text_trim(line);
		if (!*line || *line == '#')
			continue;
		value = strchr(line, '=');
		if (!value || value == line) {
			fn(arg, number, line, NULL);
			continue;
		}
		*value++ = '\0';
		fn(arg, number, text_trim(line), text_trim(value));
	}
}
