#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `make demo` runs: a private daemon, two simulated jobs, `ncclinsp top`.
# On a terminal for as long as the user wants; elsewhere a few frames as text.
# Everything lives in two temporary directories and is gone afterwards.
set -u
TOP=$(cd "$(dirname "$0")/.." && pwd)
B=${B:-$TOP/build}
FRAMES=${FRAMES:-3}
T=$(mktemp -d "${TMPDIR:-/tmp}/ncclinsp-demo.XXXXXX")
SHM=$(mktemp -d /dev/shm/ncclinsp-demo.XXXXXX)
export NCCLINSP_SHM_DIR=$SHM NCCLINSP_SOCKET=$T/ncclinspd.sock
# Nobody wants to watch for half a minute how a job uses NCCL: that is known here.
export NCCLINSP_KERNELS=always

started=()
finish() {
	trap '' INT TERM HUP	# a terminal that goes says so twice
	kill "${started[@]}" 2>/dev/null
	wait 2>/dev/null
	rm -rf "$T" "$SHM"
}
trap finish EXIT
trap 'exit 130' INT TERM HUP

start() {
	"$@" >>"$T/log" 2>&1 </dev/null &
	started+=($!)
}

start "$B/ncclinspd" --foreground --socket "$NCCLINSP_SOCKET" --shm-dir "$SHM" --state-dir "$T/state" --containers no
for _ in $(seq 100); do
	"$B/ncclinsp" status >/dev/null 2>&1 && break
	sleep 0.05
done
"$B/ncclinsp" status >/dev/null || { cat "$T/log"; exit 1; }

# job ID SCENARIO: as a scheduler starts it.
job() { SLURM_JOB_ID=$1 start "$B/nccl-sim" --plugin "$B/libnccl-profiler-insp.so" "$TOP/tests/scenarios/$2.scn"; }
job 4711 recorded-like
job 4712 training

if [ -t 0 ] && [ -t 1 ]; then
	cat <<-EOF

		A daemon and two simulated jobs, for this demo only; no GPU is needed. In each job one
		rank is slow. After ten seconds or so the first lines of the live view name it.

		  Enter  into a row, to what that rank ran; Esc back      5  findings: who is late, and why
		  2, 3   operations, network links                        h  help          q  end

		To try other commands meanwhile, in another terminal:

		  export NCCLINSP_SOCKET=$NCCLINSP_SOCKET
		  $B/ncclinsp ranks -w

	EOF
	sleep 5
	"$B/ncclinsp" top
	echo "The demo has ended. For a job of your own: \"With a real job\" in README.md."
else
	# Eight seconds do, but for a slow machine.
	named() { [ "$("$B/ncclinsp" diagnose | grep -c 'straggler')" -ge 2 ]; }
	sleep 8
	for _ in $(seq 40); do
		named && break
		sleep 1
	done
	for _ in $(seq "$FRAMES"); do
		"$B/ncclinsp" top
		sleep 2
	done
fi
