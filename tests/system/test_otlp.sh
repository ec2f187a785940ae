#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Findings, operations and metrics on their way to a collector: one that is not there yet, slow,
# lying or refusing; and what it gets, read by OpenTelemetry's own descriptions (from npm).
. "$(dirname "$0")/lib.sh"

PACKAGE=@opentelemetry/otlp-transformer@0.203.0	# opentelemetry-proto 1.7
ROOT=$B/otlp/node_modules/@opentelemetry/otlp-transformer/build/src/generated/root.js
C=$T/collector
mkdir "$C"

descriptions() {
	[ -e "$ROOT" ] || timeout -k 1 60 npm install --fetch-retries=0 --silent --ignore-scripts \
		--no-audit --no-fund --no-save --prefix "$B/otlp" "$PACKAGE" >/dev/null 2>&1
	[ -e "$ROOT" ]
}

PORT=$(shuf -i 20000-32000 -n 1)
# collector [certificate key ca]: begins, and answers.
collector() {
	timeout -k 1 300 python3 "$TOP/tests/otlp/collector.py" "$C" "$PORT" "$@" 2>>"$T/collector.log" &
	COLLECTOR=$!
	started+=("$COLLECTOR")
	wait_until 20 eval '(exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null'
}
# answers MODE...: from now on, one line for each signal or for all.
answers() { printf '%s\n' "$@" >"$C/mode.new"; mv "$C/mode.new" "$C/mode"; }

