/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection that a proxy serves has a fifo of sizes.  Both sides count steps:
 * a sender may be as many ahead of `head`, which the proxy moves, as the fifo has
 * places, and tells by `tail` what is there; a receiver finds in `tail` what has
 * come and tells by `head` what it has taken.  `step` is the GPU's own count.
 */
#include "conn.h"

#include <stdint.h>
#include <sys/types.h>

#include "shared.h"

#define FIFO_PLACES	LEN_ncclRecvMem_connFifo

static uint64_t *head_of(char *conn)
{
	return MEMBER(conn, ncclConnInfo, head, uint64_t *);
}

static uint64_t *tail_of(char *conn)
{
	return MEMBER(conn, ncclConnInfo, tail, uint64_t *);
}

static bool is_proxied(char *conn)
{
	return MEMBER(conn, ncclConnInfo, connFifo, char *) && head_of(conn) && tail_of(conn);
}

static bool send_all(char *conn, long step_bytes)
{
	char *fifo = MEMBER(conn, ncclConnInfo, connFifo, char *);
	uint64_t *step = &MEMBER(conn, ncclConnInfo, step, uint64_t);
	uint64_t end = __atomic_load_n(head_of(conn), __ATOMIC_ACQUIRE) + FIFO_PLACES;

	if ((int64_t)(end - *step) <= 0)
		return false;
	for (; *step != end; ++*step) {
		char *place = fifo + *step % FIFO_PLACES * SIZE_ncclConnFifo;

		__atomic_store_n(&MEMBER(place, ncclConnFifo, size, ssize_t), step_bytes,
				 __ATOMIC_RELAXED);
	}
	__atomic_store_n(tail_of(conn), end, __ATOMIC_RELEASE);
	return true;
}

static bool take_all(char *conn)
{
	uint64_t *step = &MEMBER(conn, ncclConnInfo, step, uint64_t);
	uint64_t tail = __atomic_load_n(tail_of(conn), __ATOMIC_ACQUIRE);

	if (tail == *step)
		return false;
	*step = tail;
	__atomic_store_n(head_of(conn), tail, __ATOMIC_RELEASE);
	return true;
}

static bool serve_peer(char *peer, long step_bytes)
{
	bool moved = false;

	for (int i = 0; i < LEN_ncclDevChannelPeer_send; i++) {
		char *conn = &MEMBER(peer, ncclDevChannelPeer, send, char) + i * SIZE_ncclConnInfo;

		if (is_proxied(conn))
			moved |= send_all(conn, step_bytes);
	}
	for (int i = 0; i < LEN_ncclDevChannelPeer_recv; i++) {
		char *conn = &MEMBER(peer, ncclDevChannelPeer, recv, char) + i * SIZE_ncclConnInfo;

		if (is_proxied(conn))
			moved |= take_all(conn);
	}
	return moved;
}

bool conn_serve(char *comm, long step_bytes)
{
	char *channel = MEMBER(comm, ncclKernelComm, channels, char *);
	int ranks = MEMBER(comm, ncclKernelComm, nRanks, int);
	bool moved = false;

	for (int c = 0; c < LEN_ncclKernelCommAndChannels_channels; c++) {
		char **peers = MEMBER(channel, ncclDevChannel, peers, char **);

		for (int p = 0; peers && p < ranks; p++)
			if (peers[p])
				moved |= serve_peer(peers[p], step_bytes);
		channel += SIZE_ncclDevChannel;
	}
	return moved;
}
