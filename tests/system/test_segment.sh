#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A process's segment is read without a daemon: by a program that knows the installed library
# alone, and by ncclinsp --segment; while the process lives, to its end, and after its death.
# What both say is what the daemon says of the same process.
. "$(dirname "$0")/lib.sh"

I=$B/ncclinsp
ROOT=$T/root
install_here() {
	make --no-print-directory -s -C "$TOP" B="$B" DESTDIR="$ROOT" PREFIX=/opt/insp MANDIR= install
}
pc() {
	PKG_CONFIG_PATH=$ROOT/opt/insp/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$ROOT pkg-config "$@" \
		libncclinsp
}
compiles() { (cd "$T" && ${CC:-cc} -Wall -Wextra -Werror -o "$@"); }

check "the library installs" install_here
check "the example has 60 lines at most" \
	test "$(wc -l <"$TOP/examples/ncclinsp-ops.c")" -le 60
cp "$TOP/examples/ncclinsp-ops.c" "$T/example.c"
check "it compiles with what pkg-config says, and nothing else" \
	compiles example example.c $(pc --cflags --libs)
check "and with the static library" compiles static example.c $(pc --cflags) \
	"$ROOT/opt/insp/lib/libncclinsp.a" $(pc --static --libs-only-l | sed 's/-lncclinsp//')
as_cxx() { "${CXX:-g++}" -std=c++17 -Wall -Wextra -Werror -fsyntax-only "$@" -x c++ \
	- <<<"#include <ncclinsp/ncclinsp.h>"; }
check "the header is C++, too" as_cxx $(pc --cflags)
[ -x "$T/example" ] && [ -x "$T/static" ] || done_testing
export LD_LIBRARY_PATH=$ROOT/opt/insp/lib

declared() { grep -oE '\bncclinsp_[a-z_]+\(' "$ROOT/opt/insp/include/ncclinsp/ncclinsp.h" |
	tr -d '(' | grep -vE '_fn$' | sort -u; }
exported() { nm "$@" --defined-only | awk '$2 == "T" { sub("@@NCCLINSP_0", "", $3); print $3 }' | sort; }
check "the shared library exports what the header declares, in its version" \
	diff <(declared) <(exported -D "$ROOT/opt/insp/lib/libncclinsp.so.0")
check "so does the static one" diff <(declared) <(exported -g "$ROOT/opt/insp/lib/libncclinsp.a")
check "its name is that of its ABI" grep -q 'soname: \[libncclinsp.so.0\]' <(
	readelf -d "$ROOT/opt/insp/lib/libncclinsp.so.0" | sed 's/Library //')

# ---- a job, with a daemon beside ---------------------------------------------------------

start_daemon
OP=19			# process 2 dies in this one, the others hang in it
sim "$TOP/tests/scenarios/killed.scn" 2>"$T/sim" &
JOB=$!
started+=("$JOB")
hangs() {
	api_is inflight "[.inflight[] | select(.process_state == \"live\" and .func == \"AllReduce\"
		and .seq == $OP and .event_type == \"Coll\")] | length == 3"
}
check "a job hangs since one of its processes was killed" wait_until 30 hangs
PID=$(sed -n 's/.*process 0 is pid \([0-9]*\)$/\1/p' "$T/sim")
SEGMENT=$(ls "$SHM"/ncclinsp.*."$PID".*)
cp "$SEGMENT" "$T/evidence"

# What depends on when the ticks of this machine were compared with its clock, on other ranks,
# or on what people say, is the reader's own.
PLACED='del(.enqueued_at, .enqueued_mono_ns, .enqueue_ns, .queue_ns, .exec_error_ns, .done_at,
	.done_mono_ns, .gpu_start_at, .gpu_start_mono_ns, .gpu_stop_at, .gpu_stop_mono_ns,
	.gpu_clock_error_ns, .arrival_rank_order, .arrival_source, .late_ns, .busbw_waitfree_gbs)'
