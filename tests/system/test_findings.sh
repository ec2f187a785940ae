#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What hangs is found, the right rank is named, and what runs well is left alone.
. "$(dirname "$0")/lib.sh"

start_daemon --stall-min 300ms
I=$B/ncclinsp

check "nothing wrong: diagnose ends with 0" ends 0 "$I" diagnose
check "... and does not call silence health" says 'no live process'
check "nothing wrong: check ends with 0" ends 0 "$I" check
check "... and says OK with figures" says '^NCCLINSP OK - no finding \| critical=0;;0;0 warning=0;0;;0$'

# verdict KIND VERDICT RANKS, those of a circle in any order: what the newest active one says of what hangs.
verdict() {
	api_is 'findings?active=true&grade=found' "[.findings[] | select(.kind != \"died\" and .kind != \"loss\")][0] |
		.kind == \"$1\" and .verdict == \"$2\" and (.ranks | if \"$2\" == \"COMM_DEADLOCK\" then sort else . end) == $3"
}

# hangs SCENARIO KIND VERDICT RANKS
hangs() {
	start_job "$1"
	check "${1##*/}: $2, $3, ranks $4" wait_until 20 verdict "$2" "$3" "$4"
	check "${1##*/}: the evidence tells where each rank stands" api_is 'findings?active=true' \
		'[.findings[] | select(.kind != "loss")][0].evidence | .age_ns > .limit_ns'
	end_job
}

hangs never-joins desync NOT_JOINED '[3]'
hangs order-mismatch desync ORDER_MISMATCH '[2]'
hangs size-mismatch desync METADATA_MISMATCH '[3]'
hangs comm-deadlock desync COMM_DEADLOCK '[0,1]'
hangs stuck-step stall LINK '[1]'
hangs frozen-gpu stall GPU_STUCK '[1]'
# Rank 0's takes nothing from the network: it, or the next one of its node, which takes nothing from it.
sed 's/freeze rank 1/freeze rank 0/' "$TOP/tests/scenarios/frozen-gpu.scn" >"$T/frozen-entry.scn"
hangs "$T/frozen-entry.scn" stall GPU_STUCK '[0,1]'
hangs paused stall OUTSIDE '[0,1,2,3]'

cat >"$T/runs.scn" <<-SCN
	processes 4
	comm runs ranks 0-3 channels 2
	loop forever
		compute 5ms
		AllReduce runs 1Mi float32
	end
