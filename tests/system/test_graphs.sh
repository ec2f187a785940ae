#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job that captures a CUDA graph: its kernels are timed from then on as they were, whatever
# the level, and everything that shows levels says why.
. "$(dirname "$0")/lib.sh"
unset NCCLINSP_KERNELS	# as people have it

I=$B/ncclinsp
EAGER=100

cat >"$T/job.scn" <<-SCN
	nodes 1
	processes 2
	seed 3
	comm dp ranks 0,1 channels 2
	loop $EAGER
		compute 2ms
		AllReduce dp 64Ki float32
	end
	graph step
		AllReduce dp 64Ki float32
		AllReduce dp 16Ki float32
	end
	loop forever
		compute 2ms
		replay step
		AllReduce dp 64Ki float32
	end
SCN

start_job() {
	"$B/nccl-sim" --plugin "$PLUGIN" --asked "$T/asked" "$T/job.scn" 2>"$T/sim" &
	JOB_PID=$!
	started+=("$JOB_PID")
}
stop_job() { kill "$JOB_PID"; wait "$JOB_PID" 2>/dev/null; }
# both PATH FILTER: it holds for the two processes that are alive.
both() {
	api_is "$1" "[.processes[] | select(.state != \"exited\" and .state != \"died\") | $2] |
		length == 2 and all(.)"
}
put() { curl -sf --unix-socket "$SOCK" -X PUT -d "$1" http://ncclinspd/v1/level >"$T/answer"; }
collectives() {
	echo "collectives?limit=10000&pid=$(api processes |
		jq '.processes[] | select(.state == "live") | .pid' | paste -sd,)"
}
replayed() { api_is "$(collectives)" '[.collectives[] | select(.graph)] | length > 20'; }
eager_after() {
	api_is "$(collectives)" "[.collectives[] | select((.graph | not) and .seq > 2 * $EAGER)] |
		length > 0"
}
# Runs of operations that were to be timed: KernelCh is 64.
timed() { jq -cs 'map(select(.mask % 128 >= 64) | [.world_rank, .first, .last]) | sort' "$T/asked"; }

start_daemon --auto-detail no
start_job
check "kernels are not timed once a group was captured" wait_until 60 \
	both processes '.steering.kernels == "never" and .event_mask % 128 < 64'
check "the answer about processes says why" \
	both processes '.level == "net" and .sampling == null and (.level_reason | test("CUDA graphs"))'
check "the one about levels too" both level '.level == "net" and (.level_reason | test("CUDA graphs"))'
check "ncclinsp level says it of both" \
	exits 0 "^the timing of kernels stays as it is: the process captures CUDA graphs: pid [0-9]*, [0-9]*$" "$I" level
check "and of one" eval \
	'exits 0 "graphs: pid [0-9]*$" "$I" level "$(api processes | jq ".processes[0].pid")"'
check "ncclinsp ps in its fields" exits 0 "CUDA graphs" "$I" ps --fields pid,level_reason
put '{"level":"trace","sample":"all"}'
check "who wants everything gets everything else" wait_until 60 both processes \
	'.level == "trace" and .steering.why == "person" and .steering.kernels == "never" and
	 .event_mask % 128 < 64 and (.level_reason | test("CUDA graphs"))'
check "the operations between replays go on" wait_until 60 eager_after
check "whose job has no one killed or hung" eval 'stop_job; ! grep -q failed "$T/sim"'
check "no operation was asked to be timed" test "$(timed)" = "[]"

# Never toggled, and on from the first communicator.
put '{"level":"default"}'
NCCLINSP_KERNELS=always start_job
check "who wants them always has all of them timed" wait_until 60 both processes \
	'.steering.kernels == "always" and .level_reason == null'
check "and goes on past the graph" wait_until 60 eval 'replayed && eager_after'
check "without a switch" both processes '.steering.kernels == "always" and .steering.switches == 0'
stop_job
check "operations after the graph were asked for as well" \
	eval 'timed | jq -e "group_by(.[0]) | map(map(.[2]) | max) | length == 2 and min > 2 * $EAGER"'
done_testing
