/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/plugin_driver.h"

#include <check.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/fixture.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static pid_t loaded_pid;

__attribute__((constructor))
static void remember_who_loads(void)
{
	loaded_pid = getpid();
}

void pd_load(struct pd *pd)
{
	pd->loaded_pid = loaded_pid;
	pd->v1 = &ncclProfiler_v1;
	pd->v2 = &ncclProfiler_v2;
	pd->v3 = &ncclProfiler_v3;
	pd->v4 = &ncclProfiler_v4;
	pd->v5 = &ncclProfiler_v5;
	pd->v6 = &ncclProfiler_v6;
	pd->v7 = &ncclProfiler_v7;
}
#else
void pd_load(struct pd *pd)
{
	pd->lib = dlopen(fx_build_path("libnccl-profiler-insp.so"), RTLD_NOW | RTLD_LOCAL);
	ck_assert_msg(pd->lib != NULL, "%s", dlerror());
	pd->loaded_pid = getpid();
	pd->v1 = dlsym(pd->lib, "ncclProfiler_v1");
	pd->v2 = dlsym(pd->lib, "ncclProfiler_v2");
	pd->v3 = dlsym(pd->lib, "ncclProfiler_v3");
	pd->v4 = dlsym(pd->lib, "ncclProfiler_v4");
	pd->v5 = dlsym(pd->lib, "ncclProfiler_v5");
	pd->v6 = dlsym(pd->lib, "ncclProfiler_v6");
	pd->v7 = dlsym(pd->lib, "ncclProfiler_v7");
	ck_assert(pd->v1 && pd->v2 && pd->v3 && pd->v4 && pd->v5 && pd->v6 && pd->v7);
}
#endif

void pd_open(struct pd *pd, const char *level)
{
	memset(pd, 0, sizeof(*pd));
	pd->fd = -1;
	pd->version = 6;
	snprintf(pd->dir, sizeof(pd->dir), "%s", fx_tmpdir());
	setenv("NCCLINSP_SHM_DIR", pd->dir, 1);
	unsetenv("NCCL_PROFILE_EVENT_MASK");
	unsetenv("NCCLINSP_KERNELS");
	snprintf(pd->control, sizeof(pd->control), "%s/control", pd->dir);
	setenv("NCCLINSP_CONTROL", pd->control, 1);
	if (level)
		setenv("NCCLINSP_LEVEL", level, 1);
	else
		unsetenv("NCCLINSP_LEVEL");
	pd_load(pd);
}

void *pd_init_named(struct pd *pd, uint64_t id, const char *name, nccl_logger_fn *logger)
{
	void *context = NULL;
	int r = -1;

	switch (pd->version) {
	case 1: r = pd->v1->init(&context, &pd->mask); break;
	case 2: r = pd->v2->init(&context, &pd->mask); break;
	case 3: r = pd->v3->init(&context, &pd->mask); break;
	case 4: r = pd->v4->init(&context, &pd->mask, name, id, 2, 4, 1, logger); break;
	case 5: r = pd->v5->init(&context, id, &pd->mask, name, 2, 4, 1, logger); break;
	case 6: r = pd->v6->init(&context, id, &pd->mask, name, 2, 4, 1, logger); break;
	case 7: r = pd->v7->init(&context, id, &pd->mask, name, 2, 4, 1, logger); break;
	}
	ck_assert_int_eq(r, NCCL_SUCCESS);
	ck_assert_ptr_nonnull(context);
	return context;
}

void *pd_init(struct pd *pd)
{
	pd->context = pd_init_named(pd, UINT64_C(0x1234567890abcdef), "test", NULL);
	return pd->context;
}

void pd_finalize(struct pd *pd, void *context)
{
	ck_assert_int_eq(pd->v6->finalize(context), NCCL_SUCCESS);
}

void pd_state(struct pd *pd, void *handle, int state, const uint64_t *args)
{
	union nccl_args_v1 v1;
	union nccl_args_v4 v4;

	memset(&v1, PD_GARBAGE, sizeof(v1));
	if (args) {
		memcpy(&v1, args, sizeof(*args));
		memcpy(&v4, args, sizeof(*args));
	}
	if (pd->version < 4)
		pd->v1->recordEventState(handle, state, args ? &v1 : NULL);
	else
		pd->v4->recordEventState(handle, state, args ? &v4 : NULL);
}

void pd_stop(struct pd *pd, void *handle)
{
	ck_assert_int_eq(pd->v6->stopEvent(handle), NCCL_SUCCESS);
}

/* ---- what the plugin wrote ---------------------------------------------------- */

static void copy_out(struct pd *pd, uint64_t offset, void *to, size_t bytes)
{
	ck_assert_int_eq(pread(pd->fd, to, bytes, (off_t)offset), (ssize_t)bytes);
}

