#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Requests that the socket transport of a libnccl built with NET_PROFILER=1 tells, from the progress
# thread or from helper threads of its own: what they move over a link is what its transfers do.
. "$(dirname "$0")/lib.sh"

# Its requests have a member for that only then.
grep -q . <(gdb -nx -batch -ex 'output &((struct ncclIbRequest *)0)->pInfo' \
	"$("$TOP/tests/nccl/find.sh")" 2>/dev/null) || skip_all "this libnccl was built without NET_PROFILER=1"

requests='[.traceEvents[] | select(.cat == "NetPlugin" and .args.id == "0x0000000000020001").args]'
are() { jq -e "$requests | $1" "$T/trace.json" || { jq -c "$requests[:3]" "$T/trace.json"; return 1; }; }
# The daemon has the same by socket: requests and bytes, and times that are possible.
by_socket() {
	jq -e --slurpfile q "$T/queues" "$requests"' as $all | $q[0].queues |
		all(.[]; .kind == "socket" and .nic == null and .p50_ns <= .max_ns and .p99_ns <= .max_ns and .comm_id != null) and
		([.[].requests] | add) == ($all | length) and ([.[].bytes] | add) == ([$all[].bytes] | add)' "$T/trace.json" ||
		{ jq -c '.queues[]' "$T/queues"; return 1; }
}
moved() { api peers?window=all | jq --arg way "$1" '[.peers[] | select(.direction == $way).bytes] | add'; }

export NCCLINSP_LEVEL=trace NCCL_SOCKET_INLINE=0	# else helper threads get nothing to do
for threads in 0 2; do
	start_daemon
	export NCCL_SOCKET_NTHREADS=$threads NCCL_NSOCKS_PERTHREAD=$threads
	timeout -k 1 300 curl -sN --unix-socket "$SOCK" "http://ncclinspd/v1/stream?kinds=record" >"$T/stream" &
	curl=$!
	play 2x1 basic
	check "$threads helper threads: the job runs" ran
	sent=$(moved send) received=$(moved recv)
	api queues >"$T/queues"
	kill "$curl"
	check "$threads: a trace of its records" "$B/ncclinsp" trace "$T/stream" -o "$T/trace.json"
	check "$threads: each request has a socket, a direction and a size" are \
		'length > 20 and all(.[]; .socket > 2 and (.direction | . == "send" or . == "recv") and .bytes > 0)'
	check "$threads: the daemon's figures by socket are of the same requests" by_socket
	if [ "$threads" = 0 ]; then
		check "they are of the link's bytes" are \
			"all(.[]; .peer >= 0) and ([.[] | select(.direction == \"send\").bytes] | add) == $sent and
			 ([.[] | select(.direction == \"recv\").bytes] | add) == $received"
	fi
	stop_daemon
done
done_testing
