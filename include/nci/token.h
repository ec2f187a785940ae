/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NCI_TOKEN_H
#define NCI_TOKEN_H

/*
 * The numbers that NCCL carries for us as event handles and contexts.  They are
 * never addresses: a stale, foreign or invented one is recognised by comparing,
 * and nothing is dereferenced on its word.
 *
 * Event token, never 0, unique for the life of the process:
 *
 *    63   62   61                     20 19         12 11          0
 *   +----+----+-------------------------+-------------+-------------+
 *   |free|own |       generation        |    lane     |    slot     |
 *   +----+----+-------------------------+-------------+-------------+
 *
 * The generation is 1 for a slot's first event and grows by one with each.  The
 * free bit is only ever set in shared memory, in the token of an empty slot; a
 * token in NCCL's hands has it clear.  One slot taken a million times a second
 * runs out of generations after 50 days, which costs the one event it then
 * carries: its token has the own bit, and nobody finds it.  Numbers
 * with the own bit are handles that belong to no slot: NCI_TOKEN_UNRECORDED may
 * stand in a record as the parent, others do not.
 *
 * Context token, one per successful or muted init, never 0:
 *
 *    63                          32 31                            0
 *   +------------------------------+-------------------------------+
 *   |  nonce (header: nonce)       |  communicator's number + 1    |
 *   +------------------------------+-------------------------------+
 *
 * Another process's context (PXN hands it to us) differs in its nonce.
 */

#include "nci/abi.h"

#define NCI_TOKEN_SLOT_BITS	12
#define NCI_TOKEN_LANE_BITS	8
#define NCI_TOKEN_GEN_SHIFT	(NCI_TOKEN_SLOT_BITS + NCI_TOKEN_LANE_BITS)
#define NCI_TOKEN_FREE		(UINT64_C(1) << 63)
/* A group that leaves no record; what was posted in it may name it as the parent. */
#define NCI_TOKEN_UNRECORDED	UINT64_C(0x7fffffffffffffff)
#define NCI_TOKEN_OWN		(UINT64_C(1) << 62)
#define NCI_TOKEN_NO_EVENT	(NCI_TOKEN_FREE | NCI_TOKEN_OWN)	/* either bit */
#define NCI_TOKEN_GEN_ONE	(UINT64_C(1) << NCI_TOKEN_GEN_SHIFT)

static inline uint32_t nci_token_slot(uint64_t token)
{
	return (uint32_t)(token & ((1u << NCI_TOKEN_SLOT_BITS) - 1));
}

static inline uint32_t nci_token_lane(uint64_t token)
{
	return (uint32_t)(token >> NCI_TOKEN_SLOT_BITS) & ((1u << NCI_TOKEN_LANE_BITS) - 1);
}

static inline uint64_t nci_token_generation(uint64_t token)
{
	return (token & ~NCI_TOKEN_NO_EVENT) >> NCI_TOKEN_GEN_SHIFT;
}

static inline uint64_t nci_token(uint32_t lane, uint32_t slot, uint64_t generation)
{
	return generation << NCI_TOKEN_GEN_SHIFT |
	       (uint64_t)lane << NCI_TOKEN_SLOT_BITS | slot;
}

static inline uint64_t nci_context(uint32_t nonce, uint32_t comm)
{
	return (uint64_t)nonce << 32 | (comm + 1);
}

static inline uint32_t nci_context_nonce(uint64_t context)
{
	return (uint32_t)(context >> 32);
}

/* The communicator's number; meaningful only in the process whose nonce it carries. */
static inline uint32_t nci_context_comm(uint64_t context)
{
	return (uint32_t)context - 1;
}

#endif
