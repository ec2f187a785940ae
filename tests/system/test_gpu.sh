#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A late rank's GPU is throttled, a dead one's and one that hangs have an Xid: the findings say so.  The driver,
# NVIDIA's library and the kernel's log are played.
. "$(dirname "$0")/lib.sh"

play_driver || skip_all "no compiler"
export PLAYED_NVML=$T/gpus
# gpus MHZ REASONS: of GPU $late; the others run at their maximum.
gpus() {
	for ((i = 0; i < 3; i++)); do
		printf "0000:0$i:00.0 %s\n" 'sm_max_mhz 1980' 'temperature_c 88'
		[ "$i" = "$late" ] && printf "0000:0$i:00.0 %s\n" "sm_mhz $1" "reasons $2" ||
			printf "0000:0$i:00.0 %s\n" 'sm_mhz 1980' 'reasons 1'
	done >"$T/gpus.new" && mv "$T/gpus.new" "$T/gpus"
}
late=0
gpus 1980 0
echo "6,1,7,-;Linux" >"$T/kmsg"
LD_LIBRARY_PATH=$B/nvml start_daemon --kernel-log "$T/kmsg" --stall-min 2s --straggler-window 3s
cat >"$T/job.scn" <<'END'
processes 3
comm dp ranks 0-2 channels 1
late rank 1 by 20ms
loop forever
	compute 20ms jitter 2%
	AllReduce dp 16 float32
end
END
LD_PRELOAD=$T/libcuda.so.1 timeout -k 1 300 "$B/nccl-sim" --plugin "$PLUGIN" "$T/job.scn" 2>"$T/sim" &
started+=($!)

late_is() { api_is 'findings?active=true' "[.findings[] | select(.kind == \"straggler\")] | any($1)"; }
check "a rank is late, and its GPU is as fast as the others" wait_until 100 late_is \
	'.ranks == [1] and .evidence.gpu == null and (.text | test("its GPU runs") | not)'
check "the GPUs in use are told with their clocks" api_is machine \
	'.sources[0] == {source: "gpu", state: "present", why: null} and (.gpus | length) == 3 and
	 all(.gpus[]; .sm_mhz == 1980 and .sm_max_mhz == 1980 and .limit == null and .temperature_c == 88)'
late=$(api findings | jq -r '[.findings[] | select(.kind == "straggler")][0].whom[0].pci_bus_id' | cut -c7)
gpus 1095 32
check "a GPU that is throttled is the cause" wait_until 100 late_is \
	'.ranks == [1] and (.evidence.gpu | .pci_bus_id == "0000:0'$late':00.0" and .limit == "thermal" and
	 .sm_mhz < 1400 and .sm_max_mhz == 1980 and .others_mhz == 1980 and .limited_mono_ns > 0)'
check "... in words, with clocks, reason and time" late_is \
	'.text | test(": its GPU runs at 1[0-9]{3} of 1980 MHz, thermal, since [0-9:]{8}[.].* See the cooling")'
api 'findings?active=true' | jq -r '.findings[].text' | sed 's/^/# /'
check "status says that GPUs are read" eval '"$B/ncclinsp" status >"$T/out"; cat "$T/out"; grep -q "^ *machine *gpu present" "$T/out"'
echo hang 1 >"$T/gpus"
check "a library that hangs takes nothing with it but its values" wait_until 40 api_is machine \
	'.sources[0].state == "absent" and (.sources[0].why | test("has not answered for")) and
	 (.gpus | length) == 3 and all(.gpus[]; .sm_mhz == null)'
check "doctor says why" eval '"$B/ncclinsp" doctor | grep -q "machine *gpu absent: the library has not answered"'
check "... and the rank is late still" late_is '.ranks == [1] and .evidence.gpu == null'
xid() { echo "3,2,7,-;NVRM: Xid (PCI:0000:0$1:00): 79, pid=$2, name=nccl-sim, GPU has fallen off the bus." >>"$T/kmsg"; }
pid=$(api findings | jq -r '[.findings[] | select(.kind == "straggler")][0].evidence.pid')
xid "$late" "$pid"
kill -9 "$pid"
check "a process that died has the error of its GPU" wait_until 40 api_is findings \
	'[.findings[] | select(.kind == "died")] | any(.evidence.processes[0].xid == 79 and
	 (.text | test(", because of Xid 79 .GPU has fallen off the bus. on its GPU")))'
check "the errors are listed" api_is machine '.sources[1] == {source: "kernel log", state: "present", why: null} and
	(.xids | map({pci_bus_id, xid, pid}) == [{pci_bus_id: "0000:0'$late':00.0", xid: 79, pid: '$pid'}])'
kill "${started[@]:1}" 2>/dev/null
wait "${started[@]:1}" 2>/dev/null

cat >"$T/job.scn" <<'END'
processes 2
comm frozen ranks 0,1 channels 1
freeze rank 1 comm frozen op 3
loop forever
	compute 20ms
	AllReduce frozen 16 float32
end
END
LD_PRELOAD=$T/libcuda.so.1 timeout -k 1 300 "$B/nccl-sim" --plugin "$PLUGIN" "$T/job.scn" 2>"$T/sim" &
started+=($!)
gpu_of() { api comms | jq -r ".comms[] | select(.name == \"frozen\") | .local_ranks[] | select(.rank == $1).pci_bus_id" | cut -c7; }
hangs() { api_is 'findings?active=true' "[.findings[] | select(.comm_name == \"frozen\")] | any($1)"; }
check "an operation hangs" wait_until 60 hangs '.kind == "stall" and .evidence.xid == null'
xid "$(gpu_of 1)" "'<unknown>'"
check "the error of its GPU is told when it comes" wait_until 40 hangs '.kind == "stall" and
	.evidence.xid == 79 and .evidence.xid_rank == 1 and
	(.text | test("; the GPU of rank 1 had Xid 79 .GPU has fallen off the bus.[.].*drain the node"))'
stop_daemon
check "the daemon stops all the same" [ $? -eq 0 ]
done_testing
