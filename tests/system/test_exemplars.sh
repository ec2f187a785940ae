#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One operation that is slower than ever is kept with its neighbours, once for all
# ranks; the file is whole or not there, and the list survives the daemon.
. "$(dirname "$0")/lib.sh"

export NCCLINSP_SAMPLE=all
FILES=$T/state/exemplars

play() {
	nice -n 10 timeout -k 1 120 "$B/nccl-sim" --plugin "$PLUGIN" "$TOP/tests/scenarios/$1.scn" \
		2>"$T/sim" &
	started+=("$!")
}

# id_of COMM SEQ: of the exemplar of that operation.
id_of() {
	api exemplars | jq -r "[.exemplars[] | select(.comm_name == \"$1\" and .seq == $2)][0].id"
}
kept() { [ "$(id_of "$@")" != null ]; }

start_daemon
play slow-once
check "what is slower than ever is kept" wait_until 60 kept dp 300
ID=$(id_of dp 300)
api "exemplars/$ID" >"$T/file"
file_is() { jq -e "$1" "$T/file" >/dev/null || { jq -c '.exemplar, .window, .beyond' "$T/file"; return 1; }; }

check "it is told what it was, and beyond what" file_is \
	'.format == "ncclinsp-exemplar" and (.exemplar | .comm_name == "dp" and .exec_ns > .threshold_ns
	 and .threshold_ns > .p999_ns and .ops >= 128 and .reason == "beyond_p999")'
check "all ranks that were held up are in the one file" file_is \
	'[.beyond[] | select(.comm_name == "dp" and .seq == 300) | .rank] | sort == [0, 2, 3]'
check "... and who came last" file_is '.operation.arrival_rank_order[3] == 1'
check "it holds the operations before and after, of all local ranks" file_is \
	'[.collectives[] | select(.comm_name == "dp" and (.seq | . >= 299 and . <= 301)) | [.seq, .rank]]
	 | sort == [[299,0],[299,1],[299,2],[299,3],[300,0],[300,1],[300,2],[300,3],[301,0],[301,1],[301,2],[301,3]]'
check "... and of the other communicators" file_is '[.collectives[] | select(.comm_name == "tp")] | length > 8'
check "nothing in it is outside of the window" file_is \
	'. as $f | all(.collectives[]; .done_mono_ns >= $f.window.from_mono_ns
		       and .enqueued_mono_ns <= $f.window.to_mono_ns)'
check "it says how far the parts of each got" file_is 'all(.collectives[]; .kernel_stopped == .channels)'
check "processes, communicators and clocks are in it" file_is \
	'(.processes | length == 4) and (.comms | length == 3) and (.host_clocks | length == 4)'
check "what was counted is what there is" api_is status \
	'.exemplars | .written == .files and .beyond == .written + .merged + .skipped and .failed == 0'
check "the file is for the daemon's user only" sh -c "[ \$(stat -c %a '$FILES/exemplars-$ID.json') = 600 ]"
check "no other file is to be had" api_is "exemplars/..%2f..%2fncclinspd.log" '.error.code == "not_found"'

check "the cli lists it" eval '"$B/ncclinsp" exemplars --comm dp >"$T/out" && grep -q "$ID.* AllReduce .*300 " "$T/out"'
check "... and gives the file as it is" eval '"$B/ncclinsp" exemplars "$ID" | cmp - "$T/file"'
nothing() { "$B/ncclinsp" exemplars "$1" >"$T/out" 2>&1; [ $? -eq 4 ] && grep -q "no exemplar" "$T/out"; }
check "... but none of another name" eval 'nothing "$ID.json" && nothing ../../etc/passwd && nothing "a b"'
check "what matches no filter is said so" eval '"$B/ncclinsp" exemplars --rank 77; [ $? -eq 4 ]'

play slow-link-once
check "an operation over the network as well" wait_until 60 kept world 200
NET=$(id_of world 200)
api "exemplars/$NET" >"$T/net"
net_is() { jq -e "$1" "$T/net" >/dev/null || { jq -c '.exemplar, .window, .transfers[:4]' "$T/net"; return 1; }; }
check "... with its transfers" net_is \
	'. as $f | [.transfers[] | select(.parent == $f.operation.token and .pid == $f.operation.pid) | .channel]
	 | unique | length == 2'
check "... which tell the link that was slow" net_is \
	'[.transfers[] | select(.direction == "send")] | max_by(.time.net_ns) | .rank == 0 and .peer == 1'
check "... and those before and after" net_is \
	'. as $f | any(.transfers[]; .stop_mono_ns < $f.operation.enqueued_mono_ns) and
		   any(.transfers[]; .start_mono_ns > $f.operation.proxy_stop_mono_ns)'

mkdir "$T/was"
api exemplars | jq '[.exemplars[] | del(.at_mono_ns)]' >"$T/was/list"
stop_daemon KILL 2>/dev/null
: >"$FILES/.exemplars.new"
start_daemon
api exemplars | jq '[.exemplars[] | del(.at_mono_ns)]' >"$T/list"
check "a daemon that was killed leaves a list that is found again" cmp "$T/was/list" "$T/list"
check "... with its files" eval 'api "exemplars/$ID" | cmp - "$T/file"'
check "... and nothing half written" test ! -e "$FILES/.exemplars.new"

stop_daemon
done_testing
