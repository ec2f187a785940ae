#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A process of a job is killed in the middle of an operation.
. "$(dirname "$0")/lib.sh"

SCENARIO=$TOP/tests/scenarios/killed.scn
OP=19			# process 2 dies in this one

start_daemon
"$B/nccl-sim" --plugin "$PLUGIN" "$SCENARIO" 2>"$T/sim" &
JOB_PID=$!
started+=("$JOB_PID")

segments_are() { [ "$(ls "$SHM" | wc -l)" -eq "$1" ]; }
state_is() { api_is processes "[.processes[].state] | sort == $1"; }
check "the killed process is reported as died, the others live" \
	wait_until 10 state_is '["died","live","live","live"]'
DEAD=$(api processes | jq '.processes[] | select(.state == "died") | .pid')

check "its segment is gone" sh -c "! ls '$SHM'/ncclinsp.*.$DEAD.* 2>/dev/null"
check "the segments of the living are there" segments_are 3
check "what it had completed is all there" api_is "collectives?pid=$DEAD&limit=1000" \
	"[.collectives[] | select(.complete) | .seq] | sort == [range($OP)]"
# On a busy machine it may be killed while it posts: then only the call was recorded.
check "what it was in is there, and not complete" api_is "collectives?pid=$DEAD&limit=1000" \
	"[.collectives[] | select(.complete | not) | .seq] | . == [$OP] or . == [null]"
check "what was in flight when it died can be seen" api_is inflight \
	"[.inflight[] | select(.pid == $DEAD)] | length > 0 and any(.[]; .func == \"AllReduce\" and .seq == $OP)"
check "the living hang in the same operation" api_is inflight \
	"[.inflight[] | select(.pid != $DEAD and .func == \"AllReduce\" and .seq == $OP) | .pid] | unique | length == 3"
check "nothing was lost" api_is processes '[.processes[].lost | to_entries[].value] | all(. == 0)'
check "ncclinsp says so" sh -c "'$B/ncclinsp' -S '$SOCK' ps | grep -q died"

pkill -9 -P "$JOB_PID"
check "all four are reported as died" wait_until 5 state_is '["died","died","died","died"]'
check "all segments are gone" wait_until 5 segments_are 0
done_testing
