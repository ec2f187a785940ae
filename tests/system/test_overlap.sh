#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job of two ranks, as PyTorch's profiler would see its kernels beside computing ones: what is
# exposed and what of it is waiting, against the simulator's truth; and the trace of both.
. "$(dirname "$0")/lib.sh"

overlap() { timeout -k 1 60 "$B/ncclinsp" overlap "$@"; }
trace() { timeout -k 1 60 "$B/ncclinsp" trace "$@"; }

cat >"$T/job.scn" <<-END
	processes 2
	comm dp ranks 0-1 channels 2
	late rank 1 by 300us comm dp every 2
	late rank 0 by 100us comm dp every 3
	loop 40
		compute 4ms jitter 40%
		AllReduce dp 512Ki float32
		compute 1ms
		AllReduce dp 16Ki float32
		compute 1ms
		AllGather dp 256Ki float32
	end
END
start_daemon
sim --truth "$T/truth" "$T/job.scn" 2>"$T/sim"
wait_until 20 drained
api 'collectives?limit=10000' >"$T/ops"

pid_of() { sed -n "s/.*: process $1 is pid \([0-9]*\)$/\1/p" "$T/sim"; }
# profile RANK SHIFT_NS: the profiler's file of that rank.
profile() {
	jq -c --argjson pid "$(pid_of "$1")" '[.collectives[] | select(.pid == $pid and .gpu_stop_at)] |
		sort_by(.gpu_stop_mono_ns)' "$T/ops" >"$T/rows"
	jq -s --argjson rank "$1" --argjson shift "$2" --argjson pid "$(pid_of "$1")" \
		--argjson base "$(date -d '1 hour ago' +%s)" --slurpfile rows "$T/rows" \
		'. as $truth | $rows[0] | '"$(cat "$TOP/tests/trace/kineto.jq")" "$T/truth"
}
profile 0 0 >"$T/rank0.json"
profile 1 2500000 | gzip >"$T/rank1.json.gz"
says_all() { jq -e "$1" "$T/told" >/dev/null || { jq -c .files "$T/told"; return 1; }; }

check "two ranks are read and joined" eval 'overlap -o json "$T/rank0.json" "$T/rank1.json.gz" >"$T/told" &&
	says_all "all(.files[]; .joined and .matched >= 60 and .matched == .compared and .malformed == 0)"'
check "... each with its process" eval \
	'says_all "[.files[].pid] == [$(pid_of 0), $(pid_of 1)] and ([.gpus[] | .rank] | unique == [0, 1])"'
# The time of day that the daemon tells is as exact as it has read two clocks at once.
check "... and its clock" says_all \
	'(.files[0].shift_ns | fabs) < 1e6 and (.files[1].shift_ns - 2500000 | fabs) < 1e6 and all(.files[]; .spread_ns < 1000)'

# Another reckoning of the file, whose kernels of NCCL last as long as they do in truth.
FIELDS=time_ns,compute_ns,comm_ns,hidden_ns,exposed_ns,idle_ns
exact() {
	overlap "$1" -o csv --fields "step,$FIELDS" 2>/dev/null >"$T/told.csv" &&
		python3 "$TOP/tests/trace/sweep.py" "$1" | diff - "$T/told.csv" && [ "$(wc -l <"$T/told.csv")" -ge 17 ]
}
check "what is exposed is exact to the nanosecond, for each step" exact "$T/rank0.json"
check "... of the other rank as well" exact "$T/rank1.json.gz"
check "... and steps add up to all of it" says_all '.gpus | group_by(.rank) | length == 2 and all(.[];
	map(select(.step == null))[0] as $all | map(select(.step != null)) as $steps |
	all("time_ns", "compute_ns", "comm_ns", "exposed_ns", "idle_ns"; . as $key | ($steps | map(.[$key]) | add) == $all[$key]))'

# The part of the second half of each kernel in which the rank waits for the other one.
waited() {
	jq -s -e --argjson rank "$1" --slurpfile told "$T/told" --slurpfile ops "$T/ops" '
		([.[] | {key: "\(.func) \(.seq)", value: .late_ns}] | group_by(.key) |
		 map({key: .[0].key, value: (map(.value) | max)}) | from_entries) as $last
		| ([$ops[0].collectives[] | select(.rank == $rank and .gpu_stop_at) | "\(.func) \(.seq)"]) as $known
		| ([.[] | select(.rank == $rank) | select("\(.func) \(.seq)" as $key | $known | index($key)) |
		    [0, ($last["\(.func) \(.seq)"] - .late_ns) - (.exec_ns / 2)] | max] | add) as $true
		| ($told[0].gpus[] | select(.rank == $rank and .step == null) | .waited_ns) as $waited
		| if $waited > 0 and ($waited - $true | fabs) <= 0.05 * $true then true
		  else {$waited, $true}, false end' "$T/truth"
}
check "so is the waiting in it" waited 0

check "the answer is what docs/schema/ says" eval 'overlap -o json "$T/rank0.json" >"$T/told" &&
	python3 -c "import json, jsonschema, sys; jsonschema.validate(*map(json.load, map(open, sys.argv[1:])))" \
		"$T/told" "$TOP/docs/schema/overlap.json"'
check "a table for people" eval 'overlap "$T/rank0.json" >"$T/out" 2>"$T/err" &&
	grep -q "EXPOSED(us)" "$T/out" && grep -q "operations are kernels of it" "$T/err"'
