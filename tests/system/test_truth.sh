#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every operation of every kind of scenario, as the daemon tells it and as the
# simulator knows it: who, what, how much, with whom, how long, to the nanosecond
# where the GPU's stamps tell.
. "$(dirname "$0")/lib.sh"

# play LEVEL API SCENARIO: leaves what is true in $T/truth, what is told in $T/told.
play() {
	bounded "$TOP/tests/scenarios/$3.scn" >"$T/$3.scn"
	NCCLINSP_LEVEL=$1 sim --api "v$2" --truth "$T/truth" "$T/$3.scn" 2>"$T/sim" ||
		{ cat "$T/sim"; return 1; }
	wait_until 5 drained || { echo "some process is still live"; return 1; }
	sed -n 's/.*: process \([0-9]*\) is pid \([0-9]*\)$/{"\2":\1}/p' "$T/sim" | jq -s add >"$T/pids"
	api 'collectives?limit=10000' | jq -c --slurpfile pids "$T/pids" '.collectives[]
		| .process = $pids[0][.pid | tostring] | select(.process != null)' >"$T/told"
}

fields='[.process, .comm_id, .rank, .func, .seq, .count, .datatype, .bytes, .root, .peer, .algo,
	.proto, .channels, .exec_ns, .complete] | tojson'

# The truth as far as API version $v tells it.  What runs without a kernel of its
# own shows as its API call, from v5 on; nothing but its posting is seen of it, nor
# of what a rank sends to itself.  Who has no KernelCh has no time from the GPU, and
# sees the end of an operation only where the network takes part.
truth='select($v >= 5 or .path == "kernel")
	| .comm_id = "0x" + .comm_id
	| (.path == "kernel" and .peer != .rank) as $kernel
	| if .path != "kernel" then .peer = null | .algo = null | .proto = null | .channels = null | .seq = null else . end
	| if .func != "Broadcast" and .func != "Reduce" then .root = null else . end
	| if $v < 5 and .func == "AllGather" then .count = null | .datatype = null else . end
	| .complete = if $kernel then .completed else null end
	| if $kernel and $v >= 5 and .seq != null then . else .exec_ns = null end
	| if $v < 5 then .complete = null else . end'
told='if $v < 5 or .seq == null then .exec_ns = null else . end
	| if $v < 5 then .complete = null else . end'

same() {	# API
	jq -r --argjson v "$1" "$truth | $fields" "$T/truth" | sort >"$T/a"
	jq -r --argjson v "$1" "select(.derived | not) | $told | $fields" "$T/told" | sort >"$T/b"
	[ -s "$T/a" ] && diff "$T/a" "$T/b"
}

# Sends and receives have no number.  What the GPU's stamps tell of one is true; of those that run
# alone (SCENARIO training) they do.
transfers_are_true() {	# API SCENARIO
	[ "$1" -lt 5 ] || [ "$2" != training ] ||
		jq -s -e 'any(.[]; .func == "Recv" and .timing_source == "kernel_gpu")' "$T/told" >/dev/null || return 1
	jq -n -e --slurpfile truth "$T/truth" --slurpfile told "$T/told" '
		def key: [.process, (.comm_id | ltrimstr("0x")), .rank, .func, .peer] | tojson;
		(reduce $truth[] as $t ({}; .[$t | key] += [$t.exec_ns])) as $times
		| all($told[] | select(.func | IN("Send", "Recv")) | select(.timing_source == "kernel_gpu");
			. as $row | $times[key] | index($row.exec_ns) != null)' >/dev/null
}

# Where the end cannot be seen, nobody says that he saw it.
nothing_invented() {
	jq -e -s --argjson v "$1" 'all(.[]; if $v >= 5 then true
		else .timing_source != "kernel_gpu" and
		     (.complete != true or .timing_source == "proxy_cpu") end)' "$T/told" >/dev/null
}

# What ran in one kernel on the same channels, or one rank's send and receive of a
# round, is told as one batch; who is not in one has a bandwidth of his own.  Of transfers
# in a batch only one send's end is stamped.
fused_is_told() {
	jq -e -s 'all(.[]; if .fused then .busbw_gbs == null and .algbw_gbs == null and
		.batch.ops == .fused and if .func | IN("Send", "Recv")
			then .batch.exec_ns == null and (.func == "Send" or .timing_source != "kernel_gpu")
			else .batch.exec_ns >= .exec_ns end
		else .batch == null end)' "$T/told" >/dev/null
}

# Lateness of ranks that wait for each other, against the truth: all simulated nodes
# are this one.  Ranks leave a little apart, as they do in the model.
late_is_true() {
	jq -n -e --slurpfile truth "$T/truth" --slurpfile told "$T/told" '
		def key: [(.comm_id | ltrimstr("0x")), .func, .seq, .rank] | tojson;
		($truth | map({key: key, value: .late_ns}) | from_entries) as $late
		| [$told[] | select((.func | IN("AllReduce", "AllGather", "ReduceScatter")) and
			.timing_source == "kernel_gpu" and .complete)]
		| length > 0 and all(.[]; . as $row | .late_ns != null and
			($late[key] - .late_ns | fabs) <= 2000 + 0.02 * .exec_ns)'
}

# The network's threads are asked for data long before there is some.  A thread without a CPU
# may be away in the middle of some.
times_are_the_networks() {
	jq -e -s 'map(select(.timing_source == "proxy_cpu")) |
		length >= 30 and (map(select(.exec_ns < 10000000)) | length) > length / 2' "$T/told" >/dev/null
}

start_daemon

# training has eight processes and all kinds of communicators; stuck-step and
# never-joins have operations that never end.
while read -r level api scenario; do
	check "$scenario, v$api, $level: it is played" play "$level" "$api" "$scenario"
	check "$scenario, v$api, $level: every operation is told as it was" same "$api"
	check "$scenario, v$api, $level: batches are told as such" fused_is_told
	check "$scenario, v$api, $level: times of sends and receives are true" transfers_are_true "$api" "$scenario"
	check "$scenario, v$api, $level: what cannot be seen is not known" nothing_invented "$api"
done <<-END
	net   6 smoke
	trace 6 smoke
	net   5 smoke
	net   4 smoke
	net   6 two-nodes
	net   6 ce
	net   6 graph
	net   6 pxn
	trace 6 pxn
	net   6 training
	net   4 training
	net   6 stuck-step
	net   6 never-joins
	net   4 never-joins
END
check "compute-net, v4, net: it is played" play net 4 compute-net
check "compute-net, v4, net: the network's times hold no computing" times_are_the_networks
check "training, v6, net: it is played once more" play net 6 training
check "training, v6, net: ranks are as late as they are" late_is_true
check "nothing was lost, early or late" api_is status \
	'.ingest | .lost == 0 and .before == 0 and .rejected == 0'
check "no child was left without its operation" api_is status \
	'.reconstruct | .orphans == 0 and .foreign_orphans == 0 and .stamps_refused == 0'
done_testing
