/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NCCL_NCCL_CALLS_H
#define TESTS_NCCL_NCCL_CALLS_H

/* The part of NCCL's public interface that the programs here use, declared by us. */

#include <stddef.h>

typedef void *ncclComm_t;

struct nccl_unique_id {
	char bytes[128];
};

/* ncclConfig_t as of 2.27; what is not set must be UNSET or NULL. */
struct nccl_config {
	size_t size;
	unsigned int magic;
	unsigned int version;
	int blocking;
	int cga_cluster_size;
	int min_ctas;
	int max_ctas;
	const char *net_name;
	int split_share;
	int traffic_class;
	const char *comm_name;
	int collnet_enable;
	int cta_policy;
	int shrink_share;
	int nvls_ctas;
};

#define NCCL_UNSET	(-__INT_MAX__ - 1)
#define NCCL_CONFIG	{						\
	.size = sizeof(struct nccl_config), .magic = 0xcafebeef,	\
	.version = 22703, .blocking = NCCL_UNSET,			\
	.cga_cluster_size = NCCL_UNSET, .min_ctas = NCCL_UNSET,		\
	.max_ctas = NCCL_UNSET, .split_share = NCCL_UNSET,		\
	.traffic_class = NCCL_UNSET, .collnet_enable = NCCL_UNSET,	\
	.cta_policy = NCCL_UNSET, .shrink_share = NCCL_UNSET,		\
	.nvls_ctas = NCCL_UNSET,					\
}

enum { ncclSuccess = 0, ncclInProgress = 7 };
enum { ncclSum = 0 };
enum { ncclShrinkDefault = 0, ncclShrinkAbort = 1 };

enum nccl_type {
	ncclInt8, ncclUint8, ncclInt32, ncclUint32, ncclInt64, ncclUint64,
	ncclFloat16, ncclFloat32, ncclFloat64, ncclBfloat16,
};

int ncclGetVersion(int *version);
const char *ncclGetErrorString(int result);
const char *ncclGetLastError(ncclComm_t comm);
int ncclGetUniqueId(struct nccl_unique_id *id);
int ncclCommInitRankConfig(ncclComm_t *comm, int ranks, struct nccl_unique_id id, int rank,
			   struct nccl_config *config);
int ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *made,
		  struct nccl_config *config);
int ncclCommShrink(ncclComm_t comm, int *excluded, int count, ncclComm_t *made,
		   struct nccl_config *config, int flags);
int ncclCommFinalize(ncclComm_t comm);
int ncclCommDestroy(ncclComm_t comm);
int ncclCommAbort(ncclComm_t comm);
int ncclCommGetAsyncError(ncclComm_t comm, int *result);
int ncclGroupStart(void);
int ncclGroupEnd(void);

int ncclAllReduce(const void *from, void *to, size_t count, int type, int op,
		  ncclComm_t comm, void *stream);
int ncclAllGather(const void *from, void *to, size_t count, int type,
		  ncclComm_t comm, void *stream);
int ncclReduceScatter(const void *from, void *to, size_t count, int type, int op,
		      ncclComm_t comm, void *stream);
int ncclBroadcast(const void *from, void *to, size_t count, int type, int root,
		  ncclComm_t comm, void *stream);
int ncclReduce(const void *from, void *to, size_t count, int type, int op, int root,
	       ncclComm_t comm, void *stream);
int ncclAlltoAll(const void *from, void *to, size_t count, int type,
		 ncclComm_t comm, void *stream);
int ncclSend(const void *from, size_t count, int type, int peer,
	     ncclComm_t comm, void *stream);
int ncclRecv(void *to, size_t count, int type, int peer, ncclComm_t comm, void *stream);

#endif
