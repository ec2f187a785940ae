#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The packages in a system of their own that systemd has booted: installed, used by
# ordinary users, reloaded, restarted, upgraded under a job, removed.
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/tree.sh"

DEBS=$(echo "$B"/deb/libnccl-profiler-insp_*.deb "$B"/deb/ncclinsp_*.deb)
ls $DEBS >/dev/null || skip_all "no packages in $B/deb: make deb"
needed() { for deb in $DEBS; do dpkg-deb -f "$deb" Depends | dependencies; done; }
fresh_tree booted systemd systemd-sysv dbus libpam-systemd procps curl jq gdb $(needed)
ROOT=$T/booted

# ---- the machine -----------------------------------------------------------------

cp $DEBS "$ROOT/root"
cp "$B/nccl-sim" "$ROOT/usr/local/bin"
sed -e 's/^loop .*/loop forever/' -e 's/compute .*/compute 20ms/' "$TOP/tests/scenarios/steady.scn" \
	>"$ROOT/opt/steady.scn"
cp "$TOP/tests/scenarios/frozen-gpu.scn" "$ROOT/opt"
chmod 644 "$ROOT"/opt/*.scn
for user in alice bob carol; do chroot "$ROOT" useradd -m $user; done

# What the filter refuses ends the daemon here, so that nothing is refused unseen.
mkdir -p "$ROOT/etc/systemd/system/ncclinspd.service.d"
printf '[Service]\nSystemCallErrorNumber=kill\nWatchdogSec=2s\n' \
	>"$ROOT/etc/systemd/system/ncclinspd.service.d/test.conf"

systemd-nspawn --quiet -D "$ROOT" --boot --register=no --keep-unit --private-network \
	--machine="ncclinsp-test-$$" </dev/null >"$T/console" 2>&1 &
NSPAWN=$!
started+=("$NSPAWN")
# Its first process outlives the program that has started it; nothing in it outlives that.
trap '[ -z "${LEADER:-}" ] || kill -KILL "$LEADER" 2>/dev/null; finish' EXIT
leader() { LEADER=$(pgrep -P "$NSPAWN") && [ -n "$LEADER" ]; }
inside() { nsenter -t "$LEADER" -m -u -i -n -p -C -r -w -- env -i PATH=/usr/local/bin:/usr/bin:/usr/sbin LC_ALL=C.UTF-8 "$@"; }
as() { inside su "$1" -c "$2"; }
is_up() { [ "$(inside systemctl is-system-running)" = running ]; }
wait_until 60 leader && wait_until 60 is_up ||
	skip_all "no system boots here: $(tr -d '\033' <"$T/console" | grep . | tail -n 1)"

prop() { inside systemctl show -P "$1" ncclinspd; }
is() { local got; got=$(prop "$1"); [ "$got" = "$2" ] || { echo "$1=$got"; return 1; }; }
journal() { inside journalctl -u ncclinspd --no-pager -o cat; }
tells() { journal | grep -Eq -- "$1" || { journal | tail -n 20; return 1; }; }

# ---- installed --------------------------------------------------------------------

check "the packages install" inside sh -c 'dpkg -i /root/*.deb'
check "the service runs" wait_until 30 is ActiveState active
check "as its own user" is User ncclinsp
check "and will after the next boot" inside systemctl is-enabled ncclinspd.service ncclinspd.socket
check "nobody's session starts one of its own" \
	sh -c '[ "$1" = disabled ]' sh "$(inside systemctl --global is-enabled ncclinspd 2>/dev/null)"
check "its exposure is 2.0 at most" inside systemd-analyze security --no-pager --threshold=20 ncclinspd
echo "# $(inside systemd-analyze security --no-pager ncclinspd | tail -n 1)"

main_pid() { prop MainPID; }
status_of() { inside sh -c "sed -n 's/^$1:[[:space:]]*//p' /proc/$(main_pid)/status"; }
two_capabilities() {
	local set
	for set in CapPrm CapEff CapBnd CapAmb; do
		[ "$(status_of $set)" = 000000000000000c ] || { echo "$set $(status_of $set)"; return 1; }
	done
}
check "it has the rights to read and to remove, and no other" two_capabilities
check "it can get no more" test "$(status_of NoNewPrivs) $(status_of Seccomp)" = "1 2"
sees() { inside nsenter -t "$(main_pid)" -m -- sh -c "$1"; }
check "it sees nobody's passwords" sees '! test -e /etc/shadow'
check "nor homes" sees '! test -e /home/alice'
check "it can write nowhere that matters" \
	sees '! touch /usr/x && ! touch /etc/x && ! touch /var/x && ! touch /x'
