#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The same scenario through every version of NCCL's profiler API: the same
# operations, and what a version cannot tell is null.
if [ -z "${OWN_MOUNTS-}" ] && [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
	OWN_MOUNTS=1 exec unshare -m bash "$0"
fi
. "$(dirname "$0")/lib.sh"

SCENARIO=$TOP/tests/scenarios/versions.scn

# The GPUs of a node as NVIDIA's driver shows them, where only this test sees the mount: the first
# is nobody's here.
[ -n "${OWN_MOUNTS-}" ] && mount -t tmpfs none /proc/driver && mkdir -p /proc/driver/nvidia/gpus/0000:{05,15,25,35}:00.0 ||
	OWN_MOUNTS=
start_daemon --stall-min 300ms

play_driver || skip_all "no compiler"
# with_gpus N sim [OPTION]...: GPU N on the first node, N + 1 on the second.
with_gpus() { LD_PRELOAD=$T/libcuda.so.1 "$2" --env "0:GPU=$1" --env "1:GPU=$(($1 + 1))" "${@:3}"; }

# What identifies an operation in every version; versions 1 to 3 know no
# communicator size, and so no bandwidth and no size of gathered buffers.
operations() {
	jq -S '[.collectives[] | select(.derived | not)
		| {rank, func, seq, peer, root} + (if $v >= 4 then {bytes} else {} end)]
		| sort' --argjson v "$1" "$2"
}

for v in 1 2 3 4 5 6 7; do
	[ $v -lt 7 ] && cp "$SCENARIO" "$T/job.scn" || { echo "nccl 2.31"; cat "$SCENARIO"; } >"$T/job.scn"
	SLURM_JOB_ID=700$v NCCLINSP_LEVEL=trace with_gpus ${v}0 sim --api v$v --truth "$T/truth.$v" "$T/job.scn" 2>"$T/sim.$v" ||
		sed 's/^/# /' "$T/sim.$v"
	check "v$v: every process is seen to exit" wait_until 5 drained
	api processes | jq --argjson v $v '[.processes[] | select(.api_version == $v) | .pid]' >"$T/pids"
	api 'collectives?limit=10000' | jq --slurpfile pids "$T/pids" \
		'{collectives: [.collectives[] | select(.pid as $p | $pids[0] | index($p))]}' >"$T/ops.$v"
	for option in "--job 700$v" "--gpu :${v}0:00" "--gpu :${v}1:00" "--pid $(jq '.[0]' "$T/pids")" "--user $(id -u)"; do
		check "v$v: ops finds them with $option" eval '[ -n "$("$B/ncclinsp" ops $option --no-header)" ]'
	done
	check "v$v: operations were seen" jq -e '.collectives | length > 0' "$T/ops.$v"
	check "v$v: nothing was lost or refused" api_is status '.ingest.lost == 0 and .ingest.rejected == 0'
done

for v in 1 2 3 4 5 7; do
	operations $v "$T/ops.$v" >"$T/a"
	operations $v "$T/ops.6" >"$T/b"
	check "v$v: the same operations as v6" diff "$T/a" "$T/b"
done

# seq of a send and the root of what has none are nothing that NCCL tells, nor is the end of
# a receive beside a send.
known='{rank, func, peer, bytes, exec_ns: (if .func == "Recv" then null else .exec_ns end)}'
jq -sS "[.[] | $known] | sort" "$T/truth.6" >"$T/a"
jq -S "[.collectives[] | select(.derived | not) | $known] | sort" "$T/ops.6" >"$T/b"
check "v6: operations, bytes and execution times are the truth" diff "$T/a" "$T/b"

for v in 1 2 3; do
	check "v$v: the communicator is not known" \
		jq -e 'all(.collectives[]; .comm_id == null)' "$T/ops.$v"
done
for v in 4 5 6 7; do
	check "v$v: the communicator is known" \
		jq -e 'all(.collectives[]; .comm_id != null)' "$T/ops.$v"
	check "v$v: collectives are timed by the GPU" \
		jq -e 'all(.collectives[] | select(.seq != null and (.derived | not)); .timing_source == "kernel_gpu")' "$T/ops.$v"
done
check "v4: what the application passed to AllGather is not known" \
	jq -e '[.collectives[] | select(.func == "AllGather")]
	       | length > 0 and all(.[]; .count == null and .datatype == null and .bytes != null)' "$T/ops.4"
check "v5: what the application passed to AllGather is known" \
	jq -e '[.collectives[] | select(.func == "AllGather")]
	       | length > 0 and all(.[]; .count != null and .datatype == "ncclFloat32")' "$T/ops.5"

# ---- what hangs, where no version tells of communicators ------------------------------------
cat >"$T/hang.scn" <<'SCN'
nodes 2
processes 1
comm world ranks 0-1 channels 2
stuck rank 0 comm world op 6 state net
loop forever
	compute 1ms
	AllReduce world 1Mi float32
