# SPDX-License-Identifier: Apache-2.0
# What PyTorch's profiler would write of a process of nccl-sim.  Input: rows of /v1/collectives of
# the process, by their start; $truth: the simulator's rows; $shift: its clock's error in ns.
#
# A kernel of NCCL's ends when the daemon says that it ended, by the time of day, and lasts as long
# as it does in truth.  Another kernel hides its first half, and a step has four of them.
def us: tostring | if length > 3 then .[:-3] + "." + .[-3:] else "0." + ("000" + .)[-3:] end | tonumber;
def nanoseconds: (.[:19] + "Z" | fromdate) as $s | ($s - $base) * 1000000000 + (.[20:29] | tonumber);
def event(category; name; pid; from; length; more): {ph: "X", cat: category, name: name, pid: pid,
	tid: (more.stream // 1), ts: (from | us), dur: (length | us), args: more};
(map({key: "\(.comm_id) \(.rank) \(.func) \(.seq)", value: .}) | from_entries) as $known
| [$truth[] | . as $t | $known["0x\(.comm_id) \(.rank) \(.func) \(.seq)"] | select(. != null)
	| . + {exec: $t.exec_ns, late: $t.late_ns}] as $ops
| {schemaVersion: 1, distributedInfo: {backend: "nccl", rank: $rank}, traceEvents: [
	range($ops | length) as $i | $ops[$i]
	| ((.gpu_stop_at | nanoseconds) + $shift) as $stop | ($stop - .exec) as $start
	| (if $i % 4 == 0 then event("user_annotation"; "ProfilerStep#\($i / 4)"; $pid; $start - 60000; 50000; {}) else empty end),
	  event("cuda_runtime"; "cudaLaunchKernel"; $pid; $start - 50000; 5000; {correlation: (2 * $i + 1)}),
	  event("kernel"; "gemm"; 0; $start - 10000; 10000 + (.exec / 2 | floor); {device: 0, stream: 7, correlation: (2 * $i + 1)}),
	  event("kernel"; "ncclDevKernel_\(.func)_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"; 0; $start; .exec;
		{device: 0, stream: 20, correlation: (2 * $i + 2)})
  ], displayTimeUnit: "ms", baseTimeNanoseconds: ($base * 1000000000)}
