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

start_daemon
curl -sN --unix-socket "$SOCK" 'http://ncclinspd/v1/stream?kinds=collective' >"$T/stream" &
started+=($!)
sleep 0.2
check "the job runs" timed "$T/with" sim --truth "$T/truth" "$SCENARIO"
check "every process is seen to exit" wait_until 10 drained
sleep 0.5		# the stream's last lines

facts='[.comm_id, .rank, .func, .seq, .count, .datatype, .bytes, .algo, .proto, .channels, .exec_ns] | @tsv'
jq -r ".comm_id |= \"0x\" + . | $facts" "$T/truth" | sort >"$T/true"
jq -r "select(.kind == \"collective\") | $facts" "$T/stream" | sort >"$T/told"
check "100,000 operations were told" test "$(wc -l <"$T/told")" -eq 100000
check "each is told as it was, to the nanosecond" diff -q "$T/true" "$T/told"

keys='[.comm_id, .rank, .func]'
sums() { jq -r "$keys + [.ops, .bytes] | @tsv" | sort; }
jq -s -c "[.[] | .comm_id |= \"0x\" + .] | group_by($keys)[] |
	{comm_id: .[0].comm_id, rank: .[0].rank, func: .[0].func, ops: length, bytes: (map(.bytes) | add)}" \
	"$T/truth" | sums >"$T/true_sums"
api 'summary?window=all&by=comm,rank,func' | jq -c '.rows[]' | sums >"$T/told_sums"
check "operations and bytes add up" diff "$T/true_sums" "$T/told_sums"
check "nothing was lost" api_is processes '[.processes[].lost | to_entries[].value] | all(. == 0)'
stop_daemon

check "the job runs without a daemon" timed "$T/without" sim "$SCENARIO"
with=$(cat "$T/with") without=$(cat "$T/without")
echo "# wall time: $with ms with a daemon, $without ms without"
check "a daemon makes no difference of 10 %" test $((with * 10)) -le $((without * 11))
done_testing
