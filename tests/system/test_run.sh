#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ncclinsp run: the job is as it would be without, and at its end one screen tells of it.
. "$(dirname "$0")/lib.sh"

unset NCCLINSP_SOCKET NCCLINSP_CONTROL NCCLINSP_SHM_DIR
export TMPDIR=$T XDG_RUNTIME_DIR=$T
run() { "$B/ncclinsp" run "$@"; }
left() { find "$T" /dev/shm -maxdepth 1 -name "ncclinsp-run-$(id -u)-*" -newer "$T/begin" 2>/dev/null; }
touch "$T/begin"

# ---- the job is untouched -----------------------------------------------------------
ends_with() { local want=$1; shift; "$@" >"$T/out" 2>"$T/err"; local rc=$?; [ $rc -eq "$want" ] || { echo "rc $rc"; cat "$T/err"; return 1; }; }
check "the exit code is the job's" ends_with 7 run sh -c 'exit 7'
check "a job that a signal ends ends the command by that signal" ends_with 137 bash -c \
	"'$B/ncclinsp' run -q -- sh -c 'kill -9 \$\$'; exit \$?"
check "a program that is not there: 127" ends_with 127 run nonesuch
check "... and it is said" grep -q "cannot run nonesuch: No such file" "$T/err"
check "a file that is no program: 126" ends_with 126 run "$T/begin"
check "no command: 2" ends_with 2 run

untouched() {
	printf 'a\nb\n' | run sh -c 'cat; echo to stderr >&2; echo "$@"' sh -v --help 'two words' >"$T/out" 2>"$T/err"
	printf 'a\nb\n-v --help two words\n' | cmp - "$T/out" && grep -qx "to stderr" "$T/err"
}
check "input, output and arguments are the job's alone" untouched
check "a line tells how it ended, and that NCCL was not used" \
	grep -q "^ncclinsp: sh ended with 0 after .*; none of its processes here" "$T/err"

same_descriptors() {
	sh -c 'ls /proc/self/fd' >"$T/fds" && run -q sh -c 'ls /proc/self/fd' >"$T/fds.run" && diff "$T/fds" "$T/fds.run"
}
check "the job has no descriptor more" same_descriptors
same_signals() { diff <(trap '' USR1; grep -E '^Sig(Blk|Ign)' /proc/self/status) <(trap '' USR1; run -q grep -E '^Sig(Blk|Ign)' /proc/self/status); }
check "the job blocks and ignores the same signals" same_signals

# The job tells how often it was asked to end.
asked() {
	"$B/ncclinsp" run -q bash -c 'trap "echo x >>'"$T/asked"'" TERM; touch '"$T/ready"'; for i in $(seq 100); do [ -e '"$T/enough"' ] && exit 3; sleep 0.05; done' &
	local pid=$!
	wait_until 20 test -e "$T/ready"
	kill -TERM $pid
	wait_until 20 test -s "$T/asked"
	touch "$T/enough"
	wait $pid
	[ $? -eq 3 ] && [ "$(wc -l <"$T/asked")" -eq 1 ]
}
check "a signal that is sent to the command goes to the job, once" asked

# A terminal's interrupt goes to both by itself: the job has it once, and the screen still comes.
interrupted() {
	rm -f "$T/asked" "$T/ready"
	python3 - "$B/ncclinsp" "$T" <<-'PY'
		import os, pty, sys, time
		insp, top = sys.argv[1:]
		pid, fd = pty.fork()
		if pid == 0:
		    os.execv(insp, [insp, "run", "bash", "-c",
		        f'trap "echo x >>{top}/asked; exit 4" INT; touch {top}/ready; for i in $(seq 400); do sleep 0.05; done'])
		while not os.path.exists(top + "/ready"):
		    time.sleep(0.05)
		os.write(fd, b"\x03")
		text = b""
		try:
		    while data := os.read(fd, 4096):
		        text += data
		except OSError:
		    pass
		status = os.waitpid(pid, 0)[1]
		sys.exit(0 if os.waitstatus_to_exitcode(status) == 4 and b"ended with 4" in text else print(status, text) or 1)
	PY
	[ $? -eq 0 ] && [ "$(wc -l <"$T/asked")" -eq 1 ]
}
check "an interrupt at the terminal reaches the job once, and is told of" interrupted
check "nothing is left behind" test -z "$(left)"

