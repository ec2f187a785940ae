#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Levels that change all the time under load, against what the simulator knows: each call
# of NCCL reads the mask for itself, and whatever it said, what was asked for is told, as
# it was, and nothing else is.  LONG=1: a thousand switches.
. "$(dirname "$0")/lib.sh"
unset NCCLINSP_KERNELS
export NCCLINSP_SETTLE=0	# KernelCh may change although the job sends

# Processes look every 0.1 s.  The job is ended then, or ends before on a slow machine.
if [ -n "${LONG:-}" ]; then
	switches=1000 passes=12000 pass=50ms
else
	switches=40 passes=400 pass=16ms
fi

cat >"$T/job.scn" <<-SCN
	nodes 2
	processes 2
	seed 3
	comm dp ranks 0-3 channels 1
	comm tp ranks 0,1 ranks 2,3 channels 1
	loop $passes
		compute $pass jitter 20%
		AllReduce dp 64Ki float32
		AllGather tp 16Ki float32
		group
			Send dp 4Ki float32 from 0 to 2
			Send dp 4Ki float32 from 2 to 0
			Send dp 4Ki float32 from 1 to 3
			Send dp 4Ki float32 from 3 to 1
		end
		ReduceScatter dp 8Ki float32
	end
SCN

# After the first "off" no kernels are timed any more: that comes in the last quarter.
levels=(ops kernel net trace off)
samples=(budget all)
RANDOM=4711
put() { curl -sf --unix-socket "$SOCK" -X PUT -d "$1" http://ncclinspd/v1/level; }
fields=pid,token,comm_id,rank,func,seq,count,bytes,exec_ns,timing_source,complete,derived

# All that the log holds, long before it forgets: how late a starved daemon hears of an
# operation nobody knows.
next=0
late=0
collect() {
	local func
	[ "$SECONDS" -ge "$next" ] || return
	[ "$next" -eq 0 ] || [ $((SECONDS - next)) -le "$late" ] || late=$((SECONDS - next))
	next=$((SECONDS + 4))
	for func in AllReduce AllGather ReduceScatter; do
		api "collectives?func=$func&limit=10000&fields=$fields" >"$T/rows.$func.$SECONDS"
	done
}

live() {
	api 'processes?fields=pid,state,steering' | jq -c '[.processes[] | select(.state == "live")]'
}
# follow SEQUENCE: all of them do, or the job is over.
follow() {
	local end=$((SECONDS + 30))
	while [ $SECONDS -lt $end ] && kill -0 "$JOB_PID" 2>/dev/null; do
		live | jq -e "length == 4 and all(.[]; .steering.sequence >= $1)" >/dev/null && return
		collect
		sleep 0.02
	done
	return 1
}

# As often as it goes while the job runs; what the processes say at last is in $T/live.
done_switches=0
switch_all_the_time() {
	local wish sequence
	while kill -0 "$JOB_PID" 2>/dev/null && [ "$done_switches" -lt "$switches" ]; do
		wish="{\"level\":\"${levels[RANDOM % (done_switches * 4 < switches * 3 ? 4 : 5)]}\",\"sample\":\"${samples[RANDOM % 2]}\"}"
		sequence=$(put "$wish" | jq .control.sequence)
		[ -n "$sequence" ] || return 1
		follow "$sequence" || break
		done_switches=$((done_switches + 1))
		live | jq -c 'select(length == 4)' >>"$T/live"
	done
}

start_daemon --auto-detail no
"$B/nccl-sim" --plugin "$PLUGIN" --truth "$T/truth" --asked "$T/asked" "$T/job.scn" 2>"$T/sim" &
JOB_PID=$!
started+=("$JOB_PID")
joined() { live | jq -e 'length == 4 and all(.[]; .steering.sequence > 0)' >/dev/null; }
check "a job of four processes runs" wait_until 60 joined
switch_all_the_time
kill "$JOB_PID" 2>/dev/null
wait "$JOB_PID"
check "and ends as it should" test $? -eq 0
drained() { live | jq -e 'length == 0' >/dev/null; }
wait_until 30 drained
next=0
collect
echo "# $done_switches switches of the level of four processes, which followed; masks changed" \
	"$(tail -1 "$T/live" | jq 'map(.steering.switches) | min') times and more"
check "it was changed again and again" test "$done_switches" -ge $((switches / 10))

# ---- what came of it --------------------------------------------------------------

check "nothing was lost, but what a starved daemon came too late for" api_is processes \
	'[.processes[].lost | .overrun = 0 | .evicted = 0 | .[]] | length > 0 and add == 0'
check "and no record misread" api_is status '.ingest.rejected == 0 and .reconstruct.orphans == 0'

# A line for each operation that has a number: who, which, and then what was asked for
# (COLL is 2, KernelCh 64), how it was, and whether the mask changed just before: in the
# same pass, which has six operations of dp, and one of tp after the first of them.
jq -r '[.comm, .world_rank, .mask, .first, .last] | @tsv' "$T/asked" >"$T/runs"
jq -r 'select(.seq != null) | [.comm, .world_rank, .op, "\(.comm_id) \(.rank) \(.func) \(.seq)",
	.count, .bytes, .exec_ns] | @tsv' "$T/truth" | awk -F'\t' -v OFS='\t' '
	function pass(comm, op) { return int(op / (comm == "dp" ? 6 : 1)) }
	function place(comm, op) { return comm == "tp" ? 0.5 : op % 6 }
	NR == FNR { for (i = $4; i <= $5; i++) mask[$1, $2, i] = $3
		    where = place($1, $4); at = $2 SUBSEP pass($1, $4)
		    if (last[$1, $2] != $3 && where > 0 && !((at in changed) && changed[at] < where))
			    changed[at] = where
		    last[$1, $2] = $3; next }
	{ at = $2 SUBSEP pass($1, $3)
	  after = (at in changed) && place($1, $3) >= changed[at]
	  print $4, mask[$1, $2, $3], $5, $6, $7, after }
	' "$T/runs" - >"$T/true"