of_daemon() { api "collectives?limit=1000&pid=$PID" | jq -S -c "[.collectives[] | $PLACED] | sort_by(.token)"; }
of_segment() {
	timeout 30 "$I" --segment "$1" tail -o json -n "$2" |
		jq -S -c 'select(.kind == "collective") | del(.kind, .schema)' | jq -S -s -c "map($PLACED) | sort_by(.token)"
}
same_operations() {
	of_daemon >"$T/daemon.ops"
	of_segment "$1" "$OP" >"$T/segment.ops"
	[ "$(jq length "$T/segment.ops")" -eq "$OP" ] && diff <(jq -c ".[]" "$T/daemon.ops") <(jq -c ".[]" "$T/segment.ops")
}
check "its segment has the operations that the daemon tells of, literally" same_operations "$SEGMENT"
check "so has a copy" same_operations "$T/evidence"
placed_alike() {
	jq -n -e --slurpfile a <(api "collectives?limit=1000&pid=$PID" | jq -c '.collectives[]') \
		--slurpfile b <(timeout 30 "$I" --segment "$SEGMENT" tail -o json -n $OP) '
		($b | map({ (.token): .enqueued_mono_ns }) | add) as $at | ($a | length > 0) and
		([$a[] | (.enqueued_mono_ns - $at[.token]) | fabs] | max) < 1e6'
}
check "at the same times" placed_alike
# Limits are the daemon's, which has seen how long the like took.
rows() { jq -S -c ".$1 | map($2)"; }
same_rows() {	# PATH ARRAY COMMAND JQ
	diff <(api "$1" | rows "$2" "$4") <("$I" --segment "$SEGMENT" $3 -o json | rows "$2" "$4")
}
check "what is in flight is the same" same_rows inflight inflight inflight \
	"select(.pid == $PID) | del(.age_ns, .limit_ns)"
check "so are its communicators" same_rows comms comms comms \
	"del(.local_ranks) + (.local_ranks[] | select(.pid == $PID) |
	 del(.last_op_at, .last_op_mono_ns, .waiting, .quiet_limit_ns))"
check "and the process, as far as the segment tells" same_rows processes processes ps \
	"select(.pid == $PID) | { pid, ns_pid, uid, command, state, segment, instance, api_version,
	 plugin_version, level, event_mask, job, lanes, records, bytes, lost, ignored,
	 stamps_refused, stamps_refused_by, comms }"
# The daemon's row is of three live ranks and a dead one: by rank it is of this process.
sums() { rows rows 'select(.rank == 0) | { comm_id, comm_name, nranks, rank, func, algo, proto,
	size_class, tag, ops, bytes, fused, derived, exec, batch, timing_source, sampled_fraction,
	algbw_gbs, busbw_gbs }'; }
same_sums() {
	diff <(api "summary?window=all&by=comm,func,size,algo,proto,phase,tag,rank" | sums) \
		<("$I" --segment "$SEGMENT" ops --by-rank -o json | sums)
}
check "and its sums" same_sums

members_are_there() {
	diff <(api "$1" | jq -c ".$2 | map(select($4)) | .[0] | keys") \
		<(jq -c ".$2[0] | keys" <("$I" --segment "$SEGMENT" $3 -o json))
}
check "rows of ps have the daemon's members" members_are_there processes processes ps ".pid == $PID"
check "so have those of inflight" members_are_there inflight inflight inflight ".pid == $PID"
check "and those of comms" members_are_there comms comms comms true
check "and those of ops" members_are_there \
	"summary?window=all&by=comm,func,size,algo,proto,phase,tag" rows ops true

# ---- by the library ----------------------------------------------------------------------

follows() { timeout 1 "$1" "$SEGMENT" >"$T/live"; [ $? -eq 124 ]; }
for program in example static; do
	check "the $program follows a process that lives" follows "$T/$program"
	check "and prints what it did" test "$(grep -c ' AllReduce #.* us by kernel_gpu$' "$T/live")" -eq $OP
done

# ---- nobody but the segment is left --------------------------------------------------------

stop_daemon
: >"$T/late"
"$T/example" "$SEGMENT" >"$T/followed" &
FOLLOWER=$!
started+=("$FOLLOWER")
wait_until 10 grep -q AllReduce "$T/followed"
kill -KILL $(sed -n 's/.* is pid \([0-9]*\)$/\1/p' "$T/sim") 2>/dev/null
check "a reader ends with the process" wait_until 10 eval "! kill -0 $FOLLOWER 2>/dev/null"
check "and says how it ended" grep -qx "pid $PID died" "$T/followed"
# Operations of several threads that end together come in either order.
check "a reader that comes later says the same" \
	diff <(sort "$T/followed") <("$T/example" "$SEGMENT" | sort)
