#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job that crashes again and again, 500 processes a second for ten seconds, and one whose
# processes begin and die all at once.  A daemon built with the address sanitizer reads them
# as well, at the same time, where there is one.
. "$(dirname "$0")/lib.sh"

SANITIZED=$B-address/ncclinspd
KEPT=64			# of those that ended
SECOND_SOCK=$T/second.sock

# second PATH: the sanitized one's answer, as api.
second() { curl -s -m 30 --unix-socket "$SECOND_SOCK" "http://ncclinspd/v1/$1"; }

start_second() {
	ASAN_OPTIONS=detect_stack_use_after_return=1 NCCLINSP_CONTROL=$T/second-control \
		"$SANITIZED" --foreground --socket "$SECOND_SOCK" --shm-dir "$SHM" \
		--state-dir "$T/second-state" --auto-thrift no --containers no 2>>"$T/second.log" &
	SECOND_PID=$!
	started+=("$SECOND_PID")
	wait_until 30 second status
}

# flood PROCESSES COMMUNICATORS: in the background; returns when all have begun.
flood() {
	rm -f "$T/flood"
	"$B/nccl-flood" "$PLUGIN" "$@" >"$T/flood" 2>&1 &
	FLOOD_PID=$!
	started+=("$FLOOD_PID")
	wait_until 120 grep -q ready "$T/flood"
}

# each CHECK: api, and second if it is there.
each() {
	"$1" api && { [ -z "${SECOND_PID:-}" ] || "$1" second; }
}
holds() { "$1" processes | jq -e "[.processes[] | select(.state == \"live\")] | length == $2"; }
only_the_job_lives() { holds "$1" 1; }
few_are_kept() { "$1" processes | jq -e ".processes | length <= 1 + $KEPT"; }
# What the unit's watchdog waits is the least that a busy machine must give it.
all_are_answered() { sort -n "$T/answered" | uniq -c && ! grep -qE '^([3-9].|...)$' "$T/answered"; }
nothing_is_left() { [ "$(ls "$SHM" | wc -l)" -eq 1 ]; }

start_daemon
[ ! -x "$SANITIZED" ] || start_second
flood 1 4
check "a job is read" wait_until 10 each only_the_job_lives

# Whole seconds that the slowest answer took; 99: there was none.
ask_until_told() {
	while [ ! -e "$T/told" ]; do
		local from=$SECONDS
		api_answers && echo $((SECONDS - from)) || echo 99
		sleep 0.2
	done >"$T/answered"
}
ask_until_told &
ASKER=$!
started+=("$ASKER")
check "500 processes a second die for ten seconds, as far as this machine can" \
	ends 0 "$B/nccl-flood" "$PLUGIN" churn 500 10
sed 's/^/# /' "$T/out"
check "... and the job is still read, and nobody else" wait_until 30 each only_the_job_lives
check "... none of them has left a segment" wait_until 30 nothing_is_left
check "... the last of them are remembered" each few_are_kept

flood 300 2
check "300 processes begin at once" grep -q ready "$T/flood"
several_live() { "$1" processes | jq -e '[.processes[] | select(.state == "live")] | length > 150'; }
check "... as many are read as may be" wait_until 60 each several_live
pkill -9 -P "$FLOOD_PID"
check "they die at once, and the job is still read" wait_until 60 each only_the_job_lives
check "... none of them has left a segment" wait_until 60 nothing_is_left
check "... the last of them are remembered" each few_are_kept

touch "$T/told"
wait "$ASKER"
check "every question was answered meanwhile" all_are_answered
check "the job has lost nothing" api_is processes \
	'.processes[] | select(.state == "live") | .lost | to_entries | all(.value == 0)'
stop_daemon
check "the daemon ends well" test $? -eq 0
if [ -n "${SECOND_PID:-}" ]; then
	kill "$SECOND_PID"
	wait "$SECOND_PID"
	check "so does the sanitized one" test $? -eq 0
	check "... which has nothing to report" sh -c "! grep -E 'ERROR|runtime error' '$T/second.log'"
else
	skip "so does the sanitized one" "it is not built: make SAN=address"
	skip "... which has nothing to report" "it is not built"
fi
done_testing
