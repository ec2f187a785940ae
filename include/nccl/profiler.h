/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCCL_PROFILER_H
#define NCCL_PROFILER_H

/*
 * NCCL's profiler interface, versions 1 to 7, declared by us.
 *
 * A library offers data objects ncclProfiler_v1 to _v7; a release of NCCL takes
 * the highest that it knows:
 *
 *   v1  2.23          v3  2.26          v5  2.28          v7  2.31
 *   v2  2.24, 2.25    v4  2.27          v6  2.29, 2.30
 *
 * Every descriptor is a head, then one union at byte 24.  NCCL initialises the
 * head and the one member that belongs to the type; everything else, padding
 * included, may be garbage.  The type is one byte wide up to v4 and eight from
 * v5 on: never read it in another width.
 *
 * Names (func, datatype, algo, proto) are literals inside libnccl.  The comm's
 * name may be freed after init.  Buffers and streams are opaque.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NCCL_PROFILER_VERSIONS	7

/* Results; only that of init is looked at. */
#define NCCL_SUCCESS		0
#define NCCL_SYSTEM_ERROR	2

/* Levels and subsystems of NCCL's logger. */
#define NCCL_LOG_WARN		2
#define NCCL_LOG_INFO		3
#define NCCL_LOG_INIT		0x1UL
#define NCCL_LOG_PROFILE	0x4000UL

typedef void nccl_logger_fn(int level, unsigned long subsystems, const char *file,
			    int line, const char *format, ...);

/* Event types, which are the bits of the activation mask too. */
#define NCCL_GROUP		0x0001
#define NCCL_COLL		0x0002
#define NCCL_P2P		0x0004
#define NCCL_PROXY_OP		0x0008
#define NCCL_PROXY_STEP		0x0010
#define NCCL_PROXY_CTRL		0x0020
#define NCCL_KERNEL_CH		0x0040	/* v3 on */
#define NCCL_NET_PLUGIN		0x0080
#define NCCL_GROUP_API		0x0100	/* v5 on */
#define NCCL_COLL_API		0x0200
#define NCCL_P2P_API		0x0400
#define NCCL_KERNEL_LAUNCH	0x0800
#define NCCL_CE_COLL		0x1000	/* v6 on */
#define NCCL_CE_SYNC		0x2000
#define NCCL_CE_BATCH		0x4000
#define NCCL_KERNEL_PHASE	0x8000	/* v7 on; brings KernelCh with it.  (RCCL's v6 has
					   another event there, which no NCCL is asked for) */
#define NCCL_KERNELS		(NCCL_KERNEL_CH | NCCL_KERNEL_PHASE)

/* All events that a version knows. */
#define NCCL_EVENTS_V1		0x003f
#define NCCL_EVENTS_V2		0x003f
#define NCCL_EVENTS_V3		0x00ff
#define NCCL_EVENTS_V4		0x00ff
#define NCCL_EVENTS_V5		0x0fff
#define NCCL_EVENTS_V6		0x7fff
#define NCCL_EVENTS_V7		0xffff

/* States; the first column of the interface's table is for ever. */
enum nccl_state {
	NCCL_OP_SEND_POSTED		= 0,	/* 0-7: NCCL <= 2.26 only */
	NCCL_OP_SEND_REM_FIFO_WAIT	= 1,
	NCCL_OP_SEND_TRANSMITTED	= 2,
	NCCL_OP_SEND_DONE		= 3,
	NCCL_OP_RECV_POSTED		= 4,
	NCCL_OP_RECV_RECEIVED		= 5,
	NCCL_OP_RECV_TRANSMITTED	= 6,
	NCCL_OP_RECV_DONE		= 7,
	NCCL_STEP_SEND_GPU_WAIT		= 8,
	NCCL_STEP_SEND_WAIT		= 9,	/* transSize is valid */
	NCCL_STEP_RECV_WAIT		= 10,
	NCCL_STEP_RECV_FLUSH_WAIT	= 11,	/* transSize is valid */
	NCCL_STEP_RECV_GPU_WAIT		= 12,
	NCCL_CTRL_IDLE			= 13,
	NCCL_CTRL_ACTIVE		= 14,
	NCCL_CTRL_SLEEP			= 15,
	NCCL_CTRL_WAKEUP		= 16,
	NCCL_CTRL_APPEND		= 17,
	NCCL_CTRL_APPEND_END		= 18,	/* appendedProxyOps is valid */
	NCCL_OP_IN_PROGRESS		= 19,	/* v4 on */
	NCCL_STEP_SEND_PEER_WAIT	= 20,	/* repeats at polling rate */
	NCCL_NET_PLUGIN_UPDATE		= 21,
	NCCL_KERNEL_CH_STOP		= 22,
	NCCL_GROUP_API_START_STOP	= 23,	/* v5 on; args NULL or garbage */
	NCCL_GROUP_API_END_START	= 24,
	NCCL_CE_COLL_START		= 25,	/* v6 on; 25-30 defined, never seen */
	NCCL_CE_COLL_COMPLETE		= 26,
	NCCL_CE_SYNC_START		= 27,
	NCCL_CE_SYNC_COMPLETE		= 28,
	NCCL_CE_BATCH_START		= 29,
	NCCL_CE_BATCH_COMPLETE		= 30,
	NCCL_KERNEL_PHASE_STOP		= 31,	/* v7 on; args as KERNEL_CH_STOP */
	NCCL_STATE_END
};

