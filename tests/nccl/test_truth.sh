#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a job does through the real NCCL is what the daemon tells, in every layout
# and at every level.
. "$(dirname "$0")/lib.sh"

# Again, where stamps are refused: it happens where NCCL's progress thread starves.
play_calmly() {
	local try
	for try in 1 2 3; do
		start_daemon
		play "$@"
		api_is status '.reconstruct.stamps_refused == 0' >"$T/said" && return
		echo "# try $try: $(jq -c .reconstruct.stamps_refused_by "$T/said")"
		[ $try -eq 3 ] || stop_daemon
	done
}

# By shared memory only; over the network only; both.
while read -r layout level; do
	export NCCLINSP_LEVEL=$level
	play_calmly "$layout" basic
	check "$layout $level: the job runs" ran
	check "$layout $level: every operation is told as it was" same
	[ "$level" = ops ] ||
		check "$layout $level: all were seen to end and timed by the GPU" all_told \
			'.complete == true and (.fused and .func == "Recv" or .timing_source == "kernel_gpu" and .exec_ns > 0)'
	[ "$level" = ops ] || check "$layout $level: and to have been when it was" times_are_true
	[ "$level" = ops ] && check "$layout $level: no end is invented" all_told '.complete == null'
	check "$layout $level: nothing was lost or refused" api_is status \
		'.ingest | .lost == 0 and .before == 0 and .rejected == 0'
	check "$layout $level: no segment is left" wait_until 2 sh -c '[ -z "$(ls "$0")" ]' "$SHM"
	stop_daemon
	check "$layout $level: the daemon ends well" test $? -eq 0
done <<-END
	1x2 ops
	1x2 kernel
	1x2 trace
	2x1 net
	4x1 ops
	4x1 net
	2x2 trace
END
done_testing
