#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Levels of running jobs, as the jobs take them: how soon, until when, without a daemon,
# over a restart, and by themselves.
. "$(dirname "$0")/lib.sh"
unset NCCLINSP_KERNELS	# bursts, as people have them


# job MS [LINE...]: operations every MS milliseconds on 4 ranks.
job() {
	cat <<-SCN
		nodes 1
		processes 4
		seed 3
		comm dp ranks 0-3 channels 2
		${2:-}
		loop forever
			compute $1ms
			AllReduce dp 64Ki float32
		end
	SCN
}

# beside NAME command...: on a node of its own, with another daemon.
beside() {
	local name=$1
	local SOCK=$T/$name.sock SHM=$SHM/$name
	local -x NCCLINSP_SHM_DIR=$SHM NCCLINSP_CONTROL=$T/$name.control
	shift
	mkdir -p "$SHM"
	"$@"
}

start_job() {
	"$B/nccl-sim" --plugin "$PLUGIN" "$1" 2>>"$T/sim" &
	JOB_PID=$!
	started+=("$JOB_PID")
}

stop_job() { kill "$JOB_PID"; wait "$JOB_PID" 2>/dev/null; }

pids() { api processes | jq '.processes[] | select(.state == "live") | .pid'; }
four() { api_is processes '[.processes[] | select(.state == "live" and .steering.sequence > 0)] | length == 4'; }
# all_are FILTER: it holds for each of the four.
all_are() { api_is processes "[.processes[] | select(.state == \"live\") | $1] | length == 4 and all(.)"; }
put() { curl -sf --unix-socket "$SOCK" -X PUT -d "$1" http://ncclinspd/v1/level; }

# ---- what takes its time, which is looked at in the end -------------------------------

# A budget of a millionth: whatever the callbacks cost is more.
job 5 >"$T/thrift.scn"
beside thrift start_daemon --kernel-budget 0.0001 --auto-thrift yes --auto-detail no --state-dir "$T/thrift"
beside thrift start_job "$T/thrift.scn"

# Slow enough for a busy machine: ranks that are apart by 0.3 s are not compared.
job 5 'late rank 2 by 10ms' >"$T/late.scn"
beside late start_daemon --straggler-window 2 --state-dir "$T/late"
beside late start_job "$T/late.scn"

# ---- how soon ---------------------------------------------------------------------

job 2 >"$T/job.scn"
start_daemon --auto-detail no
start_job "$T/job.scn"
check "all processes follow the control file" wait_until 30 four

# switch LEVEL: how long after it was asked for each of the four changed, in ns, a line each.
switch() {
	local asked
	asked=$(put "{\"level\":\"$1\"}" | jq .since_mono_ns) || return 1
	wait_until 30 all_are ".level == \"$1\" and .steering.since_mono_ns >= $asked" || return 1
	api processes | jq ".processes[] | select(.state == \"live\") | .steering.since_mono_ns - $asked"
}
switches() {
	local i
	for i in 1 2 3 4 5 6; do
		switch ops && switch off && switch net && switch trace && switch kernel || return 1
	done >"$T/took"
}
check "levels go up and down, off and on again" switches
sort -n "$T/took" | awk '{ ms[NR] = $1 / 1e6 }
	END { printf "# a switch takes effect after %.0f ms (median), at most %.0f ms, of %d\n",
	      ms[int((NR + 1) / 2)], ms[NR], NR }'
# Looked at every 100 ms; a busy machine may keep a job from it, but not every time.
soon() { [ "$(sort -n "$T/took" | sed -n 60p)" -lt 200000000 ]; }
check "half of the switches take effect within 200 ms" soon
check "no record was misread meanwhile" api_is status '.ingest.rejected == 0'
check "the mask holds bits of this version only" all_are '.event_mask < 65536'
check "back to what the environment says" eval 'put "{\"level\":\"default\"}" >"$T/answer" &&
	wait_until 30 all_are ".level == \"net\" and .steering.source != \"control\""'

# ---- until when, without a daemon -----------------------------------------------------

put '{"level":"trace","for_s":4}' >"$T/answer"
until=$(jq .until_mono_ns "$T/answer")
check "a raise for a while" wait_until 30 all_are \
	".level == \"trace\" and .steering.until_mono_ns == $until"
stop_daemon KILL 2>/dev/null
passed() { [ "$(awk '{ print int($1 * 10) }' /proc/uptime)" -gt $((until / 100000000 + 10)) ]; }
wait_until 30 passed
start_daemon --auto-detail no
check "it has ended by itself while there was no daemon" wait_until 30 all_are ".level == \"net\" and
	.steering.since_mono_ns >= $until and
	.steering.since_mono_ns < $(api status | jq .started_mono_ns)"

# ---- over a restart ---------------------------------------------------------------------

put '{"level":"ops"}' >"$T/answer"
check "a level for good" wait_until 30 all_are '.level == "ops"'
# Ticks become times by what a daemon has learned of them so far: a young one is off by some
# milliseconds. A level that is taken again comes later by as long as a daemon's start takes.
since_when() {
	api processes |
		jq '[.processes[] | select(.state == "live") | .steering.since_mono_ns / 1e6] | sort'
}
since_when >"$T/since"
stop_daemon KILL 2>/dev/null
start_daemon --auto-detail no
follows() { all_are ".steering.sequence == $(api status | jq .control.sequence)"; }
check "the next daemon's file is followed" wait_until 30 follows
as_before() {
	all_are '.level == "ops"' && since_when >"$T/now" &&
	jq -n -e --slurpfile one "$T/since" --slurpfile other "$T/now" '
		[$one[0], $other[0]] | map(length > 0) == [true, true] and
		([transpose[] | .[0] - .[1] | fabs] | max < 100)'
}
check "and nothing has changed meanwhile" eval \
	'wait_until 30 as_before || { jq -c . "$T/since" "$T/now"; false; }'
check "what it costs is told" wait_until 30 api_is overhead \
	'[.processes[] | select(.callbacks.user.share > 0 and .kernels.groups_per_s > 0)] | length == 4'
put '{"level":"default"}' >"$T/answer"
stop_job
stop_daemon

# ---- by itself ----------------------------------------------------------------------------

check "callbacks over the budget lower the level" wait_until 90 beside thrift all_are \
	'.level == "ops" and .steering.why == "thrift" and .wanted.why == "thrift"'
check "which the log tells" grep -q 'level lowered pid=.* to=ops callbacks=' "$T/daemon.log"
beside thrift put '{"level":"net"}' >"$T/answer"
check "a person's word goes before" wait_until 30 beside thrift all_are \
	'.level == "net" and .steering.why == "person"'

detailed() {
	api_is status '.control.raised == 4' && grep -q 'every operation is timed' "$T/daemon.log"
}
check "a late rank that is found has every operation of its job timed" wait_until 90 \
	beside late detailed
check "and says so" beside late api_is "findings?grade=found" '[.findings[] | select(.kind == "straggler")] != []'
done_testing
