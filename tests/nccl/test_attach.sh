#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ncclinsp attach inside the real NCCL, in jobs that run without the plugin: what is counted is what
# was called, a rank that lacks a call is named, and nothing stays behind.
. "$(dirname "$0")/lib.sh"

[ -x "$B/ncclinsp-probe" ] || skip_all "no ncclinsp-probe was built: libbpf, clang or bpftool is missing"
[ "$(id -u)" -eq 0 ] || skip_all "only root may load a program into the kernel"
why=$("$B/ncclinsp-probe" --check 2>&1 >/dev/null) || skip_all "BPF does not work here: $(tail -n 1 <<<"$why")"
[ -e /sys/bus/event_source/devices/uprobe ] || skip_all "this kernel has no uprobes"
unset NCCL_PROFILER_PLUGIN
JOB=insp-attach-$$

# rank N: of a job of three, each a process.  NCCL waits in the first communicator until all are there.
rank() {
	SLURM_JOB_ID=$JOB SLURM_PROCID=$1 NCCL_HOSTID=node$1 FAKE_GPU_COUNT=1 FAKE_GPU_DIARY=/dev/null \
		timeout -k 1 120 "$NCCL/nccl-job" 3 "$1" 1 "$J" $PROGRAM >"$J/out.$1" 2>&1 &
	started+=($!)
	wait_until 20 eval "PIDS[$1]=\$(pgrep -P $!)"
	wait_until 20 grep -q libnccl.so "/proc/${PIDS[$1]}/maps"
}

# attached WHOM [option...]: the first ranks of a job, which ends or hangs when the last one is there; into $T/out.
attached() {
	local last=$LAST
	J=$T/job.$((job_number += 1))
	mkdir "$J"
	PIDS=()
	for i in 0 1 2; do [ $i = $last ] || rank $i; done
	[ "$1" = job ] && set -- --job "$JOB" "${@:2}"
	[ "$1" = pids ] && set -- "$(IFS=,; echo "${PIDS[*]}")" "${@:2}"
	rm -f "$T/out" "$T/err"		# what an earlier one said is not this one's
	"$B/ncclinsp" attach "$@" >"$T/out" 2>"$T/err" &
	ATTACH=$!
	started+=("$ATTACH")
	wait_until 20 grep -q counting "$T/err" || { cat "$T/err"; return 1; }
	rank $last
}
# The same until its end; its status is in $status.
counted() {
	attached "$@"
	wait "$ATTACH"
	status=$?
}
well() { [ "$status" -eq 0 ] || { echo "status $status"; cat "$T/err"; return 1; }; }
is() { jq -e "$1" "$T/out" >/dev/null || { head -c 3000 "$T/out"; return 1; }; }

# ---- exact counts ------------------------------------------------------------------

# Rank, function, count, datatype and calls, as the ranks that were counted know them and as it tells.
exact() {
	jq -s -r --argjson seen "[0, 1]" 'map(select(.comm == "basic" or .comm == "G" or .comm == "H"))
		| group_by([.rank, .func, .count, .datatype, .comm])[]
		| "\(.[0].rank) \(.[0].nranks) \(.[0].func) \(.[0].count) \(.[0].datatype) \(length)"' \
		"$J"/truth.0 "$J"/truth.1 | sort >"$T/true"
	jq -r '.calls[] | "\(.rank) \(.nranks) \(.func) \(.count) \(.datatype) \(.calls)"' "$T/out" | sort >"$T/told"
	[ -s "$T/true" ] && diff "$T/true" "$T/told"
}
# The rows of --by-rank have all fields of JSON but nranks, which no table needs.
LAST=2 PROGRAM="basic groups"
counted job -o json --by-rank --fields rank,nranks,func,count,datatype,calls,pid,comm_id,world_rank
check "processes of a job are found by its id, and counted until they end" well
check "each call of each rank is counted once: function, count, datatype" exact
check "nothing is lost" is '.lost == 0 and (.processes | length == 2) and (.processes[0].library | endswith("/libnccl.so.2"))'
check "ranks are those of the communicator and of the launcher" is 'all(.calls[]; .rank == .world_rank)'
check "nobody is behind" is '.behind == []'
if command -v jsonschema >/dev/null; then
	PROGRAM=basic
	fits() { PYTHONWARNINGS=ignore jsonschema -i "$T/out" "$TOP/docs/schema/attach.json"; }
	counted pids -o json
	check "without --by-rank a row is of all ranks" well
	check "with the calls of both" is '.calls | all(.ranks == 2 and .pid == null and .calls % 2 == 0)'
	check "its JSON fits its schema" fits
else
	skip "its JSON fits its schema" "python3-jsonschema is not installed"
fi

# ---- a rank that lacks a call ----------------------------------------------------------

