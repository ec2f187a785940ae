/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A recording as text.  Events are called by the order of their starts, threads by that of
 * their first calls, so that two recordings of the same calls differ in times alone.
 */
#include "tests/sim/recording.h"

#include <stdlib.h>
#include <string.h>

/* ---- forms of fields ---- */

#define FORM(name, type, ...)						\
	static void name(FILE *to, const void *at)			\
	{								\
		type value;						\
									\
		memcpy(&value, at, sizeof(value));			\
		fprintf(to, __VA_ARGS__);				\
	}
FORM(INT, int, "%d", value)
FORM(BYTE, uint8_t, "%u", value)
FORM(WORD, uint64_t, "%llu", (unsigned long long)value)
FORM(HEX, uint64_t, "0x%llx", (unsigned long long)value)
FORM(TEXT, const char *, "%s", value ? value : "-")

/* ---- events ---- */

#define FIELD(member, field, form) \
	{ #field, offsetof(struct nccl_descr_v7, member.field), form }

static const struct field {
	const char *name;
	uint8_t offset;
	void (*print)(FILE *to, const void *at);
} coll[] = {
	FIELD(coll, func, TEXT), FIELD(coll, seqNumber, WORD), FIELD(coll, count, WORD),
	FIELD(coll, datatype, TEXT), FIELD(coll, root, INT), FIELD(coll, algo, TEXT),
	FIELD(coll, proto, TEXT), FIELD(coll, nChannels, BYTE), FIELD(coll, nWarps, BYTE),
	FIELD(coll, sendBuff, HEX), FIELD(coll, recvBuff, HEX), FIELD(coll, isSymColl, BYTE),
	FIELD(coll, kernelVariant, TEXT), FIELD(coll, userTag, WORD), { 0 }
}, p2p[] = {
	FIELD(p2p, func, TEXT), FIELD(p2p, count, WORD), FIELD(p2p, datatype, TEXT),
	FIELD(p2p, peer, INT), FIELD(p2p, nChannels, BYTE), FIELD(p2p, buff, HEX),
	FIELD(p2p, userTag, WORD), { 0 }
}, proxy_op[] = {
	FIELD(proxyOp, channelId, BYTE), FIELD(proxyOp, peer, INT), FIELD(proxyOp, nSteps, INT),
	FIELD(proxyOp, chunkSize, INT), FIELD(proxyOp, isSend, INT), { 0 }
}, proxy_step[] = {
	FIELD(proxyStep, step, INT), { 0 }
}, kernel_ch[] = {
	FIELD(kernelCh, channelId, BYTE), FIELD(kernelCh, pTimer, WORD), { 0 }
}, net_plugin[] = {
	FIELD(netPlugin, id, HEX), { 0 }
}, group_api[] = {
	FIELD(groupApi, groupDepth, INT), FIELD(groupApi, graphCaptured, BYTE), { 0 }
}, coll_api[] = {
	FIELD(collApi, func, TEXT), FIELD(collApi, count, WORD), FIELD(collApi, datatype, TEXT),
	FIELD(collApi, root, INT), FIELD(collApi, graphCaptured, BYTE),
	FIELD(collApi, stream, HEX), FIELD(collApi, userTag, WORD), { 0 }
}, p2p_api[] = {
	FIELD(p2pApi, func, TEXT), FIELD(p2pApi, count, WORD), FIELD(p2pApi, datatype, TEXT),
	FIELD(p2pApi, graphCaptured, BYTE), FIELD(p2pApi, stream, HEX),
	FIELD(p2pApi, userTag, WORD), { 0 }
}, kernel_launch[] = {
	FIELD(kernelLaunch, stream, HEX), { 0 }
}, ce_coll[] = {
	FIELD(ceColl, func, TEXT), FIELD(ceColl, seqNumber, WORD), FIELD(ceColl, count, WORD),
	FIELD(ceColl, datatype, TEXT), FIELD(ceColl, root, INT),
	FIELD(ceColl, syncStrategy, TEXT), FIELD(ceColl, ceSeqNum, INT),
	FIELD(ceColl, userTag, WORD), { 0 }
}, ce_sync[] = {
	FIELD(ceCollSync, isComplete, BYTE), FIELD(ceCollSync, nRanks, INT), { 0 }
}, ce_batch[] = {
	FIELD(ceCollBatch, numOps, INT), FIELD(ceCollBatch, totalBytes, WORD),
	FIELD(ceCollBatch, useIntraSync, BYTE), { 0 }
}, kernel_phase[] = {
	FIELD(kernelPhase, channelId, BYTE), FIELD(kernelPhase, phaseId, BYTE),
	FIELD(kernelPhase, phaseName, TEXT), FIELD(kernelPhase, pTimer, WORD), { 0 }
}, nothing[] = { { 0 } };

/* By the number of the type's bit. */
static const struct { const char *name; const struct field *field; } types[] = {
	{ "Group", nothing }, { "Coll", coll }, { "P2p", p2p }, { "ProxyOp", proxy_op },
	{ "ProxyStep", proxy_step }, { "ProxyCtrl", nothing }, { "KernelCh", kernel_ch },
	{ "NetPlugin", net_plugin }, { "GroupApi", group_api }, { "CollApi", coll_api },
	{ "P2pApi", p2p_api }, { "KernelLaunch", kernel_launch }, { "CeColl", ce_coll },
	{ "CeSync", ce_sync }, { "CeBatch", ce_batch },
	{ "KernelPhase", kernel_phase },
};

static const char *print_type_name(uint64_t type)
{
	return type ? types[__builtin_ctzll(type)].name : "unknown";
}

static void print_fields(FILE *to, const struct nccl_descr_v7 *d)
{
	const struct field *f = d->type ? types[__builtin_ctzll(d->type)].field : nothing;

	for (; f->name; f++) {
		fprintf(to, " %s=", f->name);
		f->print(to, (const char *)d + f->offset);
	}
}

/* A handle, by its event. */
static void print_handle(FILE *to, const char *what, int event, uint64_t foreign)
{
	if (event >= 0)
		fprintf(to, " %s%d", what, event);
	else if (foreign)
		fprintf(to, " %s0x%llx", what, (unsigned long long)foreign);
}

/* ---- calls ---- */

static void print_init(FILE *to, const struct recording *rec, const struct recording_call *call)
{
	const struct recording_context *c = &rec->context[call->context];

	fprintf(to, " #%d comm=%s id=%016llx nnodes=%d nranks=%d rank=%d", call->context,
		c->name ? c->name : "-", (unsigned long long)c->comm_id, c->nnodes, c->nranks,
		c->rank);
}

static void print_start(FILE *to, const struct recording *rec, const struct recording_call *call)
{
	const struct recording_event *e = &rec->event[call->event];

	print_handle(to, "", call->event, 0);
	fprintf(to, " %s", print_type_name(e->descr.type));
	print_handle(to, "context=#", e->context, e->foreign_context);
	fprintf(to, " rank=%d", e->descr.rank);
	print_handle(to, "parent=", e->parent, (uint64_t)e->descr.parentObj);
	if (e->descr.type & (NCCL_COLL | NCCL_P2P))
		print_handle(to, "group=", e->group, 0);
	print_fields(to, &e->descr);
}

static void print_event(FILE *to, const struct recording *rec, const struct recording_call *call)
{
	print_handle(to, "", call->event, call->foreign);
	if (call->event >= 0)
		fprintf(to, " %s", print_type_name(rec->event[call->event].descr.type));
}

/* Which argument means anything: a size, a number of operations, a GPU's time. */
static void print_state_call(FILE *to, const struct recording *rec,
			     const struct recording_call *call)
{
	print_event(to, rec, call);
	fprintf(to, " state=%d", call->state);
	if (!call->has_args)
		fprintf(to, " null");
	else if (call->state >= NCCL_CTRL_IDLE && call->state <= NCCL_CTRL_APPEND_END)
		fprintf(to, " appended=%d", call->args.proxyCtrl.appendedProxyOps);
	else if (call->state != NCCL_NET_PLUGIN_UPDATE)
		fprintf(to, " value=%llu", (unsigned long long)call->args.kernelCh.pTimer);
}

static void print_finalize(FILE *to, const struct recording *rec,
			   const struct recording_call *call)
{
	(void)rec;
	print_handle(to, "#", call->context, call->foreign);
}

void recording_print(const struct recording *rec, FILE *to)
{
	static const struct {
		const char *name;
		void (*print)(FILE *to, const struct recording *rec,
			      const struct recording_call *call);
	} verbs[] = {
		[RECORDING_INIT] = { "init", print_init },
		[RECORDING_START] = { "start", print_start },
		[RECORDING_STATE] = { "state", print_state_call },
		[RECORDING_STOP] = { "stop", print_event },
		[RECORDING_FINALIZE] = { "finalize", print_finalize },
	};

	int *thread = calloc((size_t)rec->nthreads + 1, sizeof(*thread)), threads = 0;

	for (int i = 0; thread && i < rec->ncalls; i++) {
		const struct recording_call *call = &rec->call[i];

		if (!thread[call->thread])
			thread[call->thread] = ++threads;
		fprintf(to, "%.3f T%d %s", (double)call->at_ns / 1e3, thread[call->thread],
			verbs[call->verb].name);
		verbs[call->verb].print(to, rec, call);
		putc('\n', to);
	}
	free(thread);
}
