#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ncclinsp replay: what snapshots tell, moment by moment; and --at, one of these moments.
. "$(dirname "$0")/lib.sh"

[ -x "$B/nccl-sim" ] && [ -x "$B/ncclinspd" ] || skip_all "the simulator or the daemon is not built"
I=$B/ncclinsp

cat >"$T/job.scn" <<-SCN
nodes 1
processes 2
comm dp ranks 0,1 channels 2
loop forever
	compute 5ms
	AllReduce dp 1Mi float32
end
SCN
start_daemon --snapshot-interval 1s
SNAPS=$T/state/snapshots
written() { [ "$(ls "$SNAPS"/*.zst 2>/dev/null | wc -l)" -ge "$1" ]; }
check "a moment without a job is written" wait_until 30 written 1
sim "$T/job.scn" >"$T/sim.log" 2>&1 &
started+=("$!")
# at_work: the newest file has operations since the one before, of both processes.
at_work() { "$I" replay "$SNAPS" -o json | jq -e '.moments[-1] | .live == 2 and .ops > 0'; }
check "and with one" wait_until 60 at_work
stop_daemon TERM

"$I" replay "$SNAPS" -o json >"$T/moments.json"
check "there is a row for each file, in the order of time" \
	eval '[ "$(jq ".moments | length" "$T/moments.json")" -eq "$(ls "$SNAPS" | wc -l)" ] && jq -e ".moments | map(.at) | . == (unique)" "$T/moments.json"'
check "it shows when the job came" jq -e '.moments[0].live == 0 and .moments[-1].live == 2' "$T/moments.json"
check "filters and formats are those of all tables" \
	eval '"$I" replay "$SNAPS" --no-header -o csv --fields at,live -f live=2 | grep -Eq "^20[0-9-]*T[0-9:]*Z,2$"'
if command -v jsonschema >/dev/null; then
	check "as JSON it is what docs/schema/ says" \
		eval 'PYTHONWARNINGS=ignore jsonschema -i "$T/moments.json" "$TOP/docs/schema/replay.json"'
else
	skip "as JSON it is what docs/schema/ says" "python3-jsonschema is not installed"
fi

moments() { grep -c '^── 20[0-9-]*T[0-9:]*Z, 1 node$' "$T/out"; }
check "a command is played for each of them" \
	eval '"$I" replay "$SNAPS" ps >"$T/out" 2>/dev/null && [ "$(moments)" -eq "$(ls "$SNAPS" | wc -l)" ]'
check "as it was then: no process before the job, two in the end" \
	eval '[ "$(sed -n "2,/^── /p" "$T/out" | grep -c " live ")" -eq 0 ] && [ "$(tail -n 2 "$T/out" | grep -c " live ")" -eq 2 ]'
check "-n is so many moments" eval '"$I" replay "$SNAPS" ps -n 1 >"$T/out" 2>/dev/null; [ "$(moments)" -eq 1 ]'

check "ranks are then as they were, with the figures since the start" \
	eval '"$I" replay "$SNAPS" ranks >"$T/out" 2>/dev/null && tail -n 2 "$T/out" | grep -Ec "^ +[01] .* dp +[0-9.]+ " | grep -qx 2'

# ---- --at -------------------------------------------------------------------------------

FIRST=$(jq -r '.moments[0].at' "$T/moments.json")
LAST=$(jq -r '.moments[-1].at' "$T/moments.json")
check "--at is what was known then" exits 4 'no process uses NCCL' "$I" ps --from "$SNAPS" --at "${FIRST%Z}"
check "and later" eval '[ "$("$I" ps --from "$SNAPS" --at "${LAST%Z}" --no-header -o csv --fields state)" = "live
live" ]'
check "a part of a time is to its end" eval '"$I" ps --from "$SNAPS" --at "${LAST%%T*}"'
check "before the first there is nothing" exits 4 'none that early' "$I" ps --from "$SNAPS" --at 2001-01-01
check "what is no time is said" exits 2 '2026-11-22T03:12' "$I" ps --from "$SNAPS" --at noon
check "without files it makes no sense" exits 2 'goes with --from' "$I" ps --at 2026

# ---- two nodes, and what is wrong ---------------------------------------------------------

mkdir "$T/two"
zstd -dcq "$(ls "$SNAPS"/*.zst | tail -n 1)" >"$T/one"
# as_of NAME TIME [FILTER]: the last one, as if it had been written then.
as_of() { jq -c "(.written_at = \"2026-11-22T$2.000000000Z\") | ${3:-.}" "$T/one" >"$T/two/$1.json"; }
other='.status.host = "other" | .findings = [{active: true, severity: "critical", kind: "stall", verdict: "RANK_DEAD"},
	{active: false, severity: "critical", kind: "stall", verdict: "OVER"}]'
as_of a1 03:12:00
as_of b1 03:12:03 "$other"
as_of b2 03:13:00 "$other"
as_of a2 03:13:02
as_of b3 03:13:40 "$other"
as_of a3 03:14:10
"$I" replay "$T/two" -o json >"$T/two.json"
check "nodes that wrote within 20 s are one moment" jq -e '.moments | map([.nodes, .live]) == [[2, 4], [2, 4], [1, 2], [1, 2]]' "$T/two.json"
check "the worst of what was wrong then is named, with its node" \
	jq -e '.moments[:3] | all(.findings == 1 and .worst == "RANK_DEAD" and .host == "other")' "$T/two.json"
check "diagnose tells by its exit code" eval '"$I" replay "$T/two" diagnose >/dev/null; [ $? -eq 10 ]'

check "what snapshots do not tell is said" exits 2 'do not have what tail shows' "$I" replay "$SNAPS" tail
check "rows of different moments are not mixed" exits 2 'prints tables only' "$I" replay "$SNAPS" ps -o csv
check "where there is nothing it says so" exits 4 'no snapshot found' "$I" replay "$T/job.scn"
check "of what is to be said" exits 2 'needs a file or directory' "$I" replay
done_testing
