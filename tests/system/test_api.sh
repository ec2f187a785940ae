#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The socket API of a real daemon over a simulated job:
# the promised fields are there, every field is documented, a hang and a death
# can be read off.
. "$(dirname "$0")/lib.sh"

cat >"$T/stuck.scn" <<-EOF
	nodes 2
	processes 1
	seed 7
	comm world ranks 0-1 channels 2
	loop 8
	compute 1ms
	AllReduce world 1Mi float32
	end
	stuck rank 0 comm world op 5 step 1 state peer
EOF

# promised REQUEST ROW FIELD...: each row that the jq path ROW gives has the fields.
promised() {
	local request=$1 row=$2
	shift 2
	api_is "$request" "[$row] | length > 0 and
		all(.[]; (\"$*\" | split(\" \")) - keys == [])"
}

# Names of all fields at any depth; not those of last_seq, which are functions.
documented() {
	local word missing=0
	for word in $(api "$1" | jq -r 'del(.. | .last_seq? | objects | .[])
			| [.. | objects | keys[]] | unique[]'); do
		grep -qE "\`([a-z_]+\.)*(${word%_mono_ns}_at|$word|${word#comm_})[\`,]" "$TOP/docs/api.md" ||
			{ echo "$1: $word"; missing=1; }
	done
	return $missing
}

# The other way round: what the first column of the request's table names is answered.
answered() {
	local section=${1%%\?*}
	api "$1" | jq -r '[.. | objects | keys[]] | unique[]' >"$T/fields"
	awk -v section="$section" -F '|' '
		/^## / { inside = $0 == "## GET /v1/" section }
		inside && /^\| `/ { print $2 }' "$TOP/docs/api.md" |
		grep -o '`[a-z0-9_]*`' | tr -d '`' | sort -u >"$T/named"
	[ -s "$T/named" ] || { echo "no table for $section"; return 1; }
	! grep -vxF -f "$T/fields" "$T/named"
}

code() { curl -s -o /dev/null -w '%{http_code}' --unix-socket "$SOCK" "http://ncclinspd/$@"; }
code_is() { [ "$(code "${@:2}")" = "$1" ]; }

stuck_step_seen() {
	api_is inflight '[.inflight[] | select(.event_type == "ProxyStep" and .rank == 0 and
		.state == "SendPeerWait" and .func == "AllReduce" and .seq == 5 and .peer == 1 and
		.step == 1 and .comm_name == "world")] | length == 1'
}

streamed() {	# as many operations as were kept, and both ends of both processes
	jq -se --argjson n "$(api 'collectives?limit=10000' | jq '.collectives | length')" \
		'([.[] | select(.kind == "collective")] | length) == $n and
		 ([.[] | select(.kind == "process") | .state] | sort) == ["died", "died", "live", "live"]' \
		"$T/stream" >/dev/null || { cut -c1-60 "$T/stream"; return 1; }
}

all_died() { api_is processes '[.processes[] | select(.state == "died")] | length == 2'; }

start_daemon
curl -sN --unix-socket "$SOCK" http://ncclinspd/v1/stream >"$T/stream" &
started+=($!)
wait_until 5 api_is status '.connections > 1'
"$B/nccl-sim" --plugin "$PLUGIN" "$T/stuck.scn" 2>"$T/sim" &
started+=($!)

check "a transfer that hangs is named" wait_until 10 stuck_step_seen
check "its operation shows how far it got, and as the oldest" api_is inflight \
	'.inflight[0] | .event_type == "Coll" and .seq == 5 and .kernel_started == 2'
check "the young can be left out" api_is 'inflight?older_than_ns=3600000000000' \
	'.inflight == []'
check "communicators know what is in flight" api_is comms \
	'.comms[0].local_ranks | map(.in_flight) == [1, 1] and map(.last_seq.AllReduce) == [5, 5]'
check "status has what is promised" promised status . version host boot_id uptime_ns \
	started_at ingest cpu_ns rss_bytes level sampling exporters
check "ingest has what is promised" promised status .ingest records bytes lost \
	rejected segments poll_interval_ns
check "processes have what is promised" promised processes '.processes[]' pid uid \
	user command state segment api_version plugin_version level level_reason sampling job \
	lanes records lost comms first_seen_at last_record_at
check "comms have what is promised" promised comms '.comms[]' comm_id name nranks \
	nnodes local_ranks
check "local ranks have what is promised" promised comms '.comms[].local_ranks[]' \
	rank pid gpu_uuid pci_bus_id last_seq in_flight last_op_at state
check "ranks have what is promised" promised ranks '.ranks[]' comm_id comm_name nranks \
	rank host pid uid user job global_rank gpu_uuid pci_bus_id state last_func last_seq \
	in_flight oldest_ns wait blame last late lately finding verdict badness window ops \
	ops_per_s busbw_gbs busbw_waitfree_gbs p50_ns p99_ns share idle lost
check "the ranks of an operation that hangs tell how long" api_is ranks \
	'.in_flight_total == 2 and ([.ranks[] | .in_flight == 1 and .last_seq == 5 and
	 .oldest_ns > 0] == [true, true])'
