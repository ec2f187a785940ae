#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every figure of /v1/summary against the same figure worked out from the list of
# all operations that the simulator knows to be true.
. "$(dirname "$0")/lib.sh"

# What came as one piece of work: operations of one kernel whose spans on a channel
# overlap.  Each gets the number of its batch's members, and the first is its head.  Of sends
# and receives in one the end of a send alone is stamped, and the batch has no time.
batches='
def overlaps($a; $b): any($a[]; . as [$c, $from, $to]
	| any($b[]; .[0] == $c and $from <= .[2] and .[1] <= $to));
def unite: reduce .[] as $op ([];
	. as $sets
	| ([$sets[] | select(overlaps(.spans; $op.channel_ns))]) as $same
	| [$sets[] | select(overlaps(.spans; $op.channel_ns) | not)]
	  + [{spans: ([$same[].spans[]] + $op.channel_ns), ops: ([$same[].ops[]] + [$op])}]);
def batch: . as $b | (.ops | length) as $n
	| .ops | sort_by(.op) | to_entries[]
	| .key as $k | .value
	| .unstamped = ($n > 1 and (.func == "Send" or .func == "Recv"))
	| .timed = (.timed and (.unstamped | not))
	| .fused = (if $n > 1 then $n else 0 end) | .head = ($k == 0)
	| .batch_ns = ([$b.spans[][2]] | max) - ([$b.spans[][1]] | min)
	| .batch_bytes = ([$b.ops[].bytes] | add) | .batch_bus = ($b.ops | bus_bytes);
'

# nccl-tests: bytes on the wire.  Sends and receives are two directions of one.
bandwidth='
def factor: if .func == "AllReduce" then 2 * (.nranks - 1) / .nranks
	elif .func | test("^(AllGather|ReduceScatter|AlltoAll|Gather|Scatter)$")
	then (.nranks - 1) / .nranks else 1 end;
def total(f): map(f) | add // 0;
def bus_bytes: ([.[] | select(.func == "Send")] | total(.bytes)) as $out
	| ([.[] | select(.func == "Recv")] | total(.bytes)) as $in
	| ([.[] | select(.func != "Send" and .func != "Recv")] | total(.bytes * factor))
	  + ([$out, $in] | max);
'

# The rows that are true.  What has no kernel of its own has no time from the GPU.
truth='
def class: if . == 0 then 0 else pow(2; log2 | floor) end;
def times: sort | length as $n | {n: $n} + if $n == 0 then
	{mean_ns: null, p50_ns: null, p90_ns: null, p99_ns: null, max_ns: null} else
	{mean_ns: (add / $n | floor), p50_ns: .[(0.5 * $n | ceil) - 1],
	 p90_ns: .[(0.9 * $n | ceil) - 1], p99_ns: .[(0.99 * $n | ceil) - 1], max_ns: .[-1]} end;
def over($ns): if $ns > 0 then . / $ns else null end;
def row: [.[] | select(.timed and .fused == 0)] as $alone
	| [.[] | select(.timed and .fused > 0 and .head)] as $heads
	| ([$alone[].exec_ns] + [$heads[].batch_ns] | add // 0) as $ns
	| [.[] | select(.free_ns)] as $free
	| .[0].key + {
		unstamped: any(.[]; .unstamped), ops: length, bytes: total(.bytes), fused: (map(select(.fused > 0)) | length),
		exec: ([$alone[].exec_ns] | times), batch: ([$heads[].batch_ns] | times),
		algbw_gbs: (($alone | total(.bytes)) + ($heads | total(.batch_bytes)) | over($ns)),
		mean: (($alone | total(.bytes * factor)) + ($heads | total(.batch_bus)) | over($ns)),
		min: ([($alone[] | .bytes * factor / .exec_ns), ($heads[] | .batch_bus / .batch_ns)]
		      | min),
		free: ($free | total(.bytes * factor) | over($free | total(.free_ns))),
		wait: ($free | total(.exec_ns - .free_ns) | over($free | total(.exec_ns))),
		inside_ns: ($ns / (map(.rank) | unique | length)), sampled_fraction: ((map(select(.timed)) | length) / length)};
def free: if .[0].func | test("^(AllReduce|AllGather|ReduceScatter|AlltoAll)$")
	then ([.[].exec_ns] | min) as $ns | map(.free_ns = $ns) else . end;
[.[] | .comm_id |= "0x" + . | .timed = (.path == "kernel" and .peer != .rank and .completed)
	| if .path == "kernel" then . else .peer = null | .algo = null | .proto = null end
	| .size_class = (.bytes | class) | . as $op
	| .key = ($by | map({(.): $op[.]}) | add)]
| [group_by([.comm_id, .rank, .arrival_ns, .timed])[] | if .[0].timed then unite[] | batch
	else .[] | .fused = 0 | .head = false end]
| [group_by([.comm_id, .nranks, .op, .func])[]
	| if length == .[0].nranks and length > 1 and all(.[]; .timed and .fused == 0)
	  then free else . end] | add
| [group_by(.key)[] | row] | sort_by([.[$by[]]])'

told='[.rows[] | select(.derived == 0) | .inside_ns = (.share // 0) * .window_ns
	| .mean = .busbw_gbs.mean | .min = .busbw_gbs.min | .free = .busbw_waitfree_gbs
	| .wait = .wait_fraction]
	| sort_by([.[$by[]]])'