check "it has no network but the empty one" \
	test "$(inside cat "/proc/$(main_pid)/net/dev" | grep -c :)" -eq 1

# ---- used ---------------------------------------------------------------------------

# job USER SCENARIO: four processes that NCCL's plugin is loaded into by its name.
job() { as "$1" "setsid nccl-sim --plugin libnccl-profiler-insp.so /opt/$2.scn >/dev/null 2>&1 &"; }
processes() { as "$1" 'ncclinsp ps' 2>/dev/null | grep -c ' live .*nccl-sim'; }
sees_jobs() { local n; n=$(processes "$1"); [ "$n" = "$2" ] || { echo "$1 sees $n"; return 1; }; }
inside usermod -aG ncclinsp carol

check "a user's job starts" job alice steady
check "the user sees it" wait_until 30 sees_jobs alice 4
job_pids=$(inside pgrep -d , nccl-sim)
check "another one sees nothing of it" sees_jobs bob 0
check "who is in the group does" sees_jobs carol 4
check "and root" sees_jobs root 4
check "nothing of it is lost" \
	as alice "curl -sf --unix-socket /run/ncclinsp/ncclinspd.sock http://x/v1/processes |
		jq -es '[.[].processes[].lost[]] | add == 0'"
check "jobs can read the control file" as alice 'test -r /run/ncclinsp/control'
check "and not write it, nor what lies beside it" \
	as alice '! test -w /run/ncclinsp/control && ! test -w /run/ncclinsp'
check "the state is the daemon's own" as alice '! ls /var/lib/ncclinsp/blackbox'

as_level() { as alice 'ncclinsp ps' | awk '/nccl-sim/ { print $6 }' | sort -u | tr '\n' ' '; }
level_is() { [ "$(as_level)" = "$1 " ] || { as_level; return 1; }; }
check "root changes the level of all" inside ncclinsp level node ops
check "which the job hears of through the control file" wait_until 20 level_is ops
check "others may not" as bob '! ncclinsp level node trace'
check "the file is still the same one" as alice '[ "$(stat -c "%a %U" /run/ncclinsp/control)" = "644 ncclinsp" ]'
check "root takes it back" inside ncclinsp level node default

# ---- taken over ---------------------------------------------------------------------

# What somebody could do who runs code of his own in the daemon's place: the same unit,
# another program.  It prints what it was able to do.
cat >"$ROOT/usr/local/bin/intruder" <<'EOF'
#!/bin/bash
read -r victim </usr/local/share/victim
set -- /dev/shm/ncclinsp.*
segment=$1
can() { local what=$1; shift; "$@" >/dev/null 2>&1 && echo "intruder can $what"; }
can read-segments head -c 64 "$segment"
can write-segments dd if=/dev/zero of="$segment" bs=1 count=1 conv=notrunc
can open-segments-up chmod 666 "$segment"
can take-segments-over chown ncclinsp "$segment"
can kill-jobs kill -TERM "$victim"
can trace-jobs sh -c "exec 3<>/proc/$victim/mem"
can read-jobs-memory dd if="/proc/$victim/mem" bs=1 count=1
can read-homes ls /home/alice
can read-passwords cat /etc/shadow
can read-logs ls /var/log
can write-programs touch /usr/sbin/ncclinspd
can write-configuration sh -c 'echo >>/etc/ncclinsp/ncclinspd.conf'
can use-the-network curl -s -m 5 http://127.0.0.1/
can make-namespaces unshare -U true
can be-root setpriv --reuid=0 true
can make-setuid sh -c 'cp /bin/true /dev/shm/x && chmod 4755 /dev/shm/x'
can mount mount -t tmpfs tmpfs /tmp
true
EOF
chmod 755 "$ROOT/usr/local/bin/intruder"
inside sh -c 'pgrep -u alice -o nccl-sim >/usr/local/share/victim'
sed -e 's|^ExecStart=.*|ExecStart=/usr/local/bin/intruder|' -e '/^ExecReload/d' -e '/^Restart/d' \
	-e 's/^Type=.*/Type=oneshot/' -e '/^WatchdogSec/d' -e '/^Requires/d' -e '/^After/d' \
	"$ROOT/lib/systemd/system/ncclinspd.service" >"$ROOT/run-intruder.service"
