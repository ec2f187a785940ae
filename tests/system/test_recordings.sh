#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the real NCCL once did (tests/recordings/) is what the daemon tells, down to
# the times that the GPU stamped.  UPDATE=1 takes what it tells as what is expected.
. "$(dirname "$0")/lib.sh"

RECORDINGS=$TOP/tests/recordings

# The truth of the job that was recorded; NCCL has no name for uint8.
identity='[(.comm_name // .comm), .nranks, .rank, .func, .seq, .count,
	(if .datatype == "ncclUint8" then null else .datatype end), .bytes, .root, .peer] | tojson'
# What becomes of it is a matter of NCCL's choice and of the GPU's stamps; times by the
# host's clock are those of this replay.
fate='{comm_name, rank, func, seq, peer, bytes, algo, proto, channels, complete, timing_source,
	exec_ns: (if .timing_source == "kernel_gpu" then .exec_ns else null end),
	fused, batch_ns: .batch.exec_ns, stamps_why}'

# told NAME: the operations of that recording, which has one communicator.
told() {
	local id
	id=$("$B/nccl-replay" --print "$RECORDINGS/$1/0.rec" | sed -n 's/.* init .* id=\([0-9a-f]*\) .*/0x\1/p' | head -n 1)
	api "collectives?comm=$id&limit=10000" | jq -c '.collectives[] | select(.derived | not)'
}

same_operations() {
	jq -r "$identity" "$RECORDINGS/$1/truth.jsonl" | sort >"$T/true"
	told "$1" | jq -r "$identity" | sort >"$T/told"
	[ -s "$T/true" ] && diff "$T/true" "$T/told"
}

same_fates() {
	told "$1" | jq -c "$fate" | sort >"$T/told"
	[ -z "${UPDATE:-}" ] || cp "$T/told" "$RECORDINGS/$1/expected.jsonl"
	diff "$RECORDINGS/$1/expected.jsonl" "$T/told"
}

start_daemon
export NCCLINSP_LEVEL=net
check "all are played back" replay "$RECORDINGS"/*/*.rec
wait_until 5 drained
for directory in "$RECORDINGS"/*/; do
	name=$(basename "$directory")
	check "$name: every operation, and nothing else" same_operations "$name"
	check "$name: how NCCL ran them and how long" same_fates "$name"
done
check "nothing was lost or refused" api_is status '.ingest.lost == 0 and .ingest.rejected == 0'
done_testing
