#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ncclinsp export: a job's operations as NVIDIA's Inspector writes them, all of them, once.
. "$(dirname "$0")/lib.sh"

[ -x "$B/nccl-sim" ] && [ -x "$B/ncclinspd" ] || skip_all "the simulator or the daemon is not built"
I=$B/ncclinsp

check "without a directory it says which option is missing" exits 2 'inspector-json DIR' "$I" export
check "without a daemon nothing is made" \
	eval '! "$I" export --inspector-json "$T/none" 2>/dev/null && [ ! -e "$T/none" ]'
start_daemon
check "nothing to export is told by the exit code" \
	exits 4 '^ncclinsp: 0 operations of 0 processes in' "$I" export --inspector-json "$T/empty" --for 0.2

cat >"$T/job.scn" <<-SCN
nodes 2
comm dp ranks 0,1 channels 2
link net latency 10us rate 20GB/s
loop forever
	compute 15ms
	AllReduce dp 1Mi float32
	AllGather dp 64Ki float16
	Send dp 1Mi float16 from 0 to 1
end
SCN
SLURM_JOB_ID=4711 sim "$T/job.scn" >"$T/sim.log" 2>&1 &
started+=("$!")
both_run() { api_is comms '[.comms[].local_ranks[]] | length == 2'; }
check "a job runs" wait_until 30 both_run
check "it ends after so many operations" timeout 120 "$I" export --inspector-json "$T/out.d" -n 300
"$I" export --inspector-json "$T/more.d" -n 9 2>"$T/export.err"
check "it says how many, of whom" grep -Eq '^ncclinsp: 9 operations of [12] process(es)? in ' "$T/export.err"
cat "$T"/out.d/*.log >"$T/lines" 2>/dev/null
check "a file for each process, named as the Inspector's" \
	eval '[ "$(ls "$T/out.d" | grep -c "^$(api status | jq -r .host)-pid[0-9]*\.log$")" -eq 2 ] && [ "$(ls "$T/out.d" | wc -l)" -eq 2 ]'
kinds() { jq -sc 'map((.coll_perf // .p2p_perf) | .coll // .p2p) | unique' "$T/lines"; }
check "so many, of every kind" \
	eval '[ "$(wc -l <"$T/lines")" -eq 300 ] && [ "$(kinds)" = "[\"AllGather\",\"AllReduce\",\"Recv\",\"Send\"]" ]'
# Each comes once.  At the ends, what was posted before may end after what was posted later.
once() {
	jq -se "map(select(.$1) | [[.header.rank, (.$1 | .coll // .p2p)], (.$1 | .coll_sn // .p2p_sn)]) |
		group_by(.[0]) | all(map(.[1]) | length == (unique | length) and
			((max - min) as \$n | (min + \$n / 4) as \$from | (max - \$n / 4) as \$to | unique |
			map(select(. >= \$from and . <= \$to)) | length == .[-1] - .[0] + 1))" "$T/lines"
}
check "every operation of each rank, once" once coll_perf
check "and every send and receive" once p2p_perf
check "which are counted from 0" \
	eval '[ "$(jq -sc "map(select(.p2p_perf.p2p == \"Send\") | .p2p_perf.p2p_sn) | min" "$T/lines")" = 0 ]'
check "sizes are the Inspector's" \
	eval '[ "$(jq -sc "map(select(.coll_perf) | [.coll_perf.coll, .coll_perf.coll_msg_size_bytes]) | unique" "$T/lines")" = "[[\"AllGather\",131072],[\"AllReduce\",4194304]]" ]'
check "the communicator's size and nodes are known" jq -se 'all(.header.n_ranks == 2 and .header.nnodes == 2)' "$T/lines"

if command -v jsonschema >/dev/null; then
	cat >"$T/validate.py" <<-'PY'
	import json, sys, jsonschema
	schema = json.load(open(sys.argv[1]))
	lines = [json.loads(line) for line in open(sys.argv[2])]
	assert len(lines) == 300, len(lines)
	validator = jsonschema.validators.validator_for(schema)(schema)
	for line in lines:
	    validator.validate(line)
	del lines[0][[k for k in lines[0] if k.endswith("_perf")][0]]
	try:
	    validator.validate(lines[0])
	except jsonschema.ValidationError:
	    sys.exit(0)
	sys.exit("a line without figures is valid")
	PY
	check "each line is what docs/schema/ says" python3 "$T/validate.py" "$TOP/docs/schema/inspector.json" "$T/lines"
else
	skip "each line is what docs/schema/ says" "python3-jsonschema is not installed"
fi

check "a directory with something in it is left alone" \
	exits 1 'is not empty' "$I" export --inspector-json "$T/out.d" -n 1
check "as is what is none" exits 1 'cannot write' "$I" export --inspector-json "$T/lines" -n 1

# ---- filters, and its end --------------------------------------------------------------

check "filters choose" eval '"$I" export --inspector-json "$T/some" -r 1 --func AllReduce -n 5 2>/dev/null &&
	[ "$(cat "$T"/some/*.log | jq -c "[.header.rank, .coll_perf.coll]" | sort | uniq -c | tr -s " ")" = " 5 [1,\"AllReduce\"]" ]'
"$I" export --inspector-json "$T/until" 2>"$T/until.err" &
EXPORT=$!
started+=("$EXPORT")
something() { [ "$(cat "$T"/until/*.log | wc -l)" -gt 0 ]; }
check "it goes on until it is interrupted" wait_until 30 something
kill -INT "$EXPORT"
kill -TERM "$EXPORT" 2>/dev/null	# a background job of a script may ignore SIGINT
wait "$EXPORT"
check "and ends well then" test $? -eq 0
check "with whole lines" eval 'cat "$T"/until/*.log | jq -e . >/dev/null'
"$I" export --inspector-json "$T/gone" 2>"$T/gone.err" &
EXPORT=$!
started+=("$EXPORT")
begun() { [ -n "$(ls "$T/gone")" ]; }
check "another one runs" wait_until 30 begun
kill -KILL "$DAEMON_PID"
wait "$EXPORT"
check "that the daemon goes is told by the exit code" test $? -eq 3
check "and in words" grep -Eq 'ended the stream|closed the connection' "$T/gone.err"
done_testing