# ---- a daemon of its own ---------------------------------------------------------------
# play_late OPTION...: for ten seconds a job whose rank 0 is late.
play_late() {
	timeout -s TERM 10 "$B/ncclinsp" run "$@" -- "$B/nccl-sim" --plugin "$PLUGIN" \
		"$TOP/tests/scenarios/recorded-like.scn" >"$T/out" 2>"$T/err"
}
play_late --report "$T/kept"
check "without a daemon one is started: the job's processes are told" \
	grep -q "1 process used NCCL here: [1-9][0-9]* records, 0 lost; NCCL took [0-9]* %" <(tr '\n' ' ' <"$T/err" | tr -s ' ')
check "... what they did" grep -q "AllReduce *128MiB" "$T/err"
check "... who was late" grep -q "rank 0 of world" "$T/err"
check "nothing of it is on stdout, which is the job's" bash -c "! grep -q AllReduce '$T/out'"
check "what was seen is kept" test -s "$T/kept/$(uname -n).json"
check "... with single operations" jq -e '.collectives | length > 0' "$T/kept/$(uname -n).json"
check "... for a page" bash -c "'$B/ncclinsp' report --html '$T/kept' | grep -q '<svg'"
same_words() {
	jq -r '.findings[] | select(.kind == "straggler" and .active).text' "$T/kept/$(uname -n).json" >"$T/words"
	[ -s "$T/words" ] && "$B/ncclinsp" report -o json "$T/kept" | jq -r '.. | .text? // empty' | diff "$T/words" -
}
check "... in the words of the daemon, which has seen all ranks" same_words
check "... for report" bash -c "'$B/ncclinsp' report '$T/kept' | grep -Eq 'STEADY|INTERMITTENT'"
check "nothing is left behind but that" test -z "$(left)"

# Two communicators of different ranks: each rank is 80 % of its time in one of them, and no more.
cat >"$T/two.scn" <<-SCN
	processes 4
	comm a ranks 0,1 channels 2
	comm b ranks 2,3 channels 2
	link intra latency 10us rate 1GB/s
	loop 100
		compute 8ms jitter 2%
		AllReduce a 8Mi float32
		AllReduce b 8Mi float32
	end
SCN
part_of_time() {
	run "$B/nccl-sim" --plugin "$PLUGIN" "$T/two.scn" 2>"$T/err"
	local part=$(tr '\n' ' ' <"$T/err" | sed -n 's/.*NCCL took \([0-9]*\) % .*/\1/p')
	[ "$part" -gt 30 ] && [ "$part" -lt 85 ] || { cat "$T/err"; return 1; }
}
check "NCCL's part of the time is that of the ranks, whichever communicators they have" part_of_time
# A rank of which the other is on another node: nobody here knows how long it waits.
cat >"$T/far.scn" <<-SCN
	nodes 2
	comm dp ranks 0,1 channels 2
	link net latency 10us rate 20GB/s
	late rank 1 by 4ms
	loop 200
		compute 5ms jitter 2%
		AllReduce dp 1Mi float32
	end
SCN
waiting_unknown() {
	run "$B/nccl-sim" --env "1:NCCLINSP_SHM_DIR=$SHM" --plugin "$PLUGIN" "$T/far.scn" 2>"$T/far.err"
	grep -q "NCCL took [0-9]* % of their time$" <(tr '\n' ' ' <"$T/far.err" | sed 's/ COMM .*//; s/  */ /g') || { cat "$T/far.err"; return 1; }
}
check "waiting for ranks of other nodes is not told as none" waiting_unknown
check "... and that nothing was wrong is told" grep -qx "no fault was found" "$T/err"
check "a directory for the user that is not there is no obstacle" \
	eval 'XDG_RUNTIME_DIR=$T/none run -q env | grep -q "^NCCLINSP_SOCKET=$T/ncclinsp-run-"'
check "a variable that is empty is not set" eval 'NCCL_PROFILER_PLUGIN= run -q env | grep -qx "NCCL_PROFILER_PLUGIN=$PLUGIN"'

# Beside each other under one launcher they share one daemon, so that ranks are compared.
beside() {
	local i pids=()
	for i in 0 1; do
		OMPI_COMM_WORLD_LOCAL_RANK=$i OMPI_COMM_WORLD_RANK=$i "$B/ncclinsp" run bash -c \
			'env | grep ^NCCLINSP_SOCKET; sleep '$((2 + 2 * i)) >"$T/out.$i" 2>"$T/err.$i" &
		pids+=($!)
	done
	wait "${pids[@]}"
	cmp "$T/out.0" "$T/out.1" && [ -s "$T/out.0" ] && [ ! -s "$T/err.0" ] && grep -q "ended with 0" "$T/err.1"
}
check "those of one launcher share a daemon, and the last one tells" beside
check "nothing is left behind after them" test -z "$(left)"

