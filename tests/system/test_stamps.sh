#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# NCCL tells wrong stamps of kernels, of earlier ones or of later ones, and they look
# good: none of them may become a time that is shown.
. "$(dirname "$0")/lib.sh"

# play SCENARIO [COMM]: every operation with a number and a time of the GPU, beside the truth.
play() {
	local rank
	local file=$TOP/tests/scenarios/$1.scn
	[ -f "$file" ] || file=$T/$1.scn
	sim --truth "$T/truth" "$file" 2>"$T/sim" || { cat "$T/sim"; return 1; }
	wait_until 5 drained || { echo "some process is still live"; return 1; }
	for rank in 0 1 2 3; do
		api "collectives?limit=10000&rank=$rank&comm=${2:-world}"
	done | jq -c --slurpfile truth "$T/truth" '
		($truth | map(select(.seq != null) | {key: ("0x" + .comm_id + " \(.rank) " + .func + " \(.seq)"),
						      value: .exec_ns}) | from_entries) as $true
		| .collectives[] | select(.seq != null)
		| .true_ns = $true["\(.comm_id) \(.rank) " + .func + " \(.seq)"]
		| select(.true_ns != null)' >"$T/told"
}

told_is() { jq -se "$1" "$T/told" >/dev/null || { head -c 2000 "$T/told"; return 1; }; }

# The API tells how far a duration may be off: a step of the GPU's clock, and its drift.
all_true() {
	told_is 'map(select(.timing_source == "kernel_gpu")) as $timed
		| ($timed | length) >= '"$1"' and
		  all($timed[]; .stamps_refused == 0 and .exec_error_ns != null and
			(.exec_ns - .true_ns | fabs) <= .exec_error_ns)'
}

# One refused stamp is enough for the host's sight of the kernel to be worth nothing.
refused_are_unknown() {
	told_is 'map(select(.stamps_refused > 0)) | length > 0 and
		all(.[]; .gpu_start_at == null and .stamps_why != null and
		    (.timing_source == null or .timing_source == "proxy_cpu"))'
}

# ahead NAME [POLL]: the host posts 250 operations before it waits for the first one, its
# progress thread looking as POLL says.  The communicator has the scenario's name.
ahead() {
	echo "processes 2"
	echo "stamps ring"
	echo "hold 500ms"
	echo "${2:-}"
	echo "comm $1 ranks 0,1 channels 2"
	echo "loop 4"
	printf '\tAllReduce %s 4Ki float32\n\tcompute 100us\n' $(yes "$1" | head -250)
	echo "end"
} >"$T/$1.scn"

start_daemon

check "counters that drift are played" play drift
check "what was told before they drifted is shown, and nothing wrong" all_true 40
check "what was refused has no time of the GPU" refused_are_unknown
check "it is known that stamps of earlier operations were told" api_is processes \
	'all(.processes[]; .stamps_refused_by | .drifted > 0 and .zero == 0)'

check "a progress thread that comes more than 64 works late is played" play overrun
check "who comes in time is believed, and no time is wrong" all_true 100
check "what was refused has no time of the GPU" refused_are_unknown
check "it is known that stamps of later operations were told" api_is processes \
	'[.processes[].stamps_refused_by.overrun] | add > 0'

# A thread that is away between the start and the stop of one and the same kernel tells
# its own start and another one's stop, and nothing wrong came before.
ahead away "poll rare 15ms every 1500"
ahead prompt
check "a host that is far ahead is played" play prompt prompt
check "who comes in time is believed all the same" all_true 1500
check "a host that is far ahead of a thread that is away at times is played" play away away
check "no time is wrong, not even the first" all_true 100
check "what was refused has no time of the GPU" refused_are_unknown

# Rounds of sends and receives share a channel, and their works are stamped together.
cat >"$T/exchange.scn" <<-SCN
	processes 4
	stamps ring
	comm exchange ranks 0-3 channels 2
	loop 200
		compute 1ms jitter 20%
		AlltoAll exchange 64Ki bfloat16 inplace
	end
SCN
check "ranks that come one after another to an exchange are played" play exchange
check "none of its stamps is refused, nor taken for the end of all its transfers" api_is \
	'collectives?limit=10000&comm=exchange&func=AlltoAll' '.collectives | length == 4 * 200 and
	all(.[]; .timing_source != "kernel_gpu" and .stamps_refused == 0)'

check "the sums agree" api_is processes \
	'all(.processes[]; .stamps_refused == ([.stamps_refused_by[]] | add))'
check "so do those of the daemon" api_is status \
	'.reconstruct | .stamps_refused == ([.stamps_refused_by[]] | add)'
check "people are told how many were refused, and why" \
	eval '"$B/ncclinsp" status | grep -E "GPU times +refused [0-9]+ stamps, .*drifted [0-9]"'
check "and of which processes" eval '"$B/ncclinsp" ps | grep -w REFUSED'
check "every GPU clock is known" api_is clocks \
	'.clocks | length == 14 and all(.[]; .stamps > 0 and .offset_ns != null and .error_ns > 0 and
		.drift_ppm != null and .resolution_ns != null)'
done_testing
