/* SPDX-License-Identifier: Apache-2.0 */
/* One row per layout that a union member ever had, one line per version. */
#include "record/shape.h"

#define HEAD_BYTES	24
#define AT(type, field)	(HEAD_BYTES + offsetof(struct nccl_##type, field))
#define BYTES(type)	(HEAD_BYTES + sizeof(struct nccl_##type))
#define PLAIN(type)	{ BYTES(type), { 0 } }
#define NAMES(type)	{ BYTES(type), { AT(type, func), AT(type, datatype) } }
#define COLL(type)	{ BYTES(type), { AT(type, func), AT(type, datatype), \
					 AT(type, algo), AT(type, proto) } }

#define COLL_7		{ BYTES(coll_v7), { AT(coll_v7, func), AT(coll_v7, datatype),	\
			  AT(coll_v7, algo), AT(coll_v7, proto), AT(coll_v7, kernelVariant) } }

static const struct shape head_only = { HEAD_BYTES, { 0 } };

/* Rows by the number of the type's bit, as they were added: version 3, 5, 6 and 7. */
#define FIRST(coll, p2p)							\
	{ HEAD_BYTES, { 0 } }, coll, p2p, PLAIN(proxy_op), PLAIN(proxy_step),	\
	{ HEAD_BYTES, { 0 } }
#define ADDED_3(kernel_ch)	PLAIN(kernel_ch), PLAIN(net_plugin)
#define ADDED_5(coll_api, p2p_api)						\
	PLAIN(group_api), NAMES(coll_api), NAMES(p2p_api), PLAIN(kernel_launch)
#define ADDED_6(ce_coll)							\
	{ BYTES(ce_coll), { AT(ce_coll, func), AT(ce_coll, datatype),		\
			    AT(ce_coll, syncStrategy) } },			\
	PLAIN(ce_sync), PLAIN(ce_batch)
#define ADDED_7	{ BYTES(kernel_phase), { AT(kernel_phase, phaseName) } }

static const struct shape shapes[NCCL_PROFILER_VERSIONS + 1][16] = {
	[1] = { FIRST(PLAIN(coll_v1), PLAIN(p2p_v1)) },
	[2] = { FIRST(COLL(coll_v2), NAMES(p2p_v2)) },
	[3] = { FIRST(COLL(coll_v3), NAMES(p2p_v2)), ADDED_3(kernel_ch_v3) },
	[4] = { FIRST(COLL(coll_v4), NAMES(p2p_v4)), ADDED_3(kernel_ch) },
	[5] = { FIRST(COLL(coll_v5), NAMES(p2p_v5)), ADDED_3(kernel_ch),
		ADDED_5(coll_api, p2p_api) },
	[6] = { FIRST(COLL(coll_v5), NAMES(p2p_v5)), ADDED_3(kernel_ch),
		ADDED_5(coll_api, p2p_api), ADDED_6(ce_coll) },
	[7] = { FIRST(COLL_7, NAMES(p2p_v7)), ADDED_3(kernel_ch),
		ADDED_5(coll_api_v7, p2p_api_v7), ADDED_6(ce_coll_v7), ADDED_7 },
};

const struct shape *shape_of(int version, uint64_t type)
{
	if (!shape_knows(version, type))
		return &head_only;
	return &shapes[version][__builtin_ctzll(type)];
}
