#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# PXN: what one rank sends to another node goes through the proxy of its neighbour,
# whose GPU is next to the network.  Both are one process.
. "$(dirname "$0")/lib.sh"

# No read of the network's is ever to be flushed here, and NVML knows of no NVLink.
export NCCL_TOPO_FILE=$TOP/tests/nccl/pxn.xml NCCL_P2P_PXN_LEVEL=2 NCCL_IGNORE_DISABLED_P2P=2
export NCCL_NET_GDR_READ=1 NCCL_GDR_FLUSH_DISABLE=1 NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET

# Rank 1 has no connection of its own: NCCL writes the proxy's rank behind the device.
goes_through_rank_0() { grep -q '1\[1\] -> 2\[0\] \[send\] via NET/Socket/0(0)' "$J/out.0"; }

# Bytes by link and channel, as those who send and those who receive tell them.
both_ends_agree() {
	api peers | jq -e '[.peers[] | [.direction, .bytes > 0, if .direction == "send"
			then .rank, .peer else .peer, .rank end, .channel, .bytes]]
		| map(select(.[0] == "send")[1:]) as $sent | map(select(.[0] == "recv")[1:]) as $received
		| ($sent | sort) == ($received | sort) and any($sent[]; .[1:3] == [1, 2]) and all($sent[]; .[0])'
}

for level in net trace; do
	export NCCLINSP_LEVEL=$level
	start_daemon
	play 2x2 basic alltoall
	check "$level: the job runs" ran
	check "$level: rank 1 sends through rank 0" goes_through_rank_0
	check "$level: every operation is told as it was" same
	check "$level: what the GPU did is told to have been when it was" times_are_true
	check "$level: what is sent by one is received by the other" both_ends_agree
	check "$level: nothing was lost, nothing lies about" api_is status '
		(.ingest | .lost == 0 and .before == 0 and .rejected == 0) and
		(.reconstruct | .orphans == 0 and .foreign_orphans == 0)'
	stop_daemon
done
done_testing
