# SPDX-License-Identifier: Apache-2.0
# Shared by the system tests: TAP, a private daemon, the simulator.  Sourced, with
# B naming the build (default: build).  Everything lives in one directory that is
# removed at the end, with every process that was started.

set -u
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
B=${B:-$TOP/build}
T=$(mktemp -d "${TMPDIR:-/tmp}/ncclinsp-test.XXXXXX")
SHM=$(mktemp -d /dev/shm/ncclinsp-test.XXXXXX)
SOCK=$T/ncclinspd.sock
PATH=$PATH:$TOP/build/engines/usr/bin	# what `make engines` has unpacked
PLUGIN=$B/libnccl-profiler-insp.so
export NCCLINSP_SHM_DIR=$SHM NCCLINSP_SOCKET=$SOCK LC_ALL=C.UTF-8
# What a job does by itself is a sample: most tests are to see every operation.
export NCCLINSP_CONTROL=$T/control NCCLINSP_KERNELS=always

tests_run=0
tests_failed=0
started=()

# A function in the background is a shell of its own: what it started must end too.
end_all() {
	local pid
	for pid in "$@"; do
		end_all $(pgrep -P "$pid")
		kill "$pid" 2>/dev/null
	done
}

finish() {
	[ ${#started[@]} -eq 0 ] || end_all "${started[@]}"
	pkill -f "$T/"		# whose shell ended before they did
	wait 2>/dev/null
	rm -rf "$T" "$SHM"
}
trap finish EXIT
trap 'exit 130' INT TERM

# check "sentence" command...: one TAP line; the command's output only when it fails.
check() {
	local name=$1 out
	shift
	tests_run=$((tests_run + 1))
	if out=$("$@" 2>&1); then
		echo "ok $tests_run - $name"
	else
		tests_failed=$((tests_failed + 1))
		echo "not ok $tests_run - $name"
		printf '%s\n' "# failed: $*" "$out" | head -c 20000 | sed 's/^/# /'
	fi
}

# have COMMAND...: all of them are there.
have() {
	local one
	for one; do
		command -v "$one" >/dev/null || return 1
	done
}

# skip_all "reason": nothing of this file can run here.
skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

skip() {
	tests_run=$((tests_run + 1))
	echo "ok $tests_run - $1 # SKIP $2"
}

done_testing() {
	evidence_keep
	[ ! -s "$T/findings" ] || check "the evidence of findings is what docs/schema/ says" evidence_is_described
	echo "1..$tests_run"
	[ "$tests_failed" -eq 0 ]
	exit
}

# exits STATUS PATTERN command...: that status, and the pattern in what it says.
exits() {
	local want=$1 pattern=$2 out status
	shift 2
	out=$("$@" 2>&1 </dev/null)
	status=$?
	printf '%s\n(status %s)\n' "$out" "$status"
	[ "$status" -eq "$want" ] && grep -Eq -- "$pattern" <<<"$out"
}

# ends STATUS command...: with that status; what it says is in $T/out and $T/err.
ends() {
	local want=$1 status
	shift
	"$@" >"$T/out" 2>"$T/err"
	status=$?
	[ "$status" -eq "$want" ] || { echo "status $status"; cat "$T/out" "$T/err"; return 1; }
}

# says PATTERN: what ended last said so, on stdout or stderr.
says() { grep -Eq -- "$1" "$T/out" "$T/err" || { cat "$T/out" "$T/err"; return 1; }; }

# start_daemon [option...]: returns when the socket answers.  Jobs keep their level, however
# busy the machine is; containers of other tests are none of its business.
start_daemon() {
	"$B/ncclinspd" --foreground --socket "$SOCK" --shm-dir "$SHM" --state-dir "$T/state" \
		--auto-thrift no --containers no "$@" \
		2>>"$T/daemon.log" &
	DAEMON_PID=$!
	started+=("$DAEMON_PID")
	wait_until 30 api_answers || { echo "# daemon did not start"; sed 's/^/# /' "$T/daemon.log"; exit 1; }
}

api_answers() { curl -sf --unix-socket "$SOCK" http://ncclinspd/v1/status -o /dev/null; }

# What the daemon has found, kept until the end of the test.
evidence_keep() {
	[ -n "${DAEMON_PID-}" ] && kill -0 "$DAEMON_PID" 2>/dev/null || return 0
	curl -sf -m 5 --unix-socket "$SOCK" http://ncclinspd/v1/findings | jq -c '.findings[]' >>"$T/findings"
}

# Their evidence has all members of an object of schema/<kind>_evidence.schema, and no other.
evidence_is_described() {
	jq -s -e --slurpfile page "$TOP/docs/schema/diagnose.json" '
		def named: [.["$ref"], .items["$ref"]?, .anyOf[]?["$ref"]?] | map(strings | sub(".*/"; ""));
		def fits($name): . as $value | $page[0]["$defs"][$name].properties as $members | $value == null or
			(keys == ($members | keys) and all($members | to_entries[] |
				select(.value | named != []) | .key as $key | (.value | named[0]) as $inner |
				$value[$key] | if type == "array" then .[] else . end | fits($inner); .));
		($page[0]["$defs"].finding.properties.evidence | named) as $all |
		map(select([.evidence | fits($all[])] | any | not) | {kind, evidence}) |
		if . == [] then true else (., false) end' "$T/findings"
}

# stop_daemon [signal]: waits for its end, leaves its status in $?.
stop_daemon() {
	evidence_keep
	kill "-${1:-TERM}" "$DAEMON_PID"
	wait "$DAEMON_PID"
}

api() { curl -s --unix-socket "$SOCK" "http://ncclinspd/v1/$1"; }

# Of no input at all, -e of jq 1.6 says that it is true.
jq() {
	local out
	[ "$1" = -e ] || { command jq "$@"; return; }
	out=$(command jq "$@") && [ -n "$out" ] && printf '%s\n' "$out"
}

# api_is PATH JQ: the answer satisfies the filter; prints the answer if not.
api_is() {
	local answer
	answer=$(api "$1")
	printf '%s' "$answer" | jq -e "$2" >/dev/null || { printf '%s\n' "$answer"; return 1; }
}

# wait_until SECONDS command...
wait_until() {
	local end=$((${EPOCHREALTIME/[.,]/} + $1 * 1000000)) pause=50
	shift
	until "$@" >/dev/null 2>&1; do
		[ "${EPOCHREALTIME/[.,]/}" -lt "$end" ] || return 1
		sleep "0.$(printf %03d "$pause")"
		pause=$((pause < 100 ? pause * 5 / 4 : 100))	# who waits takes no CPU from others
	done
}

sim() { "$B/nccl-sim" --plugin "$PLUGIN" "$@"; }

# new_rows FILE: what the daemon tells of the jobs since the last call.
new_rows() {
	touch "$T/old"
	api 'collectives?limit=10000' | jq -c --slurpfile old "$T/old" '.collectives[]
		| select(.pid as $p | $old | index($p) | not)
		| [.comm_name, .comm_id, .nranks, .rank, .func, .seq, .count, .datatype, .bytes,
		   .root, .peer, .algo, .proto, .channels, .complete] +
		  if .timing_source == "kernel_gpu" then [.exec_ns, .gpu_start_ns] else [] end' | sort >"$1"
	api processes | jq '.processes[].pid' >"$T/old"
}

# replay FILE...: recordings, all at once, as the processes of a job are.
replay() {
	local one pids=() status=0
	for one in "$@"; do
		timeout -k 1 60 "$B/nccl-replay" --plugin "$PLUGIN" "$one" &
		pids+=($!)
	done
	for one in "${pids[@]}"; do
		wait "$one" || status=$?
	done
	return $status
}

# bounded SCENARIO: one that comes to an end soon; what hangs in it is ended after a while.
# Nothing is sent to oneself, nor is a graph replayed after what was not: after that, no
# stamp is believed for a while (test_stamps.sh).
bounded() {
	sed -e 's/^loop forever/loop 6/' -e '/^hold /d' -e 's/^[[:space:]]*AlltoAll .*/& inplace/' \
		-e '/^AllReduce/d' "$1"
	echo "hold 300ms"
}

# start_job SCENARIO, end_job: one job, by a file or the name of one of the tests' own.  Its
# processes share the CPUs with all that is tested.
start_job() {
	local scn=$1
	[ -f "$scn" ] || scn=$TOP/tests/scenarios/$1.scn
	nice -n 10 "$B/nccl-sim" --plugin "$PLUGIN" "$scn" 2>"$T/sim" &
	JOB_PID=$!
	started+=("$JOB_PID")
}

end_job() {
	pkill -9 -P "$JOB_PID"
	kill -9 "$JOB_PID" 2>/dev/null
	wait "$JOB_PID" 2>/dev/null
	wait_until 60 drained
}

# play_driver: $T/libcuda.so.1, a driver that names one GPU a process: that of the variable GPU, else the
# first that no other process has taken.
play_driver() {
	mkdir "$T/taken"
	printf '%s\n' '#include <stdio.h>' '#include <stdlib.h>' '#include <string.h>' '#include <sys/stat.h>' \
		"static int take(int n) { char path[999]; snprintf(path, 999, \"$T/taken/%d\", n); return mkdir(path, 0700); }" \
		'int cuCtxGetDevice(int *device) { static int own = -1;' \
		'if (getenv("GPU")) own = atoi(getenv("GPU"));' \
		'else if (own < 0) while (take(++own)) if (own > 99) return 1;' \
		'*device = own; return 0; }' \
		'int cuDeviceGetUuid(char *uuid, int device) { memset(uuid, device, 16); return 0; }' \
		'int cuDeviceGetPCIBusId(char *text, int room, int device)' \
		'{ return snprintf(text, room, "0000:%02d:00.0", device) < 0; }' >"$T/cuda.c"
	cc -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$T/libcuda.so.1" "$T/cuda.c"
}

# Everything that was published has been read: no process is live.
drained() { api_is processes '[.processes[] | select(.state == "live")] == []'; }
