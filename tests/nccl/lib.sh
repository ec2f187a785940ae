# SPDX-License-Identifier: Apache-2.0
# Shared by the tests inside the real NCCL: jobs in several layouts, and whether the
# daemon tells what they did.  Sourced; brings tests/system/lib.sh.
. "$(dirname "${BASH_SOURCE[0]}")/../system/lib.sh"

NCCL=$B/nccl
[ -x "$NCCL/nccl-job" ] || skip_all "$("$TOP/tests/nccl/find.sh")"

# The protocol whose network steps can be played, and a network that is always there.
export NCCL_PROTO=Simple NCCL_SOCKET_IFNAME=lo NCCL_DEBUG=WARN
export NCCL_PROFILER_PLUGIN=$PLUGIN

job_pids=()
job_number=0

# start_job LAYOUT PROGRAM...: layouts are PROCESSESxRANKS; several processes are as
# many nodes.  What hangs ends by itself (JOB_LIMIT_S), however slow the machine is.  Leaves the
# directory of the job, with truth.*, kernels.* and out.*, in $J.  With AFAR, a directory, the last
# process writes there: the daemon does not see it.
start_job() {
	local processes=${1%x*} local=${1#*x} first dir
	shift
	job_number=$((job_number + 1))
	J=$T/job.$job_number
	mkdir "$J"
	job_pids=()
	for ((first = 0; first < processes * local; first += local)); do
		dir=$SHM
		[ -z "${AFAR-}" ] || [ $((first + local)) -lt $((processes * local)) ] || dir=$AFAR
		NCCLINSP_SHM_DIR=$dir NCCL_HOSTID=node$first FAKE_GPU_COUNT=$local FAKE_GPU_DIARY=$J/kernels.$first \
			nice timeout -k 1 600 "$NCCL/nccl-job" \
			$((processes * local)) $first "$local" "$J" "$@" >"$J/out.$first" 2>&1 &
		job_pids+=($!)
	done
	started+=("${job_pids[@]}")
}

# end_job: waits for all its processes, and for the daemon to know of it.
end_job() {
	local pid
	job_status=0
	for pid in "${job_pids[@]}"; do
		wait "$pid" 2>/dev/null || job_status=$?
	done
	wait_until 30 drained
}

play() {
	start_job "$@"
	end_job
}

# The last job ended well; what it said, if not.
ran() {
	[ "$job_status" -eq 0 ] || { echo "status $job_status"; grep -hvE '^\[New|warning: ' "$J"/out.*; return 1; }
}

# One line per operation, as the job knows it and as the daemon tells it.  NCCL has
# no name for uint8.
identity='[(.comm_name // .comm), .nranks, .rank, .func, .seq, .count,
	(if .datatype == "ncclUint8" then null else .datatype end), .bytes, .root, .peer]'
announced=true

# From NCCL 2.29.2 on no Broadcast is announced, only called: it has no number.
if [ "$("$NCCL/nccl-job" version)" -ge 22902 ]; then
	identity+=' | if .[3] != "Broadcast" then . elif .[6] then .[4] = null
		else .[4, 7] = null end'
	announced='.func != "Broadcast"'
fi
identity+=' | tojson'

# told [JQ]: the operations of the last job that the filter lets through, without
# what they amount to together.
told() {
	local names
	names=$(cat "$J"/truth.* | jq -s 'map(.comm) | unique')
	api 'collectives?limit=10000' | jq -c --argjson names "$names" ".collectives[]
		| select(.derived | not)
		| select(.comm_name as \$n | \$names | index(\$n)) | ${1:-.}"
}

# Every operation, and nothing else.
same() {
	jq -r "$identity" "$J"/truth.* | sort >"$T/true"
	told | jq -r "$identity" | sort >"$T/told"
	[ -s "$T/true" ] && diff "$T/true" "$T/told"
}

# All that NCCL announces.
all_told() { told "select($announced)" | jq -e -s "length > 0 and all(.[]; $1)"; }

# Each operation of the last job with the interval in which its kernels ran: those of
# its stream that were launched after it was called and before the next launch's calls.
# Like operations of a rank were called in the order in which the daemon has them.
ran_when='
def numbered(by): group_by(by) | map(to_entries[] | .value + {nth: .key});
($kernels | group_by(.stream) | map({key: .[0].stream, value: sort_by(.launched_ns)})
	| from_entries) as $diary
| ($truth | group_by(.stream) | map({key: .[0].stream, value: (map(.called_ns) | sort)})
	| from_entries) as $calls
| ($diary | map_values(map(.launched_ns))) as $launches
| def place: if . < 0 then -1 - . else . end;
  def kernels: .called_ns as $called | .stream as $s
	| ($launches[$s] | bsearch($called) | place) as $first
	| ($calls[$s] | bsearch($launches[$s][$first]) | place) as $call
	| ($calls[$s][$call] // infinite) as $next
	| ($launches[$s] | bsearch($next) | place) as $last
	| $diary[$s][$first:$last];
  ($truth | map(.id = ('"$identity"')) | sort_by(.called_ns) | numbered(.id)
	| map({key: "\(.id) \(.nth)", value: (kernels | {from: .[0].begin_ns, to: .[-1].end_ns})})
	| from_entries) as $when
| $told | map(.id = ('"$identity"')) | sort_by(.enqueued_mono_ns) | numbered(.id)
| map(. + $when["\(.id) \(.nth)"])[]'

# What the GPU is told to have done it did within the kernels of that operation; shows
# what it did not.
times_are_true() {
	told >"$T/told"
	jq -n -c --slurpfile kernels <(cat "$J"/kernels.*) --slurpfile truth <(cat "$J"/truth.*) \
		--slurpfile told "$T/told" "$ran_when" >"$T/when" || return 1
	[ "$(wc -l <"$T/when")" -eq "$(wc -l <"$T/told")" ] || return 1
	! jq -c 'select(.timing_source == "kernel_gpu")
		| select((.exec_ns <= .to - .from and .gpu_start_mono_ns >= .from and
			.gpu_stop_mono_ns - .gpu_clock_error_ns <= .to) | not)
		| {id, exec_ns, true_ns: (.to - .from), early_ns: (.from - .gpu_start_mono_ns),
			late_ns: (.gpu_stop_mono_ns - .gpu_clock_error_ns - .to)}' "$T/when" | grep .
}
