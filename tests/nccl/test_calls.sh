#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sequences of calls inside the real NCCL, known ones and random ones: every job comes to its
# end, and no operation has another's time.  CALLS=100: so many random ones (3), from
# SEED on (another one each day, and each run of a day).
. "$(dirname "$0")/lib.sh"

unset NCCLINSP_KERNELS	# as people have it, but with bursts that come soon and often
export NCCLINSP_LEVEL=net NCCLINSP_SETTLE=2
CALLS=${CALLS:-3}
SEED=${SEED:-$(date +%s)}

# In a group NCCL numbers the larger ones first, and Broadcasts of several roots from
# 2.29.2 on not at all (AllGatherV).
same_but_numbers() {
	same >"$T/differ" && return
	[ -s "$T/true" ] || return 1
	diff <(jq -R -r 'fromjson | del(.[4]) | tojson' "$T/true" | sort) \
		<(jq -R -r 'fromjson | del(.[4]) | tojson' "$T/told" | sort)
}

for layout in 2x1 4x1; do
	start_daemon --kernel-budget 10 --kernel-cost 1ms
	NCCLINSP_SETTLE=0 play $layout allgatherv
	check "$layout: an all-gather of uneven sizes ends" ran
	check "$layout: every operation of it is told" same_but_numbers
	check "$layout: what the GPU did is told to have been when it was" times_are_true
	stop_daemon
done
start_daemon --kernel-budget 10 --kernel-cost 1ms
NCCLINSP_KERNELS=always play 2x1 allgatherv
check "also where all kernels are to be timed" ran
NCCLINSP_SETTLE=0 play 2x1 alltoall-once
check "one AlltoAll out of place, and bursts after it: the job ends" ran
check "what the GPU did is told to have been when it was" times_are_true
stop_daemon

for ((i = 0; i < CALLS; i++)); do
	start_daemon --kernel-budget 10 --kernel-cost 1ms
	CALLS_SEED=$((SEED + i)) play 2x1 calls
	check "calls of seed $((SEED + i)): the job ends" ran
	check "calls of seed $((SEED + i)): every operation is told" same_but_numbers
	check "calls of seed $((SEED + i)): what the GPU did is told to have been when it was" \
		times_are_true
	check "calls of seed $((SEED + i)): nobody is accused" api_is "findings?grade=found" \
		'all(.findings[]; .severity != "critical")'
	echo "# $(api processes | jq -c '[.processes[].level_reason] | unique') switches" \
		"$(api processes | jq -c '[.processes[].steering.switches]')"
	stop_daemon
done
done_testing
