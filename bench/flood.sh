#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A daemon beside idle communicators: sourced by idle.sh and answers.sh.
. "$(dirname "$0")/../tests/system/lib.sh"

export NCCLINSP_LEVEL=ops	# else they would wait for kernels that do not come

# start_flood PROCESSES COMMUNICATORS [OPTION...]: a daemon with these options, and so many
# processes with so many communicators each, one operation on every one, all of it read.
start_flood() {
	local processes=$1 comms=$2
	start_daemon --snapshot-interval 0 "${@:3}"
	"$B/nccl-flood" "$PLUGIN" "$processes" "$comms" >"$T/flood" &
	started+=("$!")
	wait_until 300 grep -q ready "$T/flood" || { echo "the processes did not start"; exit 1; }
	wait_until 300 api_is status ".ingest.records >= $processes * $comms * 2" ||
		{ echo "their records were not read"; api status; exit 1; }
	sleep 5		# what is found at first is looked at once
}
