#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A hang is judged alike by the daemon that sees it and by the report over its snapshot: the
# same verdict, ranks and sentence.
. "$(dirname "$0")/lib.sh"

I=$B/ncclinsp
start_daemon --stall-min 300ms --snapshot-interval 0
HOST=$(api status | jq -r .host)

# Times go on between the two, and the report names the host.
ALIKE='def alike: gsub("([0-9.]+(ns|us|ms|s|m|h))+"; "T") | gsub(", '$HOST'\\)"; ")");'

# The file has what the daemon found; the verdict is the one that is expected.  Other kinds of
# findings, as of a thread that a busy machine lets wait, are named by their kind.
same() {
	: >"$T/found" >"$T/told"
	"$I" snapshot >"$T/path" && SNAP=$(cat "$T/path") && wait_until 10 test -s "$SNAP" || return 1
	jq -c "$ALIKE"'[.findings[] | select(.active and .has_hung) | [.verdict, (.ranks | sort), (.text | alike)]] | sort' \
		<(jq '.findings[] |= (.has_hung = (.kind == "stall" or .kind == "desync"))' "$SNAP") >"$T/found"
	"$I" report -o json "$SNAP" >"$T/report"
	jq -c "$ALIKE"'[.verdicts[] | select(.severity != "info" and (IN(.kind; "died", "straggler") | not))] | group_by(.text) |
		map([.[0].verdict, (map(.rank | values) | sort), (.[0].text | alike)]) | sort' "$T/report" >"$T/told"
	jq -e --arg v "$1" 'any(.[]; .[0] == $v)' "$T/found" >/dev/null && cmp "$T/found" "$T/told"
}
soon_same() { wait_until 40 same "$1" || { cat "$T/found" "$T/told"; return 1; }; }

# hangs VERDICT NAME: of a scenario that is there, or that comes on stdin.
hangs() {
	local scn=$TOP/tests/scenarios/$2.scn
	[ -e "$scn" ] || { scn=$T/$2.scn; cat >"$scn"; }
	start_job "$scn"
	check "$2: the daemon says $1, and so does the report, in the same words" soon_same "$1"
	check "... each rank with its host" jq -e --arg host "$HOST" \
		'all(.verdicts[] | select(.rank); .host == $host and .pid > 0)' "$T/report"
	check "... as docs/schema/report.json says" \
		eval 'PYTHONWARNINGS=ignore jsonschema -i "$T/report" "$TOP/docs/schema/report.json"'
	end_job
}

hangs NOT_JOINED never-joins
hangs ORDER_MISMATCH order-mismatch
hangs METADATA_MISMATCH size-mismatch
hangs COMM_DEADLOCK comm-deadlock
hangs LINK stuck-step
hangs GPU_STUCK frozen-gpu
# told JQ FINDING: with its node's finding changed so the report says that.
told() {
	jq -c --argjson more "$2" '(.findings[] | select(.active and .kind == "stall" or .kind == "desync")) += ($more + {text: "so it is"})' \
		"$(cat "$T/path")" >"$T/told.json"
	"$I" report -o json "$T/told.json" >"$T/report"
	jq -c '[.verdicts[] | select(.kind == "stall" or .kind == "desync") | [.verdict, .text == "so it is"]]' "$T/report" >"$T/out"
	jq -e "$1" "$T/out" || { cat "$T/out"; return 1; }
}
check "... in the words of a node that knows an error of a GPU beside" told 'map(select(.[0] == "GPU_STUCK")[1]) | length > 0 and all' \
	'{"evidence": {"xid": 79}}'
check "... if it says the same" told 'map(select(.[0] == "GPU_STUCK")[1]) | length > 0 and (any | not)' '{"verdict": "LINK", "evidence": {"xid": 79}}'
# The daemon tells of a death in the words of the death, and adds who waits, wherever: one finding, one row.
cat >"$T/dies.scn" <<-SCN
	processes 4
	comm dp ranks 0-3 channels 2
	comm tp ranks 0,1 ranks 2,3 channels 2
	kill process 2 comm tp op 19
	hold forever
	loop forever
		compute 2ms
		AllReduce tp 256Ki float32
		AllReduce dp 1Mi float32
	end
