#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two plugins behind one NCCL: each is called as if it were alone.  The second one is the plugin
# that records every call.
. "$(dirname "$0")/lib.sh"

CHAIN=$B/libnccl-profiler-insp-chain.so
RECORDER=$B/libnccl-profiler-record.so

# What the plugin of the recording was told, without times, which differ, and without handles that
# nobody gave, which NCCL up to 2.27 hands on: the second plugin is spared those.
print() { "$B/nccl-replay" --print "$1" | cut -d' ' -f2- | grep -v ' 0x[0-9a-f]*$'; }

# as_alone RECORDING API: played back, the second plugin gets what it gets alone.
as_alone() {
	rm -f "$T/alone.rec" "$T/second.rec"
	NCCLINSP_RECORD=$T/alone.rec "$B/nccl-replay" --speed 0 --api "$2" --plugin "$RECORDER" "$1" &&
		NCCLINSP_RECORD=$T/second.rec NCCLINSP_CHAIN=$RECORDER \
			"$B/nccl-replay" --speed 0 --api "$2" --plugin "$CHAIN" "$1" || return 1
	print "$T/alone.rec" >"$T/alone"
	print "$T/second.rec" >"$T/second"
	[ "$(wc -l <"$T/alone")" -gt 500 ] && diff "$T/alone" "$T/second"
}

start_daemon
for api in v4 v5 v6; do
	rm -rf "$T/rec" && mkdir "$T/rec"
	NCCL_PROFILE_EVENT_MASK=0x7fff NCCLINSP_RECORD=$T/rec/%p.rec "$B/nccl-sim" --plugin "$RECORDER" \
		--api "$api" "$TOP/tests/scenarios/smoke.scn" 2>"$T/sim"
	[ "$api" != v4 ] || cp -r "$T/rec" "$T/v4"
	for level in ops trace; do
		one=$(echo "$T"/rec/*.rec | cut -d' ' -f1)
		export NCCLINSP_LEVEL=$level
		check "$api, ours at $level: the second plugin gets the calls that it gets alone" \
			as_alone "$one" "$api"
		wait_until 5 drained
		new_rows "$T/both"
		"$B/nccl-replay" --plugin "$B/libnccl-profiler-insp.so" "$one" 2>"$T/sim"
		wait_until 5 drained
		new_rows "$T/true"
		NCCLINSP_RECORD=$T/rec/$level.out NCCLINSP_CHAIN=$RECORDER \
			"$B/nccl-replay" --plugin "$CHAIN" "$one" 2>"$T/sim"
		wait_until 5 drained
		new_rows "$T/told"
		check "$api, $level: ours tells what it tells alone" \
			eval '[ -s "$T/true" ] && diff "$T/true" "$T/told"'
	done
done
# NCCL starts the first step of a receive again where the network was not ready.
mkdir "$T/again"
cat >"$T/again.scn" <<'END'
nodes 2
seed 1
comm world ranks 0-1 channels 8
loop 3
	AllReduce world 1Mi float32
end
END
NCCL_PROFILE_EVENT_MASK=0x7fff NCCLINSP_RECORD=$T/again/%p.rec "$B/nccl-sim" --plugin "$RECORDER" \
	--api v6 "$T/again.scn" 2>"$T/sim"
check "of a step that is started again the second plugin gets the end of the newer one" \
	as_alone "$(echo "$T"/again/*.rec | cut -d' ' -f1)" v6
unset NCCLINSP_LEVEL
check "where ours has nowhere to record, the second plugin gets all the same" eval \
	'NCCLINSP_SHM_DIR=$T/nowhere as_alone "$one" v6'
wait_until 5 drained
new_rows "$T/both"

mkdir "$T/apart"
cp "$CHAIN" "$T/apart"
CHAIN=$T/apart/$(basename "$CHAIN") check "also where ours is not there at all" eval \
	'for one in "$T"/v4/*.rec; do as_alone "$one" v4 || exit 1; done'

# Ours is switched off and on while the other one goes on.
NCCLINSP_RECORD=$T/steered.%p.rec NCCLINSP_CHAIN=$RECORDER NCCLINSP_LEVEL=off PLUGIN=$CHAIN \
	sim "$TOP/tests/scenarios/smoke.scn" 2>"$T/sim"
check "with ours off, the second plugin gets its operations" eval \
	'[ "$(for f in "$T"/steered.*.rec; do print "$f"; done | grep -c " Coll ")" -gt 50 ]'
new_rows "$T/told"
check "and ours none" test ! -s "$T/told"

# refused CHAIN TEXT: that is said, and ours records.
refused() {
	NCCLINSP_CHAIN=$1 "$B/nccl-replay" --plugin "$CHAIN" "$one" >"$T/said" 2>&1
	grep -F "$2" "$T/said" || { cat "$T/said"; return 1; }
	wait_until 5 drained
	new_rows "$T/told"
	[ -s "$T/told" ]
}
check "a second plugin that is not there is told" refused nothere \
	"NCCLINSP_CHAIN=nothere does not load, so there is no second plugin"
check "one that is none is told" refused "$B/skewed-clock.so" "has no ncclProfiler_v6, which this NCCL asks for"
check "so is ours" refused insp-chain "names ncclinsp's own plugin"
check "and that none is named" refused "" "NCCLINSP_CHAIN is not set"
check "nothing was lost or refused" api_is status '.ingest.lost == 0 and .ingest.rejected == 0'
done_testing
