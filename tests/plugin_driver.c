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

#define GARBAGE	0xa5

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
extern const struct nccl_profiler_v1 ncclProfiler_v1;
extern const struct nccl_profiler_v2 ncclProfiler_v2;
extern const struct nccl_profiler_v3 ncclProfiler_v3;
extern const struct nccl_profiler_v4 ncclProfiler_v4;
extern const struct nccl_profiler_v5 ncclProfiler_v5;
extern const struct nccl_profiler_v6 ncclProfiler_v6;

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
	ck_assert(pd->v1 && pd->v2 && pd->v3 && pd->v4 && pd->v5 && pd->v6);
}
#endif

void pd_open(struct pd *pd, const char *level)
{
	memset(pd, 0, sizeof(*pd));
	pd->fd = -1;
	pd->version = NCCL_PROFILER_VERSIONS;
	snprintf(pd->dir, sizeof(pd->dir), "%s", fx_tmpdir());
	setenv("NCCLINSP_SHM_DIR", pd->dir, 1);
	unsetenv("NCCL_PROFILE_EVENT_MASK");
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

/* ---- descriptors -------------------------------------------------------------- */

#define COLL_NAMED(c, ev) do {								\
	(c)->seqNumber = 77;								\
	(c)->func = (ev)->func ? (ev)->func : "AllReduce";				\
	(c)->sendBuff = (void *)0x7000;							\
	(c)->recvBuff = (void *)0x8000;							\
	(c)->count = 4096;								\
	(c)->root = 2;									\
	(c)->datatype = "ncclFloat32";							\
	(c)->nWarps = 16;								\
	(c)->algo = "RING";								\
	(c)->proto = "SIMPLE";								\
} while (0)

#define P2P_NAMED(p, ev) do {								\
	(p)->func = (ev)->func ? (ev)->func : "Send";					\
	(p)->buff = (void *)0x9000;							\
	(p)->datatype = "ncclInt8";							\
	(p)->count = 512;								\
	(p)->peer = 3;									\
} while (0)

static void coll_v1(struct nccl_descr_v1 *d, const struct pd_event *ev)
{
	struct nccl_coll_v1 *c = &d->coll;

	(void)ev;
	c->commHash = 0xc0ffee;
	c->seqNumber = 77;
	c->func = 4;
	c->sendBuff = (void *)0x7000;
	c->recvBuff = (void *)0x8000;
	c->count = 4096;
	c->root = 2;
	c->datatype = 7;
	c->op = 1;
	c->trafficBytes = 16384;
	c->nMaxChannels = 12;
	c->nWarps = 16;
	c->algo = 1;
	c->proto = 2;
	c->isCollnet = 1;
	c->isNvls = 0;
}

static void p2p_v1(struct nccl_descr_v1 *d, const struct pd_event *ev)
{
	struct nccl_p2p_v1 *p = &d->p2p;

	(void)ev;
	p->commHash = 0xc0ffee;
	p->func = 6;
	p->buff = (void *)0x9000;
	p->datatype = 0;
	p->count = 512;
	p->peer = 3;
}

static void coll_v2(struct nccl_descr_v2 *d, const struct pd_event *ev)
{
	COLL_NAMED(&d->coll, ev);
	d->coll.commHash = 0xc0ffee;
	d->coll.trafficBytes = 16384;
	d->coll.nMaxChannels = 12;
}

static void coll_v3(struct nccl_descr_v3 *d, const struct pd_event *ev)
{
	COLL_NAMED(&d->coll, ev);
	d->coll.commHash = 0xc0ffee;
	d->coll.nMaxChannels = 12;
}

static void coll_v4(struct nccl_descr_v4 *d, const struct pd_event *ev)
{
	COLL_NAMED(&d->coll, ev);
	d->coll.nChannels = 12;
}

static void coll_v5(struct nccl_coll_v5 *c, const struct pd_event *ev)
{
	COLL_NAMED(c, ev);
	c->nChannels = 12;
	c->parentGroup = ev->group;
}

static void p2p_v5(struct nccl_p2p_v5 *p, const struct pd_event *ev)
{
	P2P_NAMED(p, ev);
	p->nChannels = 5;
	p->parentGroup = ev->group;
}

/* Members that all versions have alike. */
#define PROXY_MEMBERS(d, ev) do {							\
	if ((ev)->type == NCCL_PROXY_OP) {						\
		(d)->proxyOp.pid = (ev)->pid ? (ev)->pid : getpid();			\
		(d)->proxyOp.channelId = (ev)->channel;					\
		(d)->proxyOp.peer = 3;							\
		(d)->proxyOp.nSteps = 32;						\
		(d)->proxyOp.chunkSize = 65536;						\
		(d)->proxyOp.isSend = !(ev)->receive;					\
	} else if ((ev)->type == NCCL_PROXY_STEP) {					\
		(d)->proxyStep.step = (ev)->step;					\
	}										\
} while (0)

#define CHANNEL_MEMBERS(d, ev) do {							\
	if ((ev)->type == NCCL_KERNEL_CH) {						\
		(d)->kernelCh.channelId = (ev)->channel;				\
		(d)->kernelCh.pTimer = 1000000 + (ev)->channel;				\
	} else if ((ev)->type == NCCL_NET_PLUGIN) {					\
		(d)->netPlugin.id = 0x10001;						\
		(d)->netPlugin.data = (void *)1;					\
	}										\
} while (0)

