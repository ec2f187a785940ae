#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The wall clock is set, by a day, in both directions, while a job runs: nothing is lost, nothing
# is found, and what is written goes on being written, dated by the clock as it is then.
. "$(dirname "$0")/lib.sh"

DAY=86400
set_clock() { perl -e 'print pack("q", $ARGV[0] * 1e9)' -- "$1" >"$T/set.new" && cat "$T/set.new" 1<>"$T/set"; }
perl -e 'print pack("q", 0)' >"$T/set"
export SKEWED_CLOCK_FILE=$T/set
LD_PRELOAD=$B/skewed-clock.so start_daemon --snapshot-interval 1s --stall-min 1s --straggler-window 1s
unset SKEWED_CLOCK_FILE

sed 's/^loop .*/loop 100000/' "$TOP/tests/scenarios/steady.scn" >"$T/steady.scn"
"$B/nccl-sim" --plugin "$PLUGIN" "$T/steady.scn" 2>"$T/sim" &
started+=("$!")
SNAPSHOTS=$T/state/snapshots
# dated DAYS: the newest snapshot is of that day from now.
dated() { ls "$SNAPSHOTS" | grep -q -- "-$(date -u -d "$1 day" +%Y%m%dT)"; }
is_read() { api_is processes '[.processes[] | select(.records > 50)] | length == 4'; }
check "a job is seen" wait_until 20 is_read
check "snapshots are written" wait_until 20 dated 0
uptime_ns() { api status | jq .uptime_ns; }
records() { api status | jq .ingest.records; }
goes_on() { [ "$(records)" -gt "$1" ]; }
# at DAYS: the daemon says that it is then, and began so long before as it runs.
at() {
	api_is status "((.started_at | sub(\"[.][0-9]+Z\"; \"Z\") | fromdate) + .uptime_ns / 1e9
		- $(date +%s) - $1 * $DAY) | fabs < 5"
}

for days in 1 -1 0; do
	up=$(uptime_ns) read=$(records)
	set_clock $((days * DAY))
	check "[$days] it says what time it is now" wait_until 5 at "$days"
	check "[$days] it has been up as long as before, and a moment" \
		eval '[ "$(uptime_ns)" -gt "$up" ] && [ $(($(uptime_ns) - up)) -lt 20000000000 ]'
	check "[$days] records are read" wait_until 10 goes_on "$read"
	check "[$days] snapshots are written, and dated so" wait_until 10 dated "$days"
done
check "nothing was lost" api_is status '.ingest.lost == 0 and .ingest.rejected == 0'
check "nothing is found that is not" api_is findings '.findings | map(select(.kind != "loss")) == []'
stop_daemon
check "it ends well" test $? -eq 0
done_testing
