/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library on what is no segment, and on one that is patched (patched.h) and cut while it
 * is read: open, polls, all questions, close.
 *
 * Input: 1 byte of bits, then a file's whole contents, or what patched.h takes.
 */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "nci/segment.h"
#include "ncclinsp/ncclinsp.h"
#include "tests/fuzz/patched.h"

#define RAW	1	/* the bytes are the file */
#define DEAD	2	/* no process of that number is there */

static uint64_t sum;	/* of all that is told: each byte is looked at */

/* The wait for the counter's rate: here any rate will do. */
int nanosleep(const struct timespec *wait, struct timespec *left)
{
	(void)wait;
	(void)left;
	return 0;
}

static void add(const void *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum += ((const uint8_t *)bytes)[i];
}

static void add_text(const char *text)
{
	if (text)
		add(text, strlen(text));
}

static void on_operation(const struct ncclinsp_operation *op, void *arg)
{
	(void)arg;
	add(op, op->size);
	add_text(op->func);
	add_text(op->comm_name);
	add_text(op->stamps_why);
}

static void add_comm(const struct ncclinsp_comm *comm)
{
	add(comm, comm->size);
	add(comm->last, comm->nlast * sizeof(*comm->last));
	add_text(comm->name);
	add_text(comm->gpu_uuid);
	add_text(comm->pci_bus_id);
}

static void on_record(const struct ncclinsp_record *rec, void *arg)
{
	(void)arg;
	add(rec, rec->size);
	add(rec->record, rec->record_bytes);
	add_text(rec->func);
	if (rec->comm)
		add_comm(rec->comm);
}

static void on_inflight(const struct ncclinsp_inflight *row, void *arg)
{
	(void)arg;
	add(row, row->size);
	add_text(row->func);
	add_text(row->state);
}

static int look(struct ncclinsp *reader)
{
	int r = ncclinsp_poll(reader);
	const struct ncclinsp_process *p = ncclinsp_process(reader);

	add(p->environment, p->environment_bytes);
	add_text(p->command);
	add_text(p->job_id);
	add(ncclinsp_loss(reader), sizeof(struct ncclinsp_loss));
	for (uint32_t i = 0; i < 8; i++)
		if (ncclinsp_comm(reader, i))
			add_comm(ncclinsp_comm(reader, i));
	ncclinsp_inflight(reader, on_inflight, NULL);
	return r;
}

/* `file` NULL: nothing changes it. */
static void read_all(int fd, const struct patched *file)
{
	struct ncclinsp *reader;

	if (ncclinsp_open_fd(&reader, fd) < 0)
		return;
	ncclinsp_on_operation(reader, on_operation, NULL);
	ncclinsp_on_record(reader, on_record, NULL);
	look(reader);
	if (file)
		patched_go_on(file);
	look(reader);
	ncclinsp_close(reader);
}

static void read_raw(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	demand(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	read_all(fd, NULL);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct patched file;
	int fd;

	if (!size)
		return 0;
	if (*data & RAW) {
		read_raw(data + 1, size - 1);
		return 0;
	}
	patched_open(&file, data + 1, size - 1);
	if (*data & DEAD)
		patched_put(offsetof(struct nci_header, start_time), 1);
	fd = openat(file.dirfd, file.name, O_RDONLY | O_CLOEXEC);
	demand(fd >= 0);
	read_all(fd, &file);
	close(fd);
	patched_close(&file);
	return 0;
}