static void api_members(struct nccl_descr_v6 *d, const struct pd_event *ev)
{
	switch (ev->type) {
	case NCCL_GROUP_API:
		*(uint8_t *)&d->groupApi.graphCaptured = 2;
		d->groupApi.groupDepth = 2;
		break;
	case NCCL_COLL_API:
		d->collApi.func = ev->func ? ev->func : "AllGather";
		d->collApi.count = 333;
		d->collApi.datatype = "ncclBfloat16";
		d->collApi.root = 1;
		d->collApi.stream = (void *)0x5000;
		*(uint8_t *)&d->collApi.graphCaptured = 0;
		break;
	case NCCL_P2P_API:
		d->p2pApi.func = "Recv";
		d->p2pApi.count = 444;
		d->p2pApi.datatype = "ncclInt64";
		d->p2pApi.stream = (void *)0x6000;
		*(uint8_t *)&d->p2pApi.graphCaptured = 1;
		break;
	case NCCL_KERNEL_LAUNCH:
		d->kernelLaunch.stream = (void *)0x5000;
		break;
	}
}

static void ce_members(struct nccl_descr_v6 *d, const struct pd_event *ev)
{
	struct nccl_ce_coll *c = &d->ceColl;

	switch (ev->type) {
	case NCCL_CE_COLL:
		c->seqNumber = 4;
		c->func = "AlltoAll";
		c->sendBuff = (void *)0x7000;
		c->recvBuff = (void *)0x8000;
		c->count = 2048;
		c->root = 0;
		c->datatype = "ncclInt8";
		c->syncStrategy = "MC";
		*(uint8_t *)&c->intraBatchSync = 1;
		c->batchSize = 8;
		c->numBatches = 9;
		c->ceSeqNum = 10;
		c->stream = (void *)0x5000;
		break;
	case NCCL_CE_SYNC:
		*(uint8_t *)&d->ceCollSync.isComplete = 1;
		d->ceCollSync.nRanks = 4;
		break;
	case NCCL_CE_BATCH:
		d->ceCollBatch.numOps = 21;
		d->ceCollBatch.totalBytes = 1 << 20;
		*(uint8_t *)&d->ceCollBatch.useIntraSync = 1;
		break;
	}
}

static void members_v1(struct nccl_descr_v1 *d, const struct pd_event *ev)
{
	if (ev->type == NCCL_COLL)
		coll_v1(d, ev);
	if (ev->type == NCCL_P2P)
		p2p_v1(d, ev);
	PROXY_MEMBERS(d, ev);
}

static void members_v2(struct nccl_descr_v2 *d, const struct pd_event *ev)
{
	if (ev->type == NCCL_COLL)
		coll_v2(d, ev);
	if (ev->type == NCCL_P2P) {
		P2P_NAMED(&d->p2p, ev);
		d->p2p.commHash = 0xc0ffee;
	}
	PROXY_MEMBERS(d, ev);
}

static void members_v3(struct nccl_descr_v3 *d, const struct pd_event *ev)
{
	if (ev->type == NCCL_COLL)
		coll_v3(d, ev);
	if (ev->type == NCCL_P2P) {
		P2P_NAMED(&d->p2p, ev);
		d->p2p.commHash = 0xc0ffee;
	}
	if (ev->type == NCCL_KERNEL_CH)
		d->kernelCh.channelId = ev->channel;
	if (ev->type == NCCL_NET_PLUGIN)
		d->netPlugin.id = 0x10001;
	PROXY_MEMBERS(d, ev);
}

static void members_v4(struct nccl_descr_v4 *d, const struct pd_event *ev)
{
	if (ev->type == NCCL_COLL)
		coll_v4(d, ev);
	if (ev->type == NCCL_P2P) {
		P2P_NAMED(&d->p2p, ev);
		d->p2p.nChannels = 5;
	}
	PROXY_MEMBERS(d, ev);
	CHANNEL_MEMBERS(d, ev);
}

static void members_v6(struct nccl_descr_v6 *d, const struct pd_event *ev)
{
	if (ev->type == NCCL_COLL)
		coll_v5(&d->coll, ev);
	if (ev->type == NCCL_P2P)
		p2p_v5(&d->p2p, ev);
	PROXY_MEMBERS(d, ev);
	CHANNEL_MEMBERS(d, ev);
	api_members(d, ev);
	ce_members(d, ev);
}

static void members_v5(struct nccl_descr_v5 *d, const struct pd_event *ev)
{
	members_v6((struct nccl_descr_v6 *)d, ev);
}

#define START(n)									\
	static void *start_v##n(struct pd *pd, void *context, const struct pd_event *ev) \
	{										\
		void *handle = (void *)-1;						\
		struct nccl_descr_v##n d;						\
											\
		memset(&d, GARBAGE, sizeof(d));						\
		d.type = (__typeof__(d.type))ev->type;					\
		d.parentObj = ev->parent;						\
		d.rank = 1;								\
		members_v##n(&d, ev);							\
		ck_assert_int_eq(pd->v##n->startEvent(context, &handle, &d), 0);	\
		memset(&d, GARBAGE, sizeof(d));						\
		return handle;								\
	}
START(1)
START(2)
START(3)
START(4)
START(5)
START(6)

void *pd_start(struct pd *pd, const struct pd_event *ev)
{
	static void *(*const start[])(struct pd *, void *, const struct pd_event *) = {
		NULL, start_v1, start_v2, start_v3, start_v4, start_v5, start_v6,
	};

	return start[pd->version](pd, ev->context ? ev->context : pd->context, ev);
}

void pd_state(struct pd *pd, void *handle, int state, const uint64_t *args)
{
	union nccl_args_v1 v1;
	union nccl_args_v4 v4;

	memset(&v1, GARBAGE, sizeof(v1));
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
	for (unsigned int i = 0; i < pd->live.lanes; i++)
		if (pd->lane[i].state == NCI_LANE_READY)
			read_lane(pd, i);
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
	memcpy(text, string.text, string.bytes - 1);
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
