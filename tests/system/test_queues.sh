#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Work requests, queue pair by queue pair: they are the link's bytes, the slow one is told from its
# siblings, and named where it makes a link slow.
. "$(dirname "$0")/lib.sh"

have jsonschema || skip_all "no validator: python3-jsonschema is not installed"

I=$B/ncclinsp

# start_job NAME STATEMENT...: four ranks on two nodes.
start_job() {
	printf '%s\n' "nodes 2" "processes 2" "netplugin ib queues 4" "comm $1 ranks 0-3 channels 2" \
		"link net rate 1GB/s" "pace real" "${@:2}" "loop forever" "compute 30ms" \
		"AllReduce $1 1Mi float32" "end" >"$T/$1.scn"
	NCCLINSP_LEVEL=trace nice -n 10 timeout -k 1 60 "$B/nccl-sim" --plugin "$PLUGIN" "$T/$1.scn" 2>>"$T/sim" &
	started+=($!)
}

# play SCENARIO STATEMENT...: to its end, in level LEVEL; $T/queues and $T/peers are of its processes.
play_once() {
	{ sed 's/^loop.*/loop 10/' "$TOP/tests/scenarios/$1.scn"; printf '%s\n' "${@:2}"; } >"$T/job.scn"
	NCCLINSP_LEVEL=${LEVEL:-trace} sim "$T/job.scn" 2>"$T/sim" && wait_until 5 drained || return 1
	pids=$(sed -n 's/.*is pid \([0-9]*\)$/\1/p' "$T/sim" | paste -sd,)
	api "queues?pid=$pids" | jq -c '.queues[]' >"$T/queues"
	api "peers?pid=$pids" | jq -c '.peers[]' >"$T/peers"
	api processes | jq -e "[.processes[] | select(.pid == ($pids)) | .lost.overrun] | add == 0" >/dev/null
}

# Again where the daemon came too late, on a busy machine, and records were lost.
play() { play_once "$@" || play_once "$@" || play_once "$@"; }

# sent FILE MEMBER: what each rank sent to each peer on each channel, and by which process.
sent() {
	jq -s -c "group_by(.rank, .peer, .channel)[] | select(.[0].direction == \"send\") |
		[.[0].rank, .[0].peer, .[0].channel, .[0].pid, .[0].proxy_pid, (map(.bytes) | add), (map(.$2) | add)]" \
		<(jq -c 'select(.direction == "send")' "$T/$1")
}
all_sent() { [ -s "$T/queues" ] && diff <(sent queues requests) <(sent peers steps); }

start_daemon
check "no request yet: peers --by-queue exits with 4 and says what is needed" \
	exits 4 "level trace is needed, and an NCCL built with NET_PROFILER=1" "$I" peers --by-queue
for scenario in two-nodes pxn; do
	check "$scenario: a job whose network plugin tells requests" play $scenario "netplugin ib queues 2"
	check "$scenario: the queue pairs carried what the links did, for the same ranks" all_sent
	check "$scenario: connections have two, unless they moved one step" jq -s -e 'any(.requests > 1) and
		(group_by(.rank, .peer, .channel, .direction) |
		 all(.[]; length == 2 or (length == 1 and .[0].requests < 40)))' "$T/queues"
done
check "sockets: a job whose network plugin tells their requests" play two-nodes "netplugin socket"
check "... of sends and receives, with their bytes and no NIC" jq -s -e 'length > 3 and
	all(.[]; .kind == "socket" and .nic == null and .bytes > 0)' "$T/queues"
LEVEL=net check "at level net" play two-nodes "netplugin ib"
check "... nothing is told" eval '[ -s "$T/peers" ] && ! [ -s "$T/queues" ]'

start_job even
start_job slow "slow channel 1 queue 2 rank 1 by 12x"
# found COMM FILTER: an active finding about it, as the filter wants it.
found() {
	api_is 'findings?active=true' \
		"[.findings[] | select(.comm_name == \"$1\" and .kind == \"slow_peer\" and $2)] | length == 1"
}
is_busy() {
	api_is 'findings?active=true' \
		'.findings | map(select(.kind == "proxy_starved")) | length > 0'
}
slow_one='.rank == 1 and .direction == "send" and .channel == 1 and .number == 269'
stands_out() {
	api_is 'queues?comm=slow&window=60s' "(.queues[0] | $slow_one and .slow and .others == 7) and
		([.queues[] | select(.slow)] | length == 1)"
}
check "the slow queue pair stands out among the eight to its peer" wait_until 20 stands_out
check "the table has it first" eval '"$I" peers --by-queue --comm slow --no-header | head -1 |
	grep -Eq "^slow[:0-9a-f]* +1 +send +2 +1 +qp +0 +269 "'
check "... as has CSV" eval '"$I" peers --by-queue --comm slow -o csv --fields number,slow --no-header |
	head -1 | grep -qx "269,yes"'
check "... and JSON what the API answered" eval '"$I" peers --by-queue --comm even --direction recv -o json |
	jq -e ".queues | length > 0 and all(.[]; .ratio == null and .bytes == null and .slow == false)"'
check "... as docs/schema/peers.json says" eval '"$I" peers --by-queue -o json >"$T/out" &&
	PYTHONWARNINGS=ignore jsonschema -i "$T/out" "$TOP/docs/schema/peers.json"'
check "the even ones have none" api_is 'queues?comm=even&direction=send&window=60s' \
	'.queues | length > 0 and all(.[]; .slow == false)'
if wait_until 25 found slow .evidence.queue >/dev/null || ! is_busy; then
	check "the slow channel is found, with its queue pair in the evidence" found slow \
		'.verdict == "CHANNEL" and .ranks == [1] and (.evidence.queue |
		.kind == "qp" and .number == 269 and .channel == 1 and .nic == 0 and .others == 7 and .ratio > 2)'
	check "... and in its sentence, with what to do" found slow \
		'(.text | test("[.] Its queue pair 269 \\(channel 1, NIC 0\\) takes [0-9.]+ times .* all 8 to that rank[.] Check the path that the network chose"))'
else
	skip "the slow channel is found" "the network threads of the simulator get no CPU here"
fi
snapshot=$("$I" snapshot)
kept() { "$I" peers --by-queue --from "$snapshot" --comm slow -o csv --fields number --no-header | head -1 | grep -qx 269; }
check "a snapshot has them too" wait_until 10 kept
check "... of the last minute only" exits 2 "queue pairs of their last minute only" \
	"$I" peers --by-queue --from "$snapshot" --window all
jq -c 'del(.queues)' "$snapshot" >"$T/older.json"
check "an older one says that it has none" exits 4 "these snapshots have no work request" \
	"$I" peers --by-queue --from "$T/older.json"
check "--by-channel and --by-queue exclude each other" exits 2 "choose one" \
	"$I" peers --by-queue --by-channel
check "no queue made room, and no time lacks its histogram" api_is status \
	'.queues | .queues > 0 and .evicted == 0 and .unbinned == 0 and .refused == 0'
done_testing
