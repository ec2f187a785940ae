#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# systemd's files as far as they can be judged without one that runs, and the daemon's
# part of its protocols against a service manager that is played.
. "$(dirname "$0")/lib.sh"
cd "$TOP" || exit 1

make --no-print-directory -s B="$B" DESTDIR="$T/root" PREFIX=/usr install >/dev/null
UNITS=$T/root/usr/lib/systemd

# ---- units --------------------------------------------------------------------

# What systemd says of them (it may not like others of this machine), but for two keys
# that are newer than some and ignored there.
complaints() {
	systemd-analyze verify --man=no "$@" 2>&1 | grep -E "ncclinspd|ncclinsp-probe" |
		grep -Ev "Unknown key .(RestartSteps|RestartMaxDelaySec). in section .Service., ignoring|^$"
}
has_no_complaint() {
	local said
	# The programs are where the units say, for as long as they are looked at.
	sed "s|/usr/sbin/ncclinsp|$B/ncclinsp|" "$1" >"$T/${1##*/}"
	said=$(complaints "$T/${1##*/}") && printf '%s\n' "$said" | grep . && return 1
	return 0
}
exposure() { systemd-analyze security --no-pager --offline=yes --threshold=20 "$1" | tail -n 1; }
capabilities() { sed -n 's/^CapabilityBoundingSet=//p' "$UNITS/system/ncclinspd.service"; }

if systemd-analyze --version >/dev/null 2>&1; then
	cp "$UNITS/system/ncclinspd.socket" "$T"
	check "systemd understands the service" has_no_complaint "$UNITS/system/ncclinspd.service"
	check "systemd understands the socket" has_no_complaint "$UNITS/system/ncclinspd.socket"
	cp "$UNITS/system/ncclinsp-finding@.service" "$T/ncclinsp-finding@1.service"
	sed -i "s|^ExecStart=.*|ExecStart=/bin/cat|" "$T/ncclinsp-finding@1.service"
	check "systemd understands what acts on a finding" has_no_complaint "$T/ncclinsp-finding@1.service"
	cp "$T/ncclinsp-finding@1.service" "$T/ncclinsp-finding@.service"
	check "... and its socket" has_no_complaint "$UNITS/system/ncclinsp-finding.socket"
	if [ -x "$B/ncclinsp-probe" ]; then
		cp "$UNITS/system/ncclinsp-probe.socket" "$T"
		check "systemd understands the probe" has_no_complaint "$UNITS/system/ncclinsp-probe.service"
		check "... and its socket" has_no_complaint "$UNITS/system/ncclinsp-probe.socket"
		check "its exposure is 2.0 at most, too" systemd-analyze security --no-pager --offline=yes \
			--threshold=20 "$UNITS/system/ncclinsp-probe.service"
		echo "# $(exposure "$UNITS/system/ncclinsp-probe.service")"
	fi
	mkdir -p "$T/user" && cp "$UNITS/user/ncclinspd.service" "$T/user"
	check "systemd understands a user's own service" has_no_complaint "$T/user/ncclinspd.service"
	check "its exposure is 2.0 at most" \
		systemd-analyze security --no-pager --offline=yes --threshold=20 \
		"$UNITS/system/ncclinspd.service"
	echo "# $(exposure "$UNITS/system/ncclinspd.service")"
	# As systemd puts unit and drop-in together.
	mkdir "$T/looking"
	cat "$UNITS/system/ncclinspd.service" systemd/containers.conf >"$T/looking/ncclinspd.service"
	check "also where it may look into containers" \
		systemd-analyze security --no-pager --offline=yes --threshold=20 "$T/looking/ncclinspd.service"
	check "which systemd understands" has_no_complaint "$T/looking/ncclinspd.service"
	echo "# $(exposure "$T/looking/ncclinspd.service")"
else
	skip "systemd understands the units" "there is no systemd-analyze"
fi
check "it may read and remove what others left, and nothing more" \
	test "$(capabilities)" = "CAP_DAC_READ_SEARCH CAP_FOWNER"

# ---- user and directories -----------------------------------------------------

