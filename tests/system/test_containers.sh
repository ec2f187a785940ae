#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Jobs in containers, which here are namespaces: with shared memory and pids of their own,
# with equal pids, hostile ones; and a daemon with just the rights that this takes.
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" -eq 0 ] || skip_all "needs root to make containers"
unshare -m -p -f -i -u --mount-proc true 2>/dev/null || skip_all "namespaces are refused here"

I=$B/ncclinsp
chmod 755 "$T"
cat >"$T/job.scn" <<-SCN
	nodes 1
	processes 2
	seed 3
	comm dp ranks 0-1 channels 2
	loop forever
		compute 50ms
		AllReduce dp 64Ki float32
	end
SCN

# What runs as the first process of a container, which has its shared memory from the part
# before "exec": two ranks, whose parent is that process.
SIM="exec $B/nccl-sim --plugin $PLUGIN $T/job.scn"
PRIVATE='mount -t tmpfs -o size=64m tmpfs /dev/shm'
US=test-$$	# what others have in containers at the same time is none of ours
# in_container COMMAND [unshare-option...]: in the background, LAST is its pid here.
in_container() {
	local command=$1
	shift
	env -u NCCLINSP_SHM_DIR NCCLINSP_CONTROL="${CONTROL:-/run/no-such/control}" JOB_NAME="$US" \
		unshare "$@" -m -p -f -i -u --mount-proc --kill-child sh -c "$command" >>"$T/sim" 2>&1 &
	LAST=$!
	started+=("$LAST")
}
# An answer costs more than a look at a file: not twenty times a second.
soon() { local tries=60; until "$@" >/dev/null 2>&1; do tries=$((tries - 1)); [ $tries -gt 0 ] || return; sleep 0.5; done; }

# of_containers JQ: of their live processes, as one array.
of_containers() {
	api_is processes "[.processes[] | select(.container != null and .job.id == \"$US\" and .state == \"live\")] | $1"
}
are_live() { of_containers "length == $1"; }
pids() { api processes | jq --arg us "$US" '.processes[] | select(.job.id == $us and .state == "live") | .pid'; }
all_run() { local pid; for pid in $(pids); do [ "$(cat "/proc/$pid/comm")" = nccl-sim ] || return; done; }

touch "$T/control"	# a job that does not find it looks for it again ten seconds later
in_container "$PRIVATE; $SIM"
FIRST=$LAST
in_container "$PRIVATE; $SIM"
SECOND=$LAST
CONTROL=$T/control in_container "$PRIVATE; $SIM"
REACHED=$LAST
in_container "mount --bind $SHM /dev/shm; $SIM"
SHARED=$LAST
all=8
if unshare -U -r -m true 2>/dev/null; then
	in_container "$PRIVATE; $SIM" -U -r
	OTHERS=$LAST
	all=10
fi
start_daemon --containers yes

check "the processes of all containers are found" soon are_live $all
check "each has a number of its own here" of_containers '[.[].pid] | unique | length == length'
check "under which it runs" all_run
check "some call themselves alike" of_containers '[.[].ns_pid] | length > (unique | length)'
check "nobody has here the number that it has there" of_containers 'all(.pid != .ns_pid)'
reads_on() { of_containers 'all(.records > 100)'; }
check "their records arrive" soon reads_on
check "and none is lost" of_containers 'all(.lost.overrun == 0 and .lost.before == 0)'
check "ps shows both numbers" eval '"$I" ps | grep -q NSPID'
check "and takes the node's" eval '[ "$("$I" ps --pid "$(pids | head -n 1)" --no-header | wc -l)" -eq 1 ]'
check "doctor counts them" eval \
	'"$I" doctor | grep -Eq "^ok +containers +[1-9][0-9]* with their own shared memory"'

# Inside of a container the same processes have other numbers than the daemon's.
inside() {
	nsenter -t "$(pgrep -P "$REACHED")" -m -p -i env NCCLINSP_SOCKET="$SOCK" "$I" doctor >"$T/inside"
	grep -Eq "^ok +jobs +2 of 2 processes that use NCCL are watched" "$T/inside" || { cat "$T/inside"; return 1; }
}
check "doctor knows them there, too" soon inside
in_container "$PRIVATE; mkdir $T/mnt; mount -t tmpfs tmpfs $T/mnt; export NCCLINSP_SHM_DIR=$T/mnt; $SIM"
names_dir() { "$I" doctor | tr -s " \n" " " | grep -q "records into a directory of its container (NCCLINSP_SHM_DIR), where the daemon does not look"; }
check "and names those that were told to use another directory of theirs" soon names_dir
end_all "$LAST"

# ---- levels ---------------------------------------------------------------------

two_follow() { "$I" level --job "$US" ops >"$T/said" && grep -q "; 2 of $all " "$T/said"; }
check "who has the control file follows" soon two_follow
check "of the others it is said" exits 0 \
	"^$((all - 2)) of them, in containers, have never read the control file: is the directory of $T/control mounted" \
	cat "$T/said"
dev_of() { stat -c %d "/proc/$1/root/dev/shm"; }
GONE=$(dev_of "$(pgrep -P "$FIRST")")

# ---- the end ----------------------------------------------------------------------

end_all "$REACHED" "$SHARED" ${OTHERS:-}
{ kill -KILL "$FIRST"; wait "$FIRST"; } 2>/dev/null	# its first process's end is everybody's
check "containers that go are seen to" soon are_live 2
state_of() { api_is processes "[.processes[] | select(.state == \"$1\" and .job.id == \"$US\")] | length >= $2"; }
check "some ended, some were killed" eval 'state_of exited 2 && state_of died 2'
check "what was known of them stays" \
	api_is processes "[.processes[] | select(.job.id == \"$US\") | .container] | all(. != null)"
