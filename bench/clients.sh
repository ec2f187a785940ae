#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How long clients wait for /metrics and /v1/summary while a simulated job of 8 processes writes
# 60,000 records a second: so many clients at once, each over a connection of its own.
#
#   bench/clients.sh [CLIENTS [REQUESTS]]		B=build
. "$(dirname "$0")/../tests/system/lib.sh"

clients=${1:-8} requests=${2:-100}

start_daemon
"$B/nccl-sim" --plugin "$PLUGIN" "$TOP/tests/scenarios/training.scn" >/dev/null 2>&1 &
started+=("$!")
wait_until 60 api_is summary '.rows | length > 8' || { echo "the job did not start"; exit 1; }
sleep 5		# windows fill

echo "$clients clients, load $(cut -d ' ' -f 1 /proc/loadavg), $(api status | jq .ingest.records) records; ms"
printf '%-28s %8s %8s %8s\n' request p50 p99 longest
for target in metrics 'v1/summary?window=60s' v1/summary; do
	waiting=()
	for ((i = 0; i < clients; i++)); do
		curl -sf --unix-socket "$SOCK" -o /dev/null -w '%{time_total}\n' \
			"http://ncclinspd/$target#[1-$requests]" >"$T/times.$i" &
		waiting+=("$!")
	done
	wait "${waiting[@]}" || { echo "$target was not answered"; exit 1; }
	sort -n "$T"/times.* | awk -v name="$target" '{ t[NR] = $1 * 1000 } END {
		printf "%-28s %8.1f %8.1f %8.1f\n", name, t[int(NR / 2) + 1], t[int(NR * 0.99) + 1], t[NR] }'
done
