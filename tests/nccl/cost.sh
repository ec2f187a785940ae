#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What posting an operation costs inside the real NCCL: without a plugin, with one
# that does nothing but asks for the same events, and with ours, at each level.  They
# take turns, ROUNDS (7) times.  Ratios are to what went without one in the same
# round: of the best of all rounds, and the median of all rounds.  Then the table of tests/gpu/
# for 64 bytes, of P2P and AllReduce on one node and two, with the callbacks of each.
set -eu
B=${B:-build}
ROUNDS=${ROUNDS:-7}
T=$(mktemp -d)
SHM=$(mktemp -d /dev/shm/ncclinsp-cost.XXXXXX)
trap 'rm -rf "$T" "$SHM"' EXIT
export NCCLINSP_SHM_DIR=$SHM FAKE_GPU_SYNC=1 NCCL_PROTO=Simple NCCL_SOCKET_IFNAME=lo

# run WHO LEVEL PLUGIN: one line, "WHO LEVEL STREAMED RESTED".
run() {
	rm -f "$T"/id.*
	echo "$1 $2 $(NCCLINSP_LEVEL=$2 NCCL_PROFILER_PLUGIN=$3 timeout -k 1 60 "$B/nccl/nccl-cost" "$T" |
		grep -v version)"
}

round() {
	run none - none
	for level in off ops kernel net trace; do
		run empty $level "$B/gpu/libnccl-profiler-empty.so"
		run ours $level "$B/libnccl-profiler-insp.so"
	done
}

for ((i = 0; i < ROUNDS; i++)); do
	round
done | awk '
	function median(list, n,   i, j, t) {
		for (i = 2; i <= n; i++)
			for (j = i; j > 1 && list[j - 1] > list[j]; j--) {
				t = list[j]; list[j] = list[j - 1]; list[j - 1] = t
			}
		return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
	}
	function least(a, b) { return a == "" || b < a ? b : a }
	function figure(who, ns, none,   i) {
		for (i = 1; i <= rounds; i++)
			ratio[i] = ns[who, i] / none[i]
		return sprintf("%8d %7.2f %7.2f", best[who, ns[who, "is"]],
			best[who, ns[who, "is"]] / best["none -", ns[who, "is"]], median(ratio, rounds))
	}
	{
		who = $1 " " $2
		if (who == "none -") { rounds++; none_s[rounds] = $3; none_r[rounds] = $4 }
		if (!(who in seen)) { seen[who]; order[++n] = who }
		streamed[who, rounds] = $3; rested[who, rounds] = $4
		streamed[who, "is"] = "s"; rested[who, "is"] = "r"
		best[who, "s"] = least(best[who, "s"], $3); best[who, "r"] = least(best[who, "r"], $4)
	}
	END {
		print "                 one after the other        with rests between"
		print "plugin level    best ns   ratio  median   best ns   ratio  median"
		for (i = 1; i <= n; i++) {
			split(order[i], part, " ")
			printf "%-6s %-7s %s  %s\n", part[1], part[2],
				figure(order[i], streamed, none_s), figure(order[i], rested, none_r)
		}
	}'

"$(dirname "$0")/../gpu/bundle.sh" "$B" "$T/bundle"
env -u FAKE_GPU_SYNC GPU_PRELOAD="$(realpath "$B/nccl/libfake-cuda.so")" COST_BYTES=64 ROUNDS="$ROUNDS" \
	"$T/bundle/run.sh" "$T/results" cost | sed -n '/^cost of 64 bytes/,$p'
