#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What several users can take of the daemon's memory together: each has so many processes
# with so many communicators, an operation in flight on every one.  Only root can be users.
#
#   bench/quota.sh [USERS [PROCESSES [COMMUNICATORS]]]		B=build
. "$(dirname "$0")/../tests/system/lib.sh"

users=${1:-8} processes=${2:-32} comms=${3:-1000}
[ "$(id -u)" -eq 0 ] || { echo "only root can be several users"; exit 1; }
chmod 755 "$T"
chmod 1777 "$SHM"

flood() {
	setpriv --reuid="$1" --regid="$1" --clear-groups -- \
		"$B/nccl-flood" "$PLUGIN" "$processes" "$comms" >"$T/flood.$1"
}
all_ready() { [ "$(cat "$T"/flood.* | grep -c ready)" -eq "$users" ]; }
rss_mib() { awk '/^VmHWM/ { printf "%.0f", $2 / 1024 }' "/proc/$DAEMON_PID/status"; }

start_daemon --snapshot-interval 0
for ((i = 0; i < users; i++)); do
	flood $((65000 + i)) &
	started+=("$!")
done
wait_until 400 all_ready || { echo "the processes did not start"; exit 1; }
all_read() { api_is status ".ingest.records >= $users * $processes * $comms * 2"; }
wait_until 400 all_read || { echo "not all was read"; api status | jq -c '.ingest'; }
sleep 5
echo "$users users, $processes processes each, $comms communicators in each:" \
	"$(rss_mib) MiB at most, $(api status | jq -r '"\(.reconstruct.comms_refused) communicators" +
		" refused, \(.memory.taken / 1048576 | floor) MiB taken, \(.memory.refused) refusals"')"
