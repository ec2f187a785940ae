#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A rank on another node holds up those here: NCCL's own RAS tells which.
. "$(dirname "$0")/lib.sh"

AFAR=$(mktemp -d /dev/shm/ncclinsp-test.XXXXXX)
trap 'finish; rm -rf "$AFAR"' EXIT
export NCCL_RAS_ADDR=localhost:$((20000 + $$ % 10000)) NCCLINSP_LEVEL=net

finding_is() { api_is 'findings?active=true' "any(.findings[]; $1)"; }
last_pid() { pgrep -f "nccl-job 3 2 1 $J " | tail -n 1; }
end_them() {
	kill -KILL $(pgrep -f "nccl-job 3 [0-2] 1 $J ") 2>/dev/null
	wait "${job_pids[@]}" 2>/dev/null
}

begin() {	# PROGRAM [option...]
	LABEL=$1
	start_daemon --stall-min 1s --stall-max 3s "${@:2}"
	start_job 3x1 "$1"
}

begin absent
check "$LABEL: the rank on another node is named, with its host" wait_until 60 finding_is \
	'.verdict == "NOT_JOINED" and .ranks == [2] and .evidence.ras == "absent_ranks" and
	(.evidence.ras_ranks | map([.rank, .host, .answers, .calls])) == [[2, "127.0.0.1", true, 1]]'
check "$LABEL: with its process" finding_is ".evidence.ras_ranks[0].pid == $(last_pid) and
	(.text | test(\"rank 2 \\\\(pid $(last_pid), 127.0.0.1\\\\) has not come to AllReduce #1 on absent\"))"
check "$LABEL: it is a warning, as of a rank that is seen" finding_is '.severity == "warning" and .kind == "desync"'
end_them
stop_daemon

begin lost
check "$LABEL: the rank that gives no answer is named, with its host" wait_until 60 finding_is \
	'.verdict == "NO_ANSWER" and .ranks == [2] and .evidence.ras == "silent_ranks" and
	(.evidence.ras_ranks | map([.rank, .host, .answers, .calls])) == [[2, "127.0.0.1", false, null]]'
check "$LABEL: it becomes critical" wait_until 30 finding_is \
	'.verdict == "NO_ANSWER" and .grade == "found" and .severity == "critical" and .kind == "stall"'
end_them
stop_daemon

begin absent --ras no
check "$LABEL: where RAS is not to be asked, nobody is named" wait_until 60 finding_is \
	'.verdict == "UNKNOWN" and .grade == "found" and .evidence.ras == null'
end_them
stop_daemon
done_testing
