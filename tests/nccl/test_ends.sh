#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Jobs that end in the middle of an operation, without a word, or in part.
. "$(dirname "$0")/lib.sh"

export NCCLINSP_LEVEL=net

ends() {	# LAYOUT PROGRAM
	start_daemon
	play "$1" "$2"
	LABEL="$1 $2"
}
states_are() { api_is processes "[.processes[].state] | sort == $1"; }
nothing_is_left() { wait_until 2 sh -c '[ -z "$(ls "$0")" ]' "$SHM"; }

# Its second AllReduce was not over; all else was.
cut_short() { told "select($announced)" | jq -s -e '([.[] | select(.complete == false)] | '"$1"') and
	([.[] | select(.complete != false)] | length > 0 and all(.[]; .complete == true))'; }

ends 2x1 aborted
check "$LABEL: the job runs" ran
check "$LABEL: its processes went as they should" states_are '["exited","exited"]'
check "$LABEL: every operation is told as it was" same
check "$LABEL: what did not end is told so" cut_short 'map([.rank, .seq]) | sort == [[0, 1], [1, 1]]'
check "$LABEL: no segment is left" nothing_is_left
stop_daemon

ends 4x1 killed
check "$LABEL: the one that was killed is told, and no other" states_are '["died","exited","exited","exited"]'
check "$LABEL: every operation is told as it was" same
check "$LABEL: what was in flight in the dead one can be seen" api_is inflight \
	'any(.inflight[]; .rank == 3 and .func == "AllReduce" and .seq == 1)'
check "$LABEL: somebody is found to have died" wait_until 5 api_is findings \
	'any(.findings[]; .kind == "died")'
check "$LABEL: no segment is left" nothing_is_left
stop_daemon

ends 4x1 rescue
check "$LABEL: the job runs" ran
check "$LABEL: its processes went as they should" \
	states_are '["exited","exited","exited","exited"]'
check "$LABEL: every operation is told as it was" same
check "$LABEL: what did not end is told so" cut_short \
	'map([.comm_name, .rank, .seq]) | sort == [range(4) | ["before", ., 1]]'
check "$LABEL: no segment is left" nothing_is_left
stop_daemon

# NCCL 2.30 aborts in a process that forks, also with no plugin.
programs=careless
NCCL_PROFILER_PLUGIN=none play 1x2 forks
[ "$job_status" -ne 0 ] && echo "# forks: not without us either" || programs+=" forks"
for program in $programs; do
	ends 1x2 $program
	check "$LABEL: the job runs" ran
	check "$LABEL: one process was seen, and went as it should" states_are '["exited"]'
	check "$LABEL: every operation is told as it was" same
	check "$LABEL: all were seen to end" all_told '.complete == true'
	check "$LABEL: no segment is left" nothing_is_left
	stop_daemon
done
done_testing
