#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Snapshots of many nodes, read together: who is late, who is missing, who has not joined.
. "$(dirname "$0")/lib.sh"

I=$B/ncclinsp
start_daemon --snapshot-interval 0
cat >"$T/scn" <<-SCN
	nodes 2
	comm dp ranks 0,1 channels 2
	link net latency 10us rate 20GB/s
	late rank 1 by 2ms
	loop forever
		compute 5ms
		AllReduce dp 1Mi float32
	end
SCN
nice -n 10 "$B/nccl-sim" --plugin "$PLUGIN" "$T/scn" 2>"$T/sim" &
JOB_PID=$!
started+=("$JOB_PID")
has_run() { api_is collectives "[.collectives[].seq] | max > 900"; }
check "a job runs" wait_until 60 has_run
check "a snapshot is written when it is asked for, and its path printed" \
	eval 'SNAP=$("$I" snapshot) && wait_until 10 test -s "$SNAP" && jq -e .format "$SNAP"'
SNAP=$("$I" snapshot)
wait_until 10 test -s "$SNAP"
check "none is written by itself where the interval is 0" \
	eval '[ -z "$(ls "$T/state/snapshots")" ] && api_is status ".exporters | map(select(.kind == \"snapshots\")) == []"'
"$I" ps --no-header -o csv --fields pid | sort >"$T/pids"
pkill -9 -P "$JOB_PID" 2>/dev/null
stop_daemon

# verdict JQ PATH...: it is told of these.
verdict() { "$I" report -o json "${@:2}" >"$T/out"; { [ -s "$T/out" ] && jq -e "$1" "$T/out" >/dev/null; } || { cat "$T/out"; return 1; }; }
check "the late rank is named" verdict \
	'.verdicts | map(select(.kind == "straggler")) | length == 1 and .[0].rank == 1 and .[0].func == "AllReduce"' "$SNAP"
# Seconds of it are a suspicion, as for the daemon; what its node has found is found.
check "... as suspected, which is no finding" eval 'jq ".findings = []" "$SNAP" >"$T/seconds.json"
	exits 0 "STEADY[?].*rank 1 of dp .*It is suspected, and will be found if it lasts for three" "$I" report "$T/seconds.json"'
jq -c '(.samples | map(.done_mono_ns) | max) as $newest | .samples |= map(select(.done_mono_ns > $newest - 4000000000))' \
	"$T/seconds.json" >"$T/moment.json"
check "... a moment of it is nothing, as for the daemon" verdict '[.verdicts[] | select(.text | test("comes last"))] == []' "$T/moment.json"
# late_found JQ: the node has found a late rank, as JQ has it.
late_found() {
	jq -c '.findings = [{kind: "straggler", active: true, grade: "found", severity: "warning", verdict: "STEADY",
		comm_id: .comms[0].comm_id, ranks: [1], text: "so it is"} | '"$1"']' "$SNAP" >"$T/found.json"
}
late_found '.verdict = "ELSEWHERE" | .ranks = [] | .severity = "info"'
check "... and found where a node has waited for it for long" verdict \
	'[.verdicts[] | select(.kind == "straggler") | [.rank, .grade]] == [[1, "found"]]' "$T/found.json"
late_found '.ranks = [0]'
check "... not where its node found another one" verdict \
	'[.verdicts[] | select(.kind == "straggler") | [.rank, .grade]] == [[1, "suspected"]]' "$T/found.json"
jq -c '.findings = [] | .samples += (.samples | map(.seq += 1000000 | .done_mono_ns += 200000000000))' "$SNAP" >"$T/long.json"
check "... or its samples are of minutes" verdict \
	'[.verdicts[] | select(.kind == "straggler") | [.rank, .grade]] == [[1, "found"]]' "$T/long.json"
late_found .
check "... or its node has: without any daemon; with the code of a finding" exits 10 \
	'STEADY.*rank 1 of dp \(pid [0-9]+, .*comes last in' "$I" report "$T/found.json"