SCN
start_job "$T/dies.scn"
dead() {
	"$I" snapshot >"$T/path" && SNAP=$(cat "$T/path") && wait_until 10 test -s "$SNAP" || return 1
	pid=$(sed -n 's/.*process 2 is pid //p' "$T/sim")
	jq -c --argjson pid "$pid" '[.findings[] | select(.active and (.kind == "stall" or any(.evidence.processes[]?; .pid == $pid))) |
		[.kind, .verdict, .ranks[0], .text]]' "$SNAP" >"$T/found"
	jq -e 'length == 1 and .[0][:3] == ["died", "RANK_DEAD", 2] and (.[0][3] | test(" waits? in "))' "$T/found" || return 1
	"$I" report -o json "$SNAP" >"$T/report"
	jq -c --argjson pid "$pid" '[.verdicts[] | select(.pid == $pid and .kind != "straggler") | [.kind, .verdict, .rank, .text]]' "$T/report" |
		diff "$T/found" -
}
check "one death is one finding, and one row of the report, in the same words" wait_until 40 dead
end_job
hangs NOT_RUNNING late-for-ever <<-SCN
	processes 4
	comm dp ranks 0-3 channels 2
	late rank 2 by 1000s from 30
	loop forever
		compute 2ms
		AllReduce dp 1Mi float32
	end
SCN
# Where no end is watched the order of calls tells.
export NCCLINSP_KERNELS=never
hangs NOT_JOINED never-joins-unwatched < <(sed 's/^comm dp/comm quiet/; s/ dp / quiet /' "$TOP/tests/scenarios/never-joins.scn")
export NCCLINSP_KERNELS=always

# ---- two nodes, of which each daemon sees its own ----------------------------------------
mkdir "$SHM/0" "$SHM/1"
NODES='
	nodes 2
	processes 2
	comm tp ranks 0,1 ranks 2,3 channels 2
	comm dp ranks 0-3 channels 2
	absent rank 3 comm dp op 40
	loop forever
		compute 2ms
		AllReduce tp 256Ki float32
		AllReduce dp 1Mi float32
	end'
stop_daemon
start_daemon --stall-min 300ms --snapshot-interval 0 --shm-dir "$SHM/0"
"$B/ncclinspd" --foreground --socket "$T/other.sock" --shm-dir "$SHM/1" --state-dir "$T/other" \
	--auto-thrift no --containers no --stall-min 300ms --snapshot-interval 0 2>>"$T/other.log" &
started+=("$!")
other_answers() { curl -sf --unix-socket "$T/other.sock" http://ncclinspd/v1/status -o /dev/null; }
check "a daemon for each node" wait_until 30 other_answers
echo "$NODES" >"$T/nodes.scn"
nice -n 10 "$B/nccl-sim" --shm-dir "$SHM/%n" --plugin "$PLUGIN" "$T/nodes.scn" 2>"$T/sim" &
JOB_PID=$!
started+=("$JOB_PID")
check "from the node of those who wait nobody can tell, and the report says the same of it alone" \
	soon_same UNKNOWN
check "... unless NCCL's RAS has told the node" told 'any(.[]; . == ["NOT_JOINED", true])' \
	'{"verdict": "NOT_JOINED", "ranks": [3], "evidence": {"ras_ranks": [{"rank": 3}]}}'
# both: a file of each node, in $T, and what the report says of them, in $T/report.
both() {
	local snap
	snap=$(NCCLINSP_SOCKET=$T/other.sock "$I" snapshot) && wait_until 10 test -s "$snap" || return 1
	jq -c '.status.host = "node1"' "$snap" >"$T/node1.json"
	snap=$("$I" snapshot) && wait_until 10 test -s "$snap" || return 1
	jq -c '.status.host = "node0"' "$snap" >"$T/node0.json"
	"$I" report -o json "$T/node0.json" "$T/node1.json" >"$T/report"
	[ -s "$T/report" ]
}
# reports JQ: it says so of both.
# Without the jobs before, which were killed.
reports() {
	both && jq -e '.verdicts |= map(select(.verdict != "died")) | '"$1" "$T/report" >/dev/null ||
		{ cat "$T/report"; return 1; }
}
check "from the files of both the report names who did not come, on its node" wait_until 20 reports \
	'[.verdicts[] | select(.severity != "info" and .kind != "straggler")] | length == 1 and (.[0] |
		[.verdict, .comm_name, .rank, .host] == ["NOT_JOINED", "dp", 3, "node1"] and
		(.text | test("^rank 3 \\(pid [0-9]+, node1\\) has not come to AllReduce #40 on dp; .*; ranks 0-2 wait there\\. ") and
			 (test("not on") | not)))'