# Counts and sums to the last digit, rates to what a double and a kB/s hold,
# quantiles to what a bucket holds.  GPU stamps come in steps of 32 ns: where a
# batch begins and ends is known to that.  Which of a send and a receive comes first
# in a batch, and so has its time, is NCCL's affair.  Prints what differs.
differ='
def near($b; $part): if . == null or $b == null then . == $b
	else (. - $b | fabs) <= $part * ($b | fabs) + 2e-6 end;
def check($a; $b; $path; $part): $a | getpath($path) as $x | $b | getpath($path) as $y
	| select($x | near($y; $part) | not)
	| {row: [$b[$by[]]], at: ($path | join(".")), told: $x, true: $y};
if ($told | length) != ($true | length) then
	{told_rows: ($told | length), true_rows: ($true | length)}
else range($told | length) as $i | $told[$i] as $a | $true[$i] as $b
	| (if $b.batch.n > 0 then 64 / $b.batch.mean_ns else 0 end) as $step
	| ($by + ["ops", "bytes", "fused"] | .[] | select($a[.] != $b[.])
	   | {row: [$b[$by[]]], at: ., told: $a[.], true: $b[.]}),
	  check($a; $b; ("n", "mean_ns", "max_ns" | ["exec", .]); 0),
	  check($a; $b; ("p50_ns", "p90_ns", "p99_ns" | ["exec", .]); 0.008),
	  check($a; $b; ("free", "sampled_fraction" | [.]); 1e-6),
	  if $b.fused > 0 then empty else check($a; $b; ["wait"]; 1e-6) end,
	  if $b.fused > 0 and ($b.func == "Send" or $b.func == "Recv") then empty else
		check($a; $b; ["batch", "n"]; 0),
		check($a; $b; ("mean_ns", "max_ns" | ["batch", .]); $step),
		check($a; $b; ("p50_ns", "p90_ns", "p99_ns" | ["batch", .]); 0.008 + $step),
		check($a; $b; ("algbw_gbs", "mean", "min" | [.]); 1e-6 + $step),
		# What is timed stands for what is not.
		if $b.unstamped then empty else check($a; $b; ["inside_ns"]; 1e-5 + $step) end end
end'

play() {	# SCENARIO
	bounded "$1" >"$T/job.scn"
	sim --truth "$T/truth" "$T/job.scn" 2>"$T/sim" || { cat "$T/sim"; return 1; }
	wait_until 10 drained || { echo "some process is still live"; return 1; }
}

agree() {	# KEYS of the request, then of the rows
	local by
	by=$(printf '%s\n' "${@:2}" | jq -R . | jq -sc .)
	jq -s --argjson by "$by" "$bandwidth $batches $truth" "$T/truth" >"$T/true" &&
		api "summary?window=all&by=$1" >"$T/answer" &&
		jq --argjson by "$by" "$told" "$T/answer" >"$T/told" &&
		jq -n -c --argjson by "$by" --slurpfile a "$T/told" --slurpfile b "$T/true" \
			"\$a[0] as \$told | \$b[0] as \$true | $differ" >"$T/differences" || return 1
	[ ! -s "$T/differences" ] || { head -5 "$T/differences"; return 1; }
	[ "$(jq length "$T/told")" -gt 0 ]
}

# Collectives that share channels in a group, sends and receives beside them.
cat >"$T/fused.scn" <<-SCN
nodes 1
processes 4
seed 11
comm dp ranks 0-3 channels 4
late rank 1 by 200us
loop 40
	compute 500us
	AllReduce dp 1Mi float32
	group
		AllReduce dp 64 float32
		AllGather dp 128 float32
		ReduceScatter dp 256 float32
	end
	AllReduce dp 4Ki float32
end
SCN

for name in smoke training two-nodes graph ce recorded-like fused; do
	scenario=$TOP/tests/scenarios/$name.scn
	[ -r "$scenario" ] || scenario=$T/$name.scn
	# A rank that its machine keeps from running for 0.3 s is not compared: once more then.
	for try in 1 2 3; do
		start_daemon
		play "$scenario" >"$T/played" && api_is status '.ranks.expired == 0' >/dev/null && break
		[ $try -eq 3 ] || stop_daemon
	done
	check "$name: it is played" eval 'cat "$T/played"; [ ! -s "$T/played" ]'
	check "$name: every figure of every kind of operation is true" \
		agree comm,rank,func,size,algo,proto,peer \
		comm_id rank func size_class algo proto peer
	check "$name: every figure of a function is true" agree comm,rank,func comm_id rank func
	check "$name: every figure of a rank is true" agree comm,rank comm_id rank
	check "$name: every figure of a communicator is true" agree comm comm_id
	check "$name: nothing was lost, and each row says so" \
		jq -e 'all(.rows[]; .lost_fraction == 0)' "$T/answer"
	stop_daemon
done
done_testing
