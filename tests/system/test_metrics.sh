#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What Prometheus is told: sound, the same as the API says, and all of it in the manual.
. "$(dirname "$0")/lib.sh"

# A port that nobody else has: another one is tried where it was taken.
free_port() {
	local port
	for port in $(shuf -i 20000-32000 -n 50); do
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
	done
}
PORT=$(free_port)
FILE=$T/textfile/ncclinsp.prom
mkdir "$T/textfile"
: >"$FILE.other"
start_daemon --straggler-window 1s --metrics-listen "$PORT" --metrics-textfile "$FILE"
metrics() { curl -sf --unix-socket "$SOCK" "$@" http://ncclinspd/metrics; }

# value NAME LABELS: the sum of the series of that name that have these labels.
value() {
	metrics | awk -v name="$1" -v labels="$2" 'index($0, name "{") == 1 && index($0, labels) {
		sum += $NF; n++ } END { if (!n) exit 1; printf "%.15g\n", sum }'
}
value_is() { [ "$(value "$1" "$2")" = "$3" ]; }
value_above() { awk -v v="$(value "$1" "$2")" -v least="$3" 'BEGIN { exit !(v > least) }'; }

nice -n 10 timeout -k 1 120 "$B/nccl-sim" --plugin "$PLUGIN" "$TOP/tests/scenarios/late-pauses.scn" \
	2>"$T/sim" &
started+=("$!")
JOB=$!
check "who comes last is counted" wait_until 60 value_above ncclinsp_last_arrivals_total 'rank="1"' 5
check "... and what it costs" wait_until 10 value_above ncclinsp_blame_seconds_total 'rank="1"' 0.1
check "... for which the others waited" value_above ncclinsp_op_wait_seconds_total 'rank="0"' 0.05
check "nobody is told of links who has not asked" eval "! metrics | grep -q '^ncclinsp_peer.*{'"
check "its processes live" value_is ncclinsp_processes 'uid=' 4
check "callbacks are timed" wait_until 30 value_above ncclinsp_plugin_callback_seconds_total user 0

# ---- what it looks like -------------------------------------------------------------

flat=$(mandoc -T ascii "$B/man/ncclinsp-metrics.7" | sed 's/.\x08//g')
families() { metrics | sed -n 's/^# TYPE \([a-z_]*\) .*/\1/p'; }
all_told() {
	local name missing=0
	for name in $(families); do
		grep -qE "(^|[ ,])$name($|[ ,])" <<<"$flat" || { echo "$name is not in the manual"; missing=1; }
	done
	[ -n "$name" ] && return $missing
}
all_served() {
	local name missing=0
	for name in $(grep -oE '\<ncclinsp_[a-z_]+' <<<"$flat" | sort -u); do
		families | grep -qx "$name" || { echo "$name is not served"; missing=1; }
	done
	[ -n "$name" ] && return $missing
}
labels_told() {
	local label missing=0
	for label in $(metrics | grep -v '^#' | grep -oE '[{,][a-z_0-9]+="' | tr -d '{,="' | sort -u); do
		[ "$label" = le ] || grep -qE "(^|[^a-z_])$label($|[^a-z_])" <<<"$flat" ||
			{ echo "label $label is not in the manual"; missing=1; }
	done
	[ -n "$label" ] && return $missing
}
check "ncclinsp-metrics(7) has every family" all_told
check "... and no other" all_served
check "... and every label" labels_told
all_explained() {
	local name missing=0
	for name in $(families); do
		"$B/ncclinsp" explain "$name" | grep -q '^field of *.*/metrics' || { echo "$name"; missing=1; }
	done
	[ -n "$name" ] && return $missing
}
check "explain knows every family" all_explained
check "every family has its help" eval \
	'[ "$(metrics | grep -c "^# HELP ")" -eq "$(metrics | grep -c "^# TYPE ")" ]'
check "no series comes twice" eval '[ -z "$(metrics | grep -v "^#" | sed "s/ [^ ]*$//" | sort | uniq -d)" ]'
if command -v promtool >/dev/null; then
	check "promtool has nothing to say" eval 'metrics | promtool check metrics'
else
	skip "promtool has nothing to say" "there is no promtool (Debian: prometheus)"
fi
check "OpenMetrics is there for who asks" eval \
	'metrics -H "Accept: application/openmetrics-text" | tail -n 1 | grep -qx "# EOF"'

# ---- elsewhere ----------------------------------------------------------------------

tcp() { curl -s -o /dev/null -w '%{http_code}' "http://127.0.0.1:$PORT$1"; }
check "it is there over TCP" eval '[ "$(tcp /metrics)" = 200 ]'
check "... with all that root is told" eval \
	'[ "$(curl -sf "http://127.0.0.1:$PORT/metrics" | grep -c "^ncclinsp_processes{.* 4$")" -eq 1 ]'
check "... and nothing else is" eval \
	'for p in / /v1/status /v1/level /v1/stream /metrics/x; do [ "$(tcp $p)" = 404 ] || exit; done'
check "... for nobody to change" eval '[ "$(tcp /v1/level -X PUT)" = 404 ] &&
	curl -s -o /dev/null -w "%{http_code}" -X POST "http://127.0.0.1:$PORT/metrics" | grep -qx 405'
