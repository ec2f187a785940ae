#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every so often everything that is known becomes a file; a disk that takes none harms nobody.
. "$(dirname "$0")/lib.sh"

SNAPS=$T/state/snapshots
start_daemon --snapshot-interval 1s

files() { find "$SNAPS" -maxdepth 1 -name '*.json.zst' 2>/dev/null | sort; }
newest() { files | tail -1; }
more_than() { [ "$(files | wc -l)" -gt "$1" ]; }
# shot_is JQ: the newest file satisfies it.
shot_is() { zstd -dcq "$(newest)" >"$T/shot" && jq -e "$1" "$T/shot" >/dev/null || { head -c 1500 "$T/shot"; return 1; }; }

cat >"$T/scn" <<-SCN
	nodes 2
	comm dp ranks 0,1 channels 2
	link net latency 10us rate 20GB/s
	late rank 1 by 2ms every 3
	loop forever
		compute 5ms
		AllReduce dp 1Mi float32
	end
SCN
nice -n 10 "$B/nccl-sim" --plugin "$PLUGIN" "$T/scn" 2>"$T/sim" &
JOB_PID=$!
started+=("$JOB_PID")

check "a snapshot is written by itself" wait_until 20 more_than 0
check "its name is the host's, and the time" \
	eval 'newest | grep -Eq "/$(uname -n)-[0-9]{8}T[0-9]{6}\.[0-9]{9}Z\.json\.zst$"'
check "zstd finds it whole" eval 'zstd -tq "$(newest)"'
has_two_with_operations() {
	shot_is '(.rows | length > 0) and (.samples | length > 0) and
		 ([.rows[].since_previous.ops // 0] | add > 0)'
}
check "... sums, samples, and what is new since the one before" wait_until 30 has_two_with_operations
check "it says what it is, and of which node" shot_is \
	'.format == "ncclinsp-snapshot" and .format_version == 1 and .reason == "interval" and
	 .status.host != null and .previous_mono_ns < .written_mono_ns'
check "... processes, members, links, findings, losses, cost, clocks" shot_is \
	'(.processes | length > 0) and (.comms[0].local_ranks | length > 0) and (.peers | type == "array") and
	 (.findings | type == "array") and (.status.ingest.lost >= 0) and
	 (.status.overhead != null) and (.clocks | type == "array") and (.host_clocks | length > 0)'
check "... and follows its schema" eval 'jsonschema -i "$T/shot" "$TOP/docs/schema/snapshot.json"'
check "all ranks kept the same operations" shot_is \
	'[.samples[] | select(.func == "AllReduce")] | group_by(.seq) | (map(select(length == 2)) | length) as $all |
	 $all > 0 and $all * 2 >= length'
check "it is for the daemon's user only" eval '[ "$(stat -c %a "$(newest)")" = 600 ]'
exporter_is() { api_is status ".exporters[] | select(.kind == \"snapshots\") | $1"; }
check "the daemon says so" wait_until 20 exporter_is '.done > 0 and .failed == 0 and .error == null and .at == "'$SNAPS'" and (.last_at | test("Z$"))'

stop_daemon KILL
wait 2>/dev/null "$DAEMON_PID"
check "who is killed leaves whole files only" eval 'files | xargs zstd -tq'
start_daemon --snapshot-interval 1s
lost() { api status | jq .ingest.lost; }
before=$(lost)
rm -rf "$SNAPS"
check "a directory that vanished is made again" wait_until 30 more_than 0

# A place without room, and one that cannot be written: as root, in a name space of our own.
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
	stop_daemon
	cat >"$T/narrow" <<-'EOF'
		mkdir -p "$1"
		mount -t tmpfs -o size=64k none "$1"
		cat /dev/zero >"$1/filler" 2>/dev/null
		shift
		exec "$@"
	EOF
	unshare -m sh "$T/narrow" "$SNAPS" "$B/ncclinspd" --foreground --socket "$SOCK" \
		--shm-dir "$SHM" --state-dir "$T/state" --containers no --auto-thrift no \
		--snapshot-interval 1s >/dev/null 2>>"$T/daemon.log" &
	DAEMON_PID=$!
	started+=("$DAEMON_PID")
	inside() { nsenter -t "$DAEMON_PID" -m "$@"; }
	check "a daemon starts where its directory is full" wait_until 10 api_answers
	check "... it says that it cannot write" wait_until 30 exporter_is \
		'.failed > 0 and (.error | test("space"))'
	check "... one finding tells of it, and what to do" wait_until 30 api_is 'findings?active=true' \
		'[.findings[] | select(.kind == "unwritten") | .text] | length == 1 and
		 (.[0] | test("snapshots are not written to .*: No space left on device.* df -h"))'
	check "... leaves nothing half written" eval '[ "$(inside ls -A "$SNAPS")" = filler ]'
	check "... reads on" wait_until 20 api_is status '.ingest.records > 0'
	inside rm "$SNAPS/filler"
	inside mount -o remount,size=64m "$SNAPS"
	check "with room again it writes again, and the error is over" wait_until 30 exporter_is \
		'.done > 0 and .error == null'
	inside mount -o remount,ro "$SNAPS"
	check "a directory that became read-only is told of" wait_until 30 exporter_is \
		'(.error // "" | test("[Rr]ead-only"))'
	inside mount -o remount,rw "$SNAPS"
	check "... and that is over as well" wait_until 30 exporter_is '.error == null'
	check "... and the finding is" wait_until 30 api_is 'findings?active=true' \
		'[.findings[] | select(.kind == "unwritten")] == []'
	check "the log has told of it" grep -q 'snapshots not written' "$T/daemon.log"
else
	skip "directories that take nothing" "needs root and unshare"
fi
check "no record was lost all the while" eval '[ "$(lost)" -eq 0 ]'
kill "$JOB_PID" 2>/dev/null
stop_daemon
done_testing
