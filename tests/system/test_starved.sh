#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A progress thread that others keep from its CPU is told as that: by the kernel's own count.
. "$(dirname "$0")/lib.sh"

# So many times a kernel has run this shell; 0 or nothing: it does not count.
times=$(awk '{ print $3 }' /proc/self/schedstat 2>/dev/null)
[ "${times:-0}" -gt 0 ] || skip_all "this kernel does not count who waits for a CPU"

start_daemon
cat >"$T/job.scn" <<'EOF'
nodes 2
comm pair ranks 0,1 channels 2
link net rate 1GB/s
starve rank 1 by 60ms busy every 6
loop forever
	compute 30ms jitter 2%
	AllReduce pair 1Mi float32
end
EOF
nice -n 10 timeout -k 1 120 "$B/nccl-sim" --plugin "$PLUGIN" "$T/job.scn" 2>>"$T/sim" &
started+=($!)

# told FILTER: of the finding about rank 1.
told() {
	api_is 'findings?active=true' ".findings
		| map(select(.kind == \"proxy_starved\" and (.ranks | index(1)) and $1)) | length > 0"
}
check "a progress thread without CPU is named" wait_until 60 told true
check "and told to be kept from a CPU that it wants" wait_until 60 told \
	'.evidence.cpu_wait_share >= .evidence.share / 2 and (.text | test("waited for a CPU"))'
done_testing