check "it is there as a file" wait_until 30 grep -q '^ncclinsp_ops_total' "$FILE"
check "... that everybody may read" eval '[ "$(stat -c %a "$FILE")" = 644 ]'
check "... and others are left alone" [ -e "$FILE.other" ]
check "/v1/status has them" wait_until 20 api_is status ".exporters | map({(.kind): .}) | add |
	.socket.done > 0 and .tcp.at == \"$PORT\" and .tcp.done > 1 and .tcp.last_at != null and
	.textfile.at == \"$FILE\" and .textfile.done > 0 and .textfile.last_at != null and
	all(.[]; .error == null)"

# ---- to the end ---------------------------------------------------------------------

kill "$JOB"
wait "$JOB" 2>/dev/null
check "whoever ends is counted" wait_until 20 \
	value_is ncclinsp_process_exits_total 'uid=' 4
check "all that the API counts is counted" wait_until 10 eval \
	'[ "$(value ncclinsp_ops_total op=)" = "$(api "summary?window=all&by=comm" | jq "[.rows[].ops] | add")" ]'
check "nobody lives" wait_until 10 value_is ncclinsp_processes 'uid=' 0
stop_daemon
check "the file goes with the daemon" [ ! -e "$FILE" ]
check "... and nothing is left beside it" eval '[ "$(ls -A "$T/textfile")" = ncclinsp.prom.other ]'

start_daemon --metrics-peers yes
cat >"$T/scn" <<-SCN
	nodes 2
	comm dp ranks 0,1 channels 2
	link net latency 2ms rate 1GB/s
	loop forever
		compute 5ms
		AllReduce dp 64Ki float32
		AllReduce dp 256Ki float32
		AllReduce dp 4Mi float32
	end
SCN
NCCLINSP_LEVEL=net nice -n 10 timeout -k 1 300 "$B/nccl-sim" --plugin "$PLUGIN" "$T/scn" 2>>"$T/sim" &
JOB=$!
started+=("$JOB")
peer() { metrics | sed -n "s/^$1{.*,rank=\"0\",peer_rank=\"1\",direction=\"send\"} //p"; }
link() { api "peers?window=$1" | jq -r "[.peers[] | select(.rank == 0 and .peer == 1 and .direction == \"send\") | $2"; }
has_peer() { awk -v v="$(peer "$1")" -v a="$2" 'BEGIN { exit !(v != "" && v > a) }'; }
check "who wants it is told each link's bytes" wait_until 60 has_peer ncclinsp_peer_bytes_total 1e6
check "... and its rate" wait_until 60 has_peer ncclinsp_peer_rate_bytes_per_second 1e6
wait_until 30 has_peer ncclinsp_peer_latency_seconds 0	# unless the machine is too busy for a line
kill "$JOB"
wait "$JOB" 2>/dev/null
wait_until 20 drained
check "its bytes are those that the API tells" wait_until 10 eval \
	'[ "$(peer ncclinsp_peer_bytes_total)" = "$(link all ".bytes] | add")" ]'
as_told() { [ "$(peer ncclinsp_peer_latency_seconds)" = "$(link 60s '.fit.latency_ns // empty] | min // empty | . / 1e9')" ]; }
check "so is its latency, to the nanosecond, or not known there either" wait_until 20 as_told
stop_daemon

# ---- the fleet profile --------------------------------------------------------------

start_daemon --straggler-window 1s --metrics-profile fleet
nice -n 10 timeout -k 1 120 "$B/nccl-sim" --plugin "$PLUGIN" "$TOP/tests/scenarios/late-pauses.scn" \
	2>>"$T/sim" &
started+=("$!")
JOB=$!
check "a fleet's node tells what ranks were late by" wait_until 60 \
	value_above ncclinsp_blame_seconds_total 'rank="1"' 0.1
check "... who belongs to what, once" eval \
	'[ "$(metrics | grep "^ncclinsp_[a-z_]*{" | grep -vE "_info|_process|_finding_active" | grep -c uid=)" = 0 ] &&
	[ "$(metrics | grep -c "^ncclinsp_comm_info{.*uid=.*comm_id=.*rank=.*nranks=.*pid=")" -ge 4 ]'
check "... where each stands" value_above ncclinsp_last_sequence 'comm_id=' 1
check "... in 150 series" eval '[ "$(metrics | grep -vc "^#")" -le 150 ]'
marked() { sed -n 's/^\(ncclinsp_[a-z_]*\): [a-z]* fleet .*/\1/p' "$TOP/schema/metrics.schema" | sort; }
check "... of the families that are marked for it" eval '[ "$(families | sort)" = "$(marked)" ]'
kill "$JOB"
wait "$JOB" 2>/dev/null
stop_daemon

start_daemon --metrics-listen 192.0.2.1:9 --metrics-textfile "$T/none/x.prom"
check "what cannot be is told, and no reason not to start" api_is status '.exporters |
	map({(.kind): .}) | add | (.tcp.error | length > 0) and (.textfile.error | length > 0)'
stop_daemon
done_testing
