#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What runs before and after a job under Slurm, as Slurm calls it.
. "$(dirname "$0")/lib.sh"

prolog() { env "$@" "$TOP/deploy/slurm/task-prolog.sh"; }
check "a task gets the plugin" test "$(prolog -u NCCL_PROFILER_PLUGIN)" = "export NCCL_PROFILER_PLUGIN=insp"
check "unless the user has another one" test -z "$(prolog NCCL_PROFILER_PLUGIN=own)"
check "or wants none" test -z "$(prolog NCCL_PROFILER_PLUGIN=)"

start_daemon --stall-min 300ms
SLURM_JOB_ID=4711 "$B/nccl-sim" --plugin "$PLUGIN" "$TOP/tests/scenarios/killed.scn" 2>"$T/sim" &
started+=("$!")
has_box() { ls "$T"/state/blackbox/*-died.json; }
check "a job of Slurm dies, and there is a black box" wait_until 30 has_box

epilog() { env NCCLINSP_STATE_DIR="$T/state" NCCLINSP_KEEP_DIR="$T/keep" "$@" "$TOP/deploy/slurm/epilog.sh"; }
kept() { cat "$T/keep/$1"/blackbox-*.json 2>/dev/null | jq -e '.reason == "died"'; }
check "the epilog of another job succeeds" epilog SLURM_JOB_ID=471
check "and keeps nothing" test ! -e "$T/keep"
check "the epilog of the job succeeds" epilog SLURM_JOB_ID=4711
check "the job's black box is kept" kept 4711
check "for root only" test "$(stat -c %a "$T/keep/4711")" = 700
check "an id that is none is let be" epilog SLURM_JOB_ID=../../x
check "so is none" epilog SLURM_JOB_ID=
check "a node without a daemon too" epilog SLURM_JOB_ID=4711 NCCLINSP_STATE_DIR="$T/none"
touch "$T/file"
check "a place that cannot be written does not drain the node" \
	epilog SLURM_JOB_ID=4711 NCCLINSP_KEEP_DIR="$T/file"
done_testing
