#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Commands about what runs now, against a job that goes on: ranks, dmon, mark.
. "$(dirname "$0")/lib.sh"

[ -x "$B/nccl-sim" ] && [ -x "$B/ncclinspd" ] || skip_all "the simulator or the daemon is not built"

I=$B/ncclinsp
unset COLUMNS NO_COLOR
export TERM=xterm

start_daemon
check "no process: ranks and dmon exit with 4" \
	eval '"$I" ranks 2>"$T/err"; [ $? -eq 4 ] && grep -q "no rank is alive" "$T/err" &&
	      { "$I" dmon -n 1 2>"$T/err"; [ $? -eq 4 ]; } && grep -q "no GPU uses NCCL" "$T/err"'

cat >"$T/job.scn" <<-SCN
nodes 1
processes 4
seed 3
comm dp ranks 0-3 channels 2
late rank 2 by 5ms
loop forever
	compute 1ms
	AllReduce dp 1Mi float32
end
SCN
SLURM_JOB_ID=4711 sim "$T/job.scn" >"$T/sim.log" 2>&1 &
SIM_PID=$!
started+=("$SIM_PID")
blamed() { "$I" ranks --window all -o jsonl | jq -se 'length == 4 and (map(select(.blame != null)) | length) > 0'; }
check "the job runs" wait_until 30 blamed

check "ranks has a row for each rank, with its job" \
	eval '[ "$("$I" ranks -o jsonl | jq -s "map(select(.job == \"4711\")) | length")" -eq 4 ]'
slow_first() { [ "$("$I" ranks --window all -o csv --no-header --fields rank | head -1)" = 2 ]; }
check "the rank that makes others wait comes first" wait_until 30 slow_first
check "a job's ranks can be asked for, and another job's" \
	eval '[ "$("$I" ranks -j 4711 --no-header | wc -l)" -eq 4 ] && { "$I" ranks -j 4712 2>/dev/null; [ $? -eq 4 ]; }'
# requests ARG...: the paths that the command asks the daemon for.
requests() { "$I" -v "$@" 2>&1 >/dev/null | sed -n 's|^ncclinsp: [^ ]*: \(/v1/[a-z]*\).*: 200, .*|\1|p' | paste -sd ' '; }
check "ranks is one request, however it is filtered" \
	eval '[ "$(requests ranks)" = /v1/ranks ] && [ "$(requests ranks -j 4711 -u root --comm dp -r 2 -f "ops_per_s>0")" = /v1/ranks ] &&
	      [ "$(requests dmon -n 1)" = /v1/ranks ] && [ "$(requests comms -j 4711)" = /v1/comms ]'
# agree CLI-FIELD FILTER PATH: what ranks shows of each rank is what another answer says of it.
agree() {
	diff <("$I" ranks --window all -o csv --no-header -s rank --fields "rank,$1" | sort) \
		<(api "$3" | jq -r "$2 | @csv" | tr -d '"' | sort)
}
check "its rows are of the processes that others tell of" \
	agree pid,comm_id,nranks '.comms[] | . as $c | .local_ranks[] | [.rank, .pid, $c.comm_id, $c.nranks]' comms
check "... with their users and jobs" eval 'diff <("$I" ranks -o csv --no-header --fields pid,user,job | sort) \
	<(api processes | jq -r ".processes[] | select(.state == \"live\") | [.pid, .user, .job.id] | @csv" | tr -d "\"" | sort)'
check "one sample knows who waits" eval '"$I" ranks -o jsonl | jq -se "length == 4 and all(.wait != null)"'
check "so does a frame of top as text" \
	eval 'COLUMNS=200 "$I" top -n 1 >"$T/out" && awk "/^RANK/ { for (i = 1; i <= NF; i++) if (\$i ~ /^WAIT/) at = i; next }
	      at && NF == 0 { exit } at { rows++; known += \$at ~ /^[0-9.]+\$/ } END { print rows, known; exit rows != 4 || known != 4 }" "$T/out"'