/* ---- union members; without a suffix: the same in all versions that have it ---- */

struct nccl_coll_v1 {
	const char *name;
	uint64_t commHash;
	uint64_t seqNumber;
	uint8_t func;		/* v1 has numbers where later versions have names */
	const void *sendBuff;
	void *recvBuff;
	size_t count;
	int root;
	uint8_t datatype;
	uint32_t op;
	size_t trafficBytes;
	uint8_t nMaxChannels;
	uint8_t nWarps;
	uint8_t algo;
	uint8_t proto;
	int isCollnet;
	int isNvls;
};

struct nccl_coll_v2 {
	const char *name;
	uint64_t commHash;
	uint64_t seqNumber;
	const char *func;
	const void *sendBuff;
	void *recvBuff;
	size_t count;
	int root;
	const char *datatype;
	size_t trafficBytes;
	uint8_t nMaxChannels;
	uint8_t nWarps;
	const char *algo;
	const char *proto;
};

struct nccl_coll_v3 {
	const char *name;
	uint64_t commHash;
	uint64_t seqNumber;
	const char *func;
	const void *sendBuff;
	void *recvBuff;
	size_t count;
	int root;
	const char *datatype;
	uint8_t nMaxChannels;
	uint8_t nWarps;
	const char *algo;
	const char *proto;
};

struct nccl_coll_v4 {
	uint64_t seqNumber;
	const char *func;
	const void *sendBuff;
	void *recvBuff;
	size_t count;
	int root;
	const char *datatype;
	uint8_t nChannels;
	uint8_t nWarps;
	const char *algo;
	const char *proto;
};

struct nccl_coll_v5 {
	uint64_t seqNumber;
	const char *func;
	const void *sendBuff;
	void *recvBuff;
	size_t count;
	int root;
	const char *datatype;
	uint8_t nChannels;
	uint8_t nWarps;
	const char *algo;
	const char *proto;
	void *parentGroup;
};

struct nccl_coll_v7 {
	uint64_t seqNumber;
	const char *func;
	const void *sendBuff;
	void *recvBuff;
	size_t count;
	int root;
	const char *datatype;
	uint8_t nChannels;
	uint8_t nWarps;
	const char *algo;
	const char *proto;
	void *parentGroup;
	const char *kernelVariant;	/* NULL but for symmetric kernels */
	bool isSymColl;
	uint64_t userTag;
};

struct nccl_p2p_v1 {
	const char *name;
	uint64_t commHash;
	uint8_t func;
	void *buff;
	uint8_t datatype;
	size_t count;
	int peer;
};

struct nccl_p2p_v2 {
	const char *name;
	uint64_t commHash;
	const char *func;
	void *buff;
	const char *datatype;
	size_t count;
	int peer;
};

struct nccl_p2p_v4 {
	const char *func;
	void *buff;
	const char *datatype;
	size_t count;
	int peer;
	uint8_t nChannels;
};

struct nccl_p2p_v5 {
	const char *func;
	void *buff;
	const char *datatype;
	size_t count;
	int peer;
	uint8_t nChannels;
	void *parentGroup;
};

struct nccl_p2p_v7 {
	const char *func;
	void *buff;
	const char *datatype;
	size_t count;
	int peer;
	uint8_t nChannels;
	void *parentGroup;
	uint64_t userTag;
};

struct nccl_proxy_op {
	int32_t pid;		/* the process that issued it */
	uint8_t channelId;
	int peer;
	int nSteps;
	int chunkSize;
	int isSend;
};

struct nccl_proxy_step {
	int step;
};

