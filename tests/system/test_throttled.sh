#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job whose cgroup has used up its CPUs: the finding names the limit, in a real group of the kernel's.
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

start_daemon
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
	"(.text | test(\"its cgroup may use 0.1 CPUs, and had used them up in [0-9]+ % of the periods.*raise the limit .$GROUP.\"))"
api 'findings?active=true' | jq -r '.findings[] | select(.kind == "proxy_starved").text' | sed 's/^/# /'
done_testing
