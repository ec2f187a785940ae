/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that says it is a black box, an exemplar or a stream: it is refused with a reason,
 * or what is drawn is a trace.
 */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/trace/trace_file.h"

/* Where traces are written: a file without a name. */
static int written_fd(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = memfd_create("trace", 0);
	if (fd < 0 || ftruncate(fd, 0) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		abort();
	return fd;
}

/* Slices do not end before they begin, and what was written is JSON. */
static void check(int fd)
{
	size_t bytes = (size_t)lseek(fd, 0, SEEK_END), i;
	char *text = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	json_t *root, *event;
	json_error_t error;

	if (text == MAP_FAILED)
		abort();
	root = json_loadb(text, bytes, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
	munmap(text, bytes);
	if (!json_is_array(json_object_get(root, "traceEvents"))) {
		fprintf(stderr, "line %d: %s\n", error.line, error.text);
		abort();
	}
	json_array_foreach(json_object_get(root, "traceEvents"), i, event)
		if (json_number_value(json_object_get(event, "dur")) < 0 ||
		    json_number_value(json_object_get(event, "ts")) < 0)
			abort();
	json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *why = NULL;
	struct trace_out *out;
	struct trace t;
	char path[64];
	FILE *in;
	int fd, r;

	if (!size)
		return 0;
	in = fmemopen((void *)(uintptr_t)data, size, "r");
	fd = written_fd();
	snprintf(path, sizeof(path), "/dev/fd/%d", fd);
	if (!in || trace_out_open(&out, path) < 0)
		abort();
	trace_init(&t, out, size % 2);
	r = trace_read(&t, in, &why);
	if (r && !why)
		abort();
	trace_finish(&t, "fuzz");
	if (trace_out_close(out) < 0)
		abort();
	check(fd);
	fclose(in);
	return 0;
}
