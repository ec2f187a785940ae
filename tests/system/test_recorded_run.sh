#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A real run of 4 GPUs, played back through the plugin and the daemon: the
# execution times against CUPTI's record of the kernels.
. "$(dirname "$0")/lib.sh"

RECORDING=${NCCLINSP_RECORDING:-$TOP/../shared/data/nccl-4gpu-group-2allreduce.jsonl}
[ -r "$RECORDING" ] || skip_all "the recorded run is not here (NCCLINSP_RECORDING)"

start_daemon
curl -sN --unix-socket "$SOCK" "http://ncclinspd/v1/stream?kinds=record,collective" >"$T/stream" &
CURL=$!
started+=("$CURL")
wait_until 10 api_is status '.connections >= 2'
check "the recording is played back" "$B/nccl-replay" --plugin "$PLUGIN" "$RECORDING"
check "the process is seen to exit" wait_until 5 drained

api 'collectives?limit=100' >"$T/ops.json"

# The n-th KernelLaunch belongs to ranks 3, 2, 1, 0; CUPTI counts in microseconds.
jq -sc '[.[] | select(.recordType == "cuptiActivity")]
	| map({rank: (4 - .extCorrId), exec_ns: (.duration * 1000)})' "$RECORDING" >"$T/cupti.json"

ops_are() { jq -e "$@" "$T/ops.json" >/dev/null || { cat "$T/ops.json"; return 1; }; }

check "there are 8 operations" ops_are '.collectives | length == 8'
check "each is an AllReduce of 128 MiB float32" ops_are \
	'all(.collectives[]; .func == "AllReduce" and .bytes == 134217728 and
	     .datatype == "ncclFloat32" and .count == 33554432)'
check "each rank has sequence numbers 0 and 1" ops_are \
	'[.collectives[] | [.rank, .seq]] | sort ==
	 [[0,0],[0,1],[1,0],[1,1],[2,0],[2,1],[3,0],[3,1]]'
check "each is complete" ops_are 'all(.collectives[]; .complete)'
check "each time comes from the GPU" ops_are 'all(.collectives[]; .timing_source == "kernel_gpu")'
for rank in 0 1 2 3; do
	check "execution time of rank $rank is within 1 % of CUPTI's" ops_are \
		--slurpfile cupti "$T/cupti.json" --argjson rank $rank \
		'($cupti[0][] | select(.rank == $rank) | .exec_ns) as $true
		 | [.collectives[] | select(.rank == $rank) | .exec_ns]
		 | length == 2 and all(.[]; (. - $true | fabs) <= 0.01 * $true)'
done
check "the two AllReduces of a rank are one batch with one bandwidth" ops_are \
	'[.collectives[] | select(.fused == 2 and .busbw_gbs == null) | {rank, batch}]
	 | length == 8 and (unique | length == 4) and
	   all(.[].batch; .ops == 2 and .bytes == 268435456 and .busbw_gbs > 0 and
	       (.busbw_gbs - 1.5 * .bytes / .exec_ns | fabs) < 0.001)'
# 15136 us of the first one less 1210 us of the last.
check "rank 0 came last, 13.9 ms after the first" ops_are \
	'all(.collectives[]; .arrival_rank_order[-1] == 0) and
	 all(.collectives[] | select(.rank == 0); (.late_ns - 13926000 | fabs) <= 139260)'
check "once is observed, and no finding" api_is "findings?grade=found" \
	'[.findings[] | select(.kind == "straggler")] == []'
check "nothing was lost" api_is processes \
	'[.processes[].lost | to_entries[].value] | all(. == 0)'
check "nothing was refused" api_is status '.ingest.lost == 0 and .ingest.rejected == 0'
check "no stamp was refused" ops_are 'all(.collectives[]; .stamps_refused == 0)'

# CUPTI's kernels as PyTorch's profiler would write them.  How well they fit depends on how well the
# GPUs' clocks are known, after one kernel each: they are at their ranks, or are refused.
jq -s --argjson pid "$(api processes | jq .processes[0].pid)" '{traceEvents: ([{ph: "X", cat: "cuda_runtime",
	name: "cudaLaunchKernel", pid: $pid, ts: 1, dur: 1, args: {correlation: 1}}] + [.[] |
	select(.recordType == "cuptiActivity") | {ph: "X", cat: "kernel", name, pid: .deviceId, ts: .start.ts,
	dur: .duration, args: {device: .deviceId, stream: 7, correlation: .corrId}}])}' "$RECORDING" >"$T/kernels.json"
at_its_rank() {
	"$B/ncclinsp" overlap "$T/kernels.json" -o json 2>/dev/null >"$T/overlap.json" || return
	jq -e '(.gpus | length == 4 and all(.[]; .exposed_ns == .time_ns and
		([1213500, 5723500, 10305500, 15139750][.device] - .time_ns | fabs) <= 1)) and
		if .files[0].joined then all(.gpus[]; .rank == null or .rank == .device) else
		(.files[0].why | test("fit")) end' "$T/overlap.json" || { cat "$T/overlap.json"; return 1; }
}
check "CUPTI's kernels are as long as it says, and at the GPUs of their ranks" at_its_rank

told() { [ "$(grep -c '"kind":"collective"' "$T/stream")" -ge 8 ]; }
wait_until 10 told
kill "$CURL"
drawn() { jq -e "$1" "$T/trace.json" >/dev/null || { head -c 2000 "$T/trace.json"; return 1; }; }
check "a trace is drawn of it" eval '"$B/ncclinsp" trace "$T/stream" -o "$T/trace.json" 2>/dev/null &&
	python3 "$TOP/tests/trace/check_trace.py" "$T/trace.json"'
check "... each GPU of the one process is a rank of its own" drawn \
	'[.traceEvents[] | select(.name == "process_name") | .args.name[:6]] | sort ==
	 ["rank 0", "rank 1", "rank 2", "rank 3"]'
check "... kernels are as long as the GPU says" drawn \
	'[.traceEvents[] | select(.cat == "KernelCh" and .args.clock != "host") | .dur] |
	 length > 8 and max > 15000 and max < 15200'
check "... and the others wait for rank 0, 13.9 ms the longest" drawn \
	'[.traceEvents[] | select(.cat == "waiting")] | all(.name == "waiting for rank 0") and
	 (map(.dur) | max - 13926 | fabs) < 140'
done_testing