check "steps are filtered and sorted as all rows" eval \
	'[ "$(overlap "$T/rank0.json" -f "step<3" -s -step --fields step -o csv 2>/dev/null | tr "\n" " ")" = "step 2 1 0 " ]'
box=$("$B/ncclinsp" snapshot)
wait_until 10 test -s "$box"
check "a snapshot is as good as the daemon" eval 'overlap --from "$box" -o json "$T/rank1.json.gz" >"$T/told" &&
	says_all ".files[0] | .joined and (.shift_ns - 2500000 | fabs) < 1e6"'

check "a trace has both" eval 'trace --kernels "$T/rank0.json" --kernels "$T/rank1.json.gz" -o "$T/t.json" 2>"$T/err" &&
	python3 "$TOP/tests/trace/check_trace.py" "$T/t.json"'
check "... of a snapshot, too" eval 'trace "$box" --kernels "$T/rank1.json.gz" -o "$T/box.json" 2>"$T/err" &&
	python3 "$TOP/tests/trace/check_trace.py" "$T/box.json"'
drawn() { jq -e "$1" "$T/t.json" >/dev/null || { head -c 300 "$T/t.json"; return 1; }; }
jq -c '.traceEvents |= map(select(.args.correlation == null or (.args.correlation > 150 and .args.correlation <= 170)))' "$T/rank0.json" >"$T/short.json"
jq -c '(.collectives | max_by(.done_mono_ns)) as $c | .transfers = [$c | {pid, comm_id, comm_name, rank, channel: 0, peer: 1,
	direction: "send", start_mono_ns: (.done_mono_ns + 1e9 | floor), stop_mono_ns: (.done_mono_ns + 2e9 | floor)}]' "$box" >"$T/transfer.snap"
check "... with nothing before or after a file's kernels" eval 'trace "$T/transfer.snap" --kernels "$T/short.json" -o "$T/box.json" 2>"$T/err" &&
	jq -e ".traceEvents | (map(select(.cat == \"nccl\").ts) | max) as \$last |
	       map(select(.cat == \"ProxyOp\" or .cat == \"operation\").ts) | length > 10 and max < \$last + 1.1e5" "$T/box.json" >"$T/x"'
check "... each kernel at its operation's time, and in its process" drawn '
	([.traceEvents[] | select(.cat == "operation" and .args.seq != null) |
	  {key: "\(.pid) \(.args.seq) \(.name | split(" ")[0])", value: (.ts + .dur)}] | from_entries) as $ends
	| [.traceEvents[] | select(.cat == "nccl")]
	| length >= 120 and all(.[]; $ends["\(.pid) \(.args.seq) \(.args.func)"] as $e | (.ts + .dur - $e | fabs) <= 2)'
check "... other kernels, what is exposed, and steps" drawn '[.traceEvents[].cat] |
	(map(select(. == "kernel")) | length) >= 120 and (map(select(. == "exposed")) | length) >= 120 and
	(map(select(. == "step")) | length) >= 30'

jq -c "del(.collectives)" "$box" >"$T/due.snap"
check "a snapshot without operations is told" eval 'ends 0 overlap --from "$T/due.snap" "$T/rank0.json" && says "no operations are remembered there"'
cp "$T/rank0.json" "$T/$(printf 'a\377\033[2J')"
check "a file's name is made safe" eval 'overlap -o json "$T/$(printf "a\377\033[2J")" >"$T/told" &&
	says_all ".files[0].joined and (.gpus | length > 10) and (.gpus[0].file | endswith(\"/a??[2J\"))"'
jq '.traceEvents[0] = {cat: "kernel", ph: "X"}' "$T/rank0.json" >"$T/odd.json"
check "what makes no sense in a file is told beside CSV" eval 'ends 0 overlap -o csv "$T/odd.json" && says "events that made no sense: 1"'
jq '.distributedInfo.rank = 1' "$T/rank0.json" >"$T/other.json"
check "a file of another process has no trace" eval 'ends 1 trace --kernels "$T/other.json" -o "$T/x.json" &&
	says "no process that used NCCL is its pid" && test ! -e "$T/x.json"'
check "... its table says so" eval 'ends 0 overlap "$T/other.json" && says "not joined with operations"'
jq --argjson pid "$(pid_of 1)" '.distributedInfo.rank = 1 | .traceEvents[] |= if .pid > 0 then .pid = $pid else . end' \
	"$T/rank0.json" >"$T/other.json"
jq '.traceEvents[] |= if .pid == 0 then .ts += ((.ts * 7919 | floor) % 3000) else . end' "$T/other.json" >"$T/apart.json"
check "another job's is refused, whatever it says that it is" eval 'ends 1 trace --kernels "$T/apart.json" -o "$T/x.json" &&
	says "of another process" && test ! -e "$T/x.json"'
check "what is no profile is told" eval 'ends 1 overlap "$TOP/Makefile" && says "no trace of PyTorch"'
check "... what is not there" eval 'ends 1 trace --kernels "$T/none" -o "$T/x.json" && says "No such file"'
check "... and that there is no time to come in it" ends 2 trace --kernels "$T/rank0.json" --for 1 -o "$T/x.json"
stop_daemon
check "without a daemon the file tells what it can" eval 'ends 0 overlap "$T/rank0.json" && says "cannot connect to" && says "EXPOSED"'
done_testing
