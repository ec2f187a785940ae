#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A trace as OTF2, read back by otf2-print: every slice of the JSON trace stands in it with its
# times, a location's times never go back, and collectives and messages are MPI's records.
. "$(dirname "$0")/lib.sh"

have otf2-print || skip_all "otf2-print is not installed (otf2-tools)"
trace() { timeout -k 1 60 "$B/ncclinsp" trace "$@"; }
trace -o "$T/none.otf2" --segment "$T/none" 2>&1 | grep -q "without OTF2\|OTF2 3 is not" &&
	skip_all "this build or machine has no OTF2 3"
compare() { timeout -k 1 60 python3 "$TOP/tests/trace/check_otf2.py" "$@"; }

start_daemon
cat >"$T/job.scn" <<-END
	nodes 2
	processes 2
	netplugin ib
	comm dp ranks 0-3 channels 2
	comm pp ranks 0-1
	loop forever
		compute 5ms jitter 5%
		AllReduce dp 512Ki float32
		Broadcast dp 64Ki float32 root 2
		Send pp 128Ki float16 from 0 to 1
	end
END
timeout -k 1 900 "$B/nccl-sim" --plugin "$PLUGIN" "$T/job.scn" 2>"$T/sim" &
JOB=$!
started+=("$JOB")
works() { api_is 'collectives?limit=1000' '[.collectives[] | select(.gpu_start_at != null)] | length > 100'; }
wait_until 60 works
curl -sN --unix-socket "$SOCK" "http://ncclinspd/v1/stream?kinds=record,collective" >"$T/stream" &
CURL=$!
started+=("$CURL")
trace --for 1 -o "$T/live.otf2" 2>"$T/said"
check "a trace of a running job is written" test -s "$T/live.otf2/traces.otf2"
check "... and it says how to look at it" grep -q "traces.otf2 in Vampir" "$T/said"
box=$("$B/ncclinsp" snapshot)
wait_until 10 test -s "$box"
kill "$CURL"
cp "$box" "$T/box"
kill "$JOB"
check "its clock has the time of day" eval 'otf2-print -G "$T/live.otf2/traces.otf2" |
	grep CLOCK_PROPERTIES | grep "Ticks per Seconds: 1000000000" | grep -qv "Date: UNDEFINED"'
check "channels of GPUs are streams of the rank's accelerator" eval '
	otf2-print -G "$T/live.otf2/traces.otf2" | grep -q "GPU ch 0 dp.*ACCELERATOR_STREAM"'

trace "$T/stream" -o "$T/s.json" 2>/dev/null
trace "$T/stream" -o "$T/s.otf2" 2>/dev/null
check "all of NCCL's events are in it, with their times" compare "$T/s.json" "$T/s.otf2/traces.otf2"

# A document whose names are odd, as a job may choose them.
odd='dp "ü\"\\ <0>, % 🚀'
zstd -dcq "$T/box" 2>/dev/null >"$T/box.plain" || cp "$T/box" "$T/box.plain"
jq -c --arg odd "$odd" 'walk(if type == "object" and .comm_name == "dp" then .comm_name = $odd else . end)
	| .comms |= map(if .name == "dp" then .name = $odd else . end)' "$T/box.plain" >"$T/odd"
trace "$T/odd" -o "$T/o.json" 2>/dev/null
trace "$T/odd" -o "$T/o.otf2" 2>/dev/null
check "so is a black box" compare "$T/o.json" "$T/o.otf2/traces.otf2" "$odd"
check "... with the host that it is of" eval '
	otf2-print -G "$T/o.otf2/traces.otf2" | grep SYSTEM_TREE_NODE | grep -qF "\"$(uname -n)\""'

# A send and its receive, and then one more send, of which the receive is not in the trace.
messages() {
	jq -c --argjson n "$1" 'first(.collectives[] | select(.func == "Send")) as $send |
		first(.collectives[] | select(.func == "Recv")) as $recv | .inflight = [] | .transfers = [] |
		.findings = [] | .collectives = ([$send | .gpu_start_mono_ns = 1000 | .gpu_stop_mono_ns = 3000] +
		[$recv | .gpu_start_mono_ns = 2000 | .gpu_stop_mono_ns = 4000] +
		[$send | .gpu_start_mono_ns = 5000 | .gpu_stop_mono_ns = 6000])[:$n]' "$T/box.plain" >"$T/pair$1"
	trace "$T/pair$1" -o "$T/pair$1.otf2" 2>/dev/null
	otf2-print "$T/pair$1.otf2/traces.otf2" | grep "^MPI_" | tr -s " "
}
check "a send and its receive are a message" eval 'messages 2 >"$T/said"; cat "$T/said"
	grep -q "^MPI_SEND .* 1000 Receiver: 1 .*Communicator: \"pp\".* Tag: 0, Length: 262144" "$T/said" &&
	grep -q "^MPI_RECV .* 4000 Sender: 0 .*Tag: 0, Length: 262144" "$T/said"'
check "... not where it is unsure which" eval '[ -z "$(messages 3)" ] && test -s "$T/pair3.otf2/traces.otf2"'

check "what is there is not overwritten" exits 1 "File exists; an OTF2 archive is a directory" \
	trace "$T/odd" -o "$T/o.otf2"
check "a place that cannot be written is told" exits 1 "cannot write /nonexistent/x.otf2" \
	trace "$T/odd" -o /nonexistent/x.otf2
if unshare -rm true 2>/dev/null; then
	mkdir "$T/small"
	export T B
	check "no space is told, and nothing is left" unshare -rm bash -c '
		mount -t tmpfs -o size=16k none "$T/small" &&
		! "$B/ncclinsp" trace "$T/odd" -o "$T/small/x.otf2" 2>"$T/said" &&
		grep -q "cannot write .*: No space left on device" "$T/said" && ! ls -A "$T/small" | grep .'
else
	skip "no space is told" "no user namespaces here"
fi
check "what is no file of ours leaves nothing" eval '
	exits 1 "not a black box" trace "$TOP/Makefile" -o "$T/x.otf2" && ! ls "$T" | grep "x.otf2\|part"'
stop_daemon
done_testing