check "what it left unfinished is told" \
	grep -q "AllReduce #$OP .* unfinished" "$T/followed"
check "and that it was running" grep -q 'in flight: world rank 0 Coll AllReduce running' "$T/followed"

dead() { "$I" --segment "$SEGMENT" "$@"; }
is() { local filter=$1; shift; dead "$@" -o json | jq -e "$filter"; }
check "ncclinsp tells in what the rank was when it died" is \
	"[.inflight[] | select(.event_type == \"Coll\")] |
	 map([.rank, .func, .seq, .state, .process_state]) == [[0, \"AllReduce\", $OP, \"running\", \"died\"]]" \
	inflight
check "with an age as of its death" is '[.inflight[].age_ns] | all(. < 1e9)' inflight
check "ps says that it died" is '.processes | map(.state) == ["died"]' ps
check "ops sums up what it did" is "[.rows[].ops] | add == $OP + 1" ops
check "tail tells the one that never ended" test \
	"$(dead tail -o json | jq -s 'map(select(.kind == "collective" and .complete == false)) | length')" -eq 1
check "and ends" exits 0 'died' dead tail
check "trace draws it" exits 0 'slices' dead trace -o "$T/trace.json"
check "with its calls, kernels and what was in flight" jq -e \
	'[.traceEvents[].name] | any(test("^CollApi AllReduce")) and any(test("^KernelCh AllReduce")) and
	 any(test("AllReduce .*not ended"))' "$T/trace.json"
fits() {
	dead "$1" -o json >"$T/out"
	[ "$1" = tail ] && sed -i 1q "$T/out"
	PYTHONWARNINGS=ignore jsonschema -i "$T/out" "$TOP/docs/schema/$1.json"
}
for command in ps comms inflight ops tail; do
	check "$command of a segment fits its schema" fits $command
done

# ---- what was overwritten ----------------------------------------------------------------

check "nothing of a short job was overwritten: inflight says nothing of that" \
	eval 'dead inflight 2>"$T/err" && [ ! -s "$T/err" ]'
printf 'gpus 2\nprocesses 1\npace none\nhold 20s\ncomm c ranks 0-1 channels 1\nloop 3000\n\tAllReduce c 1Ki float32\nend\n' \
	>"$T/fast.scn"
mkdir "$SHM/fast"
NCCLINSP_SHM_DIR=$SHM/fast sim "$T/fast.scn" 2>"$T/fast" &
started+=("$!")
may_have_ended() {
	"$I" --segment "$(ls "$SHM"/fast/ncclinsp.*)" inflight 2>&1 | grep -q "records of this process were overwritten .* may have ended"
}
check "where records were overwritten, what seems to be in flight may have ended, and it says so" wait_until 20 may_have_ended

# ---- what cannot be --------------------------------------------------------------------

check "ranks are not compared by one segment" exits 2 'ranks does not take --segment' dead ranks
check "nor is anything diagnosed" exits 2 'diagnose does not take --segment' dead diagnose
check "two sources are refused" exits 2 'not both' dead ps --from "$T"
check "windows are refused" exits 2 'only the whole time' dead ops --window 10s
check "a trace is of one thing" exits 2 'give only one of' dead trace -o "$T/none.json" "$T/trace.json"
check "a file that is not there" exits 1 'No such file' "$I" --segment "$T/nothing" ps
head -c 20000 /dev/urandom >"$T/rubbish"
check "rubbish is refused, and said so" exits 1 'not a segment' "$I" --segment "$T/rubbish" inflight
check "by the example as well" exits 1 'not a segment' "$T/example" "$T/rubbish"
size=$(stat -c %s "$T/evidence")
cut_is_no_harm() {
	local bytes code
	for bytes in 0 1 100 4095 4096 4200 8192 70000 $((size / 2)) $((size - 4096)); do
		head -c "$bytes" "$T/evidence" >"$T/cut"
		for command in ps inflight ops tail; do
			timeout 20 "$I" --segment "$T/cut" $command >"$T/out" 2>&1
			code=$?
			[ $code -le 5 ] || { echo "$command of $bytes bytes: $code"; return 1; }
		done
	done
}
check "a file that was cut is refused, or read as far as it goes" cut_is_no_harm
printf '\3' | dd of="$T/evidence" bs=1 seek=8 conv=notrunc status=none
check "another version's file is told" exits 1 "another version" "$I" --segment "$T/evidence" ps
done_testing
