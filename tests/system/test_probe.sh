#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ncclinsp-probe with the real kernel: which process takes a progress thread's CPU, which one ends a
# process, and what TCP sends again is named; a probe that is absent, hangs or dies harms nothing.
. "$(dirname "$0")/lib.sh"

[ -x "$B/ncclinsp-probe" ] || skip_all "no ncclinsp-probe was built: libbpf, clang or bpftool is missing"
[ "$(id -u)" -eq 0 ] || skip_all "only root may load a program into the kernel"
why=$("$B/ncclinsp-probe" --check 2>&1 >/dev/null) || skip_all "it does not work here: $(tail -n 1 <<<"$why")"
PROBE_SOCK=$T/probe.sock

start_probe() {
	"$B/ncclinsp-probe" --socket "$PROBE_SOCK" 2>>"$T/probe.log" &
	PROBE_PID=$!
	started+=("$PROBE_PID")
	wait_until 20 test -S "$PROBE_SOCK"
}
probe_is() { api_is status ".probe | $1"; }

# ---- rights --------------------------------------------------------------------

as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps "$1" --ambient-caps "$1" --bounding-set "$1" "$B/ncclinsp-probe" --check; }
if setpriv --help 2>/dev/null | grep -q -- --ambient-caps && chmod 755 "$T" && as_nobody -all 2>&1 | grep -q 'CAP_BPF'; then
	check "two capabilities are enough for it" as_nobody -all,+bpf,+perfmon
	check "one of them is not" exits 1 'CAP_PERFMON' as_nobody -all,+bpf
else
	skip "two capabilities are enough for it" "another user cannot run it here, or setpriv is missing"
fi

# ---- a daemon before its probe ---------------------------------------------------

start_daemon --probe "$PROBE_SOCK"
check "a probe that is absent is no trouble" probe_is '.connected == false'
start_probe
check "only its user may connect" test "$(stat -c %a "$PROBE_SOCK")" = 600
check "it is found when it comes" wait_until 30 probe_is .connected

# ---- a CPU that another process takes ----------------------------------------------

