/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A control file of any bytes, first as they are, then with a checksum that is right:
 * refused, or all that comes of it is something that can be in force.
 */
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/orders.h"

#define NOW_NS	UINT64_C(1000000000000)
#define MINE	UINT64_C(0x0101010101010101)

static void apply(const struct nci_control *file)
{
	struct orders_result r = { .level = NCI_LEVEL_NET, .sample = NCI_SAMPLE_BUDGET };

	orders_apply(file, MINE, NOW_NS, &r);
	demand(r.level <= NCI_LEVEL_TRACE);
	demand(r.sample == NCI_SAMPLE_BUDGET || r.sample == NCI_SAMPLE_ALL);
	demand(!r.until_mono_ns || r.until_mono_ns > NOW_NS);
}

static enum orders_read look(struct orders *o, const void *bytes, size_t n)
{
	enum orders_read r;

	demand(ftruncate(o->fd, 0) == 0 && pwrite(o->fd, bytes, n, 0) == (ssize_t)n);
	r = orders_read(o, NOW_NS);
	apply(&o->file);
	return r;
}

/* A file without a name, as if it had been opened by one. */
static void open_file(struct orders *o)
{
	struct stat st;

	memset(o->boot_id, 1, sizeof(o->boot_id));
	o->open_ns = NOW_NS;
	o->fd = memfd_create("control", MFD_CLOEXEC);
	demand(o->fd > 0 && fstat(o->fd, &st) == 0);
	o->dev = st.st_dev;
	o->ino = st.st_ino;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct orders o;
	struct nci_control file;

	if (!o.fd)
		open_file(&o);
	memset(&file, 0, sizeof(file));
	memcpy(&file, data, size < sizeof(file) ? size : sizeof(file));
	apply(&file);
	look(&o, data, size);
	file.magic = NCI_CONTROL_MAGIC;
	file.version = NCI_CONTROL_VERSION;
	file.checksum = nci_control_checksum(&file);
	if (look(&o, &file, sizeof(file)) == ORDERS_NEW)
		demand(file.sequence && file.entries <= NCI_CONTROL_ENTRIES);
	return 0;
}
