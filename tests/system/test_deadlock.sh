#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two communicators whose ranks wait for each other, in real time and as people have it: no kernel
# is told of yet, within a node nothing tells which call has ended, and between nodes only the network.
. "$(dirname "$0")/lib.sh"
unset NCCLINSP_KERNELS

start_daemon
I=$B/ncclinsp

# One rank calls world before dp, in an iteration of several communicators.
cat >"$T/nodes.scn" <<-SCN
	nodes 2
	processes 2
	link net latency 9us rate 24GB/s
	comm world ranks 0-3 channels 2
	comm tp ranks 0,1 ranks 2,3 channels 2
	comm dp ranks 0,2 ranks 1,3 channels 2
	swap rank 2 comm dp op 20 comm world op 10
	loop forever
		compute 10ms jitter 3%
		AllReduce tp 4Mi bfloat16
		ReduceScatter dp 8Mi bfloat16
		AllReduce world 1 float32
		compute 4ms
		AllGather dp 8Mi bfloat16
	end
SCN

# One of four calls b first, the others a.
cat >"$T/four.scn" <<-SCN
	processes 4
	comm a ranks 0-3 channels 2
	comm b ranks 0-3 channels 2
	swap rank 2 comm a op 20 comm b op 20
	loop forever
		compute 2ms
		AllReduce a 1Mi float32
		AllReduce b 1Mi float32
	end
SCN

# found SEVERITY RANKS: one finding is about what hangs.
found() {
	api_is 'findings?active=true&grade=found' "[.findings[] | select(.kind != \"died\")] |
		map([.kind, .verdict, .severity, (.ranks | sort)]) == [[\"desync\", \"COMM_DEADLOCK\", \"$1\", $2]]"
}

# processes RANKS: theirs are named.
processes() {
	local pids
	pids=$(sed -n 's/.*process [0-9]* is pid //p' "$T/sim" | jq -s -c .)
	api_is 'findings?active=true&grade=found' "[.findings[] | select(.verdict == \"COMM_DEADLOCK\").whom[].pid] | sort ==
		($1 | map($pids[.]))"
}

# deadlock NAME SCENARIO SEVERITY RANKS
deadlock() {
	start_job "$2"
	check "$1: the circle is found beyond its limit of 10 s, and nothing else" wait_until 25 found "$3" "$4"
	check "$1: ... with its processes" processes "$4"
	check "$1: diagnose says who waits for whom" exits 10 "wait for each other in a circle" "$I" diagnose
	end_job
}

deadlock "within a node" comm-deadlock warning "[0, 1]"
deadlock "between nodes" "$T/nodes.scn" critical "[0, 2]"
deadlock "one against three" "$T/four.scn" warning "[2]"

done_testing