holds() { local fd; for fd in "/proc/$DAEMON_PID/fd/"*; do stat -L -c %d "$fd"; done 2>/dev/null | grep -qx "$1"; }
check "what is there is held" holds "$(dev_of "$(pgrep -P "$SECOND")")"
let_go() { ! holds "$GONE"; }
check "and what is gone is not" soon let_go

# ---- what the dead leave -----------------------------------------------------------

# The file of one that was killed stays in a container that goes on.
in_container "$PRIVATE; $B/nccl-sim --plugin $PLUGIN $T/job.scn & sleep infinity"
LIVING=$LAST
soon are_live 4
RANKS=$(pgrep -P "$(pgrep -P "$(pgrep -P "$LIVING")" nccl-sim)")
kill -KILL $RANKS
has_died() { api_is processes ".processes[] | select(.pid == $1 and .state == \"died\")"; }
check "who is killed in a container that goes on has died" soon has_died ${RANKS%%[!0-9]*}
left() { ls "/proc/$(pgrep -P "$LIVING")/root/dev/shm" | grep -q '^ncclinsp'; }
check "and its file is not touched" left
stop_daemon
start_daemon --containers yes
soon are_live 2
check "for the next daemon it is no news" \
	api_is findings '[.findings[] | select(.kind == "died")] == []'
check "nor is it listed" api_is processes "[.processes[] | select(.job.id == \"$US\" and .state == \"died\")] == []"
end_all "$LIVING"

# ---- a hostile one ---------------------------------------------------------------

# Names of segments that are links, FIFOs, devices, directories, huge, rubbish, another's,
# mount points, and thousands of them, while others come and go.
cat >"$T/hostile" <<-'EOF'
	mount -t tmpfs -o size=256m tmpfs /dev/shm && cd /dev/shm || exit
	ln -s /etc/passwd ncclinsp.0.1.1
	ln -s /proc/1/mem ncclinsp.0.2.1
	mkfifo ncclinsp.0.3.1
	mknod ncclinsp.0.4.1 c 1 5
	mkdir ncclinsp.0.5.1
	truncate -s 1T ncclinsp.0.6.1
	head -c 1000000 /dev/urandom >ncclinsp.0.7.1
	touch ncclinsp.0.8.1 && chown 4711 ncclinsp.0.8.1
	touch ncclinsp.0.9.1 && mount --bind /dev/zero ncclinsp.0.9.1
	perl -e 'sub make { open F, ">", shift } make("ncclinsp.$_.$_.1") for 1000 .. 8999; make("done");
		for (;;) { for (1 .. 500) { make("ncclinsp.7.$_.7"); unlink "ncclinsp.7.$_.7" } select(undef, undef, undef, 0.2) }'
EOF
in_container "sh $T/hostile"
HOSTILE=$LAST
in_container "$PRIVATE; $SIM"
told_of() { grep -q "many files in a container" "$T/daemon.log"; }
check "a hostile container is noticed, and told of" soon told_of
check "another one is found all the same" soon are_live 4
check "nothing of it that is no file is opened" \
	eval '! ls -l "/proc/$DAEMON_PID/fd" | grep -E "passwd|/mem|/zero"'
check "the daemon's memory is bounded" api_is status '.rss_bytes < 67108864'
check "and its log" test "$(wc -l <"$T/daemon.log")" -lt 200
stop_daemon
end_all "$HOSTILE" "$LAST"

# ---- rights ----------------------------------------------------------------------

# with_rights CAPABILITY...: a daemon of an ordinary user with these and no other.
with_rights() {
	local caps=-all cap
	for cap in "$@"; do caps+=,+$cap; done
	rm -rf "$T/own"
	install -d -m 755 -o 65534 "$T/own"
	SOCK=$T/own/sock
	export NCCLINSP_SOCKET=$SOCK
	HOME=$T/own setpriv --reuid=65534 --clear-groups --no-new-privs --inh-caps=$caps \
		--ambient-caps=$caps --bounding-set=$caps "$B/ncclinspd" --foreground --socket "$SOCK" --shm-dir "$SHM" \
		--state-dir "$T/own/state" --control "$T/own/control" 2>>"$T/daemon.log" &
	DAEMON_PID=$!
	started+=("$DAEMON_PID")
	wait_until 30 api_answers
}
has_looked() { api_is status '.uptime_ns > 1000000000'; }

if setpriv --reuid=65534 --clear-groups test -x "$B/ncclinspd"; then
	with_rights dac_read_search sys_ptrace
	check "a user with two capabilities looks into containers" soon are_live 2
	check "all of them" api_is status '.containers.unseen == 0'
	check "it has these two and no other" \
		test "$(sed -n 's/^CapEff:\t0*//p' "/proc/$DAEMON_PID/status")" = 80004
	stop_daemon
	with_rights dac_read_search
	unseen() { api_is status '.containers.found == 0 and .containers.unseen >= 2'; }
	check "without sys_ptrace none is found, and it is said how many processes are missed" soon unseen
	check "by doctor, too" eval \
		'"$I" doctor | tr -s " \n" " " | grep -Eq "0 looked into; the daemon may not look at [0-9]+ processes of others"'
	stop_daemon
	with_rights sys_ptrace
	soon has_looked
	check "without dac_read_search nothing that others wrote is read" are_live 0
	stop_daemon
else
	skip "a user with two capabilities" "the build folder is closed to others"
fi
end_all "$SECOND"
done_testing
