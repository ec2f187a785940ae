#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What goes to machines with a GPU works: the folder is complete, the steps run
# (on the GPU that is played), and wrong times are found.
. "$(dirname "$0")/lib.sh"

# Status 1 is for what is found: where NCCL's progress thread starves, as on a busy
# machine, it may be that times were told that cannot be.
run() {
	MOST_BYTES=64 ROUNDS=1 PLUGINS="none empty" LIMIT=30 GPU_PRELOAD=$NCCL/libfake-cuda.so \
		nice "$T/bundle/run.sh" "$T/results" machine times stamps cost
	[ $? -le 1 ] && ! grep -E "failed|did not|ended with" "$T/results/summary.txt"
}

# compare EVENT-NS EXEC-NS [ROWS]: the verdict on one AllReduce.
compare() {
	local row='{"pid":7,"func":"AllReduce","peer":'${PEER:-null}',"channels":'${CHANNELS:-1}',"bytes":64,"enqueued_mono_ns":1,"exec_ns":'$2',
		"timing_source":"'${SOURCE:-kernel_gpu}'","stamps_refused":'${REFUSED:-0}',"gpu_start_mono_ns":'${GPU_START:-null}',"gpu_clock_error_ns":100}'
	printf '{"collectives":[%s]}' "${3-$row}" >"$T/rows"
	jq -r -s --slurpfile rows "$T/rows" -f "$T/bundle/times.jq" <<-END | jq -r '.rows[].verdict'
		{"pid":7}
		{"span":"AllReduce","bytes":64}
		{"func":"AllReduce","peer":${PEER:-null},"bytes":64}
		{"event_ns":[$1],"after_mono_ns":1000,"before_mono_ns":30000}
	END
}
verdict() { [ "$(compare "${@:2}")" = "$1" ] || { compare "${@:2}"; return 1; }; }

check "the folder is made" "$TOP/tests/gpu/bundle.sh" "$B" "$T/bundle"
check "without a GPU it says so" sh -c '"$0" "$1" machine; [ $? -eq 77 ] || [ -e /dev/nvidiactl ]' "$T/bundle/run.sh" "$T/none"
check "the steps run" run
check "every operation is told" jq -e '.untold == 0 and (.rows | length >= 6)' "$T/results/times.json"
check "the stamps are read" grep -q 'resolution [0-9]* ns' "$T/results/stamps.txt"
check "costs are compared, of AllReduce and P2P, on one node and two" jq -e 'map(select(.name == "empty")) |
	all(.[]; .alone_ratio > 0) and (map(select(.bytes == 64) | [.what, .nodes]) | sort) ==
	[["AllReduce", 1], ["AllReduce", 2], ["P2P", 1], ["P2P", 2]]' "$T/results/cost.json"
check "callbacks are counted: over a network there are more" jq -e 'map(select(.bytes == 64 and .name == "empty")) |
	INDEX("\(.what) \(.nodes)") | map_values(.calls) | ."P2P 1" > 5 and ."AllReduce 1" > 5 and
	."P2P 2" > ."P2P 1" and ."AllReduce 2" > ."AllReduce 1"' "$T/results/cost.json"
check "... and told in the summary" grep -Pq "^AllReduce\t2\tempty(\t[0-9.]+){6}\t-?[0-9.]+$" "$T/results/summary.txt"
check "a time within 10 us is right" verdict ok 20000 11000
check "so is one within 2 percent" verdict ok 1000000 981000
check "one that is further off is not" verdict "1 of 1 off" 1000000 979000
check "nor one that is longer than it can be" verdict "1 of 1 off" 1000000 1021000
SOURCE=proxy_cpu check "nor one that is not by the GPU" verdict "1 without a time" 20000 20000
check "nor is none" verdict "1 without a time" 20000 null
check "an operation that is not told is missed" verdict "operations are missing" 20000 20000 ""
REFUSED=1 check "unless its stamps were refused" verdict "1 refused" 20000 null
REFUSED=1 check "a wrong one is wrong in spite of that" verdict "1 of 1 off" 20000 9000
PEER=1 check "of sends and receives a shorter time is right" verdict ok 1000000 20000
PEER=1 check "... and a longer one is not" verdict "1 of 1 off" 1000000 1021000
PEER=1 check "... and none is none" verdict "not stamped" 20000 null
CHANNELS=null check "what was called only has no time" verdict "called only" 20000 null
GPU_START=30100 check "one that may have run when it did is right" verdict ok 20000 20000
GPU_START=999 check "one that ran too early is not" verdict "1 at a time that cannot be" 20000 20000
GPU_START=30101 check "nor one that ran too late" verdict "1 at a time that cannot be" 20000 20000
done_testing
