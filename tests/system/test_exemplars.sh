#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One operation that is slower than ever is kept with its neighbours, once for all
# ranks; the file is whole or not there, and the list survives the daemon.
. "$(dirname "$0")/lib.sh"

FILES=$T/state/exemplars

play() {
	timeout -k 1 120 "$B/nccl-sim" --plugin "$PLUGIN" --seed "$2" "$TOP/tests/scenarios/$1.scn" \
		2>"$T/sim" &
	JOB=$!
	started+=("$JOB")
}

# newest COMM SEQ: id of the exemplar of that operation, played last.
newest() {
	api exemplars | jq -r "[.exemplars[] | select(.comm_name == \"$1\" and .seq == $2)] | $3"
}
more_than() { [ "$(newest "$1" "$2" length)" -gt "$3" ]; }

# keep FILE SCENARIO COMM SEQ JQ: play until the file of that operation is so.  Where the
# machine is so busy that ranks get no CPU for half a second, their parts are not in the
# window, as in life; then it is played again.
keep() {
	local before try
	for try in 1 2 3 4; do
		before=$(newest "$3" "$4" length)
		play "$2" "$try"
		wait_until 60 more_than "$3" "$4" "$before" || return
		api "exemplars/$(newest "$3" "$4" '.[0].id')" >"$1"
		jq -e "$5" "$1" >/dev/null && return
		kill "$JOB"
		wait_until 20 drained
	done
}
has() { jq -e "$2" "$1" >/dev/null || { jq -c '.exemplar, .window, .beyond, .transfers[:4]' "$1"; return 1; }; }
file_is() { has "$T/file" "$1"; }
net_is() { has "$T/net" "$1"; }

start_daemon
RANKS='(.exemplar.rank as $r | [.collectives[] | select(.comm_name == "dp" and .rank == $r) | .seq]
	 | contains([299, 300, 301])) and
	([.collectives[] | select(.comm_name == "dp" and .seq == 300) | .rank] | length >= 2) and
	([.beyond[] | select(.comm_name == "dp" and .seq == 300) | .rank] | length >= 2 and index(1) == null)'
keep "$T/file" slow-once dp 300 "$RANKS"
check "what is slower than ever is kept, of all ranks that were held up, with what was around it" \
	file_is "$RANKS"
ID=$(jq -r .exemplar.id "$T/file")
check "one file is enough for that" api_is exemplars '[.exemplars[] | select(.seq == 300) | .comm_id] | length == (unique | length)'
check "it is told what it was, and beyond what" file_is \
	'.format == "ncclinsp-exemplar" and (.exemplar | .comm_name == "dp" and .exec_ns > .threshold_ns
	 and .threshold_ns > .p999_ns and .ops >= 128 and .reason == "beyond_p999")'
check "the other communicators are in it as well" file_is '[.collectives[] | select(.comm_name == "tp")] | length > 8'
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

TRANSFERS='. as $f |
	([.transfers[] | select(.parent == $f.operation.token and .pid == $f.operation.pid) | .channel]
	 | unique | length == 2) and
	any(.transfers[]; .stop_mono_ns < $f.operation.enqueued_mono_ns) and
	any(.transfers[]; .start_mono_ns > $f.operation.proxy_stop_mono_ns)'
keep "$T/net" slow-link-once world 200 "$TRANSFERS"
check "of one over the network, so are its transfers, and those before and after" net_is "$TRANSFERS"
check "... which tell the link that was slow" net_is \
	'.operation as $o | [.transfers[] | select(.direction == "send" and
	 .stop_mono_ns > $o.enqueued_mono_ns and .start_mono_ns < $o.proxy_stop_mono_ns)] |
	 max_by(.time.net_ns) | .rank == 0 and .peer == 1'

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
