#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One user says things in another's name, and hides its job behind files: neither works.
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" -eq 0 ] || skip_all "only root can be two users"
VICTIM=65533
THIEF=65532
SECOND=65531
as() { local uid=$1; shift; setpriv --reuid="$uid" --regid="$uid" --clear-groups -- "$@"; }
chmod 755 "$T"
chmod 1777 "$SHM"
as $VICTIM test -x "$B/nccl-sim" -a -r "$PLUGIN" || skip_all "other users may not enter $B"
install -m 755 "$B/ncclinsp" "$T/ncclinsp"
as_api() { as "$1" curl -s -m 20 --unix-socket "$SOCK" "http://ncclinspd/v1/$2"; }
as_put() { as "$1" curl -s -m 20 --unix-socket "$SOCK" -X PUT -d "$2" http://ncclinspd/v1/level; }

# Segments out of one that there is.  copies FROM UID N LOCK [PID]: N processes of that user, each
# with one that it locks, or does not; or one file that says it is of process PID.
cat >"$T/copies" <<-'EOF'
	use Fcntl;
	my ($from, $uid, $n, $lock, $pid) = @ARGV;
	open my $f, "<", $from or die; read $f, my $head, 65536; my $size = -s $f; close $f;
	substr($head, 4096, 12) = "\0" x 12;	# no lanes, communicators or names
	my ($dir) = $from =~ m{(.*)/};
	sub make {
		my ($id) = @_;
		open my $s, "<", "/proc/$id/stat" or die; my $start = (split " ", <$s> =~ s/.*\) //r)[19];
		substr($head, 64, 8) = pack "Q", $start;
		substr($head, 96, 8) = pack "LL", $id, $uid;
		sysopen my $t, "$dir/.$id", O_RDWR | O_CREAT, 0600 or die "$!";
		truncate $t, $size; syswrite $t, $head;
		my $all = pack "s s x4 q q i x4", F_WRLCK, 0, 0, 0, 0;
		!$lock or fcntl $t, F_SETLK, $all or die "$!";
		rename "$dir/.$id", "$dir/ncclinsp.$uid.$id.$start" or die;
		return $t;
	}
	$) = "$uid $uid"; $( = $uid; $< = $> = $uid;
	if ($pid) { make($pid) } else {
		for (1 .. $n) { next if fork; my $held = make($$); sleep 600; exit }
	}
	$| = 1; print "made\n"; wait for 1 .. $n;
EOF
copies() { perl "$T/copies" "$SEGMENT" "$@" >"$T/made" 2>"$T/copies.err" & COPIES=$!; started+=("$!"); }
made() { grep -q made "$T/made" || { cat "$T/copies.err"; return 1; }; }

start_daemon
chmod 666 "$SOCK"
cat >"$T/job.scn" <<-SCN
	nodes 1
	processes 4
	seed 3
	comm dp ranks 0-3 channels 2
	loop forever
		compute 5ms
		AllReduce dp 64Ki float32
	end
SCN
as $VICTIM "$B/nccl-sim" --plugin "$PLUGIN" "$T/job.scn" >/dev/null 2>&1 &
started+=("$!")
his='.processes[] | select(.uid == '$VICTIM' and .state == "live")'
check "a user's job is seen" wait_until 30 api_is processes "[$his] | length == 4"
PID=$(api processes | jq "[$his][0].pid")
SEGMENT=$SHM/$(api processes | jq -r "[$his][0].segment")
wanted() { api_is level "[.processes[] | select(.pid == $PID and .wanted.level == \"$1\")] | length == 1"; }
in_force() { api_is level "[.processes[] | select(.pid == $PID and .level == \"$1\")] | length == 1"; }

# ---- in another's name -------------------------------------------------------------

check "it wants a level of its process" eval 'as_put $VICTIM "{\"pid\":$PID,\"level\":\"trace\"}" | jq -e .target >/dev/null'
check "and root another one" eval 'put=$(curl -s --unix-socket "$SOCK" -X PUT -d "{\"pid\":$PID,\"level\":\"off\"}" http://ncclinspd/v1/level) && wanted off'
check "which is in force" wait_until 20 in_force off
copies $THIEF 1 1
thief_is() { [ "$(as_api $THIEF processes | jq '[.processes[] | select(.state == "live")] | length')" -eq 1 ]; }
check "another user copies its instance" wait_until 20 thief_is
copied() { as_api $THIEF processes | jq -e ".processes[0].instance == \"$(api processes | jq -r ".processes[] | select(.pid == $PID) | .instance")\""; }
check "to the last bit" copied
THIEFS=$(as_api $THIEF processes | jq '.processes[0].pid')
as_put $THIEF "{\"pid\":$THIEFS,\"level\":\"default\"}" >/dev/null
check "and takes nothing back with it" wanted off
as_put $THIEF "{\"pid\":$THIEFS,\"level\":\"ops\"}" >/dev/null
sleep 0.5
check "nor steers with it" in_force off
stop_daemon
start_daemon
chmod 666 "$SOCK"
check "also after a restart" eval 'wait_until 20 thief_is && wanted off'
as_put $THIEF "{\"pid\":$THIEFS,\"level\":\"ops\"}" >/dev/null
sleep 0.5
check "where the copy may have come first" in_force off
end_all "$COPIES"
nobody_else() { api_is processes '[.processes[] | select(.uid == '$THIEF' and .state == "live")] == []'; }
wait_until 10 nobody_else

copies $THIEF 1 0 "$PID"
refused() { grep -q 'it names a process of another user' "$T/daemon.log"; }
check "a segment without a lock that names its process is refused" wait_until 20 refused
check "and is no process of anybody's" nobody_else

# ---- hidden ------------------------------------------------------------------------

rubbish() { as "$1" perl -e 'for (1 .. 2400) { open F, ">", "$ARGV[0]/ncclinsp.$ARGV[1].$_.1" or die }' "$SHM" "$1"; }
check "two users leave as many files as there is room for" eval 'rubbish $THIEF && rubbish $SECOND'
stop_daemon
start_daemon
chmod 666 "$SOCK"
check "the job is found in the middle of them" wait_until 20 api_is processes "[$his] | length == 4"
as $VICTIM "$B/nccl-sim" --plugin "$PLUGIN" "$T/job.scn" >/dev/null 2>&1 &
LATER=$!
started+=("$LATER")
check "and so is the next one" wait_until 20 api_is processes "[$his] | length == 8"
check "of that nothing is said, since nothing is hidden" \
	api_is findings '[.findings[] | select(.kind == "unwatched")] == []'
find "$SHM" -name "ncclinsp.$THIEF.*" -delete
find "$SHM" -name "ncclinsp.$SECOND.*" -delete
end_all "$LATER"

copies $THIEF 826 1
THIEVES=$COPIES
check "a user runs more processes than it may have read" wait_until 60 made
waiting() { as_api "$1" status | jq -e ".unwatched.processes == $2" >/dev/null; }
told() { as_api "$1" findings | jq -e "[.findings[] | select(.kind == \"unwatched\" and .active)] | length == $2" >/dev/null; }
check "those beyond wait" wait_until 60 waiting $THIEF 58
check "one finding tells it" wait_until 20 told $THIEF 1
numbered() { as_api $THIEF findings | jq -r '.findings[].text' | grep -q '^live processes that are not watched: 58[.]'; }
check "with their number" wait_until 10 numbered
check "and status, in a line" eval 'as $THIEF "$T/ncclinsp" -S "$SOCK" status | grep -q "skipped *58 processes: "'
check "the other user is not told" eval 'told $VICTIM 0 && waiting $VICTIM 0'
check "root is" eval 'told 0 1 && waiting 0 58'
check "the other's job goes on being watched" wait_until 20 api_is processes "[$his] | length == 4"
copies $SECOND 640 1
check "a second one does the same" wait_until 60 eval 'told $SECOND 1'
as $VICTIM "$B/nccl-sim" --plugin "$PLUGIN" "$T/job.scn" >/dev/null 2>&1 &
started+=("$!")
check "and another job is watched nevertheless" wait_until 30 api_is processes "[$his] | length == 8"
pkill -P "$THIEVES,$COPIES"	# at once: so many, one after another, take minutes
done_testing
