#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is in flight finds the operation it belongs to, however fresh that is.
. "$(dirname "$0")/lib.sh"

LOOKS=20

start_daemon
"$B/nccl-sim" --plugin "$PLUGIN" "$TOP/tests/scenarios/recorded-like.scn" 2>"$T/sim" &
started+=($!)
kernels='[.inflight[] | select(.event_type == "KernelCh")]'
check "kernels are seen in flight" wait_until 10 api_is inflight "$kernels | length > 0"

for _ in $(seq $LOOKS); do
	api inflight | jq -c "$kernels | .[] | {func, seq}"
	sleep 0.05
done >"$T/kernels"
named=$(grep -c '"func":"AllReduce","seq":[0-9]' "$T/kernels")
all=$(wc -l <"$T/kernels")
echo "# $named of $all name their operation"
# One operation, with all its kernels, may start between the reading of the rings and
# that of the slots: one look of twenty.
check "they name their operation" test $((named * 100)) -ge $((all * 90)) -a "$all" -gt 100
done_testing
