#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ncclinsp doctor: proves the flow with a library, a daemon and no job, and names what is
# wrong when something is.
. "$(dirname "$0")/lib.sh"

[ -x "$B/ncclinspd" ] && [ -e "$PLUGIN" ] || skip_all "the plugin or the daemon is not built"

I=$B/ncclinsp
unset COLUMNS NO_COLOR NCCL_PROFILER_PLUGIN
export TERM=xterm

# Processes of other tests use other directories: they are warnings here, and no more.
# exam CODE [NAME=VALUE...]: doctor ends with that code.
exam() {
	local want=$1 code
	shift
	env "$@" "$I" doctor >"$T/out" 2>"$T/err"
	code=$?
	[ "$code" -eq "$want" ] || { echo "exit $code"; cat "$T/out" "$T/err"; return 1; }
}

says() { tr -s ' \n' ' ' <"$T/out" | grep -Eq -- "$1" || { cat "$T/out" "$T/err"; return 1; }; }

check "no daemon: exit code 3" exam 3
check "it is the first thing that is wrong" \
	says "The first thing that is wrong: daemon: cannot connect to $SOCK: no such file"
check "and the library was looked at all the same" says "ok library .*libnccl-profiler-insp.so loads"

start_daemon
check "all is well: exit code 0" exam 0
check "an operation went all the way" says "ok flow an operation went from the library to the daemon and back"
check "the last line says so" says "(All is well: the data flows\.|The data flows; look at: .*) $"
exited() { api_is processes '[.processes[] | .state] == ["exited"]'; }
check "its own process ended as it should" wait_until 10 exited
check "and left no finding" api_is findings '.findings == []'
check "rows as json" \
	eval '"$I" doctor -o json | jq -e "[.checks[] | select(.check == \"flow\") | .state] == [\"ok\"]"'
check "rows as csv" eval '"$I" doctor -o csv --fields check,state | grep -qx flow,ok'
check "a level of the environment is no hindrance" \
	eval 'exam 0 NCCLINSP_LEVEL=off && says "ok flow"'

check "a job of this shell is told where levels come from" \
	eval 'exam 0 NCCLINSP_CONTROL= && says "so that ncclinsp level reaches a job, start it with NCCLINSP_CONTROL=$T/control"'
check "but not one that knows" eval 'exam 0 && ! grep -q "so that levels reach" "$T/out"'

check "a library that is not there is the first thing that is wrong" \
	eval 'exam 1 NCCL_PROFILER_PLUGIN=nonsense && says "first thing that is wrong: library: libnccl-profiler-nonsense.so"'
: >"$T/broken.so"
check "... whatever bytes its name has" eval 'exam 1 NCCL_PROFILER_PLUGIN="$(printf "/a\\377\\033.so")" && says "failed library /a\\?\\?.so does not load"'
check "one that is no library does not end the examination" \
	eval 'exam 1 NCCL_PROFILER_PLUGIN="$T/broken.so" && says "failed library .*broken.so does not load" && says "ok daemon"'
mkdir "$SHM/elsewhere" "$T/elsewhere"
check "a directory that the daemon does not read is found by what does not arrive" \
	eval 'exam 1 NCCLINSP_SHM_DIR="$SHM/elsewhere" && says "failed flow what the library records in $SHM/elsewhere does not reach the daemon"'
check "a directory that is not there is named" \
	eval 'exam 1 NCCLINSP_SHM_DIR="$T/nowhere" && says "first thing that is wrong: segments: $T/nowhere: No such file" &&
		says "What to do: mount a tmpfs there"'
check "so is one on a disk" sh -c '[ "$(stat -fc %T "$0")" = tmpfs ] || [ "$1" = 0 ]' "$T" \
	"$(NCCLINSP_SHM_DIR=$T/elsewhere "$I" doctor 2>&1 | tr -s ' \n' ' ' | grep -q 'not in memory'; echo $?)"
check "so is what is no directory" eval 'exam 1 NCCLINSP_SHM_DIR="$T/broken.so" &&
	says "first thing that is wrong: segments: $T/broken.so: it is not a directory"'

