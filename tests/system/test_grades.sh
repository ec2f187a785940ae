#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A rank that has stopped is suspected first, and found later: status, top, diagnose, check, the
# API and the metrics say the same of it at each moment.
. "$(dirname "$0")/lib.sh"

# Long enough for a busy machine to ask all of them while it is suspected.
start_daemon --stall-min 15s --not-joined-critical 15s
I=$B/ncclinsp
unset COLUMNS

boxes() { find "$T/state/blackbox" -name '*-desync.json*' 2>/dev/null | wc -l; }
now_ns() { awk '{ printf "%.0f\n", $1 * 1e9 }' /proc/uptime; }
row() { api_is "findings?active=true&grade=$1" ".findings | length == 1 and (.[0] | .grade == \"$1\" and .kind == \"desync\" and .verdict == \"NOT_JOINED\" and .ranks == [3])"; }
metric() { curl -s --unix-socket "$SOCK" http://ncclinspd/metrics | grep -q "^$1{node=\"[^\"]*\",kind=\"desync\"} $2\$"; }
flat() { tr '\n' ' ' <"$T/out" | tr -s ' '; }
tells() { flat | grep -Eq "$1" || { flat; return 1; }; }

# agree NAME GRADE: all surfaces, one behind the other, call rank 3 that.
agree() {
	local grade=$2 mark="! job 471142: " due="" check_code=2 code=10 found=1 suspected=0 title=critical line="CRITICAL - job 471142: rank 3 " verdict="NOT_JOINED"
	if [ "$2" = suspected ]; then
		mark="! suspected: job 471142: " check_code=0 code=0 found=0 suspected=1 title="suspected warning" verdict="NOT_JOINED[?]"
		line="OK - no finding; suspected: job 471142: rank 3 " due=", found in [0-9.]+s if it goes on"
	fi
	check "$1: the API" row "$2"
	check "$1: ... and nothing of the other grade" eval \
		'[ "$(api "findings?active=true" | jq ".findings | length")" -eq 1 ]'
	check "$1: status" eval 'ends 0 "$I" status && tells " now +${mark}rank 3 .pid [0-9]+, [^ ]+. has not come to AllReduce #10 on dp.* ago$due"'
	check "$1: top" eval 'ends 0 "$I" top -n 1 && tells "^${mark}rank 3 .pid [0-9]+, [^ ]+. has not come to AllReduce #10 on dp.* ago$due"'
	check "$1: ... in its table" eval 'grep -Eq "^ +3 .* dp .* $verdict\$" "$T/out"'
	check "$1: ranks" eval 'ends 0 "$I" ranks && grep -Eq "^ +3 .* dp .* $verdict\$" "$T/out"'
	check "$1: dmon" eval 'ends 0 "$I" dmon -n 1 && grep -Eq " $verdict\$" "$T/out"'
	check "$1: who waits for whom is not known, in no table" eval '
		ends 0 "$I" ranks --comm dp -o csv --fields wait,blame && [ "$(grep -c "^,$" "$T/out")" -eq 4 ] &&
		ends 0 "$I" dmon -n 1 -o csv --fields wait,blame && [ "$(grep -c "^,$" "$T/out")" -eq 4 ]'
	check "$1: diagnose" eval 'ends $code "$I" diagnose && tells "rank 3 .pid [0-9]+, [^ ]+. has not come to AllReduce #10 on dp"'
	check "$1: ... under its grade" eval '[ "$(grep -Ec "^suspected warning: desync NOT_JOINED on dp.*, for [0-9.]+s$due\$" "$T/out")" -eq $suspected ] &&
		[ "$(grep -c "^critical: desync NOT_JOINED on dp" "$T/out")" -eq $found ]'
	check "$1: ... of its job" eval 'ends $code "$I" diagnose --job 471142 && tells "^${title}: desync NOT_JOINED on dp of job 471142.*rank 3 .pid [0-9]+, [^ ]+. has not come"'
	check "$1: ... and not of another one" eval 'ends 4 "$I" diagnose --job 4711 && says "no process of job .4711. here" && ! tells NOT_JOINED'
	check "$1: check" eval 'ends $check_code "$I" check && tells "^NCCLINSP $line.*has not come to AllReduce #10 on dp.*$due [|] critical=$found;"'
	check "$1: a trace of a snapshot" eval 'file=$("$I" snapshot) && "$I" trace -q -o "$T/trace.json" "$file" && marks $grade "$T/trace.json"'
	check "$1: metrics" eval 'metric ncclinsp_findings $found && metric ncclinsp_findings_suspected $suspected'
}

# marks GRADE TRACE: one, for rank 3.
marks() {
	local name="desync NOT_JOINED"
	[ "$1" = found ] || name="suspected: $name"
	jq -e --arg name "$name" --arg grade "$1" '[.traceEvents[] | select(.cat == "finding") | [.name, .args.grade, .args.ranks]] ==
		[[$name, $grade, [3]]]' "$2" || { jq '.traceEvents[] | select(.cat == "finding")' "$2"; return 1; }
}

# alone COMMAND...: a daemon that answers one request with $T/findings.json and no other is enough for it.
alone() {
	printf '/v1/findings?active=true\n%s\n' "$(cat "$T/findings.json")" >"$T/answers"
	"$B/api-answers" "$T/alone.sock" "$T/answers" &
	local pid=$! code
	wait_until 5 test -S "$T/alone.sock"
	"$I" --socket "$T/alone.sock" "$@" >"$T/out" 2>"$T/err"
	code=$?
	kill "$pid"
	wait "$pid" 2>/dev/null
	rm -f "$T/alone.sock"
	return $code
}

check "nothing wrong: status and diagnose say the same" eval \
	'ends 0 "$I" diagnose && says "^no live process uses NCCL" && ends 0 "$I" status && says "now +no live process uses NCCL"'
SLURM_JOB_ID=471142 start_job never-joins
check "a rank that has stopped is suspected" wait_until 20 row suspected
check "... 5 to 8 s after the others began to wait" api_is findings \
	".findings[0] | ($(now_ns) - .since_mono_ns) / 1e9 | . > 5 and . < 8"
check "... until its limit, as its text says" api_is findings \
	'.findings[0] | .evidence.limit_ns == 15e9 and .found_at == null and (.text | test("[.] It is suspected, and will be found if it lasts for 15"))'
agree "suspected" suspected
api 'findings?active=true' >"$T/findings.json"
check "one request is all that diagnose makes" eval 'alone diagnose && tells "suspected warning: desync NOT_JOINED on dp"'
check "... also of a job that is not here, which it says" eval '! alone diagnose --job 4711 && says "no process of job .4711. here"'
jq -c '.findings[0] |= (.severity = "info" | .kind = "stall" | .text = "no operation was posted. x")' "$T/findings.json" >"$T/quiet.json"
mv "$T/quiet.json" "$T/findings.json"
check "a job that has become quiet is a note of check" eval 'alone check &&
	tells "^NCCLINSP OK - no finding; note: job 471142: no operation was posted, found in [0-9.]+s if it goes on [|] critical=0"'
jq -c '.findings[0].grade = "found"' "$T/findings.json" >"$T/quiet.json" && mv "$T/quiet.json" "$T/findings.json"
check "... other notes are none" eval 'alone check && tells "^NCCLINSP OK - no finding [|] critical=0"'
check "... the log tells of it once, and not as an error" eval \
	'[ "$(grep -c "finding suspected id=1 kind=desync" "$T/daemon.log")" -eq 1 ] && ! grep -q "err: finding" "$T/daemon.log"'
check "... it asks for no black box" test "$(boxes)" -eq 0
since=$(api findings | jq '.findings[0].since_mono_ns')
check "beyond its limit it is found" wait_until 20 row found
check "... the same one" api_is findings ".findings | length == 1 and (.[0] | .id == 1 and .since_mono_ns == $since and .found_mono_ns > $since + 15e9)"
agree "found" found
has_box() { [ "$(boxes)" -eq 1 ]; }
check "... and it has a black box" wait_until 20 has_box
check "... in which it is found" eval \
	'{ zstd -dcq "$T"/state/blackbox/*-desync.json.zst 2>/dev/null || cat "$T"/state/blackbox/*-desync.json; } |
	 jq -e "[.findings[] | select(.kind == \"desync\").grade] == [\"found\"]"'

pid=$(api inflight | jq '[.inflight[] | select(.func == "AllReduce" and .seq == 10 and .rank == 1).pid][0]')
kill -9 "$pid"
died() {
	api_is 'findings?active=true&grade=found' "[.findings[] | select(.kind == \"died\" and .ranks == [1] and
		.evidence.processes[0].pid == $pid and (.text | test(\"in the middle of AllReduce #10 on dp\")))] | length == 1"
}
check "who dies in the middle of an operation is on the list within two seconds" wait_until 2 died
end_job
done_testing
