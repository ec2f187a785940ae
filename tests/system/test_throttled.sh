#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job whose cgroup has used up its CPUs: the findings name the limit, in a real group of the kernel's.
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" -eq 0 ] || skip_all "only root makes control groups"
GROUP=/sys/fs/cgroup/cpu/ncclinsp-test.$$
if mkdir "$GROUP" 2>/dev/null && [ -e "$GROUP/cpu.cfs_quota_us" ]; then
	limit() { echo 100000 >"$GROUP/cpu.cfs_period_us" && echo "$1" >"$GROUP/cpu.cfs_quota_us"; }
	unlimit() { echo -1 >"$GROUP/cpu.cfs_quota_us"; }
else
	rmdir "$GROUP" 2>/dev/null
	GROUP=/sys/fs/cgroup/ncclinsp-test.$$
	{ grep -qw cpu /sys/fs/cgroup/cgroup.subtree_control && mkdir "$GROUP" && [ -e "$GROUP/cpu.max" ]; } 2>/dev/null ||
		{ rmdir "$GROUP" 2>/dev/null; skip_all "no control group with a limit of CPUs can be made here"; }
	limit() { echo "$1 100000" >"$GROUP/cpu.max"; }
	unlimit() { echo max >"$GROUP/cpu.max"; }
fi
group_end() {
	unlimit
	for ((i = 0; i < 100; i++)); do
		xargs -r kill -9 <"$GROUP/cgroup.procs" 2>/dev/null
		rmdir "$GROUP" 2>/dev/null && return
		sleep 0.1
	done
}
trap 'group_end; finish' EXIT

start_daemon --straggler-window 2s
cat >"$T/job.scn" <<'EOF'
nodes 2
comm pair ranks 0,1 channels 2
link net rate 1GB/s
loop forever
	compute 10ms jitter 2%
	AllReduce pair 1Mi float32
end
EOF
# A tenth of a CPU, and a neighbour in the group that wants all of it.
limit 10000
bash -c "echo \$\$ >'$GROUP/cgroup.procs'; exec timeout -k 1 100 '$B/nccl-sim' --plugin '$PLUGIN' '$T/job.scn'" 2>>"$T/sim" &
started+=($!)
bash -c "echo \$\$ >'$GROUP/cgroup.procs'; while :; do :; done" &
started+=($!)

told() { api_is 'findings?active=true' ".findings | map(select(.kind == \"proxy_starved\" and $1)) | length > 0"; }
check "the limit is named" wait_until 60 told \
	".evidence.cgroup == \"$GROUP\" and .evidence.cpu_limit == 0.1 and .evidence.throttled_share > 0.5"
check "... in words, as what to raise" wait_until 30 told \
	".evidence.resources.cgroup == \"$GROUP\" and
	 (.text | test(\"its cgroup .$GROUP. was throttled for up to [0-9]+ % of the time: it may use 0.1 CPUs, .* Raise that limit\"))"

# One whose host calls late, since the limit lets nothing of the group run.
cat >"$T/late.scn" <<'EOF'
processes 4
comm late ranks 0-3 channels 2
late rank 2 by 6ms host
loop forever
	compute 4ms
	AllReduce late 1Mi float32
end
EOF
nice -n 10 timeout -k 1 100 "$B/nccl-sim" --plugin "$PLUGIN" "$T/late.scn" 2>"$T/late" &
started+=($!)
late() { LATE=$(sed -n 's/.*: process 2 is pid //p' "$T/late"); [ -n "$LATE" ] && echo "$LATE" >"$GROUP/cgroup.procs"; }
check "a rank that comes late is throttled as well" wait_until 30 late
check "... and that is told in place of what has its CPU" wait_until 90 api_is 'findings?active=true' '.findings | map(select(.comm_name == "late" and
	(.evidence.resources | .cgroup == "'"$GROUP"'" and .throttled_time_share > 0.5) and
	(.text | test("its cgroup .* was throttled for up to [0-9]+ % of the time") and (test("shares its CPUs") | not)))) | length == 1'
check "... the sources are told, and why one is not there" api_is machine \
	'.sources | map(select(.source | IN("cgroup", "pressure", "numa"))) | length == 3 and all((.state == "present") == (.why == null))'
api 'findings?active=true' | jq -r '.findings[] | select(.kind == "proxy_starved" or .comm_name == "late").text' | sed 's/^/# /'
done_testing
