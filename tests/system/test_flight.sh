#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ncclinsp report --flight-recorder: the Python lines of PyTorch's dumps beside verdicts.  A job hangs in one of two process
# groups; its dumps are what PyTorch would have written of its calls, by tests/flight/dumps.py.
. "$(dirname "$0")/lib.sh"

have python3 jq || skip_all "needs python3 and jq"
I=$B/ncclinsp
start_daemon --snapshot-interval 0
"$B/nccl-sim" --plugin "$PLUGIN" "$TOP/tests/scenarios/never-joins.scn" 2>"$T/sim" &
JOB_PID=$!
started+=("$JOB_PID")
hangs() { api_is findings 'any(.findings[]; .verdict == "NOT_JOINED" and .grade == "found")'; }
check "a rank has not come" wait_until 60 hangs
SNAP=$("$I" snapshot)
wait_until 10 test -s "$SNAP"
cp "$SNAP" "$T/shot.json"
dumps() { rm -rf "${T:?}/$1" && mkdir "$T/$1" && python3 "$TOP/tests/flight/dumps.py" "$T/shot.json" "$T/$1" "${2:-$1}"; }
report() { "$I" report "$T/shot.json" "$@" >"$T/out" 2>"$T/err"; }
# lines JQ: it holds for the lines beside the verdict on dp.
lines() { report --flight-recorder "$T/$1" -o json; jq -e '.verdicts[] | select(.verdict == "NOT_JOINED") | .gathered | '"$2" "$T/out" || { cat "$T/out" "$T/err"; return 1; }; }

