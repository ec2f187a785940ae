#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What goes over the network: all of it is counted, at levels net and trace alike,
# by whoever carries it out; the network's own figures come back; and a release that
# tells no times has none.
. "$(dirname "$0")/lib.sh"

I=$B/ncclinsp

# Large times, few of them: a busy machine wakes the simulator late, even for the first
# of two stamps, and then the time between them comes out too short.
cat >"$T/line.scn" <<-SCN
	nodes 2
	comm world ranks 0,1 channels 1
	chunk 64Mi
	link net latency 120ms rate 100MB/s
	loop 2
		Send world 1M int8 from 0 to 1
		Send world 5M int8 from 0 to 1
		Send world 12M int8 from 0 to 1
	end
SCN

within() { jq -e "$1 as \$x | \$x > $2 * 0.95 and \$x < $2 * 1.05" >/dev/null; }

# Five runs at most: whoever is late makes figures worse, never better.
figures_come_back() {
	local try
	for try in 1 2 3 4 5; do
		sim "$T/line.scn" 2>"$T/sim" || return 1
		wait_until 5 drained
		api 'peers?direction=send' | jq '.peers | max_by(.pid).fit' >"$T/fit"
		within .latency_ns 120000000 <"$T/fit" && within .rate_gbs 0.1 <"$T/fit" && return
	done
	cat "$T/fit"
	return 1
}

# play LEVEL RELEASE SCENARIO [option...]: what its processes moved is in $T/LEVEL.
play() {
	local level=$1 release=$2
	{ cat "$TOP/tests/scenarios/$3.scn"; echo "nccl $release"; } >"$T/job.scn"
	NCCLINSP_LEVEL=$level sim "${@:4}" "$T/job.scn" 2>"$T/sim" || { cat "$T/sim"; return 1; }
	wait_until 5 drained || return 1
	sed -n 's/.*: process \([0-9]*\) is pid \([0-9]*\)$/{"\2":\1}/p' "$T/sim" | jq -s add >"$T/pids"
	api processes | jq -e --slurpfile pids "$T/pids" '[.processes[]
		| select($pids[0][.pid | tostring] != null) | .lost.overrun] | add == 0' >/dev/null ||
		return 2
	api peers | jq -c --slurpfile pids "$T/pids" '.peers[]
		| .process = $pids[0][.pid | tostring] | .proxy = $pids[0][.proxy_pid | tostring]
		| select(.process != null)' >"$T/$level"
}

# Again where the daemon came too late, on a busy machine, and records were lost.
played() {
	local try r
	for try in 1 2 3; do
		play "$@"
		r=$?
		[ $r -eq 2 ] || break
	done
	return $r
}

moved() { jq -S -c '[.process, .proxy, .rank, .peer, .channel, .direction, .bytes, .steps, .ops]' \
	"$T/$1" | sort; }

all_of() { jq -se "length > 0 and all(.[]; $2)" "$T/$1" >/dev/null || { head -3 "$T/$1"; return 1; }; }

timeless() { jq -c 'del(.schema, .peers[].window_ns)'; }

start_daemon
check "no network yet: peers exits with 4 and says so" eval \
	'"$I" peers >"$T/out" 2>&1; [ $? -eq 4 ] && grep -q "no transfer over a network" "$T/out"'
check "latency and rate come back within 5 %" figures_come_back

for scenario in two-nodes pxn; do
	check "$scenario: it is played at level net" played net 2.30 $scenario
	check "$scenario: it is played at level trace" played trace 2.30 $scenario
	check "$scenario: both levels tell the same transfers" diff <(moved net) <(moved trace)
	for level in net trace; do
		check "$scenario, $level: every step told its times" all_of $level \
			'.timed_steps == .steps and .steps > 0 and .bytes > 0'
		check "$scenario, $level: parts are no more than the whole" all_of $level \
			'.held_ns + .busy_ns <= .active_ns and .longest.gpu_wait_ns <= .time.gpu_wait_ns'
		check "$scenario, $level: what is sent to one is received by the other" eval \
			'diff <(jq -c "select(.direction == \"send\") | [.rank, .peer, .channel, .bytes]" "$T/$level" | sort) \
			      <(jq -c "select(.direction == \"recv\") | [.peer, .rank, .channel, .bytes]" "$T/$level" | sort)'
	done
done
check "pxn: sends are carried out by another process, receives are not" all_of net \
	'(.pid != .proxy_pid) == (.direction == "send")'
check "rank 1 comes late in two-nodes: rank 0's sends wait for their peer" eval \
	'played net 2.30 two-nodes && all_of net "if .rank == 0 and .direction == \"send\" and .steps > 100
		then .bound == \"peer\" and .time.peer_wait_ns > 10 * .time.net_ns / 10 else true end"'

check "NCCL 2.26: it is played" played net 2.26 two-nodes
check "NCCL 2.26: bytes are known, times are not" all_of net '.bytes > 0 and .timed_steps == 0 and
	.comm_id != null and
	.bound == null and .rate_gbs == null and .busy_ns == null and .excess_ns == null and
	.repeats == null and .fit.points == 0 and ([.time[], .longest[]] | unique == [null])'
check "a newer NCCL through API version 2: bytes are not known either" \
	eval 'played net 2.30 two-nodes --api v2 && all_of net ".bytes == null and .timed_steps == 0 and .steps > 0"'

check "the table names the worst link first" eval \
	'"$I" peers --direction send >"$T/out" && sed -n 2p "$T/out" | grep -Eq "^world[:0-9a-f]* +0 +send +1 .* peer$"'
check "json is what the API answered" eval \
	'diff <("$I" peers --by-channel -o json | timeless) <(api peers | timeless)'
check "a link is one row, whose bytes are those of all its channels" eval \
	'"$I" peers -o json | jq -e --argjson each "$(api peers)" "
		def link: [.pid, .proxy_pid, .comm_id, .rank, .peer, .direction];
		(.peers | map([link, .channels, .bytes])) as \$links | any(\$links[]; .[1] > 1) and
		(\$links | sort) == (\$each.peers | group_by(link) |
			map([(.[0] | link), length, (map(.bytes) | if all(. == null) then null else add end)]) | sort)"'
check "csv has as many fields in each line" \
	eval '[ "$("$I" peers -o csv | awk -F, "{print NF}" | sort -u | wc -l)" -eq 1 ]'
check "a rank and its peer can be asked for" \
	eval '"$I" peers --rank 1 --peer 0 -o csv --no-header | awk -F, "\$4 != 1 || \$8 != 0 {exit 1}"'
check "a window that there is not is told with those there are" \
	eval '"$I" peers --window 1s 2>"$T/out"; [ $? -eq 2 ] && grep -q "window WINDOW: 60s or all" "$T/out"'
check "nothing was refused, evicted or left without its process" api_is status \
	'.links.refused == 0 and .links.evicted == 0 and .reconstruct.foreign_orphans == 0'
done_testing
