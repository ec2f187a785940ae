#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A killed process leaves a black box; so does everybody who asks for one.
. "$(dirname "$0")/lib.sh"

start_daemon --stall-min 300ms
BOXES=$T/state/blackbox

boxes() { ls "$BOXES" 2>/dev/null | grep -c -- "-$1.json"; }
newest() { ls "$BOXES"/*-"$1".json | tail -1; }
box_is() { jq -e "$2" "$(newest "$1")" >/dev/null || { jq "${3:-.}" "$(newest "$1")" | head -c 2000; return 1; }; }

nice -n 10 "$B/nccl-sim" --plugin "$PLUGIN" "$TOP/tests/scenarios/killed.scn" 2>"$T/sim" &
JOB_PID=$!
started+=("$JOB_PID")

has_box() { [ "$(boxes died)" -gt 0 ]; }
check "a death leaves a black box" wait_until 20 has_box
check "it says what it is, why and when" box_is died \
	'.format == "ncclinsp-snapshot" and .format_version == 1 and .reason == "died" and
	 .written_mono_ns > 0 and (.written_at | test("^20.*Z$")) and .status.version != null'
# On a busy machine it may be killed while it posts: its slots tell the number, no record does.
check "... who died, and in what" box_is died \
	'[.findings[] | select(.kind == "died")][0] | .ranks == [2] and
	 (.evidence.processes[0] | .func == "AllReduce" and (.seq == 19 or .seq == null))'
check "... what was in flight in the dead and in the living" box_is died \
	'[.inflight[] | select(.func == "AllReduce" and .seq == 19) | .rank] | unique | length == 4'
check "... the last operations of each rank, with the first that is kept" box_is died \
	'([.collectives[] | select(.rank == 2 and .complete)] | length == 19) and
	 ([.kept[] | select(.func == "AllReduce") | .first_seq] | all(. == 0))'
check "... members, losses, job, clocks" box_is died \
	'(.comms[0].local_ranks | length == 4) and (.processes | all(.lost.overrun == 0)) and
	 (.host_clocks | length == 4) and (.clocks | type == "array") and (.host_clocks | all(.ns_per_tick > 0))'
check "it is for the daemon's user only" sh -c "[ \$(stat -c %a '$(newest died)') = 600 ]"
check "nothing half written is left" sh -c "! ls -A '$BOXES' | grep -q '^\.'"

ask() { curl -s -X "${1:-POST}" --unix-socket "$SOCK" http://ncclinspd/v1/snapshot; }
ask >"$T/answer"
check "a snapshot on request has a path and a size" \
	jq -e '.size_bytes > 1000 and (.path | endswith("-request.json"))' "$T/answer"
file_is_there() {
	[ "$(stat -c %s "$(jq -r .path "$T/answer")")" -eq "$(jq .size_bytes "$T/answer")" ]
}
check "... and is there when that is said, as large as was said" file_is_there
mv "$BOXES" "$T/away" && : >"$BOXES"
check "what cannot be written is no success, and says why" \
	eval 'ask | jq -e ".error.code == \"unwritable\" and (.error.message | test(\"Not a directory\"))"'
rm "$BOXES"
ask >"$T/answer"
check "a directory that was taken away is made again" file_is_there
mv "$T/away"/* "$BOXES"
check "GET has the same, and writes nothing" eval 'n=$(ls "$T/state/blackbox" | wc -l); ask GET | jq -e ".format == \"ncclinsp-snapshot\"" && [ "$(ls "$T/state/blackbox" | wc -l)" -eq "$n" ]'
for i in 1 2 3 4 5 6 7 8; do ask; done >"$T/many"
check "who asks again and again gets snapshots or an honest no" \
	jq -es 'all(.path != null or .error.code == "busy")' "$T/many"

pkill -9 -P "$JOB_PID"
stop_daemon
check "the daemon ends with all of them written" eval '[ "$(boxes request)" -ge 2 ]'
done_testing