check "samples have the same rows, and the second knows who waits" \
	eval '"$I" ranks -n 2 -d 1 -o jsonl | jq -se "length == 8 and (.[4:] | map(.wait) | any(. != null))"'

check "dmon has a line for each process and sample, as no GPU is known" \
	eval '[ "$("$I" dmon -n 3 -d 0.1 --no-header | wc -l)" -eq 12 ]'
check "they keep their order" \
	eval '"$I" dmon -n 2 -d 0.1 -o csv --no-header --fields pid >"$T/out" && diff <(head -4 "$T/out") <(tail -4 "$T/out")'
check "its header is repeated" eval '[ "$("$I" dmon -n 7 -d 0.1 | grep -c "^TIME ")" -eq 2 ]'
check "csv has it once" eval '[ "$("$I" dmon -n 7 -d 0.1 -o csv | grep -c "^at,")" -eq 1 ]'
check "its time is that of the zone, or UTC" \
	eval 'a=$(TZ=UTC-5 "$I" dmon -n 1 --no-header | head -1 | cut -d: -f1) b=$("$I" dmon -n 1 --no-header --utc | head -1 | cut -d: -f1) &&
	      [ $(((10#$a - 10#$b + 24) % 24)) -eq 5 ] || [ $(((10#$a - 10#$b + 24) % 24)) -eq 4 ]'
check "each sample is written at once" \
	eval 'timeout 60 "$I" dmon -d 0.1 | head -9 | tail -1 | grep -q "[0-9]:"'
# ---- mark ---------------------------------------------------------------------------

phases() { "$I" ps -o csv --no-header --fields phase | sort -u | tr '\n' ' '; }
check "nobody is marked" eval '[ "$("$I" mark -o jsonl | jq -s "map(select(.phase == null)) | length")" -eq 4 ]'
check "a dry run tells of whom, and changes nothing" \
	eval 'ends 0 "$I" mark -j 4711 eval --dry-run && says "^job 4711: would be in phase eval, 4 processes, and those that come later; nothing" &&
	      ends 4 "$I" ps -f phase=eval'
check "a job is marked" eval 'ends 0 "$I" mark -j 4711 eval && says "^job 4711: in phase eval, 4 processes, and those that come later$"'
check "ps and ranks show it" eval 'ends 0 "$I" ps && says "RANK  PHASE +LEVEL" && ends 0 "$I" ranks -f phase=eval'
both() { [ "$("$I" ops -o csv --no-header --fields phase | sort -u | tr '\n' ' ')" = " eval " ]; }
check "what was posted before and after is told apart" wait_until 30 both
check "it is a filter" eval 'ends 0 "$I" ops -f phase=eval -o jsonl && [ "$(jq -r .phase "$T/out" | sort -u)" = eval ]'
check "tail tells it of each operation" \
	eval '[ "$(timeout 60 "$I" tail -n 9 -f phase=eval -o jsonl | jq -r .phase | sort -u)" = eval ]'
check "tail knows its job" \
	eval '[ "$(timeout 60 "$I" tail -n 9 -o jsonl --fields job | jq -r .job | sort -u)" = 4711 ] &&
	      [ "$(timeout 60 "$I" tail -n 9 -f job=4711 -o jsonl | wc -l)" = 9 ]'
check "a process is marked by its pid, and a communicator by its name" \
	eval 'pid=$("$I" ps -o csv --no-header --fields pid | head -1); ends 0 "$I" mark "$pid" one && [ "$(phases)" = "eval one " ] &&
	      ends 0 "$I" mark --comm dp train && [ "$(phases)" = "train " ] &&
	      ends 0 "$I" mark "$pid" && says " train " && [ "$(grep -c . "$T/out")" -eq 2 ]'
check "and all of the node; a dash takes it back" \
	eval 'ends 0 "$I" mark node warmup && [ "$(phases)" = "warmup " ] &&
	      ends 0 "$I" mark - && says "node: in no phase, 4 processes" && ends 4 "$I" ps -f "phase!=-"'
check "what is no name is refused with what is one" eval 'ends 1 "$I" mark -j 4711 "two words" && says "letters, digits"'
check "as is what is not there" eval 'ends 4 "$I" mark -j 4712 eval && ends 4 "$I" mark 4000000 eval'
check "json is the answer, of a change and of the list" \
	eval '"$I" mark -j 4711 eval -o json | jq -e ".processes | length == 4" && "$I" mark -o json | jq -e ".processes[0].phase == \"eval\""'
check "a level's dry run changes nothing either" \
	eval 'ends 0 "$I" level -j 4711 trace --dry-run && says "would be trace, for 4 processes; nothing was changed" &&
	      [ "$(api level | jq -c .wishes)" = "[]" ]'
check "what is wrong can be asked of a job" eval '"$I" diagnose -j 4712 >"$T/out"; grep -q "no finding matches" "$T/out"'
check "of one that is not here it is not said that it is well" \
	eval '! ends 4 "$I" diagnose -j 4711 && ends 4 "$I" diagnose -j 4799 && says "no process of job .4799. here"'

# ---- marks outlive the daemon, and who is marked --------------------------------------

pid=$(api processes | jq '[.processes[] | select(.state == "live").pid][0]')
check "a job is marked, and one of its processes otherwise" \
	eval '"$I" mark -j 4711 train && "$I" mark "$pid" odd && [ "$(phases)" = "odd train " ]'
check "the API has the mark of the job" api_is phase '.marks | length == 1 and .[0].job == "4711" and .[0].phase == "train"'
since() { api processes | jq -c '[.processes[] | select(.state == "live") | [.pid, .phase, .phase_since_mono_ns]] | sort'; }
since >"$T/since"
stop_daemon KILL 2>/dev/null
start_daemon
attached() { [ "$(since | jq length)" -eq 4 ]; }
check "the daemon is killed, and another one sees the job" wait_until 30 attached
check "each process is at what it was, since then" diff "$T/since" <(since)
check "comms says of which job its ranks are" \
	eval '[ "$("$I" comms --no-header -o csv --fields job | sort -u)" = 4711 ]'
SLURM_JOB_ID=4711 sim "$T/job.scn" >"$T/sim2.log" 2>&1 &
started+=("$!")
joined() { api_is processes '[.processes[] | select(.state == "live" and .phase == "train")] | length == 7'; }
check "processes of the job that come later are marked like it" wait_until 30 joined
SLURM_JOB_ID=4712 sim "$T/job.scn" >"$T/sim3.log" 2>&1 &
started+=("$!")
other() { api_is processes '[.processes[] | select(.state == "live" and .job.id == "4712" and .phase == null)] | length == 4'; }
check "another job's are not" wait_until 30 other
check "a dash ends it" eval '"$I" mark -j 4711 - && api_is phase ".marks == []"'
timeout 60 "$I" tail -n 1 -f job=4713 -o jsonl --fields job,pid >"$T/tail.job" 2>"$T/err" &
TAIL_PID=$!
sleep 0.5
sed 's/^loop forever/loop 300/' "$T/job.scn" >"$T/later.scn"
SLURM_JOB_ID=4713 sim "$T/later.scn" >"$T/later.log" 2>&1
check "and that of processes that come later" eval 'wait "$TAIL_PID" && grep -q "\"job\":\"4713\"" "$T/tail.job"'
printf '/v1/processes\n{"processes":[{"pid":7}]}\n/v1/comms\n{"comms":[]}\n' >"$T/no.answers"
"$B/api-answers" "$T/no.sock" "$T/no.answers" &
started+=("$!")
wait_until 5 test -S "$T/no.sock"
unknown() { NCCLINSP_SOCKET=$T/no.sock "$I" ps "$@" >"$T/out" 2>"$T/err"; }
check "jobs that the daemon does not tell are an error, not a dash" \
	eval 'unknown -o csv && ! unknown -o csv --fields pid,command -f job=1 && grep -q . "$T/err" && [ ! -s "$T/out" ]'
done_testing
