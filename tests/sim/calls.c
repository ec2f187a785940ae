/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/calls.h"

#include <string.h>

void *calls_stream(int world)
{
	return (void *)(0x1000000ull + (uint64_t)world * 0x1000);
}

static void open_group(struct calls *c, const struct task *t, bool captured)
{
	struct member *m = t->member;
	struct api_event ev;

	if (c->open || !(t->mask & PLAYER_WANTS_GROUP_API) ||
	    m->player->scn->release < 28)
		return;
	memset(&ev, 0xa5, sizeof(ev));
	ev.descr.type = NCCL_GROUP_API;
	ev.descr.parentObj = NULL;
	ev.descr.rank = 0;
	ev.descr.groupApi.graphCaptured = captured;
	ev.descr.groupApi.groupDepth = c->depth + 1;
	api_start(&m->player->api, m->context, &c->group_api, &ev);
	c->open = true;
	c->counted = c->depth;
	if (c->group_api)
		api_state(&m->player->api, c->group_api, NCCL_GROUP_API_START_STOP, NULL, 0);
}

/* What is left in the slot from the last profiled call is stopped again. */
static void call_coll(struct calls *c, struct task *t, bool captured)
{
	struct member *m = t->member;
	struct api_event ev;

	if (t->mask & PLAYER_WANTS_COLL_API) {
		memset(&ev, 0xa5, sizeof(ev));
		ev.descr.type = NCCL_COLL_API;
		ev.descr.parentObj = c->group_api;
		ev.descr.rank = 0;
		ev.descr.collApi = (struct nccl_coll_api_v7){
			.func = names_func(t->side.func)->name, .count = t->side.count,
			.datatype = names_get(NAMES_DATATYPE, t->side.datatype)->name,
			.root = t->side.root, .stream = calls_stream(m->world),
			.graphCaptured = captured, .userTag = t->op.spec->tag };
		api_start(&m->player->api, m->context, &c->coll_api, &ev);
	}
	t->api = c->coll_api;
	if (c->coll_api)
		api_stop(&m->player->api, c->coll_api);
}

static void call_p2p(struct calls *c, struct task *t, bool captured)
{
	struct member *m = t->member;
	struct api_event ev;

	if (!(t->mask & PLAYER_WANTS_P2P_API))
		return;
	memset(&ev, 0xa5, sizeof(ev));
	ev.descr.type = NCCL_P2P_API;
	ev.descr.parentObj = c->group_api;
	ev.descr.rank = 0;
	ev.descr.p2pApi = (struct nccl_p2p_api_v7){
		.func = names_func(t->side.func)->name, .count = t->side.count,
		.datatype = names_get(NAMES_DATATYPE, t->side.datatype)->name,
		.stream = calls_stream(m->world), .graphCaptured = captured,
		.userTag = t->op.spec->tag };
	api_start(&m->player->api, m->context, &c->p2p_api, &ev);
	t->api = c->p2p_api;
	if (c->p2p_api)
		api_stop(&m->player->api, c->p2p_api);
	c->p2p_api = NULL;
}

void calls_make(struct calls *c, struct task *t, bool captured)
{
	open_group(c, t, captured);
	t->group_api = c->group_api;
	if (c->player->scn->release < 28)
		return;
	if (t->side.peer < 0)
		call_coll(c, t, captured);
	else
		call_p2p(c, t, captured);
}

void calls_leave_group(struct calls *c)
{
	c->depth--;
	if (!c->open || --c->counted)
		return;
	calls_close(c);
	calls_stop(c);
}

void calls_close(struct calls *c)
{
	if (c->open && c->group_api)
		api_state(&c->player->api, c->group_api, NCCL_GROUP_API_END_START, NULL, 0);
}

void calls_stop(struct calls *c)
{
	if (c->open && c->group_api)
		api_stop(&c->player->api, c->group_api);
	c->open = false;
	c->group_api = NULL;
}