# The last rank does not make the second call; the one in the middle comes late to the first.
LAST=1 PROGRAM=absent
counted pids --for 12 -o json
check "a job hangs while it is looked at" well
check "the rank that lacks a call is named, with the call" is '(.behind | length == 1) and (.behind[0]
	| .rank == 2 and .world_rank == 2 and .number == 2 and .others == 1 and .func == "AllReduce" and .count == 2097152
	and .since_ns >= 2e9 and .lined_up == "calls"
	and (.text | test("^rank 2 of communicator 0x[0-9a-f]{16} .pid [0-9]+. has not made call #2, AllReduce of 2097152 ncclFloat32")))'
kill "${PIDS[@]}"

# ---- its end ------------------------------------------------------------------------------

# Probes of ours in the kernel: each keeps one of its programs loaded.
probes_gone() { ! pgrep -f "ncclinsp-probe --attach ${PIDS[0]}" >/dev/null; }
LAST=2 PROGRAM=absent
attached pids --for 60 -o json
check "it counts" grep counting "$T/err"
kill -INT "$ATTACH" $(pgrep -P "$ATTACH")
wait "$ATTACH"
status=$?
check "Ctrl-C ends it" [ "$status" -eq 0 -o "$status" -eq 4 ]	# 4: no call came before
check "and it tells what it has" is '.seconds < 60 and (.processes | length == 2)'
check "its probe is gone" wait_until 20 probes_gone
kill "${PIDS[@]}"
attached pids --for 60 -o json
check "it counts again" grep counting "$T/err"
kill -KILL "$ATTACH"
check "where it is killed, its probe goes as well" wait_until 20 probes_gone
check "and the job goes on" kill -0 "${PIDS[0]}"

# ---- NCCL linked into a program ------------------------------------------------------------

cat >"$T/linked.c" <<-'EOC'
	#include <stddef.h>
	#include <unistd.h>
	int pncclAllReduce(const void *in, void *out, size_t count, int type, int op, void *comm, void *stream);
	__attribute__((noinline))
	int pncclAllReduce(const void *in, void *out, size_t count, int type, int op, void *comm, void *stream)
	{ __asm__ volatile("" : : "r"(in), "r"(out), "r"(count), "r"(type), "r"(op), "r"(comm), "r"(stream)); return 0; }
	int main(void)
	{
		static char comm;
		for (int i = 0; i < 3000; i++, usleep(10000))
			pncclAllReduce(NULL, NULL, 1000 + i % 2, 7, 0, &comm, NULL);
	}
EOC
if cc -O1 -o "$T/linked" "$T/linked.c" 2>/dev/null; then
	"$T/linked" &
	LINKED=$!
	started+=("$LINKED")
	wait_until 10 grep -q /linked "/proc/$LINKED/maps"
	"$B/ncclinsp" attach "$LINKED" --for 2 -o json >"$T/out" 2>"$T/err"
	status=$?
	check "NCCL that is linked into a program is found by its symbols" well
	check "with the layout not known, calls are counted by the address" is '(.calls | length == 2) and
		all(.calls[]; .rank == null and .func == "AllReduce" and .calls > 5) and .behind == []'
	strip -o "$T/stripped" "$T/linked"
	"$T/stripped" &
	STRIPPED=$!
	started+=("$STRIPPED")
	wait_until 10 grep -q /stripped "/proc/$STRIPPED/maps"
	check "one that is stripped is told" exits 1 "without NCCL, and not counted: " "$B/ncclinsp" attach "$STRIPPED"
else
	skip "NCCL that is linked into a program is found by its symbols" "there is no compiler"
fi

# ---- what cannot be counted ------------------------------------------------------------------

attach() { "$B/ncclinsp" attach "$@"; }
check "a process without NCCL is told" exits 1 "without NCCL, and not counted: $$" attach $$
check "a process that is not there is told" exits 1 'No such process' attach 2147483647
check "it asks for a process or a job" exits 2 'attach 4711' attach
check "its time has an end" exits 2 '1h' attach 1 --for 2h
check "a job that is not here is told" exits 4 'no process of job none-such' attach --job none-such
if have setpriv && chmod 755 "$T" && cp "$B/ncclinsp" "$B/ncclinsp-probe" "$T"; then
	nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$T/ncclinsp" attach "$@"; }
	check "another user's process needs a right, which is named" exits 5 'CAP_SYS_PTRACE' nobody "${PIDS[0]}"
	J=$T/job.nobody
	mkdir -m 777 "$J"
	SLURM_PROCID=0 FAKE_GPU_COUNT=1 setpriv --reuid 65534 --regid 65534 --clear-groups \
		timeout 60 "$NCCL/nccl-job" 2 0 1 "$J" basic >"$J/out" 2>&1 &
	started+=($!)
	mapped() { OWN=$(pgrep -P "${started[-1]}") && grep -q libnccl.so "/proc/$OWN/maps"; }
	if wait_until 10 mapped; then
		check "one's own needs rights as well, which are named" exits 5 'CAP_BPF and CAP_PERFMON' nobody "$OWN"
	else
		skip "one's own needs rights as well, which are named" "another user cannot run the job here"
	fi
else
	skip "rights that are missing are named" "setpriv is missing"
fi
done_testing