struct nccl_kernel_ch_v3 {
	uint8_t channelId;
};

struct nccl_kernel_ch {
	uint8_t channelId;
	uint64_t pTimer;	/* ns of the GPU's own clock */
};

struct nccl_net_plugin {
	int64_t id;
	void *data;
};

/*
 * The type of `data`, during the call, where `id` is one of NCCL's own transports'
 * (NCI_NET_IB_V1, NCI_NET_SOCKET_V1).
 */
#define NCCL_NET_TYPE		1	/* the one type that either has */

struct nccl_net_ib_v1 {
	uint8_t type;
	struct {
		int device;	/* place in the connection's list of NICs */
		uint64_t wr_id;
		int opcode;	/* this and the length: of sends, receives leave them as they are */
		int qpNum;
		size_t length;
	} qp;
};

struct nccl_net_socket_v1 {
	uint8_t type;
	struct {
		int fd;
		int op;		/* 0: send, 1: receive */
		size_t length;
	} sock;
};

struct nccl_group_api {
	bool graphCaptured;
	int groupDepth;
};

struct nccl_coll_api {
	const char *func;
	size_t count;
	const char *datatype;
	int root;
	void *stream;
	bool graphCaptured;
};

struct nccl_coll_api_v7 {
	const char *func;
	size_t count;
	const char *datatype;
	int root;
	void *stream;
	bool graphCaptured;
	uint64_t userTag;
};

struct nccl_p2p_api {
	const char *func;
	size_t count;
	const char *datatype;
	void *stream;
	bool graphCaptured;
};

struct nccl_p2p_api_v7 {
	const char *func;
	size_t count;
	const char *datatype;
	void *stream;
	bool graphCaptured;
	uint64_t userTag;
};

struct nccl_kernel_launch {
	void *stream;
};

struct nccl_ce_coll {
	uint64_t seqNumber;
	const char *func;
	const void *sendBuff;
	void *recvBuff;
	size_t count;
	int root;
	const char *datatype;
	const char *syncStrategy;
	bool intraBatchSync;
	uint32_t batchSize;
	uint32_t numBatches;
	uint32_t ceSeqNum;
	void *stream;
};

struct nccl_ce_coll_v7 {
	uint64_t seqNumber;
	const char *func;
	const void *sendBuff;
	void *recvBuff;
	size_t count;
	int root;
	const char *datatype;
	const char *syncStrategy;
	bool intraBatchSync;
	uint32_t batchSize;
	uint32_t numBatches;
	uint32_t ceSeqNum;
	void *stream;
	uint64_t userTag;
};

struct nccl_kernel_phase {
	uint8_t channelId;
	uint8_t phaseId;	/* 0 initial_sync, 1 compute, 2 final_sync */
	const char *phaseName;
	uint64_t pTimer;	/* the timer's value at its start */
};

struct nccl_ce_sync {
	bool isComplete;
	int nRanks;
};

struct nccl_ce_batch {
	int numOps;
	size_t totalBytes;
	bool useIntraSync;
};

/* ---- descriptors ---- */

struct nccl_descr_v1 {
	uint8_t type;
	void *parentObj;
	int rank;
	union {
		struct nccl_coll_v1 coll;
		struct nccl_p2p_v1 p2p;
		struct nccl_proxy_op proxyOp;
		struct nccl_proxy_step proxyStep;
	};
};

struct nccl_descr_v2 {
	uint8_t type;
	void *parentObj;
	int rank;
	union {
		struct nccl_coll_v2 coll;
		struct nccl_p2p_v2 p2p;
		struct nccl_proxy_op proxyOp;
		struct nccl_proxy_step proxyStep;
	};
};

struct nccl_descr_v3 {
	uint8_t type;
	void *parentObj;
	int rank;
	union {
		struct nccl_coll_v3 coll;
		struct nccl_p2p_v2 p2p;
		struct nccl_proxy_op proxyOp;
		struct nccl_proxy_step proxyStep;
		struct nccl_kernel_ch_v3 kernelCh;
		struct nccl_net_plugin netPlugin;
	};
};

struct nccl_descr_v4 {
	uint8_t type;
	void *parentObj;
	int rank;
	union {
		struct nccl_coll_v4 coll;
		struct nccl_p2p_v4 p2p;
		struct nccl_proxy_op proxyOp;
		struct nccl_proxy_step proxyStep;
		struct nccl_kernel_ch kernelCh;
		struct nccl_net_plugin netPlugin;
	};
};

