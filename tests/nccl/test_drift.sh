#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who sends to itself makes NCCL's counters drift from those of the GPU, so that it
# reads the stamps of other kernels: no such time is told.
. "$(dirname "$0")/lib.sh"

while read -r layout level; do
	export NCCLINSP_LEVEL=$level
	start_daemon
	play "$layout" drift
	check "$layout $level: the job runs" ran
	check "$layout $level: every operation is told as it was" same
	check "$layout $level: what the GPU did is told to have been when it was" times_are_true
	check "$layout $level: times before the drift are told" \
		jq -e -s 'any(.[]; .timing_source == "kernel_gpu")' "$T/when"
	check "$layout $level: others are refused" \
		jq -e -s 'any(.[]; .stamps_refused > 0) and
			all(.[]; .stamps_refused == 0 or .timing_source != "kernel_gpu")' "$T/when"
	stop_daemon
done <<-END
	4x1 net
	2x2 trace
END
done_testing
