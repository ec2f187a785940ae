#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Other nodes, one or many, through ssh: a real one, to real servers.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/hosts.sh"

nodes_can_be || skip_all "needs root, namespaces, ssh and dropbear"
I=$B/ncclinsp
export -n NCCLINSP_SOCKET	# is of no node
unset NCCLINSP_SOCKET
NODES=4
ALL='node[00-03]'

nodes_start $NODES --stall-min 2s --straggler-window 2s || { cat "$T"/*.log; exit 1; }
# play SCENARIO: on all nodes, until end_job.
play() {
	local i env=()
	for ((i = 0; i < NODES; i++)); do env+=(--env "$i:NCCLINSP_CONTROL=$T/control.$(node "$i")"); done
	nice -n 10 "$B/nccl-sim" "${env[@]}" --shm-dir "$SHM/%n" --plugin "$PLUGIN" "$1" 2>"$T/sim" &
	JOB_PID=$!
	started+=("$JOB_PID")
}
end_job() { end_all "$JOB_PID"; wait "$JOB_PID" 2>/dev/null; }
SHAPE='nodes 4
	processes 2
	comm tp ranks 0,1 ranks 2,3 ranks 4,5 ranks 6,7 channels 2
	comm dp ranks 0-7 channels 2'
LOOP='loop forever
		compute 4ms
		AllReduce tp 256Ki float32
		compute 2ms
		AllReduce dp 1Mi float32
	end'

# ---- one node ------------------------------------------------------------------------------
printf '%s\nlate rank 5 by 3ms comm tp\n%s\n' "$SHAPE" "$LOOP" >"$T/late.scn"
play "$T/late.scn"
has_run() { [ "$("$I" ops -H node03 -o csv --no-header --fields ops 2>/dev/null | sort -n | tail -1)" -gt 100 ]; }
check "a job runs on all nodes" wait_until 60 has_run
check "status of another node" eval '"$I" -H node02 status | grep -Eq "^ +host +node02$"'
check "its processes" eval '[ "$("$I" ps -H node02 -o csv --no-header --fields pid | wc -l)" -eq 2 ]'
check "by the environment too" eval '[ "$(NCCLINSP_HOST=node01 "$I" status --fields host --no-header)" = node01 ]'
check "JSON is what its daemon says" eval '"$I" comms -H node02 -o json | jq -e ".comms | length == 2" >/dev/null'
check "its level is changed, for a while" eval 'ends 0 "$I" level node trace --for 1m -H node01'
traces() { [ "$("$I" level -H node01 -o csv --no-header --fields level | sort -u)" = trace ]; }
check "... and its processes follow" wait_until 20 traces
check "... in the time of this node" eval '"$I" level -H node01 --no-header --fields left | grep -Eqx " *([345][0-9.]*s|1m00s)"'
check "its operations as they end" eval '[ "$(timeout 30 "$I" tail -n 3 -H node03 --no-header | wc -l)" -eq 3 ]'
logins() { grep -c "auth succeeded" "$T/server.log"; }
check "one login for all that a command asks" eval 'before=$(logins) && "$I" top -b -n 3 -d 0.2 -H node03 >"$T/out" && [ "$(logins)" -eq $((before + 1)) ]'
check "its top" eval '"$I" top -b -n 1 -H node03 | grep -q "^node03 "'

# ---- many nodes ----------------------------------------------------------------------------
check "the processes of all, with their nodes" eval '
	[ "$("$I" ps -H $ALL -o csv --no-header --fields host | sort | uniq -c | tr -s " " | tr "\n" ,)" = " 2 node00, 2 node01, 2 node02, 2 node03," ]'
# says_of COMMAND PATTERN: diagnose and the like name it.
late_is_named() {
	"$I" diagnose -H "$ALL" -o json >"$T/out"
	jq -e '[.findings[] | select(.active and .kind == "straggler")] | length == 1 and (.[0] |
		.grade == "found" and .ranks == [1] and .whom[0].world_rank == 5 and .host == "node02" and
		(.text | test("^rank 1 of tp \\(global rank 5, pid [0-9]+, node02\\)")))' "$T/out" >/dev/null || { jq -c '.findings[]' "$T/out"; return 1; }
}
check "of all nodes one rank is late, and named with its node: not those who wait" wait_until 60 late_is_named
check "... by top, on its first line" eval '"$I" top -b -n 1 -H $ALL >"$T/out"; grep -q "^4 nodes  jobs 1 " "$T/out" && grep -Eq "^! .*rank 1 of tp" "$T/out"'
check "... in the table of ranks, and no other" eval '
	[ "$("$I" ranks -H $ALL -o csv --no-header --fields host,world_rank,comm_name,verdict -f "verdict~STEADY" | sort -u)" = "node02,5,tp,STEADY" ]'
check "... by report, without files" eval '"$I" report -H $ALL -o csv --no-header --fields verdict,rank,host | grep -qx "STEADY,1,node02"'
check "... and check: one line, as for one node" eval 'ends 1 "$I" check -H $ALL && says "^NCCLINSP WARNING - .*rank 1 of tp.*node02"'
check "what is no table of all is told node by node" eval '[ "$("$I" status -H $ALL --fields host --no-header | tr "\n" ,)" = "node00: node00,node01: node01,node02: node02,node03: node03," ]'
check "levels are changed on all" eval '"$I" level node trace --for 1m -H $ALL >"$T/out" && for n in 00 01 02 03; do grep -q "^node$n: " "$T/out" || exit 1; done'
check "snapshots are written on all" eval '[ "$("$I" snapshot -H $ALL | sed "s/: .*//" | tr "\n" ,)" = node00,node01,node02,node03, ]'
check "samples repeat, each of its own moment" eval '"$I" ps -H $ALL -n 2 -d 0.2 -o json | jq -s -e "length == 2 and (.[0] != .[1])" >/dev/null'
check "nothing is changed from a screen of many" eval 'ends 1 "$I" trace -H $ALL -o "$T/x.json" || ends 2 "$I" trace -H $ALL -o "$T/x.json"'
end_job

