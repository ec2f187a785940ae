#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What one look at very many communicators costs: processor time of `ncclinsp status`, `ranks`
# and `comms`, and what the daemon spends on them, beside processes that do nothing any more.
#
#   bench/answers.sh [PROCESSES [COMMUNICATORS [LOOKS]]]	B=build COMMANDS="status ranks"
. "$(dirname "$0")/flood.sh"

processes=${1:-8} comms=${2:-1000} looks=${3:-5}

start_flood "$processes" "$comms" --memory-max 2G

# In ms; of the daemon in steps of a clock tick.
daemon_ms() { awk -v hz="$(getconf CLK_TCK)" '{ print ($14 + $15) * 1000 / hz }' "/proc/$DAEMON_PID/stat"; }

# looked COMMAND: processor time in ms of so many looks, and their lines.
looked() {
	local user system i
	TIMEFORMAT='%U %S'
	{ time for ((i = 0; i < looks; i++)); do "$B/ncclinsp" $1 >"$T/out" 2>"$T/err"; done; } 2>"$T/time"
	read -r user system <"$T/time"
	echo $((10#${user/./} + 10#${system/./}))
}

from_ns=$(date +%s%N) from=$(daemon_ms)
sleep 5
idle=$(awk -v ms=$(($(daemon_ms) - from)) -v ns=$(($(date +%s%N) - from_ns)) 'BEGIN { print ms / ns }')
echo "$processes processes with $comms communicators each, load $(cut -d ' ' -f 1 /proc/loadavg); ms of processor time a look"
printf '%-12s %8s %8s %8s %8s\n' command client daemon both lines
for command in ${COMMANDS:-status ranks comms}; do
	from_ns=$(date +%s%N) from=$(daemon_ms) client=$(looked "$command")
	spent=$(($(daemon_ms) - from)) took_ns=$(($(date +%s%N) - from_ns))
	awk -v name="$command" -v c="$client" -v d="$spent" -v idle="$idle" -v ns="$took_ns" -v n="$looks" \
		-v lines="$(wc -l <"$T/out")" 'BEGIN { d -= idle * ns; d = d < 0 ? 0 : d
		printf "%-12s %8.0f %8.0f %8.0f %8d\n", name, c / n, d / n, (c + d) / n, lines }'
done
