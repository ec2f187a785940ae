#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How processes of a job ended, by the kernel's word.
. "$(dirname "$0")/lib.sh"

python3 - <<'END' || skip_all "this kernel does not tell how others' processes ended (Linux 6.15)"
import fcntl, os, struct, subprocess, sys
child = subprocess.Popen(["true"])
fd = os.pidfd_open(child.pid)
child.wait()
info = bytearray(struct.pack("QQ", 8, 0) + bytes(48))
try:
    fcntl.ioctl(fd, 3 << 30 | 64 << 16 | 0xFF << 8 | 11, info)
except OSError:
    sys.exit(1)
END

start_daemon
cat >"$T/job.scn" <<'EOF'
nodes 2
seed JOB
comm pair ranks 0,1 channels 2
loop forever
	compute 5ms
	AllReduce pair 1Mi float32
end
EOF
# death JOB SIGNAL: both processes of a new job end by it.
death() {
	sed "s/JOB/$1/" "$T/job.scn" >"$T/$1.scn"	# another communicator each time
	SLURM_JOB_ID=$1 start_job "$T/$1.scn"
	wait_until 30 api_is processes ".processes | map(select(.job.id == \"$1\" and .state == \"live\" and .records > 100)) | length == 2" || return 1
	pkill "-$2" -P "$JOB_PID"
}
told() { api_is 'findings' "[.findings[] | select(.kind == \"died\" and .job == \"$1\")] | length == 1 and (.[0] | $2)"; }
death 1 SEGV
check "a crash is told" wait_until 30 told 1 '(.evidence.processes | length == 2 and all(.signal == 11 and .exit_code == null)) and (.text | test("[.] It crashed .SIGSEGV"))'
death 2 ABRT
check "an abort is told" wait_until 30 told 2 '(.text | test("[.] It aborted .SIGABRT"))'
death 3 TERM
wait_until 10 eval '! kill -0 $JOB_PID 2>/dev/null'
check "a request to end that was followed is no death" eval 'wait_until 20 drained && ! told 3 true'
death 4 KILL
check "a kill is told, and that the kernel did not kill for memory" wait_until 30 told 4 \
	'(.evidence.processes[0] | .signal == 9 and .oom_kills == 0) and (.text | test("[.] It was killed .SIGKILL., not by the kernel for lack of memory"))'
api snapshot >"$T/node.json"
same_as_report() { "$B/ncclinsp" report -o json "$T/node.json" | jq -r '.. | .text? // empty' | grep -q 'It was killed (SIGKILL), not by the kernel'; }
check "report says the same of the node's file" same_as_report

# Somebody is killed for memory, in a group that has too little of it: the job's own, then another.
M=/sys/fs/cgroup/memory/ncclinsp-test.$$
[ -d /sys/fs/cgroup/memory ] && limit=memory.limit_in_bytes || { M=/sys/fs/cgroup/ncclinsp-test.$$; limit=memory.max; }
hog() { bash -c "echo \$\$ >'$M/cgroup.procs'; exec python3 -c 'x = bytearray(300 << 20)'" 2>/dev/null; }
kills() { awk '$1 == "oom_kill" { print $2 }' /proc/vmstat; }
OWN="a kill says what the kernel killed for memory in the job's own control group"
OTHER="a kill at a time when the kernel killed for memory elsewhere is not blamed on that"
if [ "$(id -u)" -eq 0 ] && mkdir "$M" 2>/dev/null && echo 200M >"$M/$limit" 2>/dev/null; then
	before=$(kills)
	sed s/JOB/5/ "$T/job.scn" >"$T/5.scn"
	SLURM_JOB_ID=5 bash -c "echo \$\$ >'$M/cgroup.procs'; exec '$B/nccl-sim' --plugin '$PLUGIN' '$T/5.scn'" 2>/dev/null &
	OWN_PID=$!
	started+=("$OWN_PID")
	wait_until 30 api_is processes '.processes | map(select(.job.id == "5" and .state == "live" and .records > 100)) | length == 2'
	hog
	if [ "$(kills)" -gt "$before" ]; then
		pkill -KILL -P "$OWN_PID"
		check "$OWN" wait_until 30 told 5 '(.evidence.processes[0] | .memory_cgroup == "'"$M"'" and .memory_cgroup_above == false and .memory_cgroup_kills == 1 and
			.memory_limit_bytes == 209715200) and (.text | test("the kernel killed 1 process of its cgroup .'"$M"', limit 200MiB. at that time"))'
		wait "$OWN_PID" 2>/dev/null
		hog
		death 6 KILL
		check "$OTHER" wait_until 30 told 6 '.text as $text | .evidence.processes[0] | .oom_kills > 0 and
			if .memory_cgroup == null or .memory_cgroup_above then $text | test("the kernel killed [0-9]+ process.*because memory ran out: perhaps this one")
			else .memory_cgroup_kills == 0 and ($text | test("It was killed .SIGKILL., not by the kernel for lack of memory: by a launcher.*The kernel killed [0-9]+ process(es)? for memory then, in other cgroups")) end'
	else
		kill "$OWN_PID"
		wait "$OWN_PID" 2>/dev/null
		skip "$OWN" "the group's limit killed nobody"
		skip "$OTHER" "the group's limit killed nobody"
	fi
	rmdir "$M"
else
	rmdir "$M" 2>/dev/null
	skip "$OWN" "no memory group can be made here"
	skip "$OTHER" "no memory group can be made here"
fi
done_testing