check "collectives have what is promised" promised collectives '.collectives[]' \
	comm_id rank pid func seq count datatype bytes root peer algo proto channels graph \
	enqueued_at enqueue_ns queue_ns exec_ns timing_source exec_error_ns algbw_gbs \
	busbw_gbs gpu_start_at gpu_stop_at arrival_rank_order arrival_source late_ns busbw_waitfree_gbs \
	fused batch derived parts shift skew sampled complete stamps_refused tag tag_name
check "summaries have what is promised" promised \
	'summary?by=comm,rank,func,algo,proto,size,peer,tag' '.rows[]' comm_id comm_name rank \
	func algo proto size_class peer tag tag_name ops bytes fused derived exec batch queue algbw_gbs \
	busbw_gbs busbw_waitfree_gbs wait_fraction share timing_source sampled_fraction lost_fraction
check "what is in flight has what is promised" promised inflight '.inflight[]' pid \
	tid comm_id rank event_type func seq age_ns state channel peer step steps parent
check "peers have what is promised" promised peers '.peers[]' comm_id rank peer \
	channel direction bytes steps ops time fit bound trend
check "their times have what is promised" promised peers '.peers[].time' gpu_wait_ns \
	peer_wait_ns net_ns flush_ns
check "their fits have what is promised" promised peers '.peers[].fit' latency_ns \
	rate_gbs r2 points
for request in status processes comms ranks collectives summary peers inflight level overhead; do
	check "every field of $request is documented" documented $request
done
for request in status processes ranks collectives peers inflight clocks \
	'summary?by=comm,rank,func,algo,proto,size,peer,tag,phase'; do
	check "what the table of $request names is answered" answered "$request"
done
check "every field of clocks is documented" documented clocks
check "what is not there is not found" code_is 404 v1/peer
check "another method is refused" code_is 405 v1/status -X POST
check "a bad parameter is refused" code_is 400 'v1/collectives?limit=0'
# Who still sends when the connection is closed may miss the answer: hence again.
head -c 70000 /dev/zero >"$T/large"
check "a body too large is refused" wait_until 5 code_is 413 v1/status -X GET \
	--data-binary "@$T/large" -H Expect:

kill -KILL $(api processes | jq '.processes[].pid')
check "killed processes are seen to have died" wait_until 10 all_died
check "what was in flight then stays visible" api_is inflight \
	'[.inflight[] | select(.process_state == "died" and .state == "SendPeerWait")] | length > 0'
check "their death is found, every field of it documented" eval \
	'wait_until 5 api_is findings ".findings != []" && documented findings'
check "their unfinished operations are told as such" api_is collectives \
	'[.collectives[] | select(.complete | not) | .seq] == [5, 5]'
check "the stream has told all of it" wait_until 5 streamed
stop_daemon
check "the daemon ends cleanly, streams or not" [ $? -eq 0 ]
done_testing
