#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Several users have so much in flight that the daemon would grow beyond its ceiling: it
# stays below, says what it gave up, and the next job is watched once they are gone.
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" -eq 0 ] || skip_all "only root can be several users"
chmod 755 "$T"
chmod 1777 "$SHM"
as() { setpriv --reuid="$1" --regid="$1" --clear-groups -- "${@:2}"; }
as 65000 test -x "$B/nccl-flood" -a -r "$PLUGIN" || skip_all "other users may not enter $B"

rss_mib() { awk '/^VmHWM/ { printf "%.0f", $2 / 1024 }' "/proc/$DAEMON_PID/status"; }
all_ready() { [ "$(cat "$T"/flood.* | grep -c ready)" -eq 4 ]; }

# 16 MiB are for jobs; without a ceiling these would take 200.
start_daemon --memory-max 176MiB --snapshot-interval 0
for ((i = 0; i < 4; i++)); do
	setpriv --reuid=$((65000 + i)) --regid=65000 --clear-groups -- "$B/nccl-flood" \
		"$PLUGIN" 40 1000 >"$T/flood.$i" 2>&1 &
	started+=("$!")
	floods+=("$!")
done
check "four users have 160,000 operations in flight" wait_until 120 all_ready
check "all of it is read" wait_until 60 api_is status '.ingest.records == 160000 * 2'
check "the account is full" \
	api_is status '.memory.taken < .memory.most * 1.1 and .memory.taken > .memory.most * 0.9'
check "the daemon stays below its ceiling" [ "$(rss_mib)" -lt 64 ]
echo "# $(rss_mib) MiB at most"
check "what found no room is counted" api_is status ".memory.refused > 0"
check "... and for each process what it lost by it" \
	api_is processes '[.processes[].lost | .evicted + .rejected] | add > 0'
kill -9 "${floods[@]}"
check "they are seen to die" wait_until 60 api_is status '.ingest.segments == 0'
cp "$TOP/tests/scenarios/steady.scn" "$T/steady.scn"
as 65010 "$B/nccl-sim" --plugin "$PLUGIN" "$T/steady.scn" >/dev/null 2>&1 &
started+=("$!")
followed() { api comms | jq -e '[.comms[].local_ranks[].last_seq | select(. != {})] | length >= 4'; }
check "the next job is followed" wait_until 30 followed
check "what it needed was taken from those that had ended" \
	api_is status '.memory.forgotten > 0 or .memory.taken < .memory.most / 2'
done_testing