end_job

sed 's/absent rank 3 comm dp op 40/kill process 3 comm dp op 40\n\thold forever/' <<<"$NODES" >"$T/death.scn"
: >"$T/sim"
nice -n 10 "$B/nccl-sim" --shm-dir "$SHM/%n" --plugin "$PLUGIN" "$T/death.scn" 2>"$T/sim" &
JOB_PID=$!
started+=("$JOB_PID")
wait_until 20 grep -q "process 3 is pid" "$T/sim"
check "a death on one of them is told with all that wait, on both" wait_until 20 reports \
	"[.verdicts[] | select(.pid == $(sed -n 's/.*process 3 is pid //p' "$T/sim"))] | length == 1 and (.[0] |
		[.kind, .verdict, .rank, .host] == [\"died\", \"RANK_DEAD\", 3, \"node1\"] and (.text | test(\"; ranks 0-2 wait in \")))"
end_job

# ---- who is late for another's sake ------------------------------------------------------
# late_on COMM RANK HOST: it comes late to that communicator, others for its sake to the other one.
late_on() {
	cat >"$T/late.scn" <<-SCN
		nodes 2
		processes 2
		comm tp ranks 0,1 ranks 2,3 channels 2
		comm dp ranks 0,2 ranks 1,3 channels 2
		seed 1$2
		late rank $2 by 6ms comm $1
		loop forever
			compute 8ms
			AllReduce tp 1Mi float32
			compute 2ms
			AllReduce dp 1Mi float32
		end
	SCN
	nice -n 10 "$B/nccl-sim" --shm-dir "$SHM/%n" --plugin "$PLUGIN" "$T/late.scn" 2>"$T/sim" &
	JOB_PID=$!
	started+=("$JOB_PID")
	has_ops() { both && jq -e '[.samples[] | select(.before_ns)] | length > 100' "$T/node0.json"; }
	wait_until 40 has_ops
	PID=$(sed -n "s/.*: process $2 is pid //p" "$T/sim")
	PIDS=$(sed -n "s/.*: process .* is pid //p" "$T/sim" | jq -cs .)
	check "late to $1: the rank is named, and nobody who waited for it" wait_until 20 reports \
		"[.verdicts[] | select(.kind == \"straggler\" and ([.pid] - $PIDS == [])) |
		  [.pid, .host]] == [[$PID, \"$3\"]]"
	check "... in the daemon's words" reports '.verdicts | any(.text | test("comes last in .* after the first, which costs the others"))'
	end_job
}
late_on tp 3 node1
late_on dp 2 node1

# ---- two that are late by turns, one on each node ------------------------------------------
cat >"$T/turns.scn" <<-SCN
	nodes 2
	processes 2
	comm dp ranks 0-3 channels 2
	late rank 1 by 4ms comm dp every 2
	late rank 2 by 4ms comm dp every 2 from 1
	loop forever
		compute 8ms jitter 3%
		AllReduce dp 1Mi float32
	end
SCN
nice -n 10 "$B/nccl-sim" --shm-dir "$SHM/%n" --plugin "$PLUGIN" "$T/turns.scn" 2>"$T/sim" &
JOB_PID=$!
started+=("$JOB_PID")
PIDS() { sed -n "s/.*: process .* is pid //p" "$T/sim" | jq -cs .; }
check "late by turns: both are named, each on its node" wait_until 40 eval 'reports \
	"[.verdicts[] | select(.kind == \"straggler\" and ([.pid] - $(PIDS) == [])) | [.rank, .host]] |
	 sort == [[1, \"node0\"], [2, \"node1\"]]"'
end_job
done_testing