FRAMES='lib/ddp.py:12 \\(reduce_grads\\), from /home/u/train.py'
told() { dumps "$1" && lines "$1" '(.[0] | test("process group [0-9]+ \\(dp\\)$")) and
	(.[1] | test("^rank 3 \\(global rank 3\\) has not called all_reduce \\(collective 11\\); its last call: all_reduce \\(collective 11 of group tp\\), called at '"$FRAMES"':41 \\(forward\\)$")) and
	(.[2] | test("^ranks 0-2 wait in all_reduce \\(collective 11 of group dp\\), called at '"$FRAMES"':88 \\(backward\\)$")) and length == 3'; }
check "dumps as PyTorch's pickler writes them tell who has not called, and where all did" told torch
check "... as Python's" told pickle2
check "... of a newer protocol" told pickle4
check "... and JSON tells it without lines" eval 'dumps json && lines json "(.[1] | test(\"has not called .*no line of Python\")) and (.[2] | test(\"^ranks 0-2 wait\"))"'
check "imitation and Python agree on what the bytes are" python3 - "$T" <<-'PY'
	import pickle, sys
	a, b = (pickle.load(open(f"{sys.argv[1]}/{form}/nccl_trace_rank_3", "rb")) for form in ("torch", "pickle2"))
	sys.exit(a != b or not a["entries"])
PY
check "people read it below the table, with the code of a finding" eval 'report --flight-recorder "$T/torch"; [ $? -eq 10 ] &&
	grep -q "^NOT_JOINED on dp$" "$T/out" && tr -s " \n" " " <"$T/out" | grep -q "ranks 0-2 wait in all_reduce .* /home/u/train.py:88 (backward)"'
check "... and on the page" eval 'report --html --flight-recorder "$T/torch"; grep -q "<p>ranks 0-2 wait in all_reduce .*train.py:88" "$T/out"'
check "the beginning of the paths names them as well" eval 'report --flight-recorder "$T/torch/nccl_trace_rank_" -o json && false;
	jq -e "[.verdicts[].gathered // empty | length] == [3]" "$T/out"'
check "without files it asks the daemon of this node" eval '"$I" report --flight-recorder "$T/torch" >"$T/out"; [ $? -eq 10 ] &&
	tr -s " \n" " " <"$T/out" | grep -q "ranks 0-2 wait in all_reduce .* /home/u/train.py:88 (backward)"'
check "... and tells where there is none" exits 3 'is ncclinspd running' "$I" report -S "$T/nobody" --flight-recorder "$T/torch"
check "without dumps nothing is said of them" eval 'report -o json; jq -e "all(.verdicts[]; .gathered == null)" "$T/out"'

# ---- what is not as it should be ----------------------------------------------------------
bad() { rm -rf "$T/bad" && cp -r "$T/torch" "$T/bad"; }
# refused PATTERN: the rank's dump is refused with that, and the others are read.
refused() { lines bad '.[1] | test("^rank 3 .* has no dump in ")' && grep -q "nccl_trace_rank_3: $1" "$T/err" || { cat "$T/err"; return 1; }; }
check "a truncated dump is refused by itself" eval 'bad; truncate -s 900 "$T/bad/nccl_trace_rank_3"; refused "refused at byte [0-9]*: truncated"'
check "... an empty one" eval 'bad; : >"$T/bad/nccl_trace_rank_3"; refused "refused at byte 0: truncated"'
check "... one that would run something" eval 'bad; python3 -c "
import os, pickle, sys
class Evil:
	def __reduce__(self):
		return os.system, (\"touch $T/ran\",)
sys.stdout.buffer.write(pickle.dumps({\"version\": \"2.4\", \"entries\": [Evil()]}, 2))" >"$T/bad/nccl_trace_rank_3"
	refused "refused at byte [0-9]*: more than plain data" && [ ! -e "$T/ran" ]'
check "... one of another version" eval 'bad; python3 -c "
import pickle, sys
sys.stdout.buffer.write(pickle.dumps({\"version\": \"1.5\", \"entries\": [{}]}, 2))" >"$T/bad/nccl_trace_rank_3"; refused "a dump of another format of PyTorch"'
check "... a named pipe, at once" eval 'bad; rm "$T/bad/nccl_trace_rank_3"; mkfifo "$T/bad/nccl_trace_rank_3"; refused "not a regular file"'
check "... and its name does nothing to the terminal" eval 'bad; printf "\200\002c" >"$T/bad/$(printf "\033[2Jrank_9")"; lines bad "length == 3" && grep -q "dumps*.*rank_9: refused\|bad: ?.2Jrank_9: refused" "$T/err" && ! grep -q "$(printf "\033")" "$T/err"'
check "... one of gigabytes" eval 'bad; truncate -s 3G "$T/bad/nccl_trace_rank_3"; refused "too large"'
check "other files beside them are passed over" eval 'bad; echo hello >"$T/bad/notes2"; echo "{}" >"$T/bad/x1.json"; mkdir "$T/bad/d7"; lines bad "length == 3" && [ ! -s "$T/err" ]'
check "of two dumps of a rank the newer one counts, and it is said" eval 'bad; sed "s/dp/xx/" "$T/bad/nccl_trace_rank_3" >"$T/bad/other_rank_3"
	lines bad ".[1] | test(\"^rank 3 .* has not called\")" && grep -q "two dumps of rank 3" "$T/err"'
check "a directory without dumps is an error that tells what is wanted" eval 'mkdir "$T/none"; exits 1 "no dump of PyTorch there; their names end in the rank" "$I" report "$T/shot.json" --flight-recorder "$T/none"'
check "... and one that is not there" exits 1 'No such file' "$I" report "$T/shot.json" --flight-recorder "$T/nowhere/x"
check "where nothing hangs that is said" eval 'jq ".inflight = [] | .comms[].local_ranks = []" "$T/shot.json" >"$T/calm.json"
	"$I" report "$T/calm.json" --flight-recorder "$T/torch" 2>&1 | grep -q "no verdict is on a hang or a death"'

# PyTorch ends the job once the dumps are written: the verdict is then on its death.
pkill -9 -P "$JOB_PID"
died() { api_is findings 'any(.findings[]; .kind == "died" and .comm_name == "dp")'; }
after() { SNAP=$("$I" snapshot) && wait_until 10 test -s "$SNAP" && cp "$SNAP" "$T/after.json" && "$I" report "$T/after.json" --flight-recorder "$T/torch" -o json |
	jq -e '[.verdicts[] | select(.verdict == "died") | .gathered[1:3][] | test("^rank 3 .* has not called|^ranks 0-2 wait in ")] == [true, true]'; }
check "what they told of the hang is told of the job's death" eval 'wait_until 30 died && wait_until 30 after'

# Another run of the same job: the groups are the same, the times are not.
cp -r "$T/torch" "$T/other"
check "dumps of another run are not mixed with this one" eval 'jq ".comms[].local_ranks[].last_op_mono_ns -= 5000000000" "$T/shot.json" >"$T/moved.json" &&
	mv "$T/moved.json" "$T/shot.json" && lines other "length == 1 and (.[0] | test(\"another run\"))"'
done_testing
