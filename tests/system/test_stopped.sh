#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The daemon's files are on a file system whose server has stopped: nobody waits for it.
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" -eq 0 ] && [ -c /dev/fuse ] || skip_all "needs root and /dev/fuse"
command -v bindfs >/dev/null || skip_all "there is no bindfs"

MOUNT=$T/mount
BEHIND=$T/behind
mkdir "$MOUNT" "$BEHIND"
bindfs -f "$BEHIND" "$MOUNT" 2>"$T/bindfs" &
SERVER=$!
started+=("$SERVER")
trap 'kill -CONT "$SERVER"; umount -l "$MOUNT"; finish' EXIT
is_there() { grep -qs " $MOUNT fuse" /proc/mounts; }
wait_until 20 is_there || skip_all "FUSE does not work here: $(cat "$T/bindfs")"

start_daemon --state-dir "$MOUNT/state" --metrics-textfile "$MOUNT/ncclinsp.prom" \
	--snapshot-interval 1s
play() {
	nice -n 10 timeout -k 1 600 "$B/nccl-sim" --plugin "$PLUGIN" "$1" 2>"$T/sim" &
	started+=("$!")
}
cat >"$T/scn" <<-SCN
	processes 2
	comm dp ranks 0,1 channels 2
	loop forever
		compute 20ms
		AllReduce dp 1Mi float32
	end
SCN
play "$T/scn"

lost() { api status | jq .ingest.lost; }
records() { api status | jq .ingest.records; }
exporter_is() { api_is status ".exporters[] | select(.kind == \"$1\") | $2"; }
written() { exporter_is snapshots '.done > 1' && exporter_is textfile '.done > 0'; }
check "files are written, and records read" wait_until 60 eval 'written && [ "$(records)" -gt 0 ]'
before=$(lost)

kill -STOP "$SERVER"
api_post() { curl -s -m 20 --unix-socket "$SOCK" -X POST "http://ncclinspd/v1/snapshot"; }
check "who asks for a black box when its server has stopped is told so" \
	eval 'api_post | jq -e ".error.code == \"busy\""'
play "$TOP/tests/scenarios/slow-once.scn"
finding_is() { api_is 'findings?active=true' "[.findings[] | select(.kind == \"unwritten\")] | $1"; }
all_named() {
	finding_is 'length == 1 and .[0].severity == "warning" and (.[0].text | test("timed out")) and
		([.[0].evidence.outputs[].what] | sort) == ["black boxes", "exemplars", "metrics", "snapshots"]'
}
check "one finding says that nothing is written any more" wait_until 90 all_named
check "... the exporters say so" exporter_is snapshots '.error | test("timed out")'
check "... and the log" eval '[ "$(grep -c "snapshots not written" "$T/daemon.log")" -eq 1 ]'
N=$(records)
more_records() { [ "$(records)" -gt "$((N + 100))" ]; }
check "records are read all the while" wait_until 30 more_records
check "... and all requests are answered" \
	eval 'for what in status processes comms "collectives?limit=10" summary peers findings exemplars clocks; do
		[ -n "$(curl -sf -m 20 --unix-socket "$SOCK" "http://ncclinspd/v1/$what")" ] || exit 1; done'

kill -CONT "$SERVER"
check "when it goes on, files are written, and the finding is over" wait_until 60 finding_is 'length == 0'
again() { exporter_is snapshots '.error == null'; }
check "... so the exporters say" wait_until 30 again
whole() { find "$BEHIND/state/snapshots" -name '*.json.zst' -exec zstd -tq {} +; }
check "no half file is there" whole
check "no record was lost" eval '[ "$(lost)" -eq "$before" ]'

kill -STOP "$SERVER"
sleep 2		# so that there is something in the middle of being written
kill -TERM "$DAEMON_PID"
# Where the server had taken a request when it was stopped, the kernel keeps the thread that
# waits for it: all the rest is gone.
is_gone() { ! kill -0 "$DAEMON_PID" || grep -q '^[0-9]* (ncclinspd) Z' "/proc/$DAEMON_PID/stat"; }
check "a daemon that is to end does so, though its files hang" wait_until 60 is_gone
check "... and says what it gave up" grep -q 'does not answer, files dropped files=[1-9]' "$T/daemon.log"
kill -CONT "$SERVER"
wait "$DAEMON_PID"
check "it left no half file either" whole
start_daemon --state-dir "$MOUNT/state"
half() { find "$BEHIND" -name '.*.new'; }
check "... but one that the next daemon takes away" eval '[ -z "$(half)" ]'
stop_daemon

echo "no baselines" >"$BEHIND/state/baselines"
kill -STOP "$SERVER"
start_daemon --state-dir "$MOUNT/state" --snapshot-interval 1s
check "a daemon that starts meanwhile does not wait for it" \
	grep -q 'state-dir does not answer' "$T/daemon.log"
check "... and says that nothing is written" wait_until 60 finding_is 'length == 1'
kill -CONT "$SERVER"
check "... until it goes on" wait_until 60 finding_is 'length == 0'
written_again() { exporter_is snapshots '.done > 0'; }
check "... files are written" wait_until 30 written_again
stop_daemon
check "... and what earlier daemons left is read" grep -q 'baselines of earlier jobs ignored' "$T/daemon.log"
done_testing
