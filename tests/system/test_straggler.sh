#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who comes late and makes others wait is named, who only passes it on is not, and
# noise is left alone.  Windows of a second take the place of those of a minute.
. "$(dirname "$0")/lib.sh"

start_daemon --straggler-window 1s
I=$B/ncclinsp

start_job() {
	nice -n 10 timeout -k 1 60 "$B/nccl-sim" --plugin "$PLUGIN" "$TOP/tests/scenarios/$1.scn" \
		2>"$T/$1.sim" &
	started+=("$!")
}

end_jobs() {
	kill "${started[@]:1}" 2>/dev/null
	wait "${started[@]:1}" 2>/dev/null
	started=("${started[0]}")
	wait_until 10 drained
}

# finding COMM JQ: there is exactly one straggler of that communicator, and it is so.
finding() {
	api_is 'findings?active=true' "[.findings[] | select(.kind == \"straggler\" and .comm_name == \"$1\")]
		| length == 1 and (.[0] | $2)"
}

start_job late-nested
start_job late-pauses
check "who comes late each time is named" wait_until 40 \
	finding tp '.grade == "found" and .verdict == "STEADY" and .ranks == [1]'
check "... by the process that it is, with what it costs" wait_until 5 finding tp \
	".evidence | .pid == $(sed -n 's/.*: process 3 is pid //p' "$T/late-nested.sim") and
	 .blame_ns > 0.1 * .window_ns and .last >= 0.8 * .judged and (.late_ns - 3e6 | fabs) < 3e5"
check "... and with what others handed on" wait_until 5 finding tp '.evidence.moved_ns > 0.2 * .evidence.blame_ns'
check "who is late only because it had to wait is not" api_is 'findings?active=true' \
	'[.findings[] | select(.comm_name == "dp")] == []'
check "who comes late now and then is told apart" wait_until 40 \
	finding pauses '.grade == "found" and .verdict == "INTERMITTENT" and .ranks == [1] and
		(.evidence.late_ns - 1e8 | fabs) < 2e7'
check "diagnose says it" eval '"$I" diagnose >"$T/out"; [ $? -eq 10 ] && grep -q "comes last in" "$T/out"'
check "each rank's waiting is added up" api_is comms \
	'[.comms[] | select(.name == "pauses") | .local_ranks[].waiting]
	 | all(.[]; .ops > 0 and .remote_wait_ns == 0) and (max_by(.blame_ns) == .[1])'
end_jobs
check "what has ended is late no more" wait_until 10 api_is 'findings?active=true' \
	'[.findings[] | select(.kind == "straggler")] == []'

# Rank 1 comes late from its thousandth operation on, some 12 s after the start: only its history rises then.
cat >"$T/then.scn" <<-'END'
	processes 4
	comm then ranks 0-3 channels 2
	late rank 1 by 12ms comm then from 1000
	loop forever
		compute 12ms
		AllReduce then 1Mi float32
	end
END
nice -n 10 "$B/nccl-sim" --plugin "$PLUGIN" "$T/then.scn" 2>"$T/then.sim" &
started+=("$!")
start_job late-pair
start_job slow-stage
both() {
	api_is 'findings?active=true' '[.findings[] | select(.comm_name == "pair")]
		| all(.[]; .grade == "found" and .evidence.others == 1) and (map(.ranks) | sort) == [[0], [2]]'
}
check "two who are late, by turns and together, are both named" wait_until 40 both
check "the stage of a pipeline that the others wait for is named" wait_until 40 \
	finding stages '.grade == "found" and .ranks == [2] and .evidence.func == "Send and Recv"'
# Load makes all of them a little late.
rose() {
	api_is 'ranks?comm=then' '[.ranks[] | {key: "\(.rank)", value: [.blame_history[] | values]}] | from_entries |
		(.["1"][-2:] | min) as $late | $late > 0.2 and .["1"][0] < $late / 2 and
		([.["0"], .["2"], .["3"]] | flatten | max < $late / 2)'
}
check "who became late a while ago is seen to have risen since" wait_until 40 rose
check "... and how often they finished to have fallen" wait_until 10 api_is 'ranks?comm=then' \
	'[.ranks[].ops_history | map(values) | .[0] > 1.3 * .[-1] and .[-1] > 0] | all'
"$I" ranks -f comm_name=then --fields rank,blame_history >"$T/out"
check "... as blocks of a line" grep -qE '^ +1 +-*(▁|▂|▃)+(▃|▄|▅|▆|▇|█)+$' "$T/out"
end_jobs

# One whose host calls late is asked what its thread does: it sleeps; beside others on its CPU, it waits for that.
cat >"$T/host.scn" <<-'END'
	processes 4
	comm host ranks 0-3 channels 2
	late rank 2 by 6ms host
	loop forever
		compute 4ms
		AllReduce host 1Mi float32
	end
END
NCCLINSP_KERNELS=always nice -n 10 "$B/nccl-sim" --plugin "$PLUGIN" "$T/host.scn" 2>"$T/host.sim" &
started+=("$!")
check "the thread whose call comes late is told to sleep" wait_until 40 finding host '.ranks == [2] and .evidence.why == "host" and
	(.evidence.caller | .ran_share < 0.5 and .cpu_wait_share < 0.6) and (.evidence.caller.cpu_wait_share > 0.05 or
		(.text | test("thread that calls NCCL \\(tid [0-9]+\\) sleeps for [0-9]+ % of the time")))'
LATE=$(sed -n 's/.*: process 2 is pid //p' "$T/host.sim") CPU=$(taskset -cp $$ | sed 's/.*[ ,-]//')
taskset -a -cp "$CPU" "$LATE" >/dev/null
renice -n 19 $(ls "/proc/$LATE/task") >/dev/null
for i in 1 2 3; do
	timeout 120 taskset -c "$CPU" bash -c 'while :; do :; done' &
	started+=("$!")
done
check "... and to wait for a CPU, where others have it" wait_until 60 finding host '.ranks == [2] and .evidence.caller.cpu_wait_share > 0.05 and
	(.text | test("was ready to run, but waited for a CPU for [0-9]+ % of the time"))'
end_jobs

before=$(api findings | jq '[.findings[].id] | max')
start_job noise
sleep 6
check "noise is left alone" api_is findings \
	"[.findings[] | select(.id > $before and .kind == \"straggler\")] == []"
end_jobs
done_testing
