#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What an upgrade leaves behind: a job whose plugin writes another version's format than
# the daemon reads, in either direction.  It cannot be read; it must not be a riddle.
. "$(dirname "$0")/lib.sh"
cd "$TOP" || exit 1

I=$B/ncclinsp
OTHER=$B/other-abi
unset COLUMNS NO_COLOR NCCL_PROFILER_PLUGIN
export TERM=xterm
make --no-print-directory -s B="$B" other-abi >"$T/make.log" 2>&1 ||
	{ cat "$T/make.log"; skip_all "the other version does not build"; }

cat >"$T/job.scn" <<'SCN'
nodes 1
processes 1
comm dp ranks 0-0 channels 1
loop forever
	compute 20ms
	AllReduce dp 1Mi float32
end
SCN
# job PLUGIN: JOB is the process that has it, a child of the simulator.
has_child() { pgrep -P "$1"; }
job() {
	"$B/nccl-sim" --plugin "$1" "$T/job.scn" >/dev/null 2>&1 &
	local sim=$!
	started+=("$sim")
	wait_until 20 has_child "$sim"
	JOB=$(pgrep -P "$sim")
}
says() { "$@" 2>&1 | tr -s ' \n' ' '; }
has() { local pattern=$1 text; shift; text=$(says "$@"); grep -Eq -- "$pattern" <<<"$text" || { echo "$text"; return 1; }; }
foreign() { api_is processes "[.foreign[] | [.pid, .abi_major]] == [[$JOB, $1]]"; }
none_foreign() { api_is processes '.foreign == []'; }
live() { api_is processes "[.processes[] | select(.state == \"live\") | .pid] == [$1]"; }

# ---- the plugin is the newer one ---------------------------------------------------

start_daemon
job "$PLUGIN"
same=$JOB
check "a job of the daemon's version is watched" wait_until 20 live "$same"
check "and nothing is said of formats" sh -c '! "$1" ps 2>&1 | grep -i format' sh "$I"
job "$OTHER/libnccl-profiler-insp.so"
check "one of the next version is seen not to be" wait_until 20 foreign 3
NEWER="not watched: process $JOB, whose plugin writes format 3; the daemon reads format 2: the daemon is older: restart it"
check "ps says why, and what to do" has "$NEWER" "$I" ps
check "beside what it can tell" has "$same .* live" "$I" ps
check "not among rows for machines" sh -c '! "$1" ps -o csv 2>&1 | grep format' sh "$I"
check "status says it" has "format $NEWER" "$I" status
check "doctor finds the library that does not fit" \
	has 'failed flow [^ ]*other-abi/libnccl-profiler-insp.so writes a format that the daemon does not read' \
	env NCCL_PROFILER_PLUGIN="$OTHER/libnccl-profiler-insp.so" "$I" doctor
check "doctor finds the job" \
	has "failed jobs process $JOB \(nccl-sim\) has a plugin of another version" "$I" doctor
check "the daemon's log says it" grep -q "file=ncclinsp.*\.$JOB\..*restart the older" "$T/daemon.log"
check "the other job is watched as before" wait_until 20 live "$same"
kill -KILL "$JOB"
check "when it has ended it is no more" wait_until 20 none_foreign
check "its file is left to those who can read it" sh -c 'ls "$1" | grep -q "\.$2\."' sh "$SHM" "$JOB"

# ---- the daemon is the newer one ---------------------------------------------------

stop_daemon
check "a job outlives its daemon" kill -0 "$same"
JOB=$same
"$OTHER/ncclinspd" --foreground --socket "$SOCK" --shm-dir "$SHM" --state-dir "$T/state" --containers no \
	2>>"$T/daemon.log" &
DAEMON_PID=$!
started+=("$DAEMON_PID")
check "the next version's daemon comes" wait_until 30 api_answers
check "it sees that the old job is none of its own" wait_until 20 foreign 2
OLDER="not watched: process $same, whose plugin writes format 2; the daemon reads format 3: the plugin is older, .* until the job is started again"
check "ps says why, and what to do" has "$OLDER" "$I" ps
check "and does not say that there is no job" sh -c '! "$1" ps 2>&1 | grep "no process"' sh "$I"
check "status says it" has "format $OLDER" "$I" status
job "$OTHER/libnccl-profiler-insp.so"
check "a job of its own version is watched" wait_until 20 live "$JOB"
check "the old one has not noticed" kill -0 "$same"
check "what the other version left is now removed by who can read it" \
	wait_until 20 sh -c '[ "$(ls "$1" | wc -l)" -eq 2 ]' sh "$SHM"
done_testing