# why TEXT JQ: the sentence says that, with such evidence of its node.
why() {
	late_found ". + {evidence: ({func: \"AllReduce\", blame_ns: 30, moved_ns: 0} + $2)}"
	verdict "[.verdicts[] | select(.kind == \"straggler\").text | test(\"$1\")] == [true]" "$T/found.json"
}
check "... why, in the words of the daemon: its GPU" why 'its GPU is still busy with earlier work' '{why: "gpu"}'
check "... its input" why 'but its process calls NCCL late: see the process.s input pipeline' '{why: "host"}'
check "... the launches of its process" why 'launches its 1 ranks one after another' '{why: "launches"}'
check "... and what of the waiting was handed on" why 'Of this, [0-9.]+m?s was lost in other communicators' '{why: null, moved_ns: 10}'
check "... or that it is not known" why 'See that GPU.s clock' '{why: null}'
# A stage of a pipeline is compared by its node alone: rank 0 is one beside the late rank 1.
late_found '.ranks = [0] | .text = "rank 0 of dp is the pipeline stage that the others wait for" |
	.evidence = {func: "Send and Recv", window_ns: 100, blame_ns: 20}'
check "a slow stage of a pipeline is named, in the words of its node" verdict '
	[.verdicts[] | select(.rank == 0) | [.verdict, .grade, .func, .text]] == [["STEADY", "found", "Send and Recv",
		"rank 0 of dp is the pipeline stage that the others wait for"]]' "$T/found.json"
late_found .
# Each is last in half of the operations: of two ranks one always is.
jq -c '.findings = [] | .samples[] |= (.inside_ns = if (.seq * 7 % 11 > 5) == (.rank == 1) then 400000 else 3000000 end)' "$SNAP" >"$T/even.json"
check "of two ranks that are late by turns none is" exits 0 '^1 node, 1 file' "$I" report "$T/even.json"
check "csv has the same" exits 10 '^warning,STEADY,' "$I" report -o csv --no-header "$T/found.json"

# Four ranks: in each operation rank LATE (of the operation $i) comes 5 ms late; in every twentieth another one stops
# for 490 ms.
stops() {
	jq -nc '[range(64) as $i | ('"$1"') as $late | (if $i % 20 == 7 then [0, 1, 3][($i / 20 | floor) % 3] else null end) as $stops |
		range(4) | {comm_id: "0x00000000000000aa", nranks: 4, rank: ., func: "AllReduce", seq: $i, bytes: 4194304,
			done_mono_ns: (5e11 + $i * 1e8), before_ns: 0, inside_ns: ((if $stops then 491000000 else 6000000 end) +
				($i * 7 + . * 13) % 11 * 1000 - if . == $stops then 490000000 elif . == $late then 5000000 else 0 end)}] |
		{format: "ncclinsp-snapshot", format_version: 1, status: {host: "a"}, written_at: "2026-11-23T16:00:00.000000000Z",
			written_mono_ns: 1e12, comms: [], samples: (map(.done_mono_ns |= floor))}' >"$T/stops.json"
	verdict "$2" "$T/stops.json"
}
check "who is late 5 ms of each operation is named, though a few of 490 ms stand beside" stops 2 \
	'[.verdicts[] | [.verdict, .rank, .last, .ops]] == [["STEADY", 2, 61, 61]]'
check "... and nobody where others are by turns" stops '$i * 7 % 4' '.verdicts == []'

# ---- the tables of the live commands --------------------------------------------------
check "the tables of the live commands are made from files" \
	eval 'for what in ps comms ranks ops peers inflight; do
		"$I" $what --from "$SNAP" >"$T/table" || [ $? -eq 4 ] || exit 1
		[ -s "$T/table" ] && grep -q HOST "$T/table" || [ $what = peers ] || [ $what = inflight ] || exit 1; done'
check "... with the same processes" eval \
	'[ -s "$T/pids" ] && "$I" ps --from "$SNAP" --no-header -o csv --fields pid | sort | cmp - "$T/pids"'
check "... and ranks are those of the file, the worst first" eval \
	'diff <("$I" ranks --from "$SNAP" -o csv --no-header --fields rank,pid,comm_id,blame) \
		<(jq -r ".ranks[] | [.rank, .pid, .comm_id, .blame] | @csv" "$SNAP" | tr -d "\"")'
