#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Everything that needs a GPU, from the folder that `make gpu-bundle` has built:
#
#   run.sh [RESULTS [STEP...]]       steps: machine times stamps cost graph record training faults uneven speed
#
# Makes RESULTS (./results) for what it finds; a summary goes to stdout.
# Ends with 0: all is well, 1: something is not, 77: there is no GPU.
#
#   NCCL_LIB, CUDART_LIB   libraries, if the ones that are found are not meant
#   RANKS (2)              processes, each a node of its own, on one GPU
#   MOST_BYTES (256 MiB)   size of the largest operations
#   COST_BYTES (1 MiB)     the same where costs are compared
#   ROUNDS (5)             how often each plugin's turn comes when costs are compared
#   PLUGINS                which: none empty off ops kernel net trace; default: ours with no level set
#   PYTHON (python3)       one that has PyTorch, for training and speed
#   MPS=1                  kernels of several processes run at once, by NVIDIA's own service;
#                          without it they take turns on a GPU, milliseconds each
#   LIMIT (300)            seconds for each job
#   GPU_PRELOAD            a library that plays the GPU
set -u
HERE=$(cd "$(dirname "$0")" && pwd)
RESULTS=${1:-results}
[ $# -eq 0 ] || shift
STEPS=${*:-machine times stamps cost graph record training faults uneven speed}
RANKS=${RANKS:-2} MOST_BYTES=${MOST_BYTES:-268435456} ROUNDS=${ROUNDS:-5}
COST_BYTES=${COST_BYTES:-1048576}
PLUGINS=${PLUGINS:-none empty off ops kernel net trace}
SPEED_PLUGINS=${SPEED_PLUGINS:-none empty default ops net}
UNEVEN_PLUGINS=${UNEVEN_PLUGINS:-none default kernel net trace}
LIMIT=${LIMIT:-300}

mkdir "$RESULTS" || exit 1
RESULTS=$(cd "$RESULTS" && pwd)
T=$(mktemp -d "${TMPDIR:-/tmp}/gpu-run.XXXXXX")
SHM=$(mktemp -d /dev/shm/gpu-run.XXXXXX)
export NCCLINSP_SHM_DIR=$SHM NCCLINSP_SOCKET=$T/sock NCCLINSP_CONTROL=$T/control NCCLINSP_KERNELS=always
export LC_ALL=C
export NCCL_SOCKET_IFNAME=${NCCL_SOCKET_IFNAME:-lo} NCCL_DEBUG=${NCCL_DEBUG:-WARN}

failed=0
finish() {
	local pids
	[ -z "${CUDA_MPS_PIPE_DIRECTORY:-}" ] || echo quit | nvidia-cuda-mps-control >/dev/null 2>&1
	pids=$(jobs -p)
	[ -z "$pids" ] || kill $pids 2>/dev/null
	wait 2>/dev/null
	rm -rf "$T" "$SHM"
}
trap finish EXIT
trap 'exit 130' INT TERM

# The programs that are no part of the job bring all their libraries with them.
loader=("$HERE"/lib/ld-linux-*.so.* --library-path "$HERE/lib")
tool() {
	local name=$1
	shift
	"${loader[@]}" "$HERE/bin/$name" "$@"
}

say() { echo "$*" | tee -a "$RESULTS/summary.txt"; }
bad() { say "NOT OK: $*"; failed=1; }

# ---- libraries ----

search() {
	ldconfig -p 2>/dev/null | sed -n "s/^\t$1 .*=> //p"
	ls ${CUDA_HOME:+"$CUDA_HOME"/lib64/$1} /usr/local/cuda*/lib64/$1 2>/dev/null
	timeout 60 find /usr /opt /home /root -name "$1" 2>/dev/null
}

# Whether there is a GPU, for the libraries that are named.
look() { LD_PRELOAD=${GPU_PRELOAD:-} "$HERE/bin/gpu-job" 1 0 "$T" look; }

# Python's wheels bring both, where no system has them.  Of several CUDAs, the
# newest that gets on with the driver.
find_libraries() {
	local candidate
	[ -z "${GPU_PRELOAD:-}" ] || return
	: "${NCCL_LIB:=$(search 'libnccl.so.2' | head -n 1)}"
	export NCCL_LIB
	[ -z "${CUDART_LIB:-}" ] || return
	for candidate in $(search 'libcudart.so.1[0-9]' | sed 's/.*[.]//' | sort -run); do
		export CUDART_LIB=$(search "libcudart.so.$candidate" | head -n 1)
		look >/dev/null && return
	done
}

start_mps() {
	export CUDA_MPS_PIPE_DIRECTORY=$T/mps CUDA_MPS_LOG_DIRECTORY=$T/mps
	mkdir "$T/mps"
	timeout 20 nvidia-cuda-mps-control -d && return
	unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
	bad "MPS does not start"
}

# ---- jobs ----

# start_job DIRECTORY PROGRAM [ARGUMENT...]: its ranks join ${pids[@]}.
start_job() { start_ranks "$1" "$HERE/bin/gpu-job" "${@:2}"; }

# start_training DIRECTORY PROGRAM [ARGUMENT...]: the same, of PyTorch.
start_training() { PRELOAD=$NCCL_LIB start_ranks "$1" "${PYTHON:-python3} $HERE/train.py" "${@:2}"; }

start_ranks() {
	local directory=$1 job=$2 rank processes=${PROCESSES:-$RANKS}
	shift 2
	mkdir -p "$directory"
	for ((rank = 0; rank < processes; rank++)); do
		RANK=$rank WORLD_SIZE=$RANKS NCCL_HOSTID=node$rank FAKE_GPU_COUNT=$((RANKS / processes)) LD_PRELOAD=${PRELOAD:-${GPU_PRELOAD:-}} \
			timeout -k 5 "$LIMIT" $job "$RANKS" "$rank" "$directory" "$@" \
			>"$directory/out.$rank" 2>&1 &
		pids+=($!)
	done
}

end_jobs() {
	local pid status=0
	for pid in "${pids[@]}"; do
		wait "$pid" || status=$?
	done
	pids=()
	return $status
}
pids=()

play() {
	start_job "$@"
	end_jobs
}

pid_of() { head -n 1 "$1/truth.$2" | tr -cd 0-9; }

# What went wrong in a job.
words() { head -n 20 "$1"/out.* | tee -a "$RESULTS/summary.txt"; }

# ---- the daemon ----

api() { tool curl -s --unix-socket "$NCCLINSP_SOCKET" "http://ncclinspd/v1/$1"; }

# until_true COMMAND...: within ten seconds.
until_true() {
	local i
	for i in $(seq 200); do
		"$@" >/dev/null 2>&1 && return
		sleep 0.05
	done
	return 1
}

answers() { api status | tool jq -e .version; }
drained() { api processes | tool jq -e '[.processes[] | select(.state == "live")] == []'; }

# start_daemon [OPTION...]
start_daemon() {
	"${loader[@]}" "$HERE/bin/ncclinspd" --foreground --socket "$NCCLINSP_SOCKET" --shm-dir "$SHM" \
		--containers no --state-dir "$T/state" --control "$T/control" "$@" \
		>>"$RESULTS/daemon.log" 2>&1 &
	daemon=$!
	until_true answers || { bad "the daemon did not start"; exit 1; }
}

stop_daemon() {
	kill "$daemon"
	wait "$daemon" || bad "the daemon ended with $?"
}

# ---- steps ----

step_machine() {
	{
		date -u
		uname -a
		grep -m 1 PRETTY_NAME /etc/os-release
		grep -m 1 'model name' /proc/cpuinfo
		nproc
		echo "NCCL_LIB=${NCCL_LIB:-} CUDART_LIB=${CUDART_LIB:-} GPU_PRELOAD=${GPU_PRELOAD:-}"
		nvidia-smi -L 2>/dev/null
		nvidia-smi --query-gpu=name,driver_version,clocks.max.sm --format=csv 2>/dev/null
	} >"$RESULTS/machine.txt"
	cat "$RESULTS/machine.txt"
}

# What the daemon tells of times against what CUDA's events say.
step_times() {
	local rank
	start_daemon
	if NCCLINSP_LEVEL=net NCCL_PROFILER_PLUGIN=$HERE/lib/libnccl-profiler-insp.so \
			play "$T/times" times "$MOST_BYTES"; then
		until_true drained || bad "the daemon did not come to an end"
		for rank in $(seq 0 $((RANKS - 1))); do
			api "collectives?pid=$(pid_of "$T/times" "$rank")&limit=10000"
		done >"$RESULTS/times.rows.json"
		api status >"$RESULTS/times.status.json"
		api clocks >"$RESULTS/times.clocks.json"
		tool jq -r '.clocks[] | "times: the GPU'"'"'s clock drifts \(.drift_ppm) +- \(.drift_error_ppm) ppm against the host'"'"'s"' \
			"$RESULTS/times.clocks.json" | tee -a "$RESULTS/summary.txt"
		say "times: $(grep -h -m 1 'NCCL version' "$T/times/out.0")"
		tool ncclinsp ops -S "$NCCLINSP_SOCKET" >"$RESULTS/times.ops.txt"
		cat "$T"/times/truth.* >"$RESULTS/times.truth.jsonl"
		tool jq -s --slurpfile rows "$RESULTS/times.rows.json" -f "$HERE/times.jq" \
			"$RESULTS/times.truth.jsonl" >"$RESULTS/times.json"
		tool jq -r '"times: what, bytes, how often, by CUDA events, as told, difference, worst, " +
				"near enough, ns",
			(.rows[] | [.span, .bytes, .n, .event_ns, .exec_ns, .difference_ns, .worst_ns,
				.near, .verdict] | @tsv)' "$RESULTS/times.json" | tee -a "$RESULTS/summary.txt"
		tool jq -r '.bad[]' "$RESULTS/times.json" >"$T/bad"
		[ ! -s "$T/bad" ] || bad "times: $(wc -l <"$T/bad") of them, $(head -n 3 "$T/bad")"
		tool jq -e .rows "$RESULTS/times.json" >/dev/null || bad "times: no comparison"
	else
		bad "times: the job failed"
		words "$T/times"
	fi
	stop_daemon
}

# Resolution of the GPU's clock.
step_stamps() {
	local file
	mkdir -p "$RESULTS/stamps"
	if NCCL_PROFILER_PLUGIN=$HERE/lib/libnccl-profiler-record.so \
			NCCLINSP_RECORD=$RESULTS/stamps/%p.rec NCCL_PROFILE_EVENT_MASK=0x7fff \
			play "$T/stamps" times "$MOST_BYTES"; then
		for file in "$RESULTS"/stamps/*.rec; do
			tool nccl-replay --print "$file" | awk -f "$HERE/stamps.awk"
		done | tee "$RESULTS/stamps.txt" | tee -a "$RESULTS/summary.txt"
	else
		bad "stamps: the job failed"
		words "$T/stamps"
	fi
}

plugin_of() {
	case $1 in
	none)  echo none ;;
	record) echo "$HERE/lib/libnccl-profiler-record.so" ;;
	empty) echo "$HERE/lib/libnccl-profiler-empty.so" ;;
	*)     echo "$HERE/lib/libnccl-profiler-insp.so" ;;
	esac
}

# with_plugin NAME COMMAND...
with_plugin() {
	local kernels=$NCCLINSP_KERNELS
	if [ "$1" = default ]; then
		unset NCCLINSP_KERNELS
		NCCL_PROFILER_PLUGIN=$(plugin_of "$1") "${@:2}"
		export NCCLINSP_KERNELS=$kernels
	else
		NCCL_PROFILER_PLUGIN=$(plugin_of "$1") NCCLINSP_LEVEL=$1 "${@:2}"
	fi
}

# take_turns WHAT START PROGRAM PLUGIN...: jobs that START begins, one with each plugin, which take turns.
take_turns() {
	local what=$1 start=$2 program=$3 name index=0 status
	shift 3
	head -c 4 /dev/zero >"$T/turns"
	start_daemon
	for name; do
		with_plugin "$name" "$start" "$T/$what.$name" $program "$T/turns" "$index" $# "$ROUNDS" "$name"
		index=$((index + 1))
	done
	end_jobs
	status=$?
	if [ $status -ne 0 ]; then
		bad "$what: a job failed"
		for name; do words "$T/$what.$name"; done
	fi
	stop_daemon
	return $status
}

# cost_of AllReduce|P2P NODES: with each plugin and level, and the callbacks of one of 64 bytes.
cost_of() {
	local what=$1 nodes=$2 name=cost.$1.$2 PROCESSES= ops rec
	[ "$nodes" -ne 1 ] || PROCESSES=1
	head -c 4 /dev/zero >"$T/turns"
	NCCL_PROFILER_PLUGIN=$(plugin_of record) NCCLINSP_RECORD=$T/$name.%p.rec NCCL_PROFILE_EVENT_MASK=4095 \
		play "$T/$name.calls" cost "$what" "$nodes" 64 "$T/turns" 0 1 1 calls
	case $? in
	0) ;;
	77) say "cost: $what on $nodes node: skipped, $(cat "$T/$name.calls/out.0")"; return ;;
	*) bad "cost: the job that counts callbacks failed"; words "$T/$name.calls"; return 1 ;;
	esac
	ops=$(tool jq -s '.[0].ops' "$T/$name.calls/cost.0")
	for rec in "$T/$name".*.rec; do
		tool nccl-replay --print "$rec" | awk '
			$3 ~ /^(start|state|stop)$/ { n[$2]++; if ($5 ~ /^(Group|Coll|P2p)/) posts[$2] }
			END { for (t in n) { all += n[t]; own += t in posts ? n[t] : 0 } print all + 0, own + 0 }'
	done | awk -v what="$what" -v nodes="$nodes" -v ops="$ops" -v ranks="$RANKS" '
		{ all += $1; own += $2 }
		END {
			if (!own)
				exit 1
			printf "{\"what\":\"%s\",\"nodes\":%d,\"calls\":%.3f,\"posted\":%.3f}\n",
				what, nodes, all / ranks / ops, own / NR / ops
		}' >>"$RESULTS/cost.jsonl" || bad "cost: no callback of $what on $nodes node was recorded"
	take_turns "$name" start_job "cost $what $nodes $COST_BYTES" $PLUGINS || return
	cat "$T/$name".*/cost.* | tool jq -c 'select(.name != "calls")' >>"$RESULTS/cost.jsonl"
}

# What an operation costs with each plugin and level.
step_cost() {
	local what nodes
	for what in P2P AllReduce; do
		for nodes in 1 "$RANKS"; do
			cost_of "$what" "$nodes" || return
		done
	done
	tool jq -s -f "$HERE/cost.jq" "$RESULTS/cost.jsonl" >"$RESULTS/cost.json"
	tool jq -r '"cost of an operation, ns, and over no plugin: what nodes bytes plugin " +
			"post streamed alone",
		(.[] | [.what, .nodes, .bytes, .name, .post_ns, .streamed_ns, .alone_ns,
			.post_ratio, .streamed_ratio, .alone_ratio] | @tsv),
		"cost of 64 bytes: what, nodes, plugin; posting, ns, over no plugin; in a stream, us, over no plugin; " +
			"where all callbacks are wanted: those of a rank, of a thread that posts, ns that each of these adds",
		(.[] | select(.bytes == 64) | [.what, .nodes, .name, .post_ns, .post_ratio, .streamed_ns / 1000,
			.streamed_ratio, if .call_ns then .calls, .posted, .call_ns else empty end] | @tsv)' \
		"$RESULTS/cost.json" | tee -a "$RESULTS/summary.txt"
}

# A graph must run, and its operations be known.
step_graph() {
	local status
	start_daemon
	NCCLINSP_LEVEL=net NCCL_PROFILER_PLUGIN=$HERE/lib/libnccl-profiler-insp.so \
		play "$T/graph" graph
	status=$?
	if [ $status -eq 0 ]; then
		until_true drained
		api 'collectives?limit=10000' >"$RESULTS/graph.rows.json"
		tool jq -r '.collectives | "graph: \(length) operations told, \(map(select(.graph)) |
			length) of them captured"' "$RESULTS/graph.rows.json" | tee -a "$RESULTS/summary.txt"
		tool jq -e '[.collectives[] | select(.graph)] != []' "$RESULTS/graph.rows.json" \
			>/dev/null || bad "graph: none of its operations is known"
	elif [ $status -eq 77 ]; then
		say "graph: skipped, $(cat "$T/graph/out.0")"
	else
		bad "graph: the job failed"
		words "$T/graph"
	fi
	stop_daemon
}