end
SCN
for v in 1 2 3; do
	SLURM_JOB_ID=800$v with_gpus ${v}5 "$B/nccl-sim" --plugin "$PLUGIN" --api v$v "$T/hang.scn" 2>/dev/null &
	started+=($!)
done
# hangs V OPTION...: nothing but the stuck link of that job.
hangs() {
	"$B/ncclinsp" diagnose -o json "${@:2}" | jq -e --argjson v "$1" --arg mounts "$OWN_MOUNTS" '[.findings[] | select(.verdict == "LINK")] |
		length == 1 and all(.[]; .job == "800\($v)" and .ranks == [0] and .pid == .whom[0].pid and
			.whom[0].pci_bus_id == "0000:\($v)5:00.0" and
			.whom[0].gpu_index == (if $mounts == "" then null else $v end) and
			(.text | test("on a communicator hangs .* rank 0 \\(pid [0-9]+, [^ ]+, GPU \(if $mounts == "" then "0000:\($v)5:00.0" else $v end)\\)")))'
}
for v in 1 2 3; do
	for option in "--job 800$v" "--gpu :${v}5:00"; do
		check "v$v: diagnose finds what hangs with $option" wait_until 20 hangs $v $option
	done
	[ -z "$OWN_MOUNTS" ] || check "v$v: ranks tells its index" eval '
		[ "$("$B/ncclinsp" ranks --job 800$v --no-header -o csv --fields gpu,gpu_index | sort | paste -sd" ")" = "0000:${v}5:00.0,$v 0000:${v}6:00.0," ]'
	check "v$v: what waits for it does not say where that is" eval '"$B/ncclinsp" diagnose -o json --gpu :${v}6:00 |
		jq -e ".findings[0].text | test(\"waits there for rank 0, whose process this version of NCCL does not\")"'
done

# ---- a GPU by the number that nvidia-smi gives it ---------------------------------------------
if [ -n "$OWN_MOUNTS" ]; then
	sed /^stuck/d "$T/hang.scn" >"$T/live.scn"
	SLURM_JOB_ID=8006 NCCLINSP_LEVEL=trace with_gpus 5 "$B/nccl-sim" --plugin "$PLUGIN" --api v6 "$T/live.scn" 2>/dev/null &
	started+=($!)
	one_rank() { "$B/ncclinsp" ranks --job 8006 --gpu "$1" --no-header -o csv --fields gpu | grep -qx "$2"; }
	check "ranks finds a GPU by its number" wait_until 20 one_rank 0 0000:05:00.0
	check "... and not as a part of a bus id" eval '! one_rank 5 "0000:05:00.0"'
	check "clocks tell it" wait_until 20 api_is clocks 'any(.clocks[]; .pci_bus_id == "0000:05:00.0" and .gpu_index == 0)'
	metrics_tell() {
		curl -s --unix-socket "$SOCK" http://ncclinspd/metrics | grep "^ncclinsp_comm_info{.*8006" |
			grep 'pci_bus_id="0000:05:00.0",gpu_index="0"'
	}
	check "metrics tell it" wait_until 20 metrics_tell
	"$B/ncclinsp" trace -o "$T/gpu.json" --for 1 --job 8006 >/dev/null 2>"$T/err"
	check "a trace tells it, or the bus id" jq -es 'map(if type == "array" then . else .traceEvents end) | add
		| [.[] | select(.name == "process_name") | .args.name] | any(test("^rank 0 GPU 0 ")) and any(test("^rank 1 GPU 0000:06:00.0 "))' "$T/gpu.json"
fi

# ---- who has not come, where operations alone tell of their communicator (NCCL 2.23 to 2.26) --
natives=([1]=2.23 [2]=2.25 [3]=2.26)	# to older versions than their own, releases give no hash
for v in 1 2 3; do
	{ echo "nccl ${natives[v]}"; cat "$TOP/tests/scenarios/never-joins.scn"; } >"$T/absent$v.scn"
	SLURM_JOB_ID=900$v "$B/nccl-sim" --plugin "$PLUGIN" --api v$v "$T/absent$v.scn" 2>/dev/null &
	started+=($!)
done
# absent V: one finding of that job, and whom it is about.
absent() {
	"$B/ncclinsp" diagnose -o json --job "900$1" | jq -e --argjson v "$1" '[.findings[] | select(.kind != "loss")] |
		length == 1 and (.[0] | .verdict == "NOT_JOINED" and .grade == "found" and .ranks == [3] and
			.job == "900\($v)" and (.text | test("^rank 3 \\(pid [0-9]+, [^ ]+\\) has not come to AllReduce #10 on ")))'
}
for v in 1 2 3; do
	check "v$v: who has not come is named, and nobody else" wait_until 40 absent $v
done
check "ops finds none of a job that there is not" exits 4 "nothing matches --job 800" "$B/ncclinsp" ops --job 800
done_testing
