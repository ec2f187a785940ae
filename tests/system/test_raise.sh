#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A finding on one node has the others of its communicator time every operation, for a while.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/hosts.sh"

nodes_can_be || skip_all "needs root, namespaces, ssh and dropbear"
export -n NCCLINSP_SOCKET	# is of no node
unset NCCLINSP_SOCKET
export PATH=$B:$PATH		# where daemons find ncclinsp
chmod 755 "$T"

daemons=()
# node03 refuses, one is mute, and one is none.  node00 would raise others, too, but is to find out later.
echo 'straggler-window = 1h' >"$T/node00.conf"
OPTIONS=(--raise-hosts 'node[00-03],mute,nowhere')
nodes_start 0
for more in "0 --config $T/node00.conf" '1 --straggler-window 2s' '2 --straggler-window 2s' '3 --auto-detail no'; do
	mkdir "$SHM/${more%% *}"
	node_daemon $more "${OPTIONS[@]}"
	node_server "${more%% *}"
	daemons+=("${started[-2]}")
	wait_until 30 node_answers "${more%% *}" || { cat "$T"/*.log; exit 1; }
done
printf '#!/bin/sh\nexec sleep 1000\n' >"$T/mute"
sed -i "1i Host mute\n\tProxyCommand sh $T/mute" "$T/ssh"

cat >"$T/late.scn" <<-END
	nodes 4
	processes 2
	comm tp ranks 0,1 ranks 2,3 ranks 4,5 ranks 6,7 channels 2
	comm dp ranks 0-7 channels 2
	late rank 5 by 3ms comm tp
	late rank 1 by 3ms comm tp
	loop forever
		compute 4ms
		AllReduce tp 256Ki float32
		compute 2ms
		AllReduce dp 1Mi float32
	end
END
env=()
for node in 0 1 2 3; do env+=(--env "$node:NCCLINSP_CONTROL=$T/control.$(node $node)"); done
NCCLINSP_KERNELS=burst nice -n 10 "$B/nccl-sim" "${env[@]}" --shm-dir "$SHM/%n" --plugin "$PLUGIN" "$T/late.scn" 2>"$T/sim" &
JOB=$!
started+=("$JOB")

api() { curl -sf --unix-socket "$T/$(node "$1").sock" "http://ncclinspd/v1/$2"; }
raised() { api "$1" status | jq .control.raised; }
sampling() { api "$1" level | jq -r '[.processes[] | "\(.sampling) \(.steering.why)"] | unique | join(",")'; }
asks() { grep -hc 'other nodes are asked' "$T/$(node "$1").log"; }

# ---- one finding, and all nodes of it ------------------------------------------------------
check "before, operations are sampled" wait_until 60 eval '[ "$(sampling 0)" = "budget null" ]'
check "a finding of one node raises another one" wait_until 120 eval '[ "$(sampling 0)" = "all detail" ]'
kill -STOP "${daemons[2]}"	# dead to others
check "... which says so on its log" grep -q 'another node asked for it processes=2 comm=0x[0-9a-f]* uid=0' "$T/node00.log"
check "... and so does the one that asks" eval 'grep "other nodes are asked to time every operation for 10s" "$T/node02.log"'
check "... of the communicator that reaches the others: that of the finding is on one node" eval '
	[ "$(sed -n "s/.*are asked.*comm=\([^ ]*\) .*/\1/p" "$T/node02.log")" = "$(api 0 comms | jq -r ".comms[] | select(.name == \"dp\").comm_id")" ]'
check "it ends by itself, though the one that asked is gone" wait_until 30 eval '[ "$(sampling 0)" = "budget null" ] && [ "$(sampling 1)" = "budget null" ]'
kill -CONT "${daemons[2]}"
check "all were raised but the one that refuses" eval '[ "$(raised 0),$(raised 1),$(raised 2),$(raised 3)" = 2,2,2,0 ]'
told() { grep "another node does not time every operation.*$1" "$T/node02.log"; }
check "the one that refuses is told of, with its reason" wait_until 20 told 'node03: .*auto-detail is switched off on this node'
check "... the mute one too" told 'mute: ncclinsp: mute does not answer within'
check "... and the one that is none" told 'nowhere: '
check "the time is counted as one that failed" eval '
	api 2 status | jq -e ".exporters[] | select(.kind == \"raise\") | .failed == 1 and .done == 0 and .error == null"'
echo 'straggler-window = 2s' >"$T/node00.conf"
kill -HUP "${daemons[0]}"
withheld() { [ "$(api 0 status | jq .control.withheld)" -ge 1 ]; }
check "a finding of the node that was raised is withheld" wait_until 120 withheld
check "... so that nobody else was asked, by anybody" eval '[ "$(asks 0),$(asks 1),$(asks 2),$(asks 3)" = 0,0,1,0 ]'
check "... and nothing is left of it" eval '! pgrep -f "level detail --comm"'

# ---- what may be asked ---------------------------------------------------------------------
DP=$(api 1 comms | jq -r '.comms[] | select(.name == "dp").comm_id')
put() { curl -s --unix-socket "$T/node01.sock" -X PUT -d "$1" http://ncclinspd/v1/level; }
check "the same communicator is raised once in five minutes" eval 'put "{\"level\":\"detail\",\"comm_id\":\"$DP\"}" | jq -e ".raised == 0"'
check "one that is not here is no error" eval 'put "{\"level\":\"detail\",\"comm_id\":\"0x1234\"}" | jq -e ".raised == 0"'
check "a whole node is" eval 'put "{\"level\":\"detail\"}" | jq -e ".error.code == \"bad_request\""'
check "... and less than all operations" eval 'put "{\"level\":\"detail\",\"comm_id\":\"$DP\",\"sample\":\"budget\"}" | jq -e ".error.code == \"bad_request\""'
end_all "$JOB"; wait "$JOB" 2>/dev/null

# A node of its own user: who may do that, and nothing else.
mkdir "$SHM/4"
node_daemon 4 --raise-user nobody
wait_until 30 node_answers 4
chmod 666 "$T/node04.sock"
printf 'processes 2\ncomm dp ranks 0,1 channels 2\nloop forever\n\tcompute 4ms\n\tAllReduce dp 1Mi float32\nend\n' >"$T/one.scn"
NCCLINSP_CONTROL=$T/control.node04 nice -n 10 "$B/nccl-sim" --shm-dir "$SHM/4" --plugin "$PLUGIN" "$T/one.scn" 2>"$T/sim" &
started+=("$!")
has_two() { [ "$(api 4 comms | jq '.comms[0].local_ranks | length')" -eq 2 ]; }
wait_until 60 has_two
DP=$(api 4 comms | jq -r '.comms[0].comm_id')
as() { local user=$1; shift; setpriv --reuid="$user" --regid=65534 --clear-groups -- curl -s --unix-socket "$T/node04.sock" "$@"; }
ask() { as "$1" -X PUT -d "$2" http://ncclinspd/v1/level; }
check "a user who may not ask raises nobody else's ranks" eval 'ask 65533 "{\"level\":\"detail\",\"comm_id\":\"$DP\"}" | jq -e ".raised == 0"'
check "the user that may, does, for no longer than ten seconds" eval '
	ask nobody "{\"level\":\"detail\",\"comm_id\":\"$DP\",\"for_s\":3600}" | jq -e ".raised == 2"
	api 4 level | jq -e --argjson now "$(awk "{ print int(\$1 * 1e9) }" /proc/uptime)" "
		[.processes[].wanted.until_mono_ns - \$now] | length == 2 and all(.[]; . > 0 and . < 11e9)"'
check "... and sees none of them" eval '[ "$(as nobody http://ncclinspd/v1/processes | jq ".processes | length")" = 0 ]'
check "... nor sets another level" eval 'ask nobody "{\"level\":\"trace\",\"comm_id\":\"$DP\"}" | jq -e ".error.code == \"not_found\""'

# ---- with whose rights --------------------------------------------------------------------
mkdir "$T/state" "$SHM/5" "$SHM/6"
chown 65534 "$T/state" "$SHM/5"
printf '#!/bin/sh\ngrep -E "Cap(Eff|Prm|Amb)|SigBlk" /proc/self/status >%s\nexit 1\n' "$T/state/rights" >"$T/ssh-rights"
chmod 755 "$T/ssh-rights"
NCCLINSP_SSH=$T/ssh-rights NCCLINSP_CONTROL=$T/state/control setpriv --reuid=65534 --regid=65534 --clear-groups \
	--inh-caps +dac_read_search,+fowner --ambient-caps +dac_read_search,+fowner "$B/ncclinspd" --foreground --socket "$T/state/sock" \
	--shm-dir "$SHM/5" --state-dir "$T/state" --containers no --auto-thrift no --straggler-window 1s --raise-hosts nowhere 2>"$T/rights.log" &
started+=("$!")
printf 'nodes 2\nprocesses 2\ncomm tp ranks 0,1 ranks 2,3\ncomm dp ranks 0-3\nlate rank 1 by 5ms comm tp
loop forever\n\tcompute 6ms\n\tAllReduce tp 256Ki float32\n\tAllReduce dp 1Mi float32\nend\n' >"$T/two.scn"
NCCLINSP_CONTROL=$T/state/control nice -n 10 "$B/nccl-sim" --shm-dir "$SHM/5" --env "1:NCCLINSP_SHM_DIR=$SHM/6" --plugin "$PLUGIN" "$T/two.scn" 2>"$T/sim" &
started+=("$!")
check "what asks has none of the daemon's rights, and no signal blocked" wait_until 60 eval '
	[ "$(tr -d "\t" <"$T/state/rights" | sed "s/:0*$/:0/" | sort | tr "\n" " ")" = "CapAmb:0 CapEff:0 CapPrm:0 SigBlk:0 " ]'
done_testing
