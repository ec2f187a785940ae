#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `make demo` without a terminal: says which rank is slow, in both of its jobs, and
# leaves nothing behind.
. "$(dirname "$0")/lib.sh"

# As a user calls it: with none of what other tests set.
unset NCCLINSP_SHM_DIR NCCLINSP_SOCKET NCCLINSP_CONTROL NCCLINSP_KERNELS
mkdir "$T/tmp"
traces() { ls -d /dev/shm/ncclinsp-demo.* "$T"/tmp/* 2>/dev/null; }

check "the demo runs" sh -c "TMPDIR='$T/tmp' B='$B' FRAMES=2 '$TOP/tests/demo.sh' </dev/null >'$T/frames'"
# A verdict may be broken into two lines.
said() { tr '\n' ' ' <"$T/frames" | tr -s ' ' | grep -oE "$1" | wc -l; }
check "rank 0 of the first job is named in every frame" \
	test "$(said '! suspected: job 4711: rank 0 of world \(pid [0-9]+, [^ ]+\) comes last in [0-9]+ % of AllReduce, 13\.[0-9]ms after')" -eq 2
check "rank 1 of a data-parallel pair of the second too" \
	test "$(said '! suspected: job 4712: rank 1 of dp \(pid [0-9]+, [^ ]+\) comes last in [0-9]+ % of ReduceScatter')" -eq 2
check "nobody else is" test "$(said 'comes last in')" -eq 4
check "there are two jobs" test "$(said ' jobs 2 ')" -eq 2
check "nothing is left behind" test -z "$(traces)"

# Who closes the terminal ends it in the middle, and once more while it tidies up.
gone() { [ -z "$(traces)" ]; }
closed() {
	local pid signal
	TMPDIR=$T/tmp B=$B "$TOP/tests/demo.sh" >/dev/null 2>&1 </dev/null &
	pid=$!
	wait_until 10 sh -c "test -e $T/tmp/*/log" || return 1
	for signal in TERM HUP TERM HUP TERM HUP; do
		kill -"$signal" "$pid" 2>/dev/null
		sleep 0.01
	done
	wait "$pid"
	gone || { traces; return 1; }
}
check "nor where its terminal is closed" closed
done_testing