in_group() { grep -q '^ncclinsp:x:' "$T/root/etc/group"; }
made() { systemd-tmpfiles --root="$T/root" --create "$T/root/usr/lib/tmpfiles.d/ncclinsp.conf"; }
looks() {	# NAME MODE: of the daemon's user and group there, and empty
	[ "$(stat -c '%a %u %g' "$T/root/run/ncclinsp/$1")" = "$2 $uid $gid" ]
}
if [ "$(id -u)" -eq 0 ] && have systemd-sysusers systemd-tmpfiles; then
	check "sysusers.d makes the user" \
		systemd-sysusers --root="$T/root" "$T/root/usr/lib/sysusers.d/ncclinsp.conf"
	uid=$(sed -n 's/^ncclinsp:[^:]*:\([0-9]*\):.*/\1/p' "$T/root/etc/passwd")
	gid=$(sed -n 's/^ncclinsp:[^:]*:\([0-9]*\):.*/\1/p' "$T/root/etc/group")
	check "and the group, whose members see everything" in_group
	check "it cannot log in" grep -q '^ncclinsp:.*/nologin$' "$T/root/etc/passwd"
	check "tmpfiles.d makes the directory" made
	check "which everybody may enter and the daemon write to" looks . 755
	check "and the control file, which everybody may read" looks control 644
	check "empty" test ! -s "$T/root/run/ncclinsp/control"
	inode=$(stat -c %i "$T/root/run/ncclinsp/control")
	echo kept >"$T/root/run/ncclinsp/control"
	check "once more" made
	check "it leaves a control file that is in use" \
		test "$(cat "$T/root/run/ncclinsp/control") $(stat -c %i "$T/root/run/ncclinsp/control")" = "kept $inode"
else
	skip "sysusers.d and tmpfiles.d" "needs root and systemd's programs"
fi

# ---- a manager that is played ---------------------------------------------------

perl -MSocket -e '$| = 1; socket(S, PF_UNIX, SOCK_DGRAM, 0); bind(S, sockaddr_un(shift)) or die;
	while (defined recv(S, $m, 4096, 0)) { print map("$_\n", split(/\n/, $m)), "--\n" }' \
	"$T/notify" >"$T/said" &
started+=("$!")
wait_until 20 test -S "$T/notify"

# Holds a socket as systemd does, and becomes the daemon.
cat >"$T/activate" <<'EOF'
use Socket; use POSIX;
$^F = 10;
my $path = shift;
socket(S, PF_UNIX, SOCK_STREAM, 0) && bind(S, sockaddr_un($path)) && listen(S, 16) or die;
chmod 0666, $path;
dup2(fileno(S), 3) if fileno(S) != 3;
@ENV{qw(LISTEN_FDS LISTEN_PID)} = (1, $$);
exec @ARGV;
EOF
NOTIFY_SOCKET=$T/notify WATCHDOG_USEC=300000 perl "$T/activate" "$T/given.sock" \
	"$B/ncclinspd" --foreground --socket "$SOCK" --shm-dir "$SHM" --state-dir "$T/state" --containers no \
	2>>"$T/daemon.log" &
DAEMON_PID=$!
started+=("$DAEMON_PID")
said() { grep -qx -- "$1" "$T/said"; }
said_often() { [ "$(grep -cx -- "$1" "$T/said")" -ge "$2" ]; }
answers_there() { curl -sf --unix-socket "$T/given.sock" http://ncclinspd/v1/status -o /dev/null; }

check "it says that it is ready" wait_until 20 said READY=1
check "it answers on the socket that it was given" wait_until 20 answers_there
check "and on no other" test ! -e "$SOCK"
check "the one lock is beside that socket" test -e "$T/given.sock.lock"
check "it says again and again that it is alive" wait_until 20 said_often WATCHDOG=1 4
check "and what it does" wait_until 20 said 'STATUS=processes: 0'
kill -HUP "$DAEMON_PID"
check "it says that it reads its configuration" wait_until 20 said RELOADING=1
check "since when" wait_until 20 said 'MONOTONIC_USEC=[0-9]*'
check "and that it has" wait_until 20 said_often READY=1 2
stop_daemon TERM
check "it ends with status 0" test $? -eq 0
check "it says that it ends" wait_until 20 said STOPPING=1
check "the socket stays: it is the manager's" test -S "$T/given.sock"
ready_comes_last() { [ "$(grep -n 'RELOADING=1' "$T/said" | cut -d : -f 1)" -lt "$(grep -n READY=1 "$T/said" | tail -n 1 | cut -d : -f 1)" ]; }
check "who reloads is ready afterwards" ready_comes_last

check "a socket that does not listen is refused" exits 1 'exactly one listening unix socket' \
	env LISTEN_FDS=1 perl -e '$^F = 10; $ENV{LISTEN_PID} = $$; open(F, "<", "/dev/null"); exec @ARGV' \
	"$B/ncclinspd" --foreground --socket "$SOCK" --shm-dir "$SHM" --state-dir "$T/state" --containers no
done_testing
