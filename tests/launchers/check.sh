#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What real launchers tell of jobs: Open MPI's mpirun, MPICH's mpiexec, and a Slurm of one
# node that is started here, with the prolog and epilog of deploy/slurm/.  Slurm needs root.
. "$(dirname "$0")/../system/lib.sh"

[ -x "$B/ncclinspd" ] && [ -e "$PLUGIN" ] || skip_all "the plugin or the daemon is not built"

cat >"$T/plain.scn" <<-SCN
gpus 2
threads process
seed 3
comm dp ranks 0-1 channels 2
loop forever
	compute 10ms
	AllReduce dp 1Mi float32
end
SCN
start_daemon --stall-min 300ms
mkdir "$T/lib"
ln -s "$PLUGIN" "$T/lib/"
export LD_LIBRARY_PATH=$T/lib
unset NCCLINSP_KERNELS	# jobs as they come: their level can be lowered

# jobs_are JSON: what the live processes' launchers said, by rank.
jobs_are() {
	api_is processes "[.processes[] | select(.state == \"live\") | .job |
		[.scheduler, .rank, .local_rank, .world_size]] | sort == $1"
}
none_live() { api_is processes '[.processes[] | select(.state == "live")] == []'; }

# launched NAME COMMAND...: two ranks of it are told as they should be.
launched() {
	local name=$1 scheduler=$2
	shift 2
	"$@" "$B/nccl-sim" --plugin libnccl-profiler-insp.so "$T/plain.scn" >"$T/$name.log" 2>&1 &
	started+=("$!")
	check "$name tells scheduler, ranks and how many" wait_until 60 \
		jobs_are "[[\"$scheduler\", 0, 0, 2], [\"$scheduler\", 1, 1, 2]]"
}
end_last() {
	end_all "${started[-1]}"
	unset 'started[-1]'
	wait_until 60 none_live
}

if command -v mpirun.openmpi >/dev/null; then
	launched "Open MPI" mpi mpirun.openmpi --allow-run-as-root --oversubscribe -np 2
	check "a run of it has an id" api_is processes \
		'[.processes[] | select(.state == "live") | .job.id] | length == 2 and (unique | length == 1) and .[0] != null'
	end_last
else
	skip "Open MPI" "mpirun.openmpi is not installed"
fi
if command -v mpiexec.hydra >/dev/null; then
	launched MPICH mpi mpiexec.hydra -np 2
	end_last
else
	skip "MPICH" "mpiexec.hydra is not installed"
fi

# ---- Slurm ------------------------------------------------------------------------

for program in munged slurmctld slurmd srun; do
	command -v "$program" >/dev/null || { skip "Slurm" "$program is not installed"; done_testing; }
done
[ "$(id -u)" -eq 0 ] || { skip "Slurm" "needs root"; done_testing; }

export SLURM_CONF=$T/slurm.conf
node=$(hostname -s)
cat >"$T/epilog" <<-END
	#!/bin/sh
	export NCCLINSP_STATE_DIR=$T/state NCCLINSP_KEEP_DIR=$T/keep
	$TOP/deploy/slurm/epilog.sh
	echo "\$SLURM_JOB_ID \$?" >>$T/epilogs
END
chmod +x "$T/epilog"
cat >"$SLURM_CONF" <<-END
	ClusterName=insp
	SlurmctldHost=$node(127.0.0.1)
	SlurmctldPort=$((20000 + $$ % 10000))
	SlurmdPort=$((30000 + $$ % 10000))
	AuthType=auth/munge
	AuthInfo=socket=$T/munge.sock
	StateSaveLocation=$T/slurmctld
	SlurmdSpoolDir=$T/slurmd
	SlurmctldPidFile=$T/slurmctld.pid
	SlurmdPidFile=$T/slurmd.pid
	ProctrackType=proctrack/linuxproc
	TaskPlugin=task/none
	SlurmUser=root
	MpiDefault=none
	ReturnToService=2
	TaskProlog=$TOP/deploy/slurm/task-prolog.sh
	Epilog=$T/epilog
	NodeName=$node NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
	PartitionName=p Nodes=ALL Default=YES OverSubscribe=FORCE:8 State=UP
END
mkdir "$T/slurmctld" "$T/slurmd"
head -c 1024 /dev/urandom >"$T/munge.key"
chmod 400 "$T/munge.key"
slurm=()
start_slurm() { "$@" >>"$T/slurm.log" 2>&1 & slurm+=("$!"); }
start_slurm munged --foreground --force --socket="$T/munge.sock" --key-file="$T/munge.key" \
	--pid-file="$T/munge.pid" --log-file="$T/munge.log" --seed-file="$T/munge.seed"
wait_until 30 test -S "$T/munge.sock"
start_slurm slurmctld -D
start_slurm slurmd -D
is_idle() { [ "$(sinfo -h -o %t)" = idle ]; }
# The other way round than they were started; none may stay, and none may be waited for for ever.
stop_slurm() {
	local i
	scancel -u root 2>/dev/null
	wait_until 30 eval '[ -z "$(squeue -h)" ]'
	for ((i = ${#slurm[@]} - 1; i >= 0; i--)); do
		kill "${slurm[i]}" 2>/dev/null
		wait_until 15 eval '! kill -0 "${slurm[i]}"' || kill -9 "${slurm[i]}" 2>/dev/null
	done
}
trap 'stop_slurm; finish' EXIT

check "a Slurm of one node runs" wait_until 60 is_idle
unset NCCL_PROFILER_PLUGIN
job() { srun -n "$1" --overcommit sh -c 'exec "$0" --plugin "libnccl-profiler-$NCCL_PROFILER_PLUGIN.so" "$1"' \
	"$B/nccl-sim" "$2" >>"$T/srun.log" 2>&1; }
job 2 "$T/plain.scn" &
check "its tasks have the plugin by the prolog, and tell who they are" wait_until 60 \
	jobs_are '[["slurm", 0, 0, 2], ["slurm", 1, 1, 2]]'
id=$(squeue -h -o %i)
check "by the id that Slurm has given" api_is processes \
	"[.processes[] | select(.state == \"live\") | .job.id] | unique == [\"$id\"]"
check "which ncclinsp takes" eval \
	'[ "$("$B/ncclinsp" ps --job "$id" -o csv --no-header --fields rank | sort | tr -d "\n")" = 01 ]'
follows() {
	"$B/ncclinsp" level --job "$id" ops --for 60 >"$T/level" 2>&1
	cat "$T/level"
	grep -q "2 of 2 processes follow" "$T/level"
}
check "levels too" follows
scancel "$id"
check "the job ends" wait_until 60 is_idle

export NCCLINSP_KERNELS=always	# what is in flight is known from the beginning
job 1 "$TOP/tests/scenarios/killed.scn" &
has_box() { ls "$T"/state/blackbox/*-died.json; }
check "a rank of another job dies" wait_until 60 has_box
id=$(squeue -h -o %i)
scancel "$id"
check "its epilog succeeds" wait_until 60 grep -qx "$id 0" "$T/epilogs"
check "and has kept the black box" eval 'cat "$T/keep/$id"/blackbox-*.json | jq -se "any(.reason == \"died\")"'
check "the node is not drained" wait_until 60 is_idle
done_testing