# Recordings for tests/recordings/: files by rank, and the truth about them.
step_record() {
	local name rank
	for name in allreduce every alltoall group nonblocking; do
		mkdir -p "$RESULTS/recordings/$name"
		if ! NCCL_PROFILER_PLUGIN=$HERE/lib/libnccl-profiler-record.so \
				NCCLINSP_RECORD=$T/$name.%p.rec play "$T/$name" small "$name"; then
			bad "record: $name failed"
			words "$T/$name"
			continue
		fi
		for ((rank = 0; rank < RANKS; rank++)); do
			mv "$T/$name.$(pid_of "$T/$name" "$rank").rec" \
				"$RESULTS/recordings/$name/$rank.rec"
			tail -n +2 "$T/$name/truth.$rank"
		done >"$RESULTS/recordings/$name/truth.jsonl"
		say "record: $name, $(cat "$RESULTS/recordings/$name"/*.rec | wc -c) bytes"
	done
}

has_torch() {
	"${PYTHON:-python3}" -c 'import torch; print("torch", torch.__version__)' 2>/dev/null && return
	say "$1: skipped, ${PYTHON:-python3} has no PyTorch"
	return 1
}

# look_at MOMENT: what a user sees then.
look_at() {
	local command
	for command in status ranks ops peers "top -b -n 1" diagnose check overhead; do
		echo "\$ ncclinsp $command"
		COLUMNS=120 tool ncclinsp $command -S "$NCCLINSP_SOCKET" 2>&1
		echo
	done >"$RESULTS/training.$1.txt"
	api findings >"$RESULTS/training.$1.findings.json"
	api machine >"$RESULTS/training.$1.machine.json"
	api ranks >"$RESULTS/training.$1.ranks.json"
}

