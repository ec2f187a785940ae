#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What runs before and after a job under Slurm, as Slurm calls it.
. "$(dirname "$0")/lib.sh"

prolog() { env "$@" "$TOP/deploy/slurm/task-prolog.sh"; }
check "a task gets the plugin" test "$(prolog -u NCCL_PROFILER_PLUGIN)" = "export NCCL_PROFILER_PLUGIN=insp"
check "unless the user has another one" test -z "$(prolog NCCL_PROFILER_PLUGIN=own)"
check "or wants none" test -z "$(prolog NCCL_PROFILER_PLUGIN=)"

# What the daemon asks of a job, the plugin must copy.  NCCL's settings are copied without a list.
asked() { grep -oE '"[A-Z][A-Z0-9_]+"' "$TOP/reader/base/job.c" | tr -d '"' | grep -v '^NCCL_' | sort -u; }
copied() { grep -oE 'X\([A-Z][A-Z0-9_]+\)' "$TOP/include/nci/variables.h" | sed 's/X(\(.*\))/\1/' | sort -u; }
check "there are variables that name a job" test "$(asked | wc -l)" -gt 20
check "each of them is copied from it" test -z "$(comm -23 <(asked) <(copied))"

# as_slurm ID COMMAND...: the environment that slurmd gives a task, with what the prolog
# has it add; "insp" is found where the linker looks.
mkdir "$T/lib"
ln -s "$PLUGIN" "$T/lib/"
as_slurm() {
	local id=$1
	shift
	env -u NCCL_PROFILER_PLUGIN SLURM_JOB_ID="$id" SLURM_JOBID="$id" SLURM_JOB_NAME=train \
		SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_NTASKS=1 \
		SLURM_NNODES=1 SLURMD_NODENAME=n1 SLURM_JOB_PARTITION=gpu LD_LIBRARY_PATH="$T/lib" \
		bash -c 'eval "$("$0")" && exec "$@"' "$TOP/deploy/slurm/task-prolog.sh" "$@"
}
start_daemon --stall-min 300ms
as_slurm 4712 "$B/nccl-sim" --plugin libnccl-profiler-insp.so "$TOP/tests/scenarios/training.scn" >/dev/null 2>&1 &
started+=("$!")
as_slurm 4711 bash -c 'exec "$0" --plugin "libnccl-profiler-$NCCL_PROFILER_PLUGIN.so" "$1"' \
	"$B/nccl-sim" "$TOP/tests/scenarios/killed.scn" 2>"$T/sim" &
started+=("$!")
has_box() { ls "$T"/state/blackbox/*-died.json; }
check "a job of Slurm dies, and there is a black box" wait_until 30 has_box

I=$B/ncclinsp
# all_of JOB COMMAND...: it has rows, and all of them are of that job.
all_of() {
	local id=$1
	shift
	"$I" "$@" -o csv --fields job --no-header >"$T/rows"	# diagnose: 10 when there is a finding
	[ -s "$T/rows" ] && ! grep -vx "$id" "$T/rows"
}
# rows COMMAND...: it has some.
rows() { "$I" "$@" -o csv --no-header -n 1 | grep -q .; }
no_rows() { ! rows "$@"; }
for command in ps ranks level; do
	check "$command has the id, and shows one job alone" wait_until 20 all_of 4712 "$command" --job 4712
done
for command in comms ops inflight dmon overhead tail; do
	check "$command shows one job alone" wait_until 20 rows "$command" --job 4712
	[ "$command" = tail ] || check "and nothing of one that is not there" no_rows "$command" --job 471
done
check "findings have the id" wait_until 20 all_of 4711 diagnose --job 4711
check "which is said" eval '"$I" diagnose | grep -q " of job 4711, for "'
check "those of another job are not shown" \
	eval '"$I" diagnose --job 471 | grep -q "no finding matches" && ! "$I" diagnose --job 4712 | grep "job 4711"'
check "metrics have the id" eval 'curl -s --unix-socket "$SOCK" http://ncclinspd/metrics | grep -q "job_id=\"4712\""'
check "so has the live view" eval 'COLUMNS=200 "$I" top -n 1 | grep -q " 4712 "'
end_all "${started[@]:1:1}"

epilog() { env NCCLINSP_STATE_DIR="$T/state" NCCLINSP_KEEP_DIR="$T/keep" "$@" "$TOP/deploy/slurm/epilog.sh"; }
kept() { cat "$T/keep/$1"/blackbox-*.json 2>/dev/null | jq -se 'any(.reason == "died")'; }
check "the epilog of another job succeeds" epilog SLURM_JOB_ID=471
check "and keeps nothing" test ! -e "$T/keep"
check "the epilog of the job succeeds" epilog SLURM_JOB_ID=4711
check "the job's black box is kept" kept 4711
check "for root only" test "$(stat -c %a "$T/keep/4711")" = 700
mkdir "$T/keep/12" "$T/keep/other"
touch -d "-40 days" "$T/keep/12" "$T/keep/other"
check "what has been kept for long goes" eval \
	'epilog SLURM_JOB_ID=471 && [ ! -e "$T/keep/12" ] && [ -e "$T/keep/other" ] && kept 4711'
mkdir "$T/keep/12" && touch -d "-40 days" "$T/keep/12"
check "or stays for as many days as wanted" eval \
	'epilog SLURM_JOB_ID=471 NCCLINSP_KEEP_DAYS=50 && [ -e "$T/keep/12" ]'
check "an id that is none is let be" epilog SLURM_JOB_ID=../../x
check "so is none" epilog SLURM_JOB_ID=
check "a node without a daemon too" epilog SLURM_JOB_ID=4711 NCCLINSP_STATE_DIR="$T/none"
touch "$T/file"
check "a place that cannot be written does not drain the node" \
	epilog SLURM_JOB_ID=4711 NCCLINSP_KEEP_DIR="$T/file"
done_testing