static void find_segment(struct pd *pd)
{
	struct dirent *entry;
	char prefix[64];
	DIR *dir = opendir(pd->dir);

	ck_assert_ptr_nonnull(dir);
	snprintf(prefix, sizeof(prefix), NCI_FILE_PREFIX "%u.%d.", getuid(), getpid());
	while ((entry = readdir(dir)))
		if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0)
			snprintf(pd->path, sizeof(pd->path), "%s/%.200s", pd->dir,
				 entry->d_name);
	closedir(dir);
	/* To close it would drop the plugin's lock: it stays open. */
	pd->fd = open(pd->path, O_RDONLY | O_CLOEXEC);
	ck_assert_msg(pd->fd >= 0, "no segment in %s", pd->dir);
}

static void read_lane(struct pd *pd, unsigned int i)
{
	static struct nci_line buf[8192];
	struct shmring_reader *r = &pd->reader[i];
	const struct nci_record *rec;
	struct shmring_span span[2];
	int n;

	if (!pd->met[i])
		ck_assert_int_eq(shmring_reader_init(r, &pd->lane[i],
				(uint64_t)lseek(pd->fd, 0, SEEK_END)), 0);
	pd->met[i] = true;
	while ((n = shmring_want(r, &pd->lane[i], buf, 8192, span)) > 0) {
		for (int k = 0; k < n; k++)
			copy_out(pd, span[k].offset, span[k].to, span[k].bytes);
		ck_assert_int_eq(shmring_settle(r, &pd->lane[i]), 0);
		while ((n = shmring_next(r, &rec)) > 0) {
			ck_assert_uint_lt(pd->records, PD_RECORDS);
			memcpy(&pd->record[pd->records++], rec,
			       NCI_FORM_LINES(rec->form) * NCI_LINE_BYTES);
		}
		ck_assert_int_eq(n, 0);
	}
	ck_assert_int_eq(n, 0);
}

void pd_read(struct pd *pd)
{
	if (pd->fd < 0)
		find_segment(pd);
	copy_out(pd, 0, &pd->header, sizeof(pd->header));
	ck_assert_uint_eq(pd->header.magic, NCI_MAGIC);
	ck_assert_uint_eq(pd->header.ready, 1);
	copy_out(pd, pd->header.live_offset, &pd->live, sizeof(pd->live));
	copy_out(pd, pd->header.live_offset + sizeof(pd->live), pd->lane, sizeof(pd->lane));
	pd->lanes = 0;
	for (unsigned int i = 0; i < pd->live.lanes; i++) {
		if (pd->lane[i].state != NCI_LANE_READY)
			continue;
		read_lane(pd, i);
		pd->lanes++;
	}
}

const struct nci_record *pd_record(const struct pd *pd, uint8_t type, unsigned int n)
{
	for (unsigned int i = 0; i < pd->records; i++) {
		const struct nci_record *rec = (const struct nci_record *)&pd->record[i];

		if (rec->type == type && n-- == 0)
			return rec;
	}
	return NULL;
}

unsigned int pd_count(const struct pd *pd, uint8_t type)
{
	unsigned int n = 0;

	while (pd_record(pd, type, n))
		n++;
	return n;
}

const struct nci_record *pd_slot(struct pd *pd, void *handle)
{
	static struct nci_slot slot;
	const struct nci_record *rec = (const struct nci_record *)&slot;
	uint64_t token = (uint64_t)handle;
	const struct nci_lane *lane = &pd->lane[nci_token_lane(token)];

	pd_read(pd);
	if (!token || nci_token_lane(token) >= pd->live.lanes)
		return NULL;
	copy_out(pd, lane->offset + (uint64_t)lane->lines * NCI_LINE_BYTES +
		     nci_token_slot(token) * NCI_SLOT_BYTES, &slot, sizeof(slot));
	return rec->token == token ? rec : NULL;
}

const char *pd_string(struct pd *pd, uint16_t id)
{
	static struct nci_string string;
	static char text[sizeof(string.text) + 1];

	if (!id)
		return NULL;
	ck_assert_uint_le(id, pd->live.strings);
	copy_out(pd, pd->header.strings_offset + (id - 1u) * sizeof(string), &string,
		 sizeof(string));
	ck_assert_uint_ne(string.bytes, 0);
	memset(text, 0, sizeof(text));
	memcpy(text, string.text, (string.bytes & ~NCI_STRING_TAG) - 1);
	return text;
}

struct nci_comm pd_comm(struct pd *pd, unsigned int index)
{
	struct nci_comm comm;

	copy_out(pd, pd->header.comms_offset + index * sizeof(comm), &comm, sizeof(comm));
	return comm;
}

unsigned int pd_segments(const struct pd *pd)
{
	DIR *dir = opendir(pd->dir);
	struct dirent *entry;
	unsigned int n = 0;

	ck_assert_ptr_nonnull(dir);
	while ((entry = readdir(dir)))
		n += strncmp(entry->d_name, NCI_FILE_PREFIX, strlen(NCI_FILE_PREFIX)) == 0;
	closedir(dir);
	return n;
}