inside cp /run-intruder.service /run/systemd/system/intruder.service
inside systemctl daemon-reload
intrusion() { inside journalctl --sync; inside journalctl -u intruder --no-pager -o cat | sed -n 's/^intruder can //p' | sort | tr '\n' ' '; }
check "an intruder starts in the daemon's place" inside systemctl start intruder
check "and can read what the daemon can, nothing else" test "$(intrusion)" = "read-segments "
check "the job has not noticed" sees_jobs alice 4

# ---- containers ---------------------------------------------------------------------

# One of a mount and a pid namespace, with a job of alice's in it.
inside sh -c 'setsid unshare -m -p -f --mount-proc sh -c "mount -t tmpfs tmpfs /dev/shm &&
	exec su alice -c \"nccl-sim --plugin libnccl-profiler-insp.so /opt/steady.scn\"" >/dev/null 2>&1 &'
four_in_it() { inside sh -c 'pgrep -c -n nccl-sim >/dev/null && [ "$(pgrep -c -u alice nccl-sim)" -ge 9 ]'; }
check "a job starts in a container" wait_until 30 four_in_it
unseen() { as carol 'curl -sf --unix-socket /run/ncclinsp/ncclinspd.sock http://x/v1/status' | jq -e '.containers.unseen >= 4'; }
check "the daemon has no right to look into it, and says so" wait_until 30 unseen
check "it sees the others" sees_jobs root 4
cp "$TOP/systemd/containers.conf" "$ROOT/etc/systemd/system/ncclinspd.service.d"
inside systemctl daemon-reload
check "with the drop-in that allows it" inside systemctl restart ncclinspd.service
check "its exposure is 2.0 at most, too" inside systemd-analyze security --no-pager --threshold=20 ncclinspd
check "it sees them all" wait_until 30 sees_jobs alice 8
check "and makes no call that is refused for it" is NRestarts 0
inside rm /etc/systemd/system/ncclinspd.service.d/containers.conf
inside systemctl daemon-reload
inside sh -c 'kill -KILL $(pgrep -f "unshare -m -p -f" | head -n 1)'
inside systemctl restart ncclinspd.service
wait_until 30 sees_jobs alice 4
job_pids=$(inside pgrep -d , nccl-sim)

# ---- reloaded and restarted ---------------------------------------------------------

conf() { inside sh -c "printf '$1' >/etc/ncclinsp/ncclinspd.conf"; }
before=$(main_pid)
conf 'log-level = debug\n'
check "it reloads" inside systemctl reload ncclinspd
check "and says so" wait_until 10 tells 'configuration read'
conf 'log-level = loud\n'
check "a reload of what is wrong fails" sh -c '! "$@"' sh nsenter -t "$LEADER" -a systemctl reload ncclinspd
check "and says what is" tells 'ncclinspd.conf:1: log-level must be err, warn, info or debug'
check "it goes on" is MainPID "$before"
conf ''
check "a user's job survives the daemon" inside systemctl stop ncclinspd.service
check "who asks meanwhile waits for the next one, and is answered" wait_until 30 sees_jobs alice 4
check "it is another one" sh -c '[ "$1" != "$2" ]' sh "$before" "$(main_pid)"
check "nothing that it does in normal use is refused" is NRestarts 0

# ---- over TCP -----------------------------------------------------------------------

