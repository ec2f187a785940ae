#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A few nodes' scrapes, played into a real Prometheus and a real VictoriaMetrics (`make bench-fleet`:
# a thousand).
. "$(dirname "$0")/lib.sh"
for program in prometheus victoria-metrics; do
	command -v "$program" >/dev/null || skip_all "there is no $program (Debian: $program)"
done
unset NCCLINSP_SHM_DIR NCCLINSP_SOCKET NCCLINSP_CONTROL

# A slow machine does not answer twenty scrapes in two seconds.
[ "$("$TOP/tests/at_once.sh" 1)" -gt 1 ] && interval=2 || interval=5
NODES=20 INTERVAL=$interval TURNS=8 timeout 300 "$TOP/tests/fleet/cost.sh" >"$T/said" 2>"$T/err" &
started+=("$!")
wait "$!"
cat "$T/err" >>"$T/said"
says() { grep -E -- "$1" "$T/said" || { cat "$T/said"; return 1; }; }
figure() { sed -n "s/^$1  *//p" "$T/said"; }
within() { awk -v v="$(figure "$1")" -v least="$2" -v most="$3" 'BEGIN { exit !(v >= least && v <= most) }'; }
check "a node of eight ranks has at most 150 series" within "series of a node" 130 150
for engine in Prometheus VictoriaMetrics; do
	check "$engine hears of every node" says "^$engine: nodes that answer  *20$"
	check "... keeps what they said" within "$engine: samples" 15000 40000
	check "... and says who is late among all" within "$engine: who is late over all nodes, CPU s" 0 5
done
check "the table says what 10,000 of them cost" says '^\| 10000 \| 1[0-9]{6} \|'
done_testing
