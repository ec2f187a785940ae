/* SPDX-License-Identifier: Apache-2.0 */
/* CeColl around a barrier, the copies and a barrier; the mask is read live. */
#include "tests/sim/ce.h"

#include <string.h>

static void *ce_start(struct member *m, uint64_t type, void *parent, struct api_event *ev)
{
	void *handle = PLAYER_GARBAGE;

	ev->descr.type = type;
	ev->descr.parentObj = parent;
	ev->descr.rank = m->rank;
	api_start(&m->player->api, m->context, &handle, ev);
	return handle;
}

static void ce_sync_event(struct member *m, void *coll, bool complete)
{
	struct api_event ev;
	void *handle;

	m->ce_seq++;
	if (!coll || !(player_mask(m->player) & NCCL_CE_SYNC))
		return;
	memset(&ev, 0xa5, sizeof(ev));
	ev.descr.ceCollSync = (struct nccl_ce_sync){ .isComplete = complete,
						     .nRanks = m->comm->nranks };
	handle = ce_start(m, NCCL_CE_SYNC, coll, &ev);
	if (handle)
		api_stop(&m->player->api, handle);
}

static void ce_batch_event(const struct task *t, void *coll)
{
	struct member *m = t->member;
	struct api_event ev;
	void *handle;

	if (!coll || !(player_mask(m->player) & NCCL_CE_BATCH))
		return;
	memset(&ev, 0xa5, sizeof(ev));
	ev.descr.ceCollBatch = (struct nccl_ce_batch){ .numOps = m->comm->nranks,
						       .totalBytes = t->op.bytes };
	handle = ce_start(m, NCCL_CE_BATCH, coll, &ev);
	if (handle)
		api_stop(&m->player->api, handle);
}

static void *ce_start_coll(const struct task *t)
{
	struct member *m = t->member;
	bool bytes = t->side.func == FUNC_ALL_GATHER;
	const struct names_entry *type = names_get(NAMES_DATATYPE, t->side.datatype);
	struct api_event ev;

	if (!(player_mask(m->player) & PLAYER_CE))
		return NULL;
	memset(&ev, 0xa5, sizeof(ev));
	ev.descr.ceColl = (struct nccl_ce_coll_v7){
		.seqNumber = m->ce_seq, .func = names_func(t->side.func)->name,
		.count = t->side.count * (bytes ? type->size : 1),
		.datatype = bytes ? "ncclInt8" : type->name,
		.syncStrategy = "MC", .ceSeqNum = (uint32_t)m->ce_seq };
	return ce_start(m, NCCL_CE_COLL, t->api, &ev);
}

void ce_run(struct task *task)
{
	struct member *m = task->member;
	void *coll = NULL;

	if (m->player->scn->release >= 29)
		coll = ce_start_coll(task);
	ce_sync_event(m, coll, false);
	ce_batch_event(task, coll);
	ce_sync_event(m, coll, true);
	if (coll)
		api_stop(&m->player->api, coll);
}
