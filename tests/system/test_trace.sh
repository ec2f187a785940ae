#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A trace of a job with a late rank: sound, and the arrow comes from the late one.  Live, from
# a black box, an exemplar, and the stream as it came.
. "$(dirname "$0")/lib.sh"

CHECK=$TOP/tests/trace/check_trace.py
trace() { timeout -k 1 60 "$B/ncclinsp" trace "$@"; }
sound() { timeout -k 1 60 python3 "$CHECK" "$@"; }
has() { jq -e "$2" "$1" >/dev/null || { jq -c '.otherData, .traceEvents[:3]' "$1"; return 1; }; }
level_is() { api_is level "[.processes[].level] | unique == [\"$1\"]"; }

start_daemon
cat >"$T/late.scn" <<-END
	nodes 2
	processes 2
	netplugin ib
	comm dp ranks 0-3 channels 2
	late rank 1 by 20ms comm dp
	loop forever
		compute 5ms jitter 5%
		AllReduce dp 512Ki float32
	end
END
timeout -k 1 900 "$B/nccl-sim" --plugin "$PLUGIN" "$T/late.scn" 2>"$T/sim" &
JOB=$!
started+=("$JOB")
works() { api_is collectives '[.collectives[] | select(.gpu_start_at != null)] | length > 20'; }
wait_until 60 works
# Arrows between ranks are drawn where the GPUs' clocks are known: on a busy machine, later.
clocks_known() {
	api_is collectives '[.collectives[] | select((.gpu_clock_error_ns // 1e9) < 1e6)] | length > 20'
}
wait_until 60 clocks_known

# From which process most arrows to those who wait come.
late_rank() {
	jq -r '([.traceEvents[] | select(.name == "process_name") | {key: (.pid | tostring),
		 value: .args.name[:6]}] | from_entries) as $name |
		[.traceEvents[] | select(.ph == "s" and .name == "arrived") | $name[.pid | tostring]] |
		group_by(.) | max_by(length)[0]' "$1"
}

# On a busy machine next to nothing is in it, records are lost, others come late who got no
# CPU: what the job does is seen in one of several.
much() { jq -e '[.traceEvents[] | select(.cat == "waiting" or .name == "ProxyOp send")] | length > 60' "$1" &&
	jq -e '[.traceEvents[] | select(.name == "waiting for rank 1")] | length > 2' "$1"; }
typical() {
	much "$1" >/dev/null && [ "$(late_rank "$1")" = "rank 1" ] && whole "$1" >/dev/null &&
		jq -e '[.traceEvents[] | select(.cat == "KernelCh" and .args.clock == "gpu")] | length > 10' "$1" >/dev/null
}
whole() { has "$1" '.otherData | .lost_records == 0 and .records > 100'; }
take() {
	local seconds
	for seconds in 1 2 4 8 8 8; do
		trace --for "$seconds" -o "$T/live.json" 2>"$T/said" || return
		typical "$T/live.json" && return
	done
}
check "a trace is taken of a job that runs" take
check "... it says what is in it, and how to look at it" grep -q "ui.perfetto.dev" "$T/said"
check "slices nest, arrows have two ends, threads have names" sound "$T/live.json"
check "the level is what it was" wait_until 20 level_is net
check "all of NCCL's events are in it" has "$T/live.json" \
	'([.traceEvents[] | select(.ph == "X") | .cat] | unique) as $c |
	 ["Group", "GroupApi", "CollApi", "Coll", "KernelLaunch", "KernelCh", "ProxyOp", "ProxyStep",
	  "ProxyCtrl", "NetPlugin", "state", "operation", "waiting"] - $c == []'
check "names and arguments are NCCL's" has "$T/live.json" \
	'any(.traceEvents[]; .name == "Coll AllReduce" and .args.algo == "RING" and
	     .args.proto == "SIMPLE" and .args.nchannels == 2 and .args.seq > 0 and .args.comm == "dp") and
	 any(.traceEvents[]; .name == "ProxyOp send" and .args.peer >= 0 and .args.bytes > 0)'
check "work requests lie on their queue pair's thread" has "$T/live.json" \
	'[.traceEvents[] | select(.name == "thread_name" and (.args.name | test("^net qp [0-9]+ nic 0")))
	  | [.pid, .tid]] as $qp | [.traceEvents[] | select(.cat == "NetPlugin")] |
	 ($qp | length) > 3 and all(.[]; [.pid, .tid] as $at | any($qp[]; . == $at)) and
	 any(.[]; .name == "request send" and .args.bytes > 0 and .args.peer >= 0 and .args.wr_id >= 0)'
check "kernels are at the times of the GPU" has "$T/live.json" \
	'[.traceEvents[] | select(.cat == "KernelCh" and .args.clock == "gpu")] | length > 10'
check "each rank is a process" has "$T/live.json" \
	'[.traceEvents[] | select(.name == "process_name") | .args.name[:6]] | sort ==
	 ["rank 0", "rank 1", "rank 2", "rank 3"]'

check "the arrows to those who wait come from the late one" \
	eval '[ "$(late_rank "$T/live.json")" = "rank 1" ]'
check "... for whom rank 0 waits" has "$T/live.json" \
	'[.traceEvents[] | select(.name == "waiting for rank 1")] | length > 2'
check "no record is missing" whole "$T/live.json"

check "of one process there is but that one" \
	eval 'pid=$(api processes | jq .processes[0].pid) && trace --pid "$pid" --for 0.3 -o - 2>/dev/null >"$T/one.json" &&
	      sound "$T/one.json" && has "$T/one.json" \
	      "[.traceEvents[] | select(.cat == \"Coll\") | .pid] | unique == [$pid]"'