# named JQ: a finding of the kind accuses the last rank.
named() { api findings | tool jq -e --argjson rank $((RANKS - 1)) ".findings[] | $1"; }

# accuse SECONDS WHAT JQ
accuse() {
	local begin=$SECONDS
	until named "$3" >"$T/named" 2>/dev/null; do
		[ $((SECONDS - begin)) -lt "$1" ] || { bad "training: $2 is not told within $1 s"; return; }
		sleep 0.2
	done
	say "training: $2 is told after $((SECONDS - begin)) s: $(tool jq -r '"\(.grade) \(.text)"' "$T/named" | head -n 1)"
}

# A training whose last rank comes late to each step, then not at all.
step_training() {
	local steps="$T/training/steps.0"
	has_torch training || return
	start_daemon --straggler-window 10
	mkdir "$T/training"
	with_plugin default start_training "$T/training" until
	if until_true test -s "$steps" || until_true test -s "$steps" || until_true test -s "$steps"; then
		sleep 35
		look_at healthy
		tool jq -r '"training: \(.findings | length) findings while all is well"' \
			"$RESULTS/training.healthy.findings.json" | tee -a "$RESULTS/summary.txt"
		[ "$(tool jq '[.findings[] | select(.severity == "critical")] | length' \
			"$RESULTS/training.healthy.findings.json")" = 0 ] || bad "training: a false alarm"
		# A tenth of a step.
		tail -n 100 "$steps" | sort -k 2 -n | awk '{ s[NR] = $2 } END { print s[int(NR / 2) + 1] / 10 }' \
			>"$T/training/late"
		say "training: a step takes ten times $(cat "$T/training/late") s, by so much rank $((RANKS - 1)) is late now"
		mv "$T/training/late" "$T/training/late.$((RANKS - 1))"
		accuse 60 "a late rank" 'select(.kind == "straggler" and .ranks[0] == $rank)'
		sleep 5
		look_at late
		echo 1000 >"$T/training/late.$((RANKS - 1))"
		accuse 60 "a rank that does not come" 'select(.grade == "found" and (.kind | test("stall|desync")) and
			.ranks[0] == $rank)'
		look_at absent
	else
		bad "training: no step within 30 s"
	fi
	touch "$T/training/end"
	kill "${pids[@]}"
	end_jobs
	cat "$steps" >"$RESULTS/training.steps.txt"
	[ ! -s "$RESULTS/training.steps.txt" ] && words "$T/training"
	stop_daemon
}