# as_nobody CODE [NAME=VALUE...]: root may do everything, so another user looks.  He has
# his own copy of the programs, since the build may lie where he may not go.
as_nobody() {
	local want=$1 code
	shift
	env NCCL_PROFILER_PLUGIN="$OPEN/${PLUGIN##*/}" "$@" \
		setpriv --reuid 65534 --regid 65534 --clear-groups "$OPEN/ncclinsp" doctor >"$T/out" 2>"$T/err"
	code=$?
	[ "$code" -eq "$want" ] || { echo "exit $code"; cat "$T/out" "$T/err"; return 1; }
}
if [ "$(id -u)" -eq 0 ] && setpriv --reuid 65534 --regid 65534 --clear-groups true 2>/dev/null; then
	chmod 755 "$T" "$SHM"
	mkdir "$T/open"
	OPEN=$T/open
	cp "$I" "$PLUGIN" "$OPEN"
	check "a directory that this user may not write is named" \
		eval 'as_nobody 1 && says "first thing that is wrong: segments: $SHM: Permission denied, mode 755" &&
			says "What to do: make it writable .* chmod 1777"'
	check "root is told that others could not write there" \
		eval 'exam 0 && says "warning segments $SHM has mode 755: only its owner"'
	chmod 1777 "$SHM"
	check "and no more when they can" \
		eval 'as_nobody 0 && exam 0 && ! grep -q "its owner only" "$T/out"'
	check "a user is told that he does not see all" \
		eval 'as_nobody 0 && says "ok jobs no process of this user uses NCCL now \(root sees all"'
	# As in a container of Kubernetes that has not got CAP_SYS_PTRACE.
	bare="setpriv --bounding-set=-all --inh-caps=-all"
	if $bare true 2>/dev/null && ! $bare cat /proc/1/maps >/dev/null 2>&1; then
		check "root without capabilities is told that nothing is known, not that there is nobody" \
			eval '$bare "$I" doctor >"$T/out" 2>"$T/err" &&
				says "ok jobs it is unknown which processes use NCCL"'
	else
		skip "root without capabilities" "it cannot be had here, or sees all the same"
	fi
	chmod 600 "$T/control"
	check "a control file that jobs may not read is named" \
		eval 'as_nobody 0 && says "warning control $T/control: Permission denied"'
	chmod 644 "$T/control"
	chmod 600 "$SOCK"
	check "a socket without permission is the first thing" \
		eval 'as_nobody 3 && says "first thing that is wrong: daemon: cannot connect to $SOCK: permission denied" &&
			says "What to do: ask the socket.s owner"'
	chmod 666 "$SOCK"
else
	skip "what another user sees" "needs root and setpriv"
fi

# small SIZE COMMAND...: with a file system of that size for segments.
small() {
	local size=$1
	shift
	unshare -rm sh -c 'mount -t tmpfs -o size="$1" none "$NCCLINSP_SHM_DIR" && shift && exec "$@"' sh "$size" "$@"
}
if small 1m true 2>/dev/null; then
	check "too little space for any process is the first thing" \
		eval 'small 512k "$I" doctor >"$T/out"; says "first thing that is wrong: segments: $SHM has 512KiB free" &&
			says "What to do: make room"'
	# Without a library no operation is waited for.
	check "little space is a warning" \
		eval 'NCCL_PROFILER_PLUGIN=nonsense small 16m "$I" doctor >"$T/out"; says "warning segments $SHM has 16MiB free make room"'
	check "no inode is the first thing" \
		eval 'small 64m,nr_inodes=1 "$I" doctor >"$T/out"; says "first thing that is wrong: segments: $SHM has 64MiB free, but no inode"'
else
	skip "segments on a small file system" "unshare is not allowed here"
fi
slow_clock() {
	echo hpet >"$T/hpet"
	unshare -rm sh -c 'mount --bind "$1" /sys/devices/system/clocksource/clocksource0/current_clocksource &&
		shift && exec "$@"' sh "$T/hpet" "$@"
}
if slow_clock true 2>/dev/null; then
	check "a slow clock is a warning" \
		eval 'slow_clock "$I" doctor >"$T/out"; says "warning clock clocksource hpet: reading the time is slow see why"'
else
	skip "a slow clock" "unshare is not allowed here"
fi

cat >"$T/plain.scn" <<-SCN
nodes 1
processes 1
seed 3
comm dp ranks 0-0 channels 2
loop forever
	compute 10ms
	AllReduce dp 1Mi float32
end
SCN
sim "$T/plain.scn" >/dev/null 2>&1 &
started+=("$!")
live() { api_is processes '[.processes[] | select(.state == "live")] | length == 1'; }
check "a job runs" wait_until 20 live
check "a job that is watched is well" eval 'exam 0 && says "ok jobs [1-9][0-9]* of [0-9]+ processes that use NCCL are watched"'