# ---- a hang, and a node that does not answer ---------------------------------------------------
printf '%s\nabsent rank 5 comm dp op 40\n%s\n' "$SHAPE" "$LOOP" >"$T/hang.scn"
play "$T/hang.scn"
hang_is_named() {
	"$I" diagnose -H "$1" -o json >"$T/out"
	jq -e '[.findings[] | select(.active and .grade == "found" and (.kind == "stall" or .kind == "desync"))] | length == 1 and (.[0] |
		.verdict == "NOT_JOINED" and .comm_name == "dp" and .ranks == [5] and .host == "node02" and
		(.text | test("^rank 5 of dp|^rank 5 \\(")))' "$T/out" >/dev/null || { jq -c '.findings[]' "$T/out"; return 1; }
}
check "who has not come is named, of all nodes" wait_until 40 hang_is_named "$ALL"
printf '#!/bin/sh\nexec sleep 1000\n' >"$T/mute"
sed -i "1i Host node03\n\tProxyCommand sh $T/mute" "$T/ssh"
BEGAN=$(date +%s%N)
check "... also where a node does not answer, and it is named" eval 'hang_is_named "$ALL,nowhere" && jq -e "
	[.findings[] | select(.verdict == \"SILENT\")] | length == 1 and (.[0].text | test(\"^2 of 5 nodes that were asked do not answer: .*node03 .does not answer within 4300 ms.*nowhere\"))" "$T/out" >/dev/null'
check "... within its time" [ $((($(date +%s%N) - BEGAN) / 1000000)) -lt 9000 ]
check "the others' tables are there, and who is missing is told" eval '
	"$I" ps -H $ALL -o csv --no-header --fields host >"$T/out" 2>"$T/err"; [ "$(sort -u "$T/out" | tr "\n" ,)" = node00,node01,node02, ] && says "node03"'
check "one node that does not answer is an error" exits 6 'node03 does not answer within' "$I" ps -H node03
end_job

# ---- another clock -----------------------------------------------------------------------------
if unshare --time --monotonic 500000 true 2>/dev/null; then
	mkdir "$SHM/5"
	NODE_CLOCK='--time --monotonic 500000' node_daemon 5
	node_server 5
	wait_until 30 node_answers 5
	printf 'processes 2\ncomm dp ranks 0,1 channels 2\nloop forever\n\tcompute 4ms\n\tAllReduce dp 1Mi float32\nend\n' >"$T/clock.scn"
	unshare --time --monotonic 500000 nice -n 10 "$B/nccl-sim" --shm-dir "$SHM/5" --plugin "$PLUGIN" "$T/clock.scn" 2>"$T/sim" &
	started+=("$!")
	ages() { [ "$("$I" ps -H node05 --no-header --fields age | grep -Ecx " *[0-9.]+m?s")" -eq 2 ]; }
	check "ages are right where the node's clock is another" wait_until 20 ages
fi

# ---- what is refused -----------------------------------------------------------------------------
check "no host by that name: ssh's own words" exits 3 'nowhere: ' "$I" ps -H nowhere
check "an option of ssh is no host" exits 2 "cannot be the name of a host" "$I" ps -H '-oProxyCommand=reboot'
check "nor is half a list" exits 2 'has no closing bracket' "$I" ps -H 'node[1'
check "two sources are refused" exits 2 'not both' "$I" ps -H node00 --from "$T"
check "what looks at the node itself says where to do it" exits 2 'ssh HOST ncclinsp doctor' env NCCLINSP_HOST=node00 "$I" doctor
check "no ssh there: told" eval 'NCCLINSP_SSH=/nowhere exits 3 "cannot run ssh" "$I" ps -H node00'
check "no ncclinsp there: told" eval 'NCCLINSP_REMOTE=/nowhere exits 3 "/nowhere" "$I" ps -H node00'
mkdir "$T/bin"
printf '#!/bin/sh\n[ "$2" = --jobs=4711 ] && echo "node[00-01]"\n' >"$T/bin/squeue"
chmod +x "$T/bin/squeue"
check "Slurm names the nodes of a job" eval '[ "$(PATH=$T/bin:$PATH "$I" status -H slurm:4711 --fields host --no-header | tr "\n" ,)" = "node00: node00,node01: node01," ]'
check "... or does not" exits 2 "squeue names no nodes of job 1" env PATH="$T/bin:$PATH" "$I" ps -H slurm:1
done_testing
