#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# 100,000 operations over 4 processes: what the daemon says of each is the truth,
# and the sums are too.  Then the same job with nobody reading.
. "$(dirname "$0")/lib.sh"

SCENARIO=$TOP/tests/scenarios/bulk.scn

timed() {	# FILE command...: wall-clock ms of the command
	local from
	from=$(date +%s%N)
	"${@:2}" 2>"$T/sim" || { cat "$T/sim"; return 1; }
	echo $((($(date +%s%N) - from) / 1000000)) >"$1"
}

facts='[.comm_id, .rank, .func, .seq, .count, .datatype, .bytes, .algo, .proto, .channels, .exec_ns] | @tsv'
keys='[.comm_id, .rank, .func]'
sums() { jq -r "$keys + [.ops, .bytes] | @tsv" | sort; }

# Lines that came, and those that the stream itself says are missing.
lines() { grep -c '^{"kind":"collective"' "$T/stream"; }
missing() { grep '^{"kind":"lost"' "$T/stream" | jq -s 'map(.n) | add // 0'; }
all_accounted() {
	[ $(($(lines) + $(missing))) -eq 100000 ] || { echo "$(lines) + $(missing)"; return 1; }
}

# The job once, beside a daemon of its own, which is left running.
play() {
	start_daemon
	curl -sN --unix-socket "$SOCK" 'http://ncclinspd/v1/stream?kinds=collective' >"$T/stream" &
	started+=($!)
	sleep 0.2
	timed "$T/with" sim --truth "$T/truth" "$SCENARIO" && wait_until 10 drained || return 1
	wait_until 15 all_accounted
	lost=$(api processes | jq '[.processes[].lost | to_entries[].value] | add')
	missing=$(missing)
}

# Again, where the daemon says that it was starved and did not get all.
for try in 1 2 3; do
	[ $try -eq 1 ] || stop_daemon
	play >"$T/said"
	check "the job runs, and every process is seen to exit" [ $? -eq 0 ]
	[ "$lost$missing" = 00 ] && break
	echo "# try $try: $lost records and $missing lines are told to be lost"
done

jq -r ".comm_id |= \"0x\" + . | $facts" "$T/truth" | sort >"$T/true"
jq -r "select(.kind == \"collective\") | $facts" "$T/stream" | sort >"$T/told"
# By communicator, rank and function: operations, and the bytes of the seventh column.
awk -F'\t' '{ at = $1 FS $2 FS $3; ops[at]++; bytes[at] += $7 }
	END { for (at in ops) printf "%s\t%d\t%.0f\n", at, ops[at], bytes[at] }' "$T/true" |
	sort >"$T/true_sums"
api 'summary?window=all&by=comm,rank,func' | jq -c '.rows[]' | sums >"$T/told_sums"
stop_daemon

whole() {	# "sentence" command...: what only holds where no record was lost
	if [ "$lost" -eq 0 ]; then check "$@"; else skip "$1" "the daemon was starved three times"; fi
}
whole "100,000 operations are told, or told to be missing" all_accounted
whole "each is told as it was, to the nanosecond" eval '! comm -13 "$T/true" "$T/told" | grep .'
whole "operations and bytes add up" diff "$T/true_sums" "$T/told_sums"

# Both ways in turn, the quicker of each: what else runs here comes and goes.
least() { [ -s "$1" ] && [ "$(cat "$1")" -le "$(cat "$2")" ] || cp "$2" "$1"; }
within() { [ $(($(cat "$T/with") * 10)) -le $(($(cat "$T/without") * 11)) ]; }
check "the job runs without a daemon" timed "$T/without" sim "$SCENARIO"
for try in 1 2 3; do
	within && break
	start_daemon >/dev/null
	timed "$T/now" sim "$SCENARIO" && least "$T/with" "$T/now"
	stop_daemon >/dev/null
	timed "$T/now" sim "$SCENARIO" && least "$T/without" "$T/now"
done
echo "# wall time: $(cat "$T/with") ms with a daemon, $(cat "$T/without") ms without"
check "a daemon makes no difference of 10 %" within
done_testing