tcp() { inside curl -sf -m 5 http://127.0.0.1:9464/metrics | grep -q '^ncclinsp_'; }
no_tcp() { ! tcp; }
DROP_IN=/etc/systemd/system/ncclinspd.service.d/metrics.conf
conf 'metrics-listen = 9464\n'
inside systemctl restart ncclinspd
check "an address alone gives nobody a network" no_tcp
mkdir -p "$ROOT/root/deploy" && cp "$TOP/deploy/systemd/metrics.conf" "$ROOT/root/deploy"
inside install -D -m 644 /root/deploy/metrics.conf $DROP_IN
inside systemctl daemon-reload
inside systemctl restart ncclinspd
check "with the drop-in that comes along, metrics are served over TCP" wait_until 30 tcp
check "the socket answers as before" wait_until 30 sees_jobs alice 4
check "nothing that TCP takes is refused" is NRestarts 0
echo "# $(inside systemd-analyze security --no-pager ncclinspd | tail -n 1) with it"
inside rm $DROP_IN
conf ''
inside systemctl daemon-reload
inside systemctl restart ncclinspd
check "without it there is none again" no_tcp
check "the job is seen by the daemon that has none" wait_until 30 sees_jobs alice 4

# ---- to a collector -----------------------------------------------------------------

# It runs on this side, in the system's network.
mkdir "$T/collector"
nsenter -t "$LEADER" -n python3 "$TOP/tests/otlp/collector.py" "$T/collector" 4318 &
started+=("$!")
pushed() { ls "$T/collector"/*.metrics.json; }
DROP_IN=/etc/systemd/system/ncclinspd.service.d/otlp.conf
conf 'otlp-endpoint = http://localhost:4318\notlp-interval = 1s\n'
inside systemctl restart ncclinspd
check "a URL alone gives nobody a network" sh -c 'sleep 5; ! "$@"' sh ls "$T/collector/requests"
cp "$TOP/deploy/systemd/otlp.conf" "$ROOT/root/deploy"
inside install -D -m 644 /root/deploy/otlp.conf $DROP_IN
inside systemctl daemon-reload
inside systemctl restart ncclinspd
check "with the drop-in that comes along, a collector gets metrics" wait_until 30 pushed
check "the socket answers then, too" wait_until 30 sees_jobs alice 4
check "nothing that pushing takes is refused" is NRestarts 0
inside rm $DROP_IN
conf ''
inside systemctl daemon-reload
inside systemctl restart ncclinspd
check "the job is seen by the daemon that pushes nothing" wait_until 30 sees_jobs alice 4

# ---- what is gathered of a finding ---------------------------------------------------

install -D -m 755 "$TOP/deploy/on-finding/evidence.sh" "$ROOT/etc/ncclinsp/on-finding"
cp "$TOP/deploy/systemd/evidence.conf" "$ROOT/root/deploy"
inside install -D -m 644 /root/deploy/evidence.conf /etc/systemd/system/ncclinsp-finding@.service.d/evidence.conf
conf 'on-finding = /run/ncclinsp-finding.sock\n'
inside systemctl daemon-reload
inside systemctl start ncclinsp-finding.socket
inside systemctl restart ncclinspd
job bob frozen-gpu
gathered() { as bob 'ncclinsp diagnose -o json' | jq -e "any(.findings[]; .gathered | length >= 2 and $1)" || { inside journalctl -u 'ncclinsp-finding@*' --no-pager -o cat | tail -n 20; return 1; }; }
check "a critical finding tells where its process is" wait_until 90 gathered '(.[0] | test("main thread, state [A-Z]"))'
check "... by the stack that a debugger found as its user" gathered '(.[0] | test("nanosleep.* < .* < ") and (test("[?][?]") | not))'
check "... which is kept for root alone" sh -c '! "$@"' sh inside su alice -c 'ls /var/lib/ncclinsp-evidence'
inside pkill -KILL -u bob nccl-sim
inside systemctl stop ncclinsp-finding.socket
conf ''
inside systemctl restart ncclinspd
check "the job is seen by the daemon that tells nobody" wait_until 30 sees_jobs alice 4

inside kill -STOP "$(main_pid)"
restarted() { [ "$(prop NRestarts)" = 1 ] && is ActiveState active; }
check "one that hangs is replaced" wait_until 60 restarted
check "by the watchdog" tells 'Watchdog timeout'
check "and the next one sees the job" wait_until 30 sees_jobs alice 4

check "it is upgraded while the job runs" inside sh -c 'dpkg -i /root/*.deb'
check "the job is seen by the new one" wait_until 30 sees_jobs alice 4
check "and has not noticed" sh -c '[ "$1" = "$2" ]' sh "$job_pids" "$(inside pgrep -d , nccl-sim)"

# ---- upgraded to another format --------------------------------------------------------

# other_deb PACKAGE PATH FILE: the package as a later version has it, with that file.
other_deb() {
	local new=$T/other-$1
	dpkg-deb -R "$B"/deb/"$1"_*.deb "$new" && cp "$3" "$(echo "$new"/$2)" &&
		sed -i 's/^Version: .*/Version: 9.0/' "$new/DEBIAN/control" &&
		dpkg-deb -b "$new" "$ROOT/root/other/$1.deb"
}
mkdir "$ROOT/root/other"
other_deb ncclinsp usr/sbin/ncclinspd "$B/other-abi/ncclinspd" >/dev/null
other_deb libnccl-profiler-insp 'usr/lib/*/libnccl-profiler-insp.so' \
	"$B/other-abi/libnccl-profiler-insp.so" >/dev/null
tells_format() {	# USER PATTERN
	local said
	said=$(as "$1" 'ncclinsp ps' 2>&1)
	grep -Eq -- "$2" <<<"$said" || { echo "$said"; return 1; }
}
format=$(sed -n 's/^#define NCI_ABI_MAJOR[[:space:]]*\([0-9]*\).*/\1/p' "$TOP/include/nci/abi.h")
older="not watched: process [0-9]+ and 3 more, whose plugin writes format $format; the daemon reads format $((format + 1))"
newer="not watched: process [0-9]+ and 3 more, whose plugin writes format $((format + 1)); the daemon reads format $format"
check "an upgrade changes the format under a job" inside dpkg -i /root/other/ncclinsp.deb
check "its user is told why it is not there" wait_until 30 tells_format alice "$older"
check "another one is not" sh -c '! "$@" | grep "not watched"' sh \
	nsenter -t "$LEADER" -a su bob -c 'ncclinsp ps 2>&1'
check "the job has not noticed" sh -c '[ "$1" = "$2" ]' sh "$job_pids" "$(inside pgrep -d , nccl-sim)"
check "the daemon is put back" inside sh -c 'dpkg -i /root/ncclinsp_*.deb'
check "and sees the job again" wait_until 30 sees_jobs alice 4
check "the plugin is upgraded first" inside dpkg -i /root/other/libnccl-profiler-insp.deb
check "a job starts with it" job bob steady
check "its user is told that the daemon is older" wait_until 30 tells_format bob "$newer"
check "the other job is watched as before" sees_jobs alice 4
inside pkill -KILL -u bob nccl-sim
inside sh -c 'rm -f /dev/shm/ncclinsp.$(id -u bob).*'
check "the plugin is put back" inside sh -c 'dpkg -i /root/libnccl*.deb'

# ---- a death ------------------------------------------------------------------------

segments() { inside sh -c 'ls /dev/shm | grep -c ^ncclinsp'; }
segments_are() { [ "$(segments)" = "$1" ]; }
check "its segments are there" segments_are 4
inside pkill -KILL -u alice nccl-sim
check "what the dead leave is removed" wait_until 30 segments_are 0
check "a job that will hang starts" job alice frozen-gpu
hangs() { as alice 'ncclinsp inflight --older-than 2' | grep -q AllReduce; }
check "and hangs in the middle of something" wait_until 60 hangs
inside pkill -KILL -u alice nccl-sim
black_box() { inside sh -c 'ls /var/lib/ncclinsp/blackbox/*-died.json'; }
check "a black box is written" wait_until 30 black_box
check "nothing that it does then is refused" is NRestarts 0

# ---- a user's own ---------------------------------------------------------------------

inside loginctl enable-linger bob
uid=$(inside id -u bob)
own() { as bob "XDG_RUNTIME_DIR=/run/user/$uid $1"; }
manager_is_up() { own 'systemctl --user is-system-running'; }
wait_until 30 manager_is_up
check "a user starts one without root" own 'systemctl --user start ncclinspd'
check "it answers" own "curl -sf --unix-socket /run/user/$uid/ncclinsp/ncclinspd.sock http://x/v1/status"
check "it reloads" own 'systemctl --user reload ncclinspd'
check "it stops" own 'systemctl --user stop ncclinspd'

# ---- removed ----------------------------------------------------------------------------

check "a job starts again" job alice steady
check "and is seen" wait_until 30 sees_jobs alice 4
check "the package is removed" inside dpkg -r ncclinsp
check "with the socket" inside sh -c '! test -e /run/ncclinsp/ncclinspd.sock'
check "and the processes" inside sh -c '! pgrep -x ncclinspd'
check "the job goes on" as alice 'pgrep -c nccl-sim'
check "the configuration stays" inside test -e /etc/ncclinsp/ncclinspd.conf
check "all of it goes when asked to" inside dpkg -P ncclinsp
check "the state too" inside sh -c '! ls -d /etc/ncclinsp /var/lib/ncclinsp /run/ncclinsp'
check "no unit is left broken" test -z "$(inside systemctl --failed --plain --no-legend)"

inside systemctl poweroff
wait_until 30 sh -c '! kill -0 "$0" 2>/dev/null' "$NSPAWN" && LEADER=
done_testing
