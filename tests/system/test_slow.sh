#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is slow on the network is found and named, and even links are left alone.
. "$(dirname "$0")/lib.sh"

start_daemon

# start_job NAME STATEMENT...: four ranks, twenty operations a second.
start_job() {
	local name=$1
	shift
	printf '%s\n' "nodes 4" "comm $name ranks 0-3 channels 2" "link net rate 1GB/s" "pace real" \
		"$@" "loop forever" "compute 30ms jitter 2%" "AllReduce $name 1Mi float32" "end" \
		>"$T/$name.scn"
	nice -n 10 timeout -k 1 60 "$B/nccl-sim" --plugin "$PLUGIN" "$T/$name.scn" 2>>"$T/sim" &
	started+=($!)
}

# found COMM FILTER: an active finding about it, as the filter wants it.
found() {
	api_is 'findings?active=true' "[.findings[] | select(.comm_name == \"$1\" and $2)] | length == 1"
}

# With too little CPU for what sends, transfers are slow because of that, and it is told so.
is_busy() {
	api_is 'findings?active=true' \
		'.findings | map(select(.kind == "proxy_starved" and .evidence.starved > 1)) | length > 0'
}

# named "sentence" SECONDS COMM FILTER
named() {
	if wait_until "$2" found "$3" "$4" >/dev/null || ! is_busy; then
		check "$1" found "$3" "$4"
	else
		skip "$1" "the network threads of the simulator get no CPU here"
	fi
}

start_job even
start_job link "slow link 1 to 2 by 4x"
start_job starved "starve rank 2 by 50ms every 4"
start_job short "slow link 1 to 2 by 4x" "starve rank "{0..3}" by 60ms every 8"
start_job channel "slow channel 1 rank 2 by 4x"
named "a slow link is named" 18 link \
	'.kind == "slow_peer" and .verdict == "LINK" and .ranks == [1] and .peer == 2'
check "what it sends is bound by the network, however long its GPU computes" wait_until 5 api_is \
	'peers?window=60s&comm=link&rank=1&direction=send' '.peers | length > 0 and all(.[]; .bound == "net")'
named "a slow channel is told from a slow link" 5 channel \
	'.kind == "slow_peer" and .verdict == "CHANNEL" and .ranks == [2] and .evidence.channel == 1'
check "a progress thread without CPU is named" wait_until 25 api_is 'findings?active=true' \
	'.findings | map(select(.kind == "proxy_starved" and .ranks[0] == 2)) | length > 0'
check "no link of a thread without CPU is called slow" api_is findings \
	'[.findings[] | select(.comm_name == "starved" and .kind == "slow_peer" and .grade == "found")] == []'
named "a slow link is named where all threads lack a CPU" 25 short \
	'.kind == "slow_peer" and .verdict == "LINK" and .ranks == [1] and .peer == 2 and .evidence.away > 0.01'
check "... and the CPU is named in its sentence, no cable" api_is findings \
	'[.findings[] | select(.comm_name == "short" and .kind == "slow_peer").text] | length > 0 and
	 all(.[]; test("got no CPU for [0-9]+ % of the time") and (test("cable") | not))'
check "even links are left alone" api_is findings \
	'[.findings[] | select(.comm_name == "even" and .kind == "slow_peer")] == []'
# ---- the same links, each sent from a node of its own ---------------------------------------
# files JQ: a file of each node, of this daemon's snapshot, as JQ has it; the findings are those of a node
# that sees its own links alone.
files() {
	local snap n
	snap=$("$B/ncclinsp" snapshot) && wait_until 10 test -s "$snap" || return 1
	for n in 0 1 2 3; do
		jq -c --argjson n "$n" '.status.host = "node\($n)" | .samples = [] | .inflight = [] |
			(.comms[].local_ranks, .peers) |= map(select(.rank == $n)) |
			.findings |= map(select(.ranks[0] == $n and .kind != "loss")) | '"$1" "$snap" >"$T/node$n.json"
	done
}
# told GRADE: the slow link once, with this grade, and the slow channel; nothing of the even ones is found.
told() {
	"$B/ncclinsp" report -o json "$T"/node?.json >"$T/report"
	jq -e --arg grade "$1" '
		def slow(name): [.verdicts[] | select(.comm_name == name and .verdict != "proxy_starved")];
		[slow("link")[] | [.verdict, .rank, .peer, .host, .grade]] == [["LINK", 1, 2, "node1", $grade]] and
		[slow("channel")[] | [.verdict, .rank, .peer, .host]] == [["CHANNEL", 2, 3, "node2"]] and
		(slow("even") | map(select(.grade == "found")) == []) and
		(slow("link")[0].text | test("^the link from rank 1 of link \\(pid [0-9]+, .*node1.*\\) to rank 2 of link \\(pid [0-9]+, .*node2.*\\) is slow: "))' \
		"$T/report" >/dev/null || { cat "$T/report"; return 1; }
}
again() { files "$1" && told "$2"; }
# between "sentence" GRADE JQ
between() {
	if wait_until 15 again "$3" "$2" >/dev/null || ! is_busy >/dev/null; then
		check "$1" told "$2"
	else
		skip "$1" "the network threads of the simulator get no CPU here"
	fi
}
ALONE='.findings |= map(select(.kind != "slow_peer")) | .peers |= map(select(.window == "60s"))'
between "slow links between nodes are named, and suspected in their first minute" suspected "$ALONE"
check "... as docs/schema/report.json says" \
	eval 'PYTHONWARNINGS=ignore jsonschema -i "$T/report" "$TOP/docs/schema/report.json"'
between "... found where they were slow before" found "$ALONE"' | .peers += (.peers | map(.window = "all" |
	.window_ns *= 3 | .bytes *= 3 | .steps *= 3 | .timed_steps *= 3 | .busy_ns *= 3))'
between "... and where the own node has found it, which is no row of its own" found .
files "$ALONE"' | .findings |= map(.evidence.share = 1)'
check "... and where a thread was away, that is told instead" eval '"$B/ncclinsp" report -o json "$T"/node?.json |
	jq -e "[.verdicts[] | select(.comm_name == \"starved\") | .verdict] == [\"proxy_starved\"]"'
done_testing
