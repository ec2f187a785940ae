#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ncclinsp doctor: proves the flow with a library, a daemon and no job, and names what is
# wrong when something is.
. "$(dirname "$0")/lib.sh"

[ -x "$B/ncclinspd" ] && [ -e "$PLUGIN" ] || skip_all "the plugin or the daemon is not built"

I=$B/ncclinsp
unset COLUMNS NO_COLOR NCCL_PROFILER_PLUGIN
export TERM=xterm

# Processes of other tests use other directories: they are warnings here, and no more.
# exam CODE [NAME=VALUE...]: doctor ends with that code.
exam() {
	local want=$1 code
	shift
	env "$@" "$I" doctor >"$T/out" 2>"$T/err"
	code=$?
	[ "$code" -eq "$want" ] || { echo "exit $code"; cat "$T/out" "$T/err"; return 1; }
}

says() { tr -s ' \n' ' ' <"$T/out" | grep -Eq -- "$1" || { cat "$T/out" "$T/err"; return 1; }; }

check "no daemon: exit code 3" exam 3
check "it is the first thing that is wrong" \
	says "The first thing that is wrong: daemon: cannot connect to $SOCK: no such file"
check "and the library was looked at all the same" says "ok library .*libnccl-profiler-insp.so loads"

start_daemon
check "all is well: exit code 0" exam 0
check "an operation went all the way" says "ok flow an operation went from the library to the daemon and back"
check "the last line says so" says "(All is well: the data flows\.|The data flows; look at: .*) $"
exited() { api_is processes '[.processes[] | .state] == ["exited"]'; }
check "its own process ended as it should" wait_until 10 exited
check "and left no finding" api_is findings '.findings == []'
check "rows as json" \
	eval '"$I" doctor -o json | jq -e "[.checks[] | select(.check == \"flow\") | .state] == [\"ok\"]"'
check "rows as csv" eval '"$I" doctor -o csv --fields check,state | grep -qx flow,ok'
check "a level of the environment is no hindrance" \
	eval 'exam 0 NCCLINSP_LEVEL=off && says "ok flow"'

check "a library that is not there is the first thing that is wrong" \
	eval 'exam 1 NCCL_PROFILER_PLUGIN=nonsense && says "first thing that is wrong: library: libnccl-profiler-nonsense.so"'
: >"$T/broken.so"
check "one that is no library does not end the examination" \
	eval 'exam 1 NCCL_PROFILER_PLUGIN="$T/broken.so" && says "failed library .*broken.so does not load" && says "ok daemon"'
mkdir "$T/elsewhere"
check "a directory that the daemon does not read is found by what does not arrive" \
	eval 'exam 1 NCCLINSP_SHM_DIR="$T/elsewhere" && says "failed flow what the library records in $T/elsewhere does not arrive"'
check "a directory that is not there is named" \
	eval 'exam 1 NCCLINSP_SHM_DIR="$T/nowhere" && says "first thing that is wrong: segments: $T/nowhere: No such file"'

cat >"$T/plain.scn" <<-SCN
nodes 1
processes 1
seed 3
comm dp ranks 0-0 channels 2
loop forever
	compute 10ms
	AllReduce dp 1Mi float32
end
SCN
sim "$T/plain.scn" >/dev/null 2>&1 &
started+=("$!")
live() { api_is processes '[.processes[] | select(.state == "live")] | length == 1'; }
check "a job runs" wait_until 20 live
check "a job that is watched is well" eval 'exam 0 && says "ok jobs [1-9][0-9]* of [0-9]+ processes that use NCCL are watched"'
done_testing
