#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The order of what the daemon does in processes, records, communicators and rows: valgrind counts its
# instructions for few and for eight times as many, and what grows faster than it is to fails.  No clock is
# looked at.
. "$(dirname "$0")/lib.sh"
have valgrind || skip_all "there is no valgrind to count with"
FEW=64 MANY=512

# counted FUNCTION PROGRAM ARGUMENTS: its instructions, and those of what it calls.
counted() {
	valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="$1" "$B/bench/$2" "${@:3}" 2>&1 | sed -n 's/^.*Collected : //p'
}
# grows TIMES FUNCTION PROGRAM ARGUMENTS: with MANY in place of an N, at most so many times what it is with FEW.
grows() {
	local times=$1 few many
	shift
	few=$(counted "${@/%N/$FEW}")
	many=$(counted "${@/%N/$MANY}")
	awk -v few="$few" -v many="$many" -v times="$times" 'BEGIN {
		printf "%d and %d: %.2f times as many instructions, at most %s\n", few, many, few ? many / few : 0, times
		exit !(few > 1000 && many <= few * times) }' | tee -a "$T/orders"
	[ "${PIPESTATUS[0]}" -eq 0 ]
}
# Eight times, and a little: rows are sorted, and tables outgrow what they began with.  A walk of ten
# instructions over all rows, for each row, is more than that.
PROPORTION=8.5

check "a poll of idle processes is in proportion to them" grows $PROPORTION drain_counted bench_drain --count N 0
check "... and of one that writes, to its records" grows $PROPORTION drain_counted bench_drain --count 1 N
check "an operation costs not three times as much among eight times as many communicators" grows 2.3 feed_run bench_pipeline --mix 1 N
for path in 'summary?window=60s&by=comm,rank' comms ranks 'peers?window=60s'; do
	check "the answer of /v1/${path%%[?]*} is in proportion to its rows" grows $PROPORTION answer_counted bench_answer --rows N "/v1/$path"
done
check "... and of /metrics" grows $PROPORTION answer_counted bench_answer --rows N /metrics
sed 's/^/# /' "$T/orders"
done_testing