jq -r '.collectives[] | select((.derived | not) and .seq != null) | [.token, .pid,
	(.comm_id | ltrimstr("0x")) + " \(.rank) \(.func) \(.seq)", .count, .bytes,
	.exec_ns // "-", .timing_source // "-", .complete] | @tsv' "$T"/rows.* |
	sort -u -k1,2 | cut -f3- >"$T/told"

# each WHAT: the lines of the truth and of what is told, side by side, which WHAT finds wrong.
each() {
	awk -F'\t' '
		NR == FNR { n[$1]++; count[$1] = $2; bytes[$1] = $3; exec[$1] = $4; by[$1] = $5
			    complete[$1] = $6; next }
		{ asked = int($2 / 2) % 2; timed = int($2 / 64) % 2; seen++; all_timed += timed }
		'"$1"' { print; bad++ }
		END { print "# " bad + 0 " of " seen ", " all_timed " timed"
		      exit bad || !seen || !all_timed }
	' "$T/told" "$T/true" >"$T/bad" || { head -20 "$T/bad"; tail -1 "$T/bad"; return 1; }
}
check "no operation is told twice, or that was not asked for" each 'n[$1] > asked'
check "each as it was" each 'n[$1] && (count[$1] != $3 || bytes[$1] != $4)'
check "none has another time than it took" each 'by[$1] == "kernel_gpu" && exec[$1] != $5'
check "who was not to be timed has none of the GPU" each '!timed && by[$1] == "kernel_gpu"'
# 16,384 operations with sends and all are those of some ten seconds.
if api_is processes '[.processes[].lost | .overrun + .evicted] | add == 0' >/dev/null &&
	[ "$late" -le 4 ]; then
	check "all that was asked for is told" each 'n[$1] < asked'
	# Who is called within microseconds of a change may have read the mask before it.
	check "to its end" each 'n[$1] && complete[$1] == "false"'
	check "who was to be timed has a time" each 'timed && !$6 && by[$1] != "kernel_gpu"'
else
	skip "all that was asked for is told" "this machine was too slow for the daemon"
fi
awk 'END { print "# " NR " operations told" }' "$T/told"
tail -1 "$T/bad"
done_testing
