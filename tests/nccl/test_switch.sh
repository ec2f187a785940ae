#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What NCCL is asked for changes while it works: bursts and levels, with sends and
# receives in groups of all forms.  A job whose mask changed in the middle of such a
# group would not come to its end.
. "$(dirname "$0")/lib.sh"

unset NCCLINSP_KERNELS	# as people have it, but in a hurry
export NCCLINSP_LEVEL=net NCCLINSP_SETTLE=0

steers() { api_is processes ".processes | length == 2 and all(.[]; $1)"; }
bursts() { api_is overhead ".processes | length == 2 and all(.[]; $1)"; }
# Where there are few CPUs for all of this, NCCL's proxies have more open than can be followed.
all_finished() {
	local true
	true=$(cat "$J"/truth.* | wc -l)
	api_is status ".reconstruct.finished + .ingest.lost >= $true"
}
nothing_misread() { api_is status '.ingest.rejected == 0 and .reconstruct.foreign == 0'; }

# The job may come to its end.
seen() { touch "$J/seen"; end_job; }

switched() { bursts '.kernels.bursts >= 4' && steers '.steering.switches >= 8'; }
pinned() { steers '(.steering.kernels | . == "always" or . == "never") and (.level_reason // "" | test("several threads"))'; }

start_daemon
start_job 2x1 bursts
check "one thread: bursts begin and end" wait_until 120 switched
seen
check "one thread: the job comes to its end" ran
check "one thread: every operation is told" all_finished
check "one thread: nothing is misread" nothing_misread
check "one thread: some are timed by the GPU, others are not" jq -e -s \
	'any(.[]; .timing_source == "kernel_gpu") and any(.[]; .timing_source != "kernel_gpu")' <(told)
# What stood still for half of the least limit, from launch to end or from kernel to kernel, did so.
stood_s() {
	cat "$J"/kernels.* | jq -s '[sort_by(.end_ns) | (.[] | .end_ns - .launched_ns),
		(range(1; length) as $i | .[$i].end_ns - .[$i - 1].end_ns)] | max / 1e9 | floor'
}
if [ "$(stood_s)" -lt 5 ]; then
	check "one thread: nothing is said to hang" api_is "findings?grade=found" \
		'all(.findings[]; .kind != "stall" and .kind != "desync")'
else
	skip "one thread: nothing is said to hang" "on this machine it stood still for $(stood_s) s"
fi
stop_daemon

start_daemon
start_job 2x1 beside
check "collectives on another thread: bursts begin and end" wait_until 120 switched
seen
check "collectives on another thread: the job comes to its end" ran
check "collectives on another thread: every operation is told" all_finished
stop_daemon

start_daemon
start_job 2x1 senders
check "two threads that send: nothing changes any more" wait_until 120 pinned
seen
check "two threads that send: the job comes to its end" ran
check "two threads that send: every operation is told" all_finished
stop_daemon

start_daemon
start_job 2x1 levels
check "levels that change: they do" wait_until 120 steers '.steering.switches >= 24'
seen
check "levels that change: the job comes to its end" ran
check "levels that change: nothing is misread" nothing_misread
stop_daemon
done_testing