#define nccl_descr_v5 nccl_descr_v6		/* version 6 only added members to the union */

struct nccl_descr_v6 {
	uint64_t type;
	void *parentObj;
	int rank;
	union {
		struct nccl_group_api groupApi;
		struct nccl_coll_api collApi;
		struct nccl_p2p_api p2pApi;
		struct nccl_kernel_launch kernelLaunch;
		struct nccl_coll_v5 coll;
		struct nccl_p2p_v5 p2p;
		struct nccl_proxy_op proxyOp;
		struct nccl_proxy_step proxyStep;
		struct nccl_kernel_ch kernelCh;
		struct nccl_net_plugin netPlugin;
		struct nccl_ce_coll ceColl;
		struct nccl_ce_sync ceCollSync;
		struct nccl_ce_batch ceCollBatch;
	};
};

struct nccl_descr_v7 {
	uint64_t type;
	void *parentObj;
	int rank;
	union {
		struct nccl_group_api groupApi;
		struct nccl_coll_api_v7 collApi;
		struct nccl_p2p_api_v7 p2pApi;
		struct nccl_kernel_launch kernelLaunch;
		struct nccl_coll_v7 coll;
		struct nccl_p2p_v7 p2p;
		struct nccl_proxy_op proxyOp;
		struct nccl_proxy_step proxyStep;
		struct nccl_kernel_ch kernelCh;
		struct nccl_net_plugin netPlugin;
		struct nccl_ce_coll_v7 ceColl;
		struct nccl_ce_sync ceCollSync;
		struct nccl_ce_batch ceCollBatch;
		struct nccl_kernel_phase kernelPhase;
	};
};

/* ---- what recordEventState may bring; may be NULL ---- */

union nccl_args_v1 {		/* v1 to v3 */
	struct {
		size_t transSize;	/* grows for ever, is never reset: use differences */
		int steps;
	} proxyOp;
	struct {
		int appendedProxyOps;
	} proxyCtrl;
};

union nccl_args_v4 {		/* v4 to v7 */
	struct {
		size_t transSize;
	} proxyStep;
	struct {
		int appendedProxyOps;
	} proxyCtrl;
	struct {
		void *data;
	} netPlugin;
	struct {
		uint64_t pTimer;
	} kernelCh;
};

/* ---- the tables: 48 bytes each, data objects ---- */