# A rank of a training that is stopped, or killed.
step_faults() {
	local signal process steps
	local CUDA_MPS_PIPE_DIRECTORY=$T/no-mps		# its clients must not be killed
	has_torch faults || return
	start_daemon
	for signal in STOP KILL; do
		steps=$T/faults.$signal/steps.0
		mkdir "$T/faults.$signal"
		with_plugin default start_training "$T/faults.$signal" until
		until_true test -s "$steps" || until_true test -s "$steps" || until_true test -s "$steps"
		sleep 6
		process=$(cat "/proc/${pids[-1]}/task/${pids[-1]}/children")
		kill "-$signal" $process
		accuse 10 "a rank that got SIG$signal" "select(.grade == \"found\" and .whom[0].pid == ${process:-0})"
		look_at "$signal"
		kill -KILL $process
		kill "${pids[@]}"
		end_jobs
	done
	stop_daemon
}

# No job hangs on a group of Broadcasts with several roots, whatever the level.
step_uneven() {
	local name
	has_torch uneven || return
	start_daemon
	for name in $UNEVEN_PLUGINS; do
		with_plugin "$name" start_training "$T/uneven.$name" uneven
		if end_jobs; then
			say "uneven: $name: ends"
		else
			bad "uneven: $name: it hangs, or failed"
			words "$T/uneven.$name"
		fi
	done
	api 'collectives?limit=10000' >"$RESULTS/uneven.rows.json"
	stop_daemon
}

# What a step of a training costs with each plugin.
step_speed() {
	has_torch speed || return
	take_turns speed start_training turns $SPEED_PLUGINS || return
	cat "$T"/speed.*/speed.* >"$RESULTS/speed.jsonl"
	tool jq -s -r 'group_by(.name) | map({ name: .[0].name, step_ns: (map(.step_ns) | sort | .[length / 2 | floor]) })
		| (map(select(.name == "none"))[0].step_ns) as $none
		| "a step of a training, ns, and over no plugin:",
		(.[] | [.name, (.step_ns | floor), (.step_ns / $none * 1000 | round / 1000)] | @tsv)' \
		"$RESULTS/speed.jsonl" | tee -a "$RESULTS/summary.txt"
}

find_libraries
: >"$RESULTS/summary.txt"
look || exit
[ -z "${MPS:-}" ] || start_mps
for step in $STEPS; do
	"step_$step"
done
[ $failed -eq 0 ] && say "all is well"
exit $failed
