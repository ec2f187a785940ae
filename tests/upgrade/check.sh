#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What really older versions and this one are to each other, whose format is the same but
# for additions: jobs, daemons and command lines, each with the other's.  The older ones
# are built from their commits: FROM, or the last one before each change of the format.
# (Another format: tests/system/test_upgrade.sh.)
. "$(dirname "$0")/../system/lib.sh"
cd "$TOP" || exit 1

git rev-parse -q --verify HEAD >/dev/null 2>&1 ||
	skip_all "older versions are built from git's history, and there is none"
format_of() { git show "$1:include/nci/abi.h" 2>/dev/null | grep -E 'define NCI_ABI_MAJOR'; }
before_changes() {
	local change
	for change in $(git log --format=%h -G'define NCI_ABI_M(AJ|IN)OR' --extended-regexp \
			-- include/nci/abi.h); do
		[ "$(format_of "$change^")" != "$(format_of HEAD)" ] || git rev-parse --short "$change^"
	done
}
FROM=${FROM:-$(before_changes)}
[ -n "$FROM" ] || skip_all "this history does not reach back to another format (a shallow clone?)"

unset COLUMNS NO_COLOR NCCL_PROFILER_PLUGIN
export TERM=xterm
NEW=$B
OPS=1200

cat >"$T/job.scn" <<-SCN
	nodes 1
	processes 4
	hold 60s
	chunk 256Ki
	comm world ranks 0-3 channels 2
	loop 300
		compute 2ms
		AllReduce world 256Ki float32
	end
SCN
sed -e 's/^loop .*/loop forever/' -e 's/compute .*/compute 20ms/' "$T/job.scn" >"$T/long.scn"

# built COMMIT: its programs are in $OLD, and say that they are 0.0.1.
built() {
	OLD=$B/older/$1
	[ ! -x "$OLD/ncclinspd" ] || return 0
	mkdir -p "$OLD/src" && git archive "$1" | tar -x -C "$OLD/src" &&
		env -u MAKEFLAGS -u MAKELEVEL make -s -j"$(nproc)" -C "$OLD/src" B="$OLD" VERSION=0.0.1 WERROR= \
			"$OLD/libnccl-profiler-insp.so" "$OLD/nccl-sim" "$OLD/ncclinsp" "$OLD/ncclinspd" \
			>"$OLD/make.log" 2>&1 || { tail -n 20 "$OLD/make.log"; return 1; }
}

# job BUILD SCENARIO: JOB is the process that starts those of the job.
job() {
	"$1/nccl-sim" --plugin "$1/libnccl-profiler-insp.so" "$T/$2.scn" >/dev/null 2>"$T/sim.log" &
	JOB=$!
	started+=("$JOB")
}
end_job() { kill "$JOB"; wait "$JOB" 2>/dev/null; }

# daemon BUILD: an older one knows fewer options.
daemon() {
	if [ "$1" = "$NEW" ]; then
		start_daemon
		return
	fi
	"$1/ncclinspd" --foreground --socket "$SOCK" --shm-dir "$SHM" --state-dir "$T/state" \
		2>>"$T/daemon.log" &
	DAEMON_PID=$!
	started+=("$DAEMON_PID")
	wait_until 30 api_answers
}
# ends_well SENTENCE: the daemon that runs.
ends_well() {
	local status
	stop_daemon
	status=$?
	check "$1" test $status -eq 0
}

LIVE='[.processes[] | select(.state == "live")]'
live() { api_is processes "$LIVE | length == $1"; }
whole() {
	api_is summary "[.rows[] | select(.func == \"AllReduce\").ops] | add == $OPS" &&
		api_is processes "[$LIVE[].lost[]] | add == 0" && api_is status '.ingest.rejected == 0'
}
version_is() { api_is processes "[$LIVE[].plugin_version] | unique == [\"$1\"]"; }
records() { api processes | jq "[$LIVE[].records] | add"; }
goes_on() { local n; n=$(records); wait_until 20 more_than "${n:-0}"; }
more_than() { [ "$(records)" -gt "$1" ]; }
has() { local pattern=$1 text; shift; text=$("$@" 2>&1 | tr -s ' \n' ' '); grep -Eq -- "$pattern" <<<"$text" || { echo "$text"; return 1; }; }
# What people look at first: each command ends well and says something.
all_answer() {	# BUILD
	for what in status ps comms ops; do
		"$1/ncclinsp" $what >"$T/out" 2>&1 && [ -s "$T/out" ] || { echo "$what:"; cat "$T/out"; return 1; }
	done
}
none_left() { ! ls "$SHM"/ncclinsp.* >/dev/null 2>&1; }

older_job() {
	daemon "$NEW"
	job "$OLD" job
	check "$1: a job from before is watched, and nothing of it is lost" wait_until 60 whole
	check "$1: it says which plugin it has" version_is 0.0.1
	check "$1: a change of level is followed, at its next call at the latest" \
		has '4 of 4 processes follow|others make no NCCL calls now' "$NEW/ncclinsp" level node ops
	check "$1: the command line from before is answered" all_answer "$OLD"
	pkill -KILL -P "$JOB"
	wait "$JOB" 2>/dev/null
	check "$1: who is killed is seen to have died" wait_until 20 api_is processes \
		'[.processes[] | select(.state == "died")] | length == 4'
	check "$1: what it leaves is removed" wait_until 20 none_left
	ends_well "$1: the daemon ends well"
}

older_daemon() {
	rm -f "$NCCLINSP_CONTROL"	# what the newer one has ordered is not its to take back
	daemon "$OLD"
	job "$NEW" job
	check "$1: a daemon from before watches a new job, and loses nothing" wait_until 60 whole
	check "$1: its own command line shows it" all_answer "$OLD"
	check "$1: the new one does too, or says which of them is older" eval 'all_answer "$NEW" ||
		has "the daemon is 0\.0\.1, this program [0-9.]+: restart or upgrade the older one" "$NEW/ncclinsp" $what'
	check "$1: doctor says which of them is older" has 'the daemon is 0\.0\.1, this program' "$NEW/ncclinsp" doctor
	end_job
	ends_well "$1: it ends well"
}

# A job that stays while daemons come and go, with the state that each finds.
changes() {
	daemon "$OLD"
	job "$OLD" long
	check "$1: a job goes on under its own daemon" wait_until 30 live 4
	stop_daemon
	daemon "$NEW"
	check "$1: the daemon after the upgrade reads on" wait_until 30 live 4
	check "$1: what it writes from then on, too" goes_on
	ends_well "$1: the daemon ends well"
	daemon "$OLD"
	check "$1: after a downgrade the one from before does" wait_until 30 live 4
	check "$1: and what it writes from then on" goes_on
	check "$1: the job has not noticed" kill -0 "$JOB"
	end_job
	ends_well "$1: it ends well"
}

for commit in $FROM; do
	check "$commit builds" built "$commit"
	OLD=$B/older/$commit
	[ -x "$OLD/ncclinspd" ] || continue
	older_job "$commit"
	older_daemon "$commit"
	changes "$commit"
done
done_testing