# Both are kept to one CPU.  The hog wants a quarter of it, and gets it first: by real time, or by its
# nice value, and where each session is a group of its own, by that of its session.
CPU=$(taskset -cp $$ | sed 's/.*[ ,-]//')
# first NICE COMMAND...: in a session of its own, on that CPU.
first() {
	setsid bash -c 'echo "$1" >/proc/self/autogroup; exec taskset -c "$2" nice -n "$1" timeout -k 1 120 "${@:3}"' \
		first "$1" "$CPU" "${@:2}" 2>>"$T/first" &
	started+=($!)
}
# Its hosts are ahead of their GPUs: kernels begin while somebody else has the CPU.
cat >"$T/job.scn" <<EOF
nodes 2
comm pair ranks 0,1 channels 2
link net rate 1GB/s
loop forever
$(for i in {1..16}; do echo "compute 10ms jitter 2%"; echo "AllReduce pair 1Mi float32"; done)
end
EOF
cp "$(command -v perl)" "$T/nccl-hog"
REAL_TIME=$(chrt -f 1 echo chrt -f 1 2>/dev/null)
first -19 $REAL_TIME "$T/nccl-hog" -MTime::HiRes=time,sleep -e 'for (;;) { $end = time + .04; 1 while time < $end; sleep .12 }'
first -10 "$B/nccl-sim" --plugin "$PLUGIN" "$T/job.scn"
check "it watches processes and their progress threads" wait_until 30 probe_is '.processes == 2 and .threads >= 2'
check "and tells of them" wait_until 20 probe_is '.events > 0 and .refused == 0'
# On a busy machine others take a part as well.
named() {
	api_is 'findings?active=true' ".findings | map(select(.kind == \"proxy_starved\" and
		(.evidence | .taker_command == \"nccl-hog\" and .taker_share > 0) and (.evidence.taker_share < 0.2 or
		(.text | test(\"For [0-9]+ % of that, its CPU ran pid [0-9]+ .nccl-hog.[.]\"))))) | length > 0"
}
check "the finding names the process that has the thread's CPU" wait_until 60 named
pkill -f "$T/nccl-hog"

# ---- a probe that hangs ---------------------------------------------------------------

kill -STOP "$PROBE_PID"
polls() { api status | jq .ingest.records; }
polled=$(polls)
goes_on() { [ "$(polls)" -gt "$polled" ]; }
check "while it hangs, the daemon goes on" wait_until 20 goes_on
kill -CONT "$PROBE_PID"

# ---- who ended it -----------------------------------------------------------------------

cp "$(type -P kill)" "$T/slurmstepd"
victim=$(api processes | jq -r '.processes | map(select(.state == "live"))[0].pid')
"$T/slurmstepd" -9 "$victim" &
SENDER=$!
killed() {
	api_is findings ".findings | map(select(.kind == \"died\")) | length == 1 and
		(.[0] | (.evidence.processes[0] | .sender_pid == $SENDER and .sender_command == \"slurmstepd\") and
		(.text | test(\"It was killed by SIGKILL from pid $SENDER .slurmstepd.: see\")))"
}
check "who killed a process is told, by name and number" wait_until 30 killed
api snapshot >"$T/node.json"
report_says() { "$B/ncclinsp" report -o json "$T/node.json" | jq -r '.. | .text? // empty' | grep -q "SIGKILL from pid $SENDER (slurmstepd)"; }
check "report says the same of the node's file" report_says

# ---- a network that loses packets ---------------------------------------------------------

# A link between two namespaces takes 10 Mb/s and drops what does not fit into its queue of 8 KB.
in_net() { nsenter --net="/proc/$1/ns/net" "${@:2}"; }
net_is_new() { [ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]; }
nets=()
for i in 0 1; do
	unshare --net sleep 300 2>>"$T/net" &
	nets+=("$!")
	started+=("$!")
	wait_until 5 net_is_new "$!" >/dev/null
done
net_is_lossy() {
	in_net "${nets[0]}" ip link add lossy0 type veth peer name lossy1 netns "${nets[1]}" &&
		in_net "${nets[0]}" ip addr add 10.99.0.1/24 dev lossy0 && in_net "${nets[0]}" ip link set lossy0 up &&
		in_net "${nets[1]}" ip addr add 10.99.0.2/24 dev lossy1 &&
		in_net "${nets[1]}" ip addr add 10.99.0.3/24 dev lossy1 && in_net "${nets[1]}" ip link set lossy1 up &&
		in_net "${nets[0]}" tc qdisc add dev lossy0 root tbf rate 10mbit burst 4k limit 8k
}
if have ip tc nsenter && net_is_new "${nets[0]}" && net_is_new "${nets[1]}" && net_is_lossy 2>>"$T/net"; then
	in_net "${nets[1]}" perl -MIO::Socket::INET -e '
		$all = IO::Socket::INET->new(LocalPort => 5001, Listen => 8, ReuseAddr => 1) or die;
		while ($one = $all->accept) { fork or do { 1 while sysread $one, $bytes, 65536; exit } }' 2>>"$T/net" &
	started+=($!)
	in_net "${nets[0]}" perl -MIO::Socket::INET -e '
		$one = IO::Socket::INET->new(PeerAddr => "10.99.0.3", PeerPort => 5001) or die;
		1 while syswrite $one, "\0" x 65536' 2>>"$T/net" &
	started+=($!)
	printf '%s\n' "nodes 4" "comm wide ranks 0-3 channels 2" "link net rate 100MB/s" "pace real" \
		"slow link 1 to 2 by 4x" "loop forever" "compute 30ms jitter 2%" "AllReduce wide 64Ki float32" "end" >"$T/wide.scn"
	LD_PRELOAD=$B/sending.so SENDING_TO=10.99.0.2 in_net "${nets[0]}" \
		timeout -k 1 120 "$B/nccl-sim" --plugin "$PLUGIN" "$T/wide.scn" 2>>"$T/net" &
	WIDE_PID=$!
	started+=("$WIDE_PID")
	resent() {
		api_is 'findings?active=true' ".findings | map(select(.kind == \"slow_peer\" and .comm_name == \"wide\" and
			(.evidence | .resent_segments >= 10 and .resent_to == \"10.99.0.2\" and .resent_window_ns <= 30e9) and
			(.text | test(\"[.] [0-9]+ TCP segments from the sending process to 10.99.0.2 were sent again in the last \")))) |
			length > 0"
	}
	check "segments that a network lost are told of the slow link, with the address" wait_until 60 resent
	check "segments of a process that nobody watches are told to nobody" probe_is '.refused == 0'
	end_all "$WIDE_PID"
else
	for name in "segments that a network lost are told of the slow link, with the address" \
		"segments of a process that nobody watches are told to nobody"; do
		skip "$name" "no network that loses packets can be made here: ip or tc is missing, or $(tail -n 1 "$T/net")"
	done
fi

# ---- a probe that dies -------------------------------------------------------------------

kill -KILL "$PROBE_PID"
check "a probe that dies is seen to be gone" wait_until 20 probe_is '.connected == false'
start_probe
check "and found when it is there again" wait_until 30 probe_is .connected
stop_daemon
check "the probe outlives the daemon" kill -0 "$PROBE_PID"

# A client that changes what it asks for all the time, and a process of it that signals itself.
cat >"$T/changing.pl" <<'END'
use Socket;
use Time::HiRes qw(usleep);
alarm 60;
my ($path, $n, $lost, $sets, $bytes) = (shift, 5000, 0, 0);
my (%told, $probe, $ready, $go);
socket($probe, AF_UNIX, SOCK_SEQPACKET, 0);
connect($probe, sockaddr_un($path)) or die "$path: $!";
pipe($ready, $go);
$SIG{$_} = sub { } for qw(HUP USR1 USR2);
my $pid = fork;
if (!$pid) {
	alarm 60;
	1 until sysread $ready, $bytes, 1;
	for (1 .. $n) { kill USR1 => $$; usleep(20) }
	for (;;) { kill USR2 => $$; usleep(10000) }
}
sub ask { send $probe, pack("L l L L l*", 0x6e637032, $$, 1 + @_, 0, $pid, @_), 0 }
sub hear {
	while (defined recv $probe, $bytes, 8192, MSG_DONTWAIT) {
		last if !length $bytes;
		for (unpack "(a136)*", $bytes) {
			my (undef, undef, $missed, $number, $kind, $signal) = unpack "Q3 l L l";
			next if $number != $pid || $kind != 2;
			$told{$signal}++;
			return $lost = $missed if $signal == 12;
		}
	}
}
ask();
do { kill HUP => $pid; usleep(10000); hear() } until $told{1};
syswrite $go, "x";
for (; !$told{12} && $sets < 100000; hear()) {
	ask($sets++ % 2 ? 4000001 .. 4000100 : ());
	usleep(300);
}
kill KILL => $pid;
print "$sets sets, $told{10} of $n signals, $lost counted as lost\n";
exit($told{10} + $lost < $n || $sets < 100);
END
check "whatever else is asked for, no signal of a watched process is missed" perl "$T/changing.pl" "$PROBE_SOCK"
kill "$PROBE_PID"
wait "$PROBE_PID"
check "and ends with status 0" test $? -eq 0
done_testing