#define NCCL_PROFILER(v, argsv, ...)							\
	struct nccl_profiler_v##v {							\
		const char *name;							\
		int (*init)(__VA_ARGS__);						\
		int (*startEvent)(void *context, void **eHandle,			\
				  struct nccl_descr_v##v *descr);			\
		int (*stopEvent)(void *eHandle);					\
		int (*recordEventState)(void *eHandle, int state,			\
					union nccl_args_v##argsv *args);		\
		int (*finalize)(void *context);						\
	}

NCCL_PROFILER(1, 1, void **context, int *mask);
NCCL_PROFILER(2, 1, void **context, int *mask);
NCCL_PROFILER(3, 1, void **context, int *mask);
NCCL_PROFILER(4, 4, void **context, int *mask, const char *commName, uint64_t commHash,
	      int nNodes, int nranks, int rank, nccl_logger_fn *logger);
NCCL_PROFILER(5, 4, void **context, uint64_t commId, int *mask, const char *commName,
	      int nNodes, int nranks, int rank, nccl_logger_fn *logger);
NCCL_PROFILER(6, 4, void **context, uint64_t commId, int *mask, const char *commName,
	      int nNodes, int nranks, int rank, nccl_logger_fn *logger);
NCCL_PROFILER(7, 4, void **context, uint64_t commId, int *mask, const char *commName,
	      int nNodes, int nranks, int rank, nccl_logger_fn *logger);

/* ---- the layout, as NCCL's releases have it ---- */

#define NCCL_ASSERT_DESCR(v, bytes)							\
	_Static_assert(sizeof(struct nccl_descr_v##v) == (bytes), "descriptor v" #v);	\
	_Static_assert(_Alignof(struct nccl_descr_v##v) == 8, "descriptor v" #v);	\
	_Static_assert(offsetof(struct nccl_descr_v##v, parentObj) == 8, "v" #v);	\
	_Static_assert(offsetof(struct nccl_descr_v##v, rank) == 16, "v" #v);		\
	_Static_assert(offsetof(struct nccl_descr_v##v, coll) == 24, "v" #v);		\
	_Static_assert(sizeof(struct nccl_profiler_v##v) == 48, "table v" #v)
NCCL_ASSERT_DESCR(1, 120);
NCCL_ASSERT_DESCR(2, 128);
NCCL_ASSERT_DESCR(3, 120);
NCCL_ASSERT_DESCR(4, 104);
NCCL_ASSERT_DESCR(5, 112);
NCCL_ASSERT_DESCR(6, 112);
NCCL_ASSERT_DESCR(7, 136);
#undef NCCL_ASSERT_DESCR

/* The place of a member's field, counted from the descriptor's start. */
#define NCCL_ASSERT_AT(type, field, offset)						\
	_Static_assert(24 + offsetof(struct nccl_##type, field) == (offset),		\
		       #type "." #field)
NCCL_ASSERT_AT(coll_v1, func, 48);
NCCL_ASSERT_AT(coll_v1, datatype, 84);
NCCL_ASSERT_AT(coll_v1, trafficBytes, 96);
NCCL_ASSERT_AT(coll_v1, proto, 107);
NCCL_ASSERT_AT(coll_v1, isNvls, 112);
NCCL_ASSERT_AT(p2p_v1, datatype, 56);
NCCL_ASSERT_AT(p2p_v1, peer, 72);
NCCL_ASSERT_AT(coll_v2, trafficBytes, 96);
NCCL_ASSERT_AT(coll_v2, nWarps, 105);
NCCL_ASSERT_AT(coll_v2, proto, 120);
NCCL_ASSERT_AT(p2p_v2, peer, 72);
NCCL_ASSERT_AT(coll_v3, nWarps, 97);
NCCL_ASSERT_AT(coll_v3, proto, 112);
NCCL_ASSERT_AT(coll_v4, nWarps, 81);
NCCL_ASSERT_AT(coll_v4, proto, 96);
NCCL_ASSERT_AT(p2p_v4, nChannels, 60);
NCCL_ASSERT_AT(coll_v5, proto, 96);
NCCL_ASSERT_AT(coll_v5, parentGroup, 104);
NCCL_ASSERT_AT(p2p_v5, nChannels, 60);
NCCL_ASSERT_AT(p2p_v5, parentGroup, 64);
NCCL_ASSERT_AT(proxy_op, channelId, 28);
NCCL_ASSERT_AT(proxy_op, isSend, 44);
NCCL_ASSERT_AT(proxy_step, step, 24);
NCCL_ASSERT_AT(kernel_ch, pTimer, 32);
NCCL_ASSERT_AT(net_plugin, data, 32);
_Static_assert(offsetof(struct nccl_net_ib_v1, qp.wr_id) == 16 &&
	       offsetof(struct nccl_net_ib_v1, qp.length) == 32 &&
	       offsetof(struct nccl_net_socket_v1, sock.length) == 16, "network payloads");
NCCL_ASSERT_AT(group_api, groupDepth, 28);
NCCL_ASSERT_AT(coll_api, graphCaptured, 64);
NCCL_ASSERT_AT(p2p_api, graphCaptured, 56);
NCCL_ASSERT_AT(kernel_launch, stream, 24);
NCCL_ASSERT_AT(ce_coll, syncStrategy, 80);
NCCL_ASSERT_AT(ce_coll, ceSeqNum, 100);
NCCL_ASSERT_AT(ce_coll, stream, 104);
NCCL_ASSERT_AT(coll_v7, kernelVariant, 112);
NCCL_ASSERT_AT(coll_v7, isSymColl, 120);
NCCL_ASSERT_AT(coll_v7, userTag, 128);
NCCL_ASSERT_AT(p2p_v7, userTag, 72);
NCCL_ASSERT_AT(coll_api_v7, userTag, 72);
NCCL_ASSERT_AT(p2p_api_v7, userTag, 64);
NCCL_ASSERT_AT(ce_coll_v7, userTag, 112);
NCCL_ASSERT_AT(kernel_phase, phaseId, 25);
NCCL_ASSERT_AT(kernel_phase, pTimer, 40);
NCCL_ASSERT_AT(ce_sync, nRanks, 28);
NCCL_ASSERT_AT(ce_batch, totalBytes, 32);
NCCL_ASSERT_AT(ce_batch, useIntraSync, 40);
#undef NCCL_ASSERT_AT

_Static_assert(sizeof(union nccl_args_v1) == 16, "state arguments v1 to v3");
_Static_assert(sizeof(union nccl_args_v4) == 8, "state arguments v4 to v7");
_Static_assert(NCCL_STATE_END == 32, "state values");

#endif
