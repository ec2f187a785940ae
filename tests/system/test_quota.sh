#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One user takes all that can be had: processes, communicators, connections.  Another
# user's job is watched all the same, and the daemon's memory has a bound.
. "$(dirname "$0")/lib.sh"

[ "$(id -u)" -eq 0 ] || skip_all "only root can be two users"
GREEDY=65533
MODEST=65532
as() { local uid=$1; shift; setpriv --reuid="$uid" --regid="$uid" --clear-groups -- "$@"; }
chmod 755 "$T"
chmod 1777 "$SHM"
as $MODEST test -x "$B/nccl-sim" -a -r "$PLUGIN" || skip_all "other users may not enter $B"

start_daemon
chmod 666 "$SOCK"
as_api() { as "$1" curl -sf -m 20 --unix-socket "$SOCK" "http://ncclinspd/v1/$2"; }

# Enough for a quarter of a GiB where every communicator has what one has by itself.
as $GREEDY "$B/nccl-flood" "$PLUGIN" 24 400 >"$T/flood" &
started+=("$!")
check "a user has thousands of communicators" wait_until 60 grep -q ready "$T/flood"
check "they are all read" wait_until 60 api_is status '.ingest.records == 24 * 400 * 2'
check "those beyond half of the room are not followed, and counted" \
	api_is status '.reconstruct.comms_refused == 24 * 400 - 8192 / 2'
check "and status says so" eval '"$B/ncclinsp" status | grep -q "skipped *5504 communicators: "'
check "memory stays below 200 MiB" api_is status '.rss_bytes < 200 * 1024 * 1024'

as $GREEDY perl -MSocket -e 'for (1 .. 70) { socket(my $s, PF_UNIX, SOCK_STREAM, 0) or die;
	connect($s, sockaddr_un($ARGV[0])) or last; push @all, $s } $| = 1; print "held\n"; sleep 600' \
	"$SOCK" >"$T/held" &
started+=("$!")
check "and holds all the connections that he can get" wait_until 20 grep -q held "$T/held"

cp "$TOP/tests/scenarios/steady.scn" "$T/steady.scn"
as $MODEST "$B/nccl-sim" --plugin "$PLUGIN" "$T/steady.scn" >/dev/null 2>&1 &
started+=("$!")
his='[.processes[] | select(.uid == '$MODEST')]'
seen() { as_api $MODEST processes | jq -e "$his | length == 4 and all(.[]; .records > 0)"; }
followed() { as_api $MODEST comms | jq -e '[.comms[].local_ranks[].last_seq | select(. != {})] | length == 4'; }
check "another user's job is seen by him" wait_until 30 seen
check "he sees nobody else's" sh -c 'test "$(echo "$1" | jq ".processes | length")" -eq 4' sh "$(as_api $MODEST processes)"
check "his communicator is followed" wait_until 30 followed
check "nothing of his is lost" \
	sh -c 'echo "$1" | jq -e "[.processes[].lost[]] | add == 0"' sh "$(as_api $MODEST processes)"
done_testing