check "... and the figures that the file has" eval \
	'[ "$("$I" ops --from "$SNAP" -o json | jq "[.rows[].ops] | add")" = "$(jq "[.rows[].ops] | add" "$SNAP")" ]'
# Nodes that began at other times, and a process that each saw five seconds before it wrote.
for n in 1000000000000000 50000000000; do
	jq -c --argjson n "$n" '.status.host = "up\($n)" | .written_mono_ns = $n | .processes |= .[:1] |
		.processes[0].first_seen_mono_ns = $n - 5000000000' "$SNAP" >"$T/up$n.json"
done
check "... ages are those of then, whenever a node began" eval \
	'"$I" ps --from "$T/up1000000000000000.json" --from "$T/up50000000000.json" -o json |
		jq -e "[.processes[].first_seen_mono_ns] | length == 2 and .[0] == .[1] and .[0] > 0"'
check "what files do not tell is said" exits 2 'only the whole time' "$I" ops --from "$SNAP" --window 10s
check "... and where there is none" exits 4 'no snapshot found' "$I" ps --from "$T/nowhere"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	mkdir "$T/open" && cp "$I" "$T/open" && echo "{}" >"$T/open/shut.json"
	chmod 755 "$T" "$T/open" && chmod 600 "$T/open/shut.json"
	as_nobody() { (cd / && setpriv --reuid 65534 --clear-groups "$T/open/ncclinsp" "$@"); }
	for args in "ps --from $T/open" "report $T/open/shut.json" "replay $T/open"; do
		check "one that may not be read is told, and why: $args" eval \
			'exits 5 "shut.json: Permission denied" as_nobody $args &&
			 exits 5 "no snapshot can be read.*owner" as_nobody $args'
	done
else
	skip "a snapshot that may not be read" "needs root and setpriv"
fi

mkdir "$T/odd" && echo "{}" >"$T/odd/$(printf 'a\033[31m').json"
check "the name of a file that is refused does nothing to the terminal" eval '"$I" report "$T/odd" 2>&1 | grep -q "/a?\[31m.json: not a snapshot"'

# Another daemon that ran at the same time, and the same one started again.
jq -c '.status.started_mono_ns += 5' "$SNAP" >"$T/second.json"
jq -c '.status.started_at = "2100-01-01T00:00:00.000000000Z" | .written_at = "2100-01-01T00:01:00.000000000Z"' \
	"$T/second.json" >"$T/again.json"
clashes() { "$I" report "$@" 2>&1 >"$T/out" | grep -c "two daemons that ran at the same time"; }
check "two daemons that give their nodes one name are told, once" eval '[ "$(clashes "$SNAP" "$T/second.json" "$T/again.json" "$SNAP")" -eq 1 ]'
check "... not one that was started again" eval '[ "$(clashes "$SNAP" "$T/again.json")" -eq 0 ]'

# A hundred nodes of two ranks each from the one: in node 37 alone the second rank is late.
mkdir "$T/many"
node() {
	jq -c --argjson n "$1" --argjson late "$2" '
		.status.host = "node\($n)" |
		(.samples | map(select(.rank == 0))) as $z |
		(if $n == $late then . else .samples = $z + ($z | map(.rank = 1)) end) |
		.samples[] |= (.nranks = 200 | .rank += 2 * $n) |
		.comms[] |= (.nranks = 200 | .local_ranks[] |= (.rank += 2 * $n)) |
		.inflight = [] | .findings = [] | .peers = [] | del(.collectives, .kept)' "$SNAP"
}
for n in $(seq 0 99); do node "$n" 37 | zstd -q >"$T/many/node$n.json.zst"; done
bounded() { (ulimit -v 1048576; verdict "$@"); }
check "of a hundred nodes the late rank is named, with its node, within 1 GiB" bounded \
	'.nodes == 100 and (.verdicts | length == 1) and
	 (.verdicts[0] | .verdict == "STEADY" and .rank == 75 and .host == "node37" and .nranks == 200)' "$T/many"