SCN
start_job "$T/runs.scn"
of_rank_2() { PID=$(api comms | jq -e '.comms[] | select(.name == "runs").local_ranks[] | select(.rank == 2 and .last_op_mono_ns).pid'); }
wait_until 60 of_rank_2
of_rank_2
kill -STOP "$PID"
check "stopped: a process in state T is named, with what lets it continue" wait_until 20 verdict stall STOPPED '[2]'
check "stopped: ... and its pid" api_is 'findings?active=true&grade=found' "any(.findings[]; .comm_name == \"runs\" and
	(.text | test(\"^rank 2 .pid $PID, [^ ]+. is stopped by a signal .state T.* on runs.* kill -CONT $PID lets it continue\")))"
kill -CONT "$PID"
goes_on() { api_is 'findings?active=true' '[.findings[] | select(.comm_name == "runs" and .verdict == "STOPPED")] == []'; }
check "stopped: it goes on, and the finding is over" wait_until 20 goes_on
end_job

start_job killed
check "killed: who died is named at once" wait_until 20 api_is 'findings?active=true' \
	'.findings | map(select(.kind == "died" and .ranks == [2])) | length > 0'
one_death() {
	api_is 'findings?active=true' '[.findings[] | select(.ranks == [2] and .kind != "loss")] | length == 1 and (.[0] |
		.kind == "died" and .verdict == "RANK_DEAD" and (.text | test("; ranks 0-1,3 wait in AllReduce #[0-9]+ on world[.]")))'
}
check "killed: the same finding tells who waits for the dead" wait_until 20 one_death
check "killed: diagnose ends with 10" ends 10 "$I" diagnose
check "... and says who, and what to do" says 'RANK_DEAD on world(:[0-9a-f]+)?, for'
# One that died before, with nothing in flight, is a warning, and newer than some of the others.
check "... the worst first" eval '"$I" diagnose --no-header --fields severity >"$T/out"; ! sed -n "/warning/,\$p" "$T/out" | grep critical'
check "killed: the dead stand first in ps, and each state together" eval '"$I" ps --no-header --fields state | uniq >"$T/out";
	[ "$(head -1 "$T/out" | tr -d " ")" = died ] && [ -z "$(sort "$T/out" | uniq -d)" ] && [ "$(wc -l <"$T/out")" -ge 2 ]'
check "killed: check ends with 2" ends 2 "$I" check
check "... with one line" says '^NCCLINSP CRITICAL - rank 2 .*\| critical=[2-9]'
check "killed: ... fewer than --crit are a warning" \
	eval 'ends 1 "$I" check --crit 99 && says "^NCCLINSP WARNING - rank 2 .*\| critical=[2-9];;98;0 "'
check "killed: diagnose tells of the dead process by its pid" \
	eval 'pid=$(api findings | jq "[.findings[] | select(.kind == \"died\")][0].evidence.processes[0].pid") &&
	      ends 10 "$I" diagnose -p "$pid" && says "died" && ends 0 "$I" diagnose -p 4000000'
check "killed: status begins with the daemon's own verdict" \
	eval 'ends 0 "$I" status && says "now +! rank 2 \(pid .*it began"'
check "killed: fields of the findings are chosen as of any table" \
	eval 'ends 10 "$I" diagnose --fields severity,kind && says "^SEVERITY  KIND" && says "^critical  died"'
check "killed: findings are filtered" eval 'ends 0 "$I" diagnose -f kind=slow_peer && says "no finding matches" && ends 10 "$I" diagnose -f kind=died'
check "killed: samples repeat" eval '"$I" diagnose -n 2 -d 0.1 --fields kind --no-header >"$T/out"; [ "$(grep -c died "$T/out")" -ge 2 ]'
check "killed: CSV has a row for each" eval 'ends 10 "$I" diagnose --no-header -o csv && says "^[0-9]+,died,"'
end_job

check "findings end with what they are about" wait_until 60 api_is 'findings?active=true' \
	'[.findings[] | select(.kind != "died" and .kind != "loss")] == []'

before=$(api findings | jq '[.findings[].id] | max')
start_job training
sleep 3
end_job
# (Eight processes on two CPUs that others use too: threads, and the daemon, may well starve.)
check "a job that runs is left alone" api_is findings "[.findings[] | select(.id > $before) | .kind]
	- [\"died\", \"proxy_starved\", \"loss\"] == []"

# A daemon that does not get to read, until something is overwritten.
cat >"$T/many.scn" <<-SCN
	processes 2
	comm many ranks 0,1 channels 2
	loop forever
		compute 200us
		AllReduce many 1Ki float32
	end
SCN
loses() {
	kill -STOP "$DAEMON_PID"
	sleep 3
	kill -CONT "$DAEMON_PID"
	wait_until 4 api_is 'findings?active=true' \
		'any(.findings[]; .kind == "loss" and .severity == "warning" and .comm_name == "many" and
		 .evidence.lost.overrun > 0)'
}
setsid nice -n 10 "$B/nccl-sim" --plugin "$PLUGIN" "$T/many.scn" 2>/dev/null &
JOB=$!
wait_until 60 api_is comms 'any(.comms[]; .name == "many")'
check "records that are lost are told, with their cause" wait_until 60 loses
kill -KILL -- "-$JOB"
wait "$JOB" 2>/dev/null
check "... and no more when nothing is lost" wait_until 60 api_is 'findings?active=true' \
	'all(.findings[]; .kind != "loss")'
check "the log tells of them" grep -q "finding active id=.* kind=died .*text=rank 2" "$T/daemon.log"
check "what is over can be asked for" eval 'ends 10 "$I" diagnose --all && says "over, it took"'
check "explain tells what a verdict means" eval 'ends 0 "$I" explain not_joined && says "^what to do"'
if command -v script >/dev/null; then
	check "explain's list is as wide as the terminal" eval \
		'[ "$(script -qec "stty cols 60; \"$I\" explain kind" /dev/null </dev/null | tr -d "\r" | wc -L)" -le 60 ]'
else
	skip "explain's list is as wide as the terminal" "script(1) is not here"
fi
check "explain tells which word was meant" eval 'ends 4 "$I" explain not_joind && says "is it NOT_JOINED\?"'
check "explain does not know every word" ends 4 "$I" explain nonsense
done_testing
