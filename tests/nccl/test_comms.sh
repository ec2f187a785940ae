#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Communicators of all kinds, used in all ways: what the daemon tells is what the
# job did, and no more.
. "$(dirname "$0")/lib.sh"

# Communicators by name and size, and which of their ranks were here.
comms_true() {
	cat "$J"/truth.* | jq -r '[.comm, .nranks, .nnodes, .rank] | tojson' | sort -u
}
comms_told() {
	api comms | jq -r '.comms[] | . as $c | .local_ranks[]
		| [$c.name, $c.nranks, $c.nnodes, .rank] | tojson' | sort -u
}
same_comms() {
	comms_true >"$T/true" && comms_told >"$T/told" && diff "$T/true" "$T/told"
}
gone() { api_is comms '[.comms[].local_ranks[].state] | length > 0 and all(. == "exited")'; }

alltoalls() {
	api 'collectives?limit=10000' | jq -e '[.collectives[]
		| select(.comm_name == "alltoall" and .derived) | {rank, seq, func}]
		| sort == [range(4) as $rank | range(6) as $seq | {$rank, $seq, func: "AlltoAll"}]'
}

# What a rank sends to itself has neither watched kernels nor proxies.
ended='.complete == true or
	(.complete == null and (.func | IN("Send", "Recv")) and (.peer | IN(null, $rank)))'

while read -r layout level programs; do
	export NCCLINSP_LEVEL=$level
	start_daemon
	play "$layout" $programs
	check "$layout $level $programs: the job runs" ran
	check "$layout $level: every operation is told as it was" same
	check "$layout $level: every communicator is told as it was" same_comms
	check "$layout $level: all of them are gone" gone
	check "$layout $level: all were seen to end" all_told ".rank as \$rank | $ended"
	check "$layout $level: nothing was lost, nothing lies about" api_is status '
		(.ingest | .lost == 0 and .before == 0 and .rejected == 0) and
		(.reconstruct | .orphans == 0 and .foreign_orphans == 0)'
	case "$layout $programs" in 4x1*alltoall* | 2x2*alltoall*)
		check "$layout $level: what each rank does with each is told as AlltoAll" alltoalls
	esac
	stop_daemon
done <<-END
	1x2 trace comms groups threads nonblocking alltoall
	4x1 net comms shrink groups nonblocking alltoall drift large
	2x2 net comms threads alltoall reload
END
done_testing
