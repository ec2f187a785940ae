#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job that was recorded and is played back looks to the daemon like the job; so
# do recordings of the real NCCL.
. "$(dirname "$0")/lib.sh"

RECORDER=$B/libnccl-profiler-record.so

same() { [ -s "$1" ] && diff "$1" "$2"; }

start_daemon
while read -r name api level; do
	mkdir "$T/$name.$api.$level"
	export NCCLINSP_LEVEL=$level
	scenario=$TOP/tests/scenarios/$name.scn
	sim --api "$api" "$scenario" 2>"$T/sim"
	wait_until 5 drained
	new_rows "$T/true"
	NCCL_PROFILE_EVENT_MASK=0x7fff NCCLINSP_RECORD=$T/$name.$api.$level/%p.rec "$B/nccl-sim" --plugin "$RECORDER" --api "$api" \
		"$scenario" 2>"$T/sim"
	check "$name $api: it is played back" replay "$T/$name.$api.$level"/*.rec
	wait_until 5 drained
	new_rows "$T/told"
	check "$name $api, level $level: the same operations, and times by the GPU" \
		same "$T/true" "$T/told"
done <<-END
	versions v4 kernel
	smoke v5 trace
	smoke v6 net
	smoke v6 ops
END
check "nothing was lost or refused" api_is status '.ingest.lost == 0 and .ingest.rejected == 0'

check "what is shown of a recording is a line per call" test \
	"$("$B/nccl-replay" --print "$(echo "$T"/smoke.v6.ops/*.rec | cut -d' ' -f1)" |
	   grep -cE '^[0-9]+\.[0-9]{3} T[0-9]+ (init|start|state|stop|finalize)')" -gt 500
done_testing
