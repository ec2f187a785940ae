#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The daemon as a program: options, one at a time, background, clean end.
. "$(dirname "$0")/lib.sh"

D=$B/ncclinspd
here=(--socket "$SOCK" --shm-dir "$SHM" --state-dir "$T/state" --containers no)

check "help names every option" exits 0 '--state-dir' "$D" --help
check "the version is told" exits 0 '^ncclinspd [0-9]+\.' "$D" --version
check "an unknown option is bad usage" exits 2 'ncclinspd --help' "$D" --nonsense
check "one that is nearly one is told" exits 2 'is it --stall-min\?' "$D" --stall-mni 3
check "one without its value is not" eval '! exits 2 "is it" "$D" --stall-min && exits 2 "ncclinspd --help" "$D" --stall-min'
check "an argument is bad usage" exits 2 'unexpected argument "now"' "$D" now
check "a log level that does not exist is bad usage" exits 2 'err, warn, info' "$D" --log-level loud
check "a socket path that is too long is refused" exits 2 'at most 107 bytes' \
	"$D" -f --state-dir "$T/state" --socket "$T/$(printf 'x%.0s' {1..120})"
check "a state directory that cannot be made is refused" exits 1 'state-dir' \
	"$D" -f --socket "$SOCK" --state-dir /proc/nowhere
touch "$T/precious"
check "a plain file in the socket's place is left alone" exits 1 'cannot listen' \
	"$D" -f --state-dir "$T/state" --socket "$T/precious"
check "it is still there" test -f "$T/precious"

# Segments may come later: no reason to end, but one to say so, once.
"$D" -f "${here[@]}" --shm-dir "$T/shm/later" 2>"$T/log" &
LATER=$!
started+=("$LATER")
check "a directory for segments that is not there is told" wait_until 20 \
	grep -q "no jobs are seen, trying again shm-dir=$T/shm/later error=\"No such file" "$T/log"
mkdir -p "$T/shm/later"
check "... and that it came" wait_until 20 grep -q "jobs are seen from now on shm-dir=$T/shm/later" "$T/log"
check "... each once" test "$(grep -c "shm-dir=" "$T/log")" -eq 2
kill "$LATER"
wait "$LATER"

start_daemon
check "a second one is refused and names the first" exits 1 "pid=$DAEMON_PID" \
	"$D" -f "${here[@]}"
check "the second one leaves the first its socket" api_answers
check "anybody may connect" test "$(stat -c %a "$SOCK")" = 666
# Those that by default end a process, and mean neither a fault nor its end.
for signal in USR1 USR2 ALRM VTALRM PROF XFSZ PIPE IO PWR STKFLT RTMIN RTMAX; do
	kill "-$signal" "$DAEMON_PID"
done
check "no other signal ends it" api_answers
stop_daemon TERM
check "SIGTERM ends it with status 0" test $? -eq 0
check "the socket is gone" test ! -e "$SOCK"

start_daemon
stop_daemon INT
check "SIGINT ends it with status 0" test $? -eq 0

start_daemon
kill -KILL "$DAEMON_PID"
wait "$DAEMON_PID" 2>/dev/null
check "a killed one leaves its socket" test -S "$SOCK"
start_daemon
check "and the next one takes its place" api_answers
stop_daemon TERM

check "in the background it answers when its parent returns" \
	sh -c '"$0" "$@" && curl -sf --unix-socket "$2" http://x/v1/status' "$D" "${here[@]}"
pid=$(cat "$SOCK.lock")
check "it keeps its log in the state directory" test -f "$T/state/ncclinspd.log"
check "in the background, too, there is one" exits 1 "already running.*pid=$pid" \
	"$D" "${here[@]}"
kill "$pid"
check "it ends when asked to" wait_until 5 sh -c '! kill -0 "$0"' "$pid"

start_daemon
sim "$TOP/tests/scenarios/smoke.scn" >/dev/null 2>&1
check "what a job wrote is read" wait_until 5 api_is status '.ingest.records > 0'
check "nothing of it was lost or refused" api_is status '.ingest.lost == 0 and .ingest.rejected == 0'
check "its processes are known to have exited" wait_until 5 drained
check "no segment is left behind" wait_until 5 sh -c '[ -z "$(ls "$0")" ]' "$SHM"
head -c 100000 /dev/urandom >"$SHM/ncclinsp.$(id -u).1.1"
ln -s /etc/passwd "$SHM/ncclinsp.$(id -u).1.2"
check "rubbish in the directory is refused and counted" wait_until 8 api_is status '.ingest.rejected == 2'
check "and does no harm" api_is processes '.processes | length > 0'
stop_daemon TERM
check "it ends with status 0 after all that" test $? -eq 0

done_testing