# Killed, it leaves the job alone; the daemon ends by itself.
killed() {
	local pid daemon
	"$B/ncclinsp" run -q bash -c "echo \$\$ >'$T/job'; exec sleep 30" &
	pid=$!
	wait_until 20 test -s "$T/job"
	daemon=$(pgrep -f "while-locked $T/")
	kill -9 $pid
	wait $pid 2>/dev/null
	kill -0 "$(cat "$T/job")" && wait_until 10 bash -c "! kill -0 $daemon 2>/dev/null"
	local rc=$?
	kill "$(cat "$T/job")"
	return $rc
}
check "killed, it leaves the job alone, and its daemon ends" killed
rm -rf $(left)

# Somebody else's directory of that name is not trusted.
planted() {
	chmod 755 "$T"
	OMPI_COMM_WORLD_LOCAL_RANK=0 bash -c '
		d='"$T"'/ncclinsp-run-'"$(id -u)"'-$$-$(sed "s/.*) //" /proc/$$/stat | cut -d" " -f20)
		mkdir -m 777 "$d"
		"'"$B"'/ncclinsp" run echo done
		rm -r "$d"' >"$T/out" 2>"$T/err"
	grep -qx done "$T/out" && grep -q "cannot start a daemon: Operation not permitted; the job runs all the same" "$T/err"
}
check "a directory that others may write is not used, and the job runs" planted

# Who starts or ends the daemon, and hangs in it, holds up nobody for long.
held() {
	SECONDS=0
	OMPI_COMM_WORLD_LOCAL_RANK=0 bash -c '
		d='"$T"'/ncclinsp-run-'"$(id -u)"'-$$-$(sed "s/.*) //" /proc/$$/stat | cut -d" " -f20)
		mkdir -m 700 "$d"
		exec 9>"$d/election"
		flock 9
		"'"$B"'/ncclinsp" run -q echo done 9>&-
		rm -r "$d"' >"$T/out" 2>"$T/err"
	grep -qx done "$T/out" && grep -q "another ncclinsp run of this launcher" "$T/err" && [ "$SECONDS" -lt 20 ]
}
check "one that hangs while it starts or ends a daemon holds up the others for seconds" held

# ---- a daemon that is there --------------------------------------------------------------
export NCCLINSP_SOCKET=$SOCK
start_daemon
follows() {
	run -q env >"$T/out"
	grep -qx "NCCLINSP_CONTROL=$T/control" "$T/out" && grep -qx "NCCLINSP_SHM_DIR=$SHM" "$T/out" &&
		grep -q '^NCCLINSP_RUN=run-' "$T/out" && grep -qx "NCCL_PROFILER_PLUGIN=$PLUGIN" "$T/out"
}
check "with a daemon the job follows it" follows
kept() { SLURM_JOB_ID=4711 run -q env | grep -c '^NCCLINSP_RUN=' | grep -qx 0; }
check "a scheduler's job keeps its id" kept
SLURM_JOB_ID=4711 play_late
check "findings of that job are told" grep -q "of job 4711" "$T/err"
twice() { for i in 0 1; do OMPI_COMM_WORLD_LOCAL_RANK=$i run true; done 2>&1 | grep -c '^ncclinsp: true ended' | grep -qx 1; }
check "of a launcher's processes one tells" twice
check "a daemon that ends meanwhile is told, and nobody is said to have no plugin" eval \
	'run sh -c "kill -9 $DAEMON_PID" 2>&1 | tr -s "\n " " " | grep -q "ended with 0 after [^;]*; what it did in NCCL is not known: .*did the daemon end"'
start_daemon
check "another profiler plugin is left in its place, and it is said" \
	bash -c "NCCL_PROFILER_PLUGIN=other '$B/ncclinsp' run env 2>&1 | grep -q 'names another plugin.*other'"
told_of() { NCCL_PROFILER_PLUGIN=$1 run -q true 2>&1 | grep -c 'names another plugin'; }
check "NVIDIA's inspector is another" eval '[ "$(told_of /opt/lib/libnccl-profiler-inspector.so)" = 1 ]'
check "our plugin and the chain are not" \
	eval '[ "$(told_of /opt/lib/libnccl-profiler-insp.so)$(told_of libnccl-profiler-insp-chain.so)" = 00 ]'
done_testing