# uses_nccl NAME [VARIABLE=VALUE...]: a process with a library of NCCL's name; PID is its.
mkdir "$T/lib"
cp "$(ldd "$I" | awk '/libm\.so/ { print $3 }')" "$T/lib/libnccl.so.2"
uses_nccl() {
	local name=$1
	shift
	cp "$(command -v sleep)" "$T/$name"
	env LD_PRELOAD="$T/lib/libnccl.so.2" "$@" "$T/$name" 300 &
	PID=$!
	started+=("$PID")
	check "a process uses NCCL: $name" wait_until 20 grep -q libnccl "/proc/$PID/maps"
}
# told PID NAME TEXT: of that process, or that it is the same as with others.
told() { says "process $1 \($2\) $3" || says "\) $3; the same:( [0-9]+,)* $1[, ]"; }
uses_nccl without
check "it is told by name that it lacks the plugin, and what to do" \
	eval 'exam 0 && told "$PID" without "uses NCCL without the plugin" &&
		says "start it with NCCL_PROFILER_PLUGIN=insp"'
uses_nccl switchedoff NCCL_PROFILER_PLUGIN=none
check "so is one where it is switched off" eval 'exam 0 && told "$PID" switchedoff "uses NCCL with another profiler plugin, or with plugins switched off"'
uses_nccl lost NCCL_PROFILER_PLUGIN=/opt/none/libnccl-profiler-insp.so
check "and one that is to load a file that is none" \
	eval 'exam 0 && told "$PID" lost "has NCCL_PROFILER_PLUGIN set to a file that it does not see" &&
		says "give the library.s path as that process sees it"'
uses_nccl deaf LD_PRELOAD="$T/lib/libnccl.so.2 $PLUGIN" NCCL_PROFILER_PLUGIN=insp
check "one with the plugin that has made no communicator is not known" \
	eval 'exam 1 && told "$PID" deaf "has the plugin, but the daemon knows nothing of it"'
kill "$PID"
env NCCLINSP_CONTROL="$T/elsewhere/control" "$B/nccl-sim" --plugin "$PLUGIN" "$T/plain.scn" >/dev/null 2>&1 &
started+=("$!")
live_two() { api_is processes '[.processes[] | select(.state == "live")] | length == 2'; }
check "a job runs that looks for its level elsewhere" wait_until 20 live_two
check "which is told" eval 'exam 0 && says "process [0-9]+ \(nccl-sim\) is watched, but does not read the daemon.s control file"'

# Both were started with every operation timed for good: neither follows.
wait_until 20 live_two		# doctor's own process may not be gone yet
check "levels do not reach it, which is said in whole sentences" \
	eval '"$I" level node ops --for 60 >"$T/level"; cat "$T/level"; [ "$(wc -l <"$T/level")" -eq 3 ] &&
		grep -qx "node: ops.*; 0 of 2 processes follow" "$T/level" &&
		tail -1 "$T/level" | grep -q "read another control file (see ncclinsp doctor)$"'

kill -STOP "$DAEMON_PID"
check "a daemon that does not answer is the first thing" \
	eval 'exam 3 && says "first thing that is wrong: daemon: $SOCK does not answer within 5000 ms"'
kill -CONT "$DAEMON_PID"
stop_daemon
check "so is one that has ended" eval 'exam 3 && says "first thing that is wrong: daemon: cannot connect"'

start_daemon --control "$T/broken.so/control" --metrics-listen 203.0.113.1:9 \
	--metrics-textfile "$T/none/insp.prom"
check "a control file that cannot be written is a warning" \
	eval 'exam 0 && says "warning control the daemon cannot write $T/broken.so/control: Not a directory"'
check "so is an address that is not this node's" \
	says "warning exporter tcp at 203.0.113.1:9: Cannot assign requested address see ncclinspd's --metrics-listen"
check "and a directory for metrics that is not there" \
	wait_until 20 eval 'exam 0 && says "warning exporter textfile at $T/none/insp.prom: No such file"'
check "nobody has asked for metrics yet" says "ok exporter socket at $SOCK: no answers yet"
curl -s --unix-socket "$SOCK" http://ncclinspd/metrics -o /dev/null
check "when somebody did, is told" eval 'exam 0 && says "ok exporter socket at $SOCK: answers 1, the last .* ago"'
stop_daemon

sed 's/"version":"[^"]*"/"version":"0.0.1"/' "$TOP/tests/top/node.answers" >"$T/answers"
"$B/api-answers" "$SOCK" "$T/answers" &
started+=("$!")
check "another version answers" wait_until 20 api_answers
check "a daemon of another version is a warning" \
	eval '"$I" doctor >"$T/out"; says "warning version the daemon is 0.0.1, this program .* restart the daemon after an upgrade"'
done_testing
