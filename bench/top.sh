#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `ncclinsp top` costs: its processor time on a terminal of 120 columns and 40 lines,
# one look a second, beside a simulated job of 64 processes in 9 communicators.
#
#   bench/top.sh [LOOKS]      B=build SCREENS=4:in-flight FLOOD="8 1000"
#
# With FLOOD beside so many processes with so many communicators each, one operation on each.
# Processor time and not wall time: how busy the machine is matters little.
. "$(dirname "$0")/flood.sh"

is_there() {
	api_is summary '[.rows[].comm_id] | unique | length == 9' &&
		api_is peers '.peers | length > 0'
}

start_job() {
	start_daemon
	setsid env -u NCCLINSP_LEVEL "$B/nccl-sim" --plugin "$PLUGIN" "$TOP/bench/top.scn" \
		>/dev/null 2>&1 &
	JOB=$!
	trap 'kill -- "-$JOB" 2>/dev/null; finish' EXIT
	wait_until 60 is_there || { echo "the job did not start"; exit 1; }
	sleep 10		# all windows have something
}

looks=${1:-30}
if [ -n "${FLOOD:-}" ]; then
	start_flood $FLOOD
else
	start_job
fi

# spent SCREEN LOOKS: processor time in ms of so many looks at that screen.
spent() {
	local user system
	TERM=screen-256color script -qec "bash -c 'stty columns 120 rows 40
		TIMEFORMAT=\"%U %S\"; { time $B/ncclinsp top -d 1 -n $2; } 2>$T/time'" /dev/null \
		>/dev/null < <(sleep 0.3; printf %s "$1"; exec sleep $(($2 + 1)))
	read -r user system <"$T/time"
	echo $((10#${user/./} + 10#${system/./}))
}

echo "load $(cut -d ' ' -f 1-3 /proc/loadavg), $(api peers?window=60s | jq '.peers | length') links"
printf '%-12s %14s %14s\n' screen "ms per look" "% of a core"
for screen in ${SCREENS:-1:ranks 2:operations 3:peers 4:in-flight 5:findings}; do
	once=$(spent "${screen%%:*}" 1)
	all=$(spent "${screen%%:*}" "$looks")
	awk -v name="${screen#*:}" -v ms="$((all - once))" -v n="$((looks - 1))" 'BEGIN {
		printf "%-12s %14.2f %14.2f\n", name, ms / n, ms / n / 10 }'
done