check "... as docs/schema/report.json says" \
	eval 'PYTHONWARNINGS=ignore jsonschema -i "$T/out" "$TOP/docs/schema/report.json"'
check "... and is in one table with all others" eval \
	'[ "$("$I" comms --from "$T/many" --no-header -o csv --fields host,rank | sort -u | wc -l)" -eq 200 ] &&
	 [ "$("$I" comms --from "$T/many" --no-header -o csv --fields host -r 75)" = node37 ]'
rm "$T/many/node7.json.zst"
check "ranks of whom no file tells are counted and named" verdict \
	'[.verdicts[] | select(.verdict == "MISSING") | .text] == ["no file covers 2 of the 200 ranks: 14-15. Add the files of their nodes"]' "$T/many"
for n in $(seq 0 99); do node "$n" -1 >"$T/many/node$n.json"; done
rm "$T"/many/*.zst
check "where nobody is late, nothing is said" exits 0 '^100 nodes, 100 files' "$I" report "$T/many"

# All but node 5 are in operation 1000; its file was written later.
for n in 1 2 3 4 5; do
	node "$n" -1 | jq -c --argjson n "$n" '
		.comms[] |= (.nranks = 200 | .local_ranks[].last_seq.AllReduce = (if $n == 5 then 999 else 1000 end)) |
		.inflight = if $n == 5 then [] else [.comms[0] | {comm_id, comm_name: .name, pid: .local_ranks[0].pid,
			rank: (2 * $n), event_type: "Coll", func: "AllReduce", seq: 1000, count: 4096,
			age_ns: 60000000000}] end' >"$T/stuck$n.json"
done
check "who has not joined what others wait in is named" verdict \
	'[.verdicts[] | select(.verdict == "NOT_JOINED") | [.rank, .host, .seq]] == [[10, "node5", 1000], [11, "node5", 1000]]' "$T"/stuck*.json
check "... before who is late elsewhere" verdict '[.verdicts[] | select(.severity == "warning").kind] == ["desync", "desync", "straggler"]' \
	"$T"/stuck*.json "$T/found.json"
jq -c '.written_at = "2020-01-01T00:00:00.000000000Z"' "$T/stuck5.json" >"$T/stuck5.old"
check "... but not by a file from before" verdict \
	'[.verdicts[] | select(.verdict == "NOT_JOINED")] == []' "$T"/stuck[1-4].json "$T/stuck5.old"
jq -c '.comms[].local_ranks[0].state = "died"' "$T/stuck5.json" >"$T/dead5.json"
check "... in the words of the daemon" verdict \
	'.verdicts[0].age_ns == 60e9 and (.verdicts[0].text | test("^ranks 10-11 [(]global ranks 0-1, pids [0-9,-]+, node5[)] have not come to AllReduce #1000 on dp(, the first one.s last call.*)?; ranks 2,4,6,8 wait there[.] The limit for such an operation is 10s[.] It stays a warning until it has lasted for 5m00s, .*[.] 190 of its 200 ranks are not on these nodes"))' \
	"$T"/stuck*.json
open5() {	# FUNC SEQ COUNT RANKS: what these of node 5 are in
	jq -c --arg func "$1" --argjson seq "$2" --argjson count "$3" --argjson ranks "$4" '
		.inflight = [.comms[0] as $c | $ranks[] as $rank | $c | {comm_id, comm_name: .name,
			pid: .local_ranks[$rank - 10].pid, rank: $rank, event_type: "Coll", func: $func, seq: $seq,
			count: $count, age_ns: 50000000000}] |
		.comms[].local_ranks[$ranks[] - 10].last_seq[$func] = $seq' "$T/stuck5.json"
}
open5 AllGather 12 4096 '[10]' >"$T/order5.json"
check "who made another call instead is told apart" verdict \
	'[.verdicts[] | select(.severity == "critical") | [.verdict, .rank, .func, .seq]] ==
	 [["ORDER_MISMATCH", 10, "AllReduce", 1000]] and
	 (.verdicts[0].text | test("^rank 10 \\(global rank 0, pid [0-9]+, node5\\) called AllGather #12 where ranks [0-9,-]+ called AllReduce #1000"))' "$T"/stuck[1-4].json "$T/order5.json"
# Each rank has posted both, node 5's in the other order: its newest numbers are those of the others.
for n in 1 2 3 4 5; do
	jq -c --argjson n "$n" '.inflight = [.comms[0] | range(2) as $k |
		{comm_id, comm_name: .name, pid: .local_ranks[0].pid, rank: (2 * $n), event_type: "Coll",
		 func: ["AllReduce", "AllGather"][$k], seq: 1000, token: "0x\($k + 1)",
		 age_ns: (50000000000 + (if ($k == 1) == ($n == 5) then 1 else 0 end))}] |
		.comms[].local_ranks[].last_seq = {AllReduce: 1000, AllGather: 1000}' "$T/stuck$n.json" >"$T/swap$n.json"
done
check "who has called both in the other order is named, alone, and first" verdict \
	'[.verdicts[] | select(.severity == "critical") | [.verdict, .rank, .func]] == [["ORDER_MISMATCH", 10, "AllReduce"]] and
	 .verdicts[0].severity == "critical"' "$T"/swap*.json
for n in 1 2 3 4; do jq -c '.inflight |= map(select(.func == "AllReduce"))' "$T/swap$n.json" >"$T/behind$n.json"; done
check "... not who is in what the others have completed" verdict \
	'[.verdicts[] | select(.verdict | test("ORDER|JOINED"))] == []' "$T"/behind*.json "$T/swap5.json"
for n in 1 2 3 4; do jq -c '.inflight[].count = 2048' "$T/stuck$n.json" >"$T/size$n.json"; done
open5 AllReduce 1000 8388608 '[10, 11]' >"$T/size5.json"
check "who made the same call with another size is told apart" verdict \
	'[.verdicts[] | select(.severity == "critical") | [.verdict, .rank]] ==
	 [["METADATA_MISMATCH", 10], ["METADATA_MISMATCH", 11]] and
	 (.verdicts[0].text | test("^ranks 10-11 [(]global ranks 0-1, pids [0-9,-]+, node5[)] have a different count than ranks [0-9,-]+ in AllReduce #1000"))' "$T"/size*.json
check "... as docs/schema/report.json says" \
	eval 'PYTHONWARNINGS=ignore jsonschema -i "$T/out" "$TOP/docs/schema/report.json"'
check "who is dead is told apart" verdict \
	'[.verdicts[] | select(.verdict == "RANK_DEAD") | .rank] == [10]' "$T"/stuck[1-4].json "$T/dead5.json"

# What a node has found itself, and what it suspects.
finding() {	# KIND GRADE VERDICT: about rank 10 of node 5
	jq -c --arg kind "$1" --arg grade "$2" --argjson verdict "$3" '.findings = [{kind: $kind, active: true,
		grade: $grade, severity: "critical", verdict: $verdict, comm_id: .comms[0].comm_id, ranks: [10], text: "so it is"}] |
		.inflight = []' "$T/stuck5.json"
}
alone() { jq -c '.comms[] |= (.nranks = (.local_ranks | length))'; }
finding died found null >"$T/found5.json"
check "a death that a node has found is told, with the code of a finding" eval \
	'verdict "[.verdicts[] | select(.grade == \"found\" and .verdict == \"died\") | [.severity, .rank, .host, .text]] ==
		[[\"critical\", 10, \"node5\", \"so it is\"]]" "$T/found5.json"; exits 10 "^critical +DIED " "$I" report "$T/found5.json"'
# ended JQ: what a node had found has ended, as JQ has it.
ended() {
	jq -c '.findings[0] += {kind: "regression", active: false, until_mono_ns: (.written_mono_ns - 5000000000),
		with_job: true} | .findings[0] |= ('"$1"')' "$T/found5.json" >"$T/ended5.json"
}
of_regression='[.verdicts[] | select(.verdict == "regression" and .text == "so it is")] | length'
ended .
check "what held until its job ended, lately, is told" verdict "$of_regression == 1" "$T/ended5.json"
ended '.with_job = false'
check "... but not what ended before" verdict "$of_regression == 0" "$T/ended5.json"
ended '.until_mono_ns -= 60000000000'
check "... or longer ago" verdict "$of_regression == 0" "$T/ended5.json"
# Two nodes of which each has found that one of its own died.
died() {	# NODE SECONDS OPEN: so long ago, in so many operations
	node "$1" -1 | jq -c --argjson n "$1" --argjson ago "$2" --argjson open "$3" '
		.findings = [.comms[0] as $c | {kind: "died", active: true, grade: "found", severity: "critical",
			comm_id: $c.comm_id, comm_name: $c.name, ranks: [2 * $n], text: "so it is", evidence: {processes:
			[{pid: $c.local_ranks[0].pid, rank: (2 * $n), command: "train", in_flight: $open,
			  ended_mono_ns: (.written_mono_ns - $ago * 1000000000), func: "AllReduce", seq: 1000,
			  comm_name: "dp"}]}}]'
}
died 3 5 0 >"$T/died3.json"
died 4 9 1 >"$T/died4.json"
check "deaths of one communicator on two nodes are one, of the first of them" verdict \
	'[.verdicts[] | select(.verdict == "died") | [.severity, .rank, .host, .comm_name, .age_ns]] ==
		[["critical", 8, "node4", "dp", 9e9]] and
	 (.verdicts[0].text | test("^rank 8 \\(pid [0-9]+, train, node4\\) died in the middle of AllReduce #1000 on dp; after it rank 6 \\(pid [0-9]+, train, node3\\)[.] It did not"))' \
	"$T"/died[34].json
died 3 8 0 >"$T/died3.json"
check "... which one was first is not said where two clocks cannot tell" verdict \
	'.verdicts[0].text | test("; at about the same time rank 6 ")' "$T"/died[34].json
died 3 60 0 >"$T/died3.json"
check "... and much earlier ones are another finding" verdict \
	'[.verdicts[] | select(.verdict == "died") | [.severity, .rank]] == [["critical", 8], ["warning", 6]]' "$T"/died[34].json
died 5 60 1 | jq -c --slurpfile dead "$T/dead5.json" '.comms = $dead[0].comms | .inflight = []' >"$T/found-dead5.json"
check "... and one for which others wait is told with these alone" verdict \
	'[.verdicts[] | select(.verdict == "died" or .verdict == "RANK_DEAD") | [.verdict, .rank, .host]] == [["RANK_DEAD", 10, "node5"]]' \
	"$T"/stuck[1-4].json "$T/found-dead5.json"
died 4 9 0 | jq -c '.findings[0].verdict = "RANK_DEAD"' >"$T/waited4.json"
check "... and what its own node knows of others that wait stays, in its words" verdict \
	'[.verdicts[] | select(.kind == "died") | [.verdict, .severity, .text]] == [["RANK_DEAD", "critical", "so it is"]]' "$T/waited4.json"
finding desync suspected '"NOT_JOINED"' | alone >"$T/suspected5.json"
check "a hang that a node suspects within itself is told as such, and is no finding" \
	exits 0 "^critical +NOT_JOINED[?] " "$I" report "$T/suspected5.json"
finding desync suspected '"NOT_JOINED"' >"$T/wide5.json"
# Seven seconds old: it is suspected where some node has seen that nothing of it moves.
young() { jq -c '.inflight[].age_ns = 7000000000 | .findings = '"${2:-[]}" "$T/stuck$1.json" >"$T/young$1.json"; }
for n in 1 2 3 4 5; do young $n; done
check "what is in flight for a few seconds is nothing by itself" verdict \
	'[.verdicts[] | select(.severity == "critical")] == []' "$T"/young*.json
young 2 '[{kind: "stall", active: true, grade: "suspected", severity: "critical", verdict: "UNKNOWN",
	comm_id: .comms[0].comm_id, ranks: [], text: "so it is"}]'
check "a hang that a node suspects of ranks elsewhere has the verdict of all, as suspected" eval 'verdict "
	[.verdicts[] | select(.severity == \"warning\") | [.verdict, .grade, .rank, .host, .age_ns]] ==
		[[\"NOT_JOINED\", \"suspected\", 10, \"node5\", 7e9], [\"NOT_JOINED\", \"suspected\", 11, \"node5\", 7e9]]" "$T"/young*.json
	exits 0 "^warning +NOT_JOINED[?] .*ranks 10-11 [(]global.*[)] have not come to AllReduce" "$I" report "$T"/young*.json'
check "... of a communicator with ranks elsewhere all files are asked instead" verdict \
	'[.verdicts[] | select(.verdict == "NOT_JOINED")] == []' "$T/wide5.json"

# Whole nodes: eight ranks each in ten communicators over all nodes, with all samples that a file may hold of
# them, the operations of one rank scaled a little up and down.  Rank 299 is late in two of these: one row, of its GPU.
whole() {
	jq -c --argjson n "$1" '
		.status.host = "node\($n)" | .comms[0] as $comm | .comms[0].local_ranks[0] as $member |
		([.samples[] | select(.func == "AllReduce")] | map(select(.rank == 0)) | .[:64]) as $z |
		.comms = [range(10) as $c | $comm | .comm_id = "0x00000000000000\($c + 10)" | .name = "c\($c)" |
			.nranks = 800 | .local_ranks = [range(8) as $r | $member | .rank = 8 * $n + $r]] |
		.samples = [range(10) as $c | range(8) as $r | (8 * $n + $r) as $rank | $z[] |
			.comm_id = "0x00000000000000\($c + 10)" | .nranks = 800 | .rank = $rank |
			.inside_ns = if $rank == 299 and $c < 2 then 400000 else 3000000 + 100 * (($rank * 7 + .seq) % 97) end] |
		.rows = [range(80) as $i | .rows[0]] | .inflight = []' "$SNAP"
}
if [ -n "${LONG:-}" ]; then
	mkdir "$T/whole"
	for n in $(seq 0 99); do whole "$n" | zstd -q >"$T/whole/node$n.json.zst"; done
	check "a hundred whole nodes are read within 1 GiB, and the late rank is named" bounded \
		'.nodes == 100 and ([.verdicts[] | select(.kind == "straggler") | [.verdict, .rank, .host]] == [["STEADY", 299, "node37"]])' "$T/whole"
fi

# What is read costs no more than a few looks at each byte: a tree of it would be five times as much.
mkdir "$T/fleet"
"$TOP/tests/fleet/nodes.sh" "$SNAP" 300 "$T/fleet"
cpu_ms() { { TIMEFORMAT='%U %S'; time "$@" >/dev/null 2>&1; } 2>&1 | awk '{ print int(1000 * ($1 + $2)) }'; }
expanded_sum() { zstd -dcq "$T"/fleet/*.zst | md5sum; }
costs_little() {
	local ours theirs
	for _ in 1 2 3; do
		ours=$(cpu_ms "$I" report "$T/fleet") theirs=$(cpu_ms expanded_sum)
		[ "$ours" -le $((4 * theirs)) ] && return
		echo "$ours ms of the CPU; md5sum needs $theirs"
	done
	return 1
}
check "reading a fleet costs no more of the CPU than four times md5sum of the same" costs_little

head -c 3000 "$SNAP" >"$T/half.json"
echo '{}' >"$T/other.json"
check "what is no snapshot is told, and the rest read" exits 10 'half.json: not a snapshot.*' "$I" report "$T/half.json" "$T/found.json"
check "... with the place" exits 10 'half.json: not a snapshot of ncclinspd: byte 3000: the text ends early' "$I" report "$T/half.json" "$T/found.json"
check "... nothing else: that is no answer" exits 4 'no snapshot found' "$I" report "$T/other.json"
mkfifo "$T/pipe.json"
check "a named pipe is refused at once" exits 10 "pipe.json: not a regular file" timeout 10 "$I" report "$T/pipe.json" "$T/found.json"
check "without a path that is said" exits 2 'needs files' "$I" report
done_testing