# got SIGNAL JQ: the items of all requests of a signal, as one array, satisfy the filter.
got() {
	local items
	items=$(cat "$C"/*."$1".json 2>/dev/null | command jq -s '[.[] | .resourceLogs, .resourceSpans, .resourceMetrics |
		values | .[] | .scopeLogs, .scopeSpans, .scopeMetrics | values | .[] |
		.logRecords, .spans, .metrics | values | .[]]')
	jq -e "def at(\$key): .attributes[] | select(.key == \$key) | .value | to_entries[0].value;
		def has_at(\$key): any(.attributes[]; .key == \$key); $2" <<<"$items" >/dev/null ||
		{ printf '%s\n' "$items" | head -c 2000; return 1; }
}
# requests PATTERN LEAST [MOST]: lines of that pattern.
requests() {
	local n
	n=$(grep -cE "$1" "$C/requests" 2>/dev/null)
	[ "${n:-0}" -ge "$2" ] && [ "${n:-0}" -le "${3:-1000000}" ] || { echo "$n of $1"; return 1; }
}
# exporter SIGNAL JQ
exporter() { api_is status "[.exporters[] | select(.kind == \"otlp\" and (.at | endswith(\"/$1\")))][0] | $2"; }
push() {
	start_daemon --otlp-endpoint "http://127.0.0.1:$PORT/" --otlp-interval 1s --stall-min 1s --stall-max 2s "$@"
}
fresh() { rm -f "$C"/*; rm -rf "$T/state"; }
job() {
	nice -n 10 timeout -k 1 120 "$B/nccl-sim" --plugin "$PLUGIN" "$1" 2>>"$T/sim" &
	JOB=$!
	started+=("$JOB")
}
cat >"$T/hung.scn" <<-END
	processes 2
	comm world ranks 0-1 channels 2
	absent rank 1 comm world op 50
	loop forever
		compute 2ms
		AllReduce world 1Mi float32
	end
END

# ---- nobody there at first -----------------------------------------------------------

push --otlp-trace-every 40
check "a daemon starts without a collector" api_answers
job "$T/hung.scn"
check "what hangs is found meanwhile" wait_until 30 api_is findings 'any(.findings[]; .grade == "found" and .kind == "desync")'
check "that nobody is there is told" wait_until 20 exporter logs '.error == "Connection refused" and .done == 0 and .failed == 0'
check "... by the log, once" eval '[ "$(grep -c "otlp: logs not sent" "$T/daemon.log")" -eq 1 ]'
check "... and by doctor" eval '"$B/ncclinsp" doctor >"$T/doctor"; grep -q "otlp at http://127.0.0.1:$PORT/v1/logs: Connection refused" "$T/doctor"'
collector
check "when it is there, the finding of before comes" wait_until 90 \
	got logs 'any(.[]; at("nccl.grade") == "found" and at("nccl.active"))'
kill "$JOB"
wait "$JOB"
check "... and that they are over" wait_until 60 got logs 'any(.[]; at("nccl.active") == false)'
check "a finding is a record with its sentence, severity and name" got logs '
	map(select(.eventName == "nccl.finding.desync" and at("nccl.grade") == "found" and at("nccl.active"))) |
	length > 0 and all(.[]; (.body.stringValue | test("^rank 1 .* has not come")) and .severityNumber == 13 and
		.severityText == "warning" and at("nccl.comm_name") == "world")'
check "... in the trace of the operation that hangs" got logs \
	'any(.[]; .eventName == "nccl.finding.desync" and (.traceId | length == 32) and has_at("nccl.evidence"))'
check "operations are traced, with all ranks in one trace" wait_until 90 got traces '
	all(.[]; .endTimeUnixNano >= .startTimeUnixNano) and
	(map(select(at("nccl.comm_name") == "world")) | group_by(.traceId) | length >= 2 and
		all(.[]; map(at("nccl.rank")) | sort == ["0", "1"]) and
		all(.[][]; .name == "AllReduce" and (at("nccl.seq") | tonumber % 40 == 0)))'
check "no metrics of the time before are missing" wait_until 90 got metrics '
	([.[] | select(.name == "ncclinsp_daemon_cpu_seconds_total") | .sum.dataPoints[0] | .timeUnixNano | tonumber] |
	sort | length > 5 and ([.[1:], .[:-1]] | transpose | all(.[] ; .[0] - .[1] < 5e9)))'
check "all that was sent is counted, and nothing dropped" wait_until 30 \
	exporter metrics '.done > 100 and .failed == 0 and .error == null'
same_series() {
	curl -s --unix-socket "$SOCK" http://ncclinspd/metrics | sed -n 's/^# TYPE //p' | cut -d' ' -f1 | sort -u >"$T/names"
	cat "$C"/*.metrics.json | command jq -r '.resourceMetrics[].scopeMetrics[].metrics[].name' | sort -u >"$T/pushed"
	[ -z "$(comm -13 "$T/names" "$T/pushed")" ] && [ "$(wc -l <"$T/pushed")" -gt 20 ]
}
check "metrics are the families of /metrics" same_series
check "... the daemon's about itself among them" wait_until 10 eval '
	curl -s --unix-socket "$SOCK" http://ncclinspd/metrics | grep -q "ncclinsp_otlp_sent_total{.*signal=\"logs\"} [1-9]"'
check "requests are compressed" eval 'requests gzip 5 && ! grep -v gzip "$C/requests"'
if [ -n "$(command -v node)" ] && [ -n "$(command -v npm)" ] && descriptions; then
	check "OpenTelemetry's own descriptions read all of it as it was meant" \
		node "$TOP/tests/otlp/check_bodies.mjs" "$ROOT" "$C"/*.json
else
	skip "OpenTelemetry's own descriptions read all of it as it was meant" "npm did not bring $PACKAGE"
fi
stop_daemon
check "a daemon that ends tells a collector what is left" got metrics 'length > 0'

# ---- slow, and with a job in haste ---------------------------------------------------------

fresh
answers "slow 2"
push --otlp-trace-every 1 --otlp-timeout 5s
job "$TOP/tests/scenarios/smoke.scn"
check "a slow collector gets something" wait_until 60 requests "/v1/traces 200" 1
wait "$JOB"
answers_quickly() {
	for _ in $(seq 20); do curl -sf -m 1.5 --unix-socket "$SOCK" http://ncclinspd/v1/status -o /dev/null || return 1; done
}
check "the daemon answers at once meanwhile" answers_quickly
check "nothing of the drain waits for it" wait_until 30 api_is status '.ingest.lost == 0 and .ingest.before == 0 and .ingest.records > 0'
check "... and every operation comes in time" wait_until 60 eval '
	n=$(api "collectives?limit=1000" | jq "[.collectives[] | select(.seq != null and .comm_id != null)] | length")
	got traces "length == $n"'
answers "slow 60"
sleep 2		# the next metrics are on their way
before=${EPOCHREALTIME/[.,]/}
stop_daemon
check "a daemon ends without it" [ $((${EPOCHREALTIME/[.,]/} - before)) -lt 7000000 ]
check "... and tells how much it has given up" grep -q "otlp: dropped at the end items=[1-9]" "$T/daemon.log"

# ---- refusing, and lying ------------------------------------------------------------------

fresh
answers "metrics 503 3" "logs 400" "traces rubbish"
push --otlp-trace-every 10
job "$T/hung.scn"
check "what is refused is dropped and counted" wait_until 60 exporter logs '.failed >= 1 and .done == 0 and .error == "Protocol error"'
check "... what was answered with rubbish, too" wait_until 60 exporter traces '.failed >= 2 and .done == 0 and .error == "Bad message"'
refused() { requests "/v1/logs 400" 1 "$(api status | jq '[.exporters[] | select(.at | endswith("/logs"))][0].failed')"; }
check "... and not sent again" refused
check "503 is tried again, not before the time that it says" wait_until 30 eval '
	requests "/v1/metrics 503" 3 && grep "/v1/metrics 503" "$C/requests" | awk "NR > 1 && \$1 - last < 2.9 { exit 1 } { last = \$1 }"'
check "... and nothing of that is dropped" exporter metrics '.failed == 0 and .done == 0 and .error == "Device or resource busy"'
answers "logs partial 1" "ok"
check "what was tried again arrives" wait_until 60 exporter metrics '.done > 100 and .failed == 0 and .error == null'
kill "$JOB"
dropped=$(api status | jq '[.exporters[] | select(.at | endswith("/logs"))][0].failed')
check "what a collector rejects of a request is dropped" wait_until 60 exporter logs ".failed > $dropped and .error == null"
check "/metrics counts it" wait_until 20 eval '
	curl -s --unix-socket "$SOCK" http://ncclinspd/metrics | grep -q "ncclinsp_otlp_dropped_total{.*signal=\"traces\"} [1-9]"'
answers "endless"
check "an answer without an end holds nothing up" wait_until 60 exporter metrics '.error == "Bad message"'
stop_daemon

# ---- what took longer than ever -------------------------------------------------------------

fresh
answers "ok"
push --otlp-signals traces
job "$TOP/tests/scenarios/slow-once.scn"
check "an operation that took longer than ever is traced, with all its ranks" wait_until 90 got traces '
	map(select(at("nccl.comm_name") == "dp" and at("nccl.seq") == "300")) | map(at("nccl.rank")) |
	sort == ["0", "1", "2", "3"]'
check "... and no other of its communicator" got traces '
	map(select(at("nccl.comm_name") == "dp") | at("nccl.seq")) | unique == ["300"]'
kill "$JOB"
stop_daemon

# ---- two nodes ---------------------------------------------------------------------------

fresh
answers "ok"
cat >"$T/nodes.scn" <<-END
	nodes 2
	processes 2
	comm world ranks 0-3 channels 2
	late rank 3 by 80ms
	loop 200
		compute 5ms
		AllReduce world 1Mi float32
	end
END
mkdir -p "$SHM/0" "$SHM/1"
for node in 0 1; do
	"$B/ncclinspd" --foreground --node-name "node$node" --socket "$T/$node.sock" --control "$T/$node.control" \
		--shm-dir "$SHM/$node" --state-dir "$T/state$node" --containers no --auto-thrift no \
		--otlp-endpoint "http://127.0.0.1:$PORT" --otlp-signals traces --otlp-trace-every 50 2>>"$T/daemon$node.log" &
	started+=("$!")
done
wait_until 30 test -S "$T/0.sock" -a -S "$T/1.sock"
NCCLINSP_SHM_DIR='' nice -n 10 timeout -k 1 120 "$B/nccl-sim" --plugin "$PLUGIN" --shm-dir "$SHM/%n" \
	"$T/nodes.scn" 2>>"$T/sim" &
started+=("$!")
# The rank that came last began last, and all of them ended together.
meet() {
	cat "$C"/*.traces.json | jq -s -e '[.[].resourceSpans[] |
		(.resource.attributes[] | select(.key == "host.name").value.stringValue) as $host |
		.scopeSpans[].spans[] | {traceId, $host, start: .startTimeUnixNano,
			rank: (.attributes[] | select(.key == "nccl.rank").value.intValue)}] | group_by(.traceId) |
		length >= 2 and all(.[]; (map([.host, .rank]) | unique) ==
			[["node0", "0"], ["node0", "1"], ["node1", "2"], ["node1", "3"]] and
			(max_by(.start).rank == "3"))'
}
check "ranks of two nodes meet in the traces of their operations, the late one last" wait_until 60 meet

# ---- only where and what is wanted -----------------------------------------------------------

fresh
printf '# a token\nAuthorization=Bearer a=b,c\n' >"$T/secret"
chmod 600 "$T/secret"
push --otlp-signals metrics --otlp-compression none --otlp-headers 'X-Scope-OrgID=a%20team, X-Two=2' \
	--otlp-headers-file "$T/secret"
check "headers are sent, those of the file as well" wait_until 30 \
	requests '"X-Scope-OrgID": "a team", "X-Two": "2", "Authorization": "Bearer a=b,c"' 1
check "... uncompressed, where that is wanted" requests gzip 0 0
check "a secret is in no answer" eval '! api config | grep -q Bearer && api config | grep -q X-Two'
printf 'Authorization=Bearer new\n' >"$T/secret"
check "a new secret needs no restart" wait_until 30 requests '"Authorization": "Bearer new"' 1
rm "$T/secret"
check "without the file nothing is sent" wait_until 30 exporter metrics '.error == "No such file or directory"'
check "nothing but what is wanted is sent" api_is status '[.exporters[] | select(.kind == "otlp")] | length == 1'
stop_daemon

start_daemon
sleep 1
check "a daemon that pushes nothing has not loaded libcurl" eval '! grep -q libcurl "/proc/$DAEMON_PID/maps"'
stop_daemon

# ---- TLS -----------------------------------------------------------------------------------

if [ -z "$(command -v openssl)" ]; then
	skip "over TLS with certificates of one's own" "no openssl"
	done_testing
fi
kill "$COLLECTOR"
wait "$COLLECTOR" 2>/dev/null
fresh
certificate() {	# NAME EXTENSION: signed by ca
	openssl req -newkey rsa:2048 -nodes -keyout "$T/$1.key" -subj "/CN=$1" -out "$T/$1.req" &&
	openssl x509 -req -in "$T/$1.req" -CA "$T/ca.pem" -CAkey "$T/ca.key" -CAcreateserial -days 2 \
		-extfile <(echo "$2") -out "$T/$1.pem"
} 2>/dev/null
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$T/ca.key" -subj "/CN=a test's" -days 2 -out "$T/ca.pem" 2>/dev/null
certificate server subjectAltName=IP:127.0.0.1
certificate client extendedKeyUsage=clientAuth
collector "$T/server.pem" "$T/server.key" "$T/ca.pem"
tls() {
	start_daemon --otlp-endpoint "https://127.0.0.1:$PORT" --otlp-interval 1s --otlp-signals metrics "$@"
}
tls --otlp-client-certificate "$T/client.pem" --otlp-client-key "$T/client.key"
check "a collector that nobody vouches for gets nothing" wait_until 30 \
	exporter metrics '.done == 0 and .error == "Key was rejected by service"'
stop_daemon
tls --otlp-certificate "$T/ca.pem" --otlp-client-certificate "$T/client.pem" --otlp-client-key "$T/client.key"
check "over TLS with certificates of one's own" wait_until 30 exporter metrics '.done > 0 and .error == null'
stop_daemon
done_testing