two() { api processes | jq -r '[.processes[1:3][].pid] | sort | join(",")'; }
check "of two there are these, and who is not there is told" \
	eval 'trace --pid "$(two),1" --for 1 -o "$T/two.json" 2>"$T/said"; has "$T/two.json" \
	      "[.traceEvents[] | select(.cat == \"Coll\") | .pid] | unique == [$(two)]" &&
	      grep -q "^only 2 of the 3 processes given use NCCL now" "$T/said"'
check "compressed by its name" eval 'trace --for 0.3 -o "$T/c.json.gz" 2>/dev/null && sound "$T/c.json.gz"'

timeout -k 1 60 "$B/ncclinsp" trace --for 100s -o "$T/int.json" 2>"$T/said" &
TRACE=$!
wait_until 20 level_is trace
kill -INT $(pgrep -P "$TRACE")
wait "$TRACE"
check "Ctrl-C ends it" test $? -eq 130
check "... and what came is a sound file" sound "$T/int.json"
check "... and the level falls back at once" wait_until 20 level_is net
timeout -k 1 60 "$B/ncclinsp" trace --for 100s -o "$T/hup.json" 2>/dev/null &
TRACE=$!
wait_until 20 level_is trace
kill -HUP $(pgrep -P "$TRACE")
wait "$TRACE"
check "so does a terminal that goes" sound "$T/hup.json"
check "nothing half written is left" eval '! ls -A "$T" | grep -q part'

curl -sN --unix-socket "$SOCK" "http://ncclinspd/v1/stream?kinds=record,collective" >"$T/stream" &
CURL=$!
started+=("$CURL")
told() {
	[ "$(grep -c '"kind":"collective"' "$T/stream")" -ge 60 ] &&
		trace "$T/stream" -o "$T/s.json" && much "$T/s.json" &&
		[ "$(late_rank "$T/s.json")" = "rank 1" ]
}
wait_until 60 told
kill "$CURL"
check "the stream as it came is as good" eval 'trace "$T/stream" -o "$T/s.json" 2>/dev/null && sound "$T/s.json"'
check "... with the same late one" eval '[ "$(late_rank "$T/s.json")" = "rank 1" ]'

box=$("$B/ncclinsp" snapshot)
wait_until 10 test -s "$box"
check "so is a black box" eval 'trace "$box" -o "$T/box.json" 2>/dev/null && sound "$T/box.json"'
check "... with operations, arrows between ranks, and what has not ended" has "$T/box.json" \
	'[.traceEvents[] | .cat] as $c | any($c[]; . == "operation") and any($c[]; . == "waiting") and
	 any(.traceEvents[]; .ph == "s" and .name == "arrived")'

kill "$JOB"
wait_until 20 drained
# The one that was late once, again where others got no CPU just then.
ids() { api exemplars | jq -er '[.exemplars[] | select(.seq == 300)][].id'; }
waited() { has "$1" 'any(.traceEvents[]; .name == "waiting for rank 1" and .dur > 30000)'; }
late_once() {
	local run one
	for run in 1 2 3 4 5; do
		timeout -k 1 120 "$B/nccl-sim" --plugin "$PLUGIN" "$TOP/tests/scenarios/slow-once.scn" 2>>"$T/sim" &
		JOB=$!
		started+=("$JOB")
		ended() { [ "$(ids | wc -l)" -ge "$run" ]; }
		wait_until 30 ended
		for one in $(ids); do
			ID=$one
			trace --exemplar "$ID" -o "$T/ex.json" 2>/dev/null && waited "$T/ex.json" >/dev/null && return
		done
		kill "$JOB"
		wait_until 20 drained
	done
}
ID=none
late_once
check "so is an exemplar, from the daemon" \
	eval 'trace --exemplar "$ID" -o "$T/ex.json" 2>/dev/null && sound "$T/ex.json"'
check "... and from its file" \
	eval '"$B/ncclinsp" exemplars "$ID" >"$T/ex" && trace "$T/ex" -o - 2>/dev/null >"$T/ex2.json" && has "$T/ex2.json" ".otherData.operations > 100"'
check "... with the late one" waited "$T/ex.json"

check "where to is to be said" exits 2 "-o FILE" trace
check "of a file there is no time to come" exits 2 "go with a live trace" trace "$T/ex" --for 1 -o "$T/x"
check "what is no such file is told" exits 1 "not a black box" trace "$TOP/Makefile" -o "$T/x"
check "... and a snapshot without operations" \
	eval 'echo "{\"format\":\"ncclinsp-snapshot\",\"format_version\":1}" >"$T/empty"; exits 4 "no single operations" trace "$T/empty" -o "$T/x"'
check "an exemplar that is not there" exits 4 "no such exemplar" trace --exemplar 20000101T000000.0Z -o "$T/x"
check "a place that cannot be written" exits 1 "cannot write /nonexistent" trace --for 1 -o /nonexistent/x
check "a process that is not there" exits 4 "no process that uses NCCL matches" trace --pid 1 -o "$T/x"
check "what is no list of processes" eval 'for list in 1,x 1, ,1 0 -1 1,,2; do
	exits 2 "does not fit --pid" trace --pid "$list" -o "$T/x" || return 1; done'
check "... and none of these leaves a file" test ! -e "$T/x"
stop_daemon
check "no daemon" exits 3 "ncclinspd running" trace -o "$T/x"
done_testing
