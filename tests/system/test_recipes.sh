#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The recipes of deploy/ for engines that users run, each with its engine: DuckDB over snapshots,
# VictoriaMetrics' scrape configuration and rules, an alertmanager's routes, and one engine of many tenants.
. "$(dirname "$0")/lib.sh"
D=$TOP/deploy
has() { local program; for program in "$@"; do command -v "$program" >/dev/null || return 1; done; }
port_free() { until PORT=$(shuf -i 20000-32000 -n 1) && ! (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; do :; done; }
answers() { curl -sf -m 5 -o /dev/null "http://127.0.0.1:$1"; }

# ---- a node: what it serves, and its snapshots ----------------------------------------------

port_free
METRICS=$PORT
start_daemon --snapshot-interval 2s --straggler-window 1s --metrics-profile fleet --metrics-listen "$METRICS" --node-name node7
printf 'processes 4\ncomm dp ranks 0-3 channels 2\nlate rank 2 by 3ms\nloop forever\n\tcompute 4ms\n\tAllReduce dp 1Mi float32\nend\n' >"$T/job.scn"
SLURM_JOB_ID=7 nice -n 10 "$B/nccl-sim" --plugin "$PLUGIN" "$T/job.scn" 2>"$T/sim" &
started+=("$!")
is_found() { "$B/ncclinsp" diagnose -o json | jq -e 'any(.findings[]; .kind == "straggler" and .grade == "found")'; }
check "a late rank is found" wait_until 60 is_found
files() { ls "$T"/state/snapshots/*.zst 2>/dev/null | wc -l; }
FILES=$(files)
check "snapshots are written" wait_until 30 eval '[ "$(files)" -ge $((FILES + 3)) ]'

# ---- DuckDB -----------------------------------------------------------------------------------

PACKAGE=@duckdb/node-api@1.5.6-r.1
duckdb_there() {
	[ -e "$B/duckdb/node_modules/@duckdb/node-api" ] || timeout -k 1 60 npm install --fetch-retries=0 --silent --ignore-scripts --no-audit --no-fund --no-save \
		--prefix "$B/duckdb" "$PACKAGE" >/dev/null 2>&1
	[ -e "$B/duckdb/node_modules/@duckdb/node-api" ]
}
# query NAME FILTER: its rows are as the filter has them.
query() {
	local rows
	rows=$(timeout 60 node "$TOP/tests/duckdb/run.mjs" "$B/duckdb/node_modules" "$T/state/snapshots/*.json.zst" "$D/duckdb/$1.sql")
	jq -e "$2" <<<"$rows" || { printf '%s\n' "$rows"; return 1; }
}
if has node npm && duckdb_there; then
	check "DuckDB: the late rank, and no other" query late 'length == 1 and (.[0] | .world_rank == 2 and .host == "node7" and .job == "7" and
		.share_of_the_others_time > 0.1)'
	check "... times of what ran between the files" query bandwidth 'length >= 1 and all(.[]; .func == "AllReduce" and .size_class == "4194304" and
		(.timed | tonumber) > 10 and .mean_ms > 0.01 and .mean_ms < 1000)'
	check "... findings, once each" query findings '[.[] | select(.kind == "straggler")] | length == 1 and (.[0].said | test("rank 2 of dp"))'
else
	skip "DuckDB reads snapshots" "npm did not bring $PACKAGE"
fi

# ---- VictoriaMetrics ------------------------------------------------------------------------

if has victoria-metrics vmalert; then
	mkdir "$T/victoria"
	cp "$D/victoriametrics/scrape.yml" "$T/victoria"
	printf '[{"targets": ["127.0.0.1:%s"]}]\n' "$METRICS" >"$T/victoria/nodes.json"
	port_free
	ENGINE=$PORT
	(cd "$T/victoria" && exec nice victoria-metrics -promscrape.config=scrape.yml -storageDataPath="$T/victoria/data" \
		-httpListenAddr="127.0.0.1:$ENGINE" -memory.allowedBytes=200MB -search.latencyOffset=1s) >"$T/victoria.log" 2>&1 &
	started+=("$!")
	ranks_there() { "$B/ncclinsp" ranks --from "http://127.0.0.1:$ENGINE" --job 7 -o json 2>"$T/err" | jq -e '.ranks | length == 4' || { cat "$T/err"; return 1; }; }
	check "VictoriaMetrics: its scrape configuration brings all ranks" wait_until 90 ranks_there
	check "... and vmalert takes the rules as they are" timeout 30 vmalert -rule="$D/prometheus/ncclinsp.rules.yml" -dryRun

	# An engine of many tenants, which Mimir and Thanos are: nobody is served without a tenant's name.
	port_free
	cat >"$T/tenants.py" <<-'END'
		import http.server, sys, urllib.request
		class Tenants(http.server.BaseHTTPRequestHandler):
		    def serve(self):
		        if self.headers.get("X-Scope-OrgID") != "team-1":
		            return self.send_error(401, "no org id")
		        body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
		        asked = urllib.request.Request(sys.argv[2] + self.path, body,
		            {"Content-Type": self.headers.get("Content-Type", "")})
		        with urllib.request.urlopen(asked) as answer:
		            self.send_response(answer.status)
		            self.end_headers()
		            self.wfile.write(answer.read())
		    do_GET = do_POST = serve
		http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Tenants).serve_forever()
	END
	python3 "$T/tenants.py" "$PORT" "http://127.0.0.1:$ENGINE" 2>"$T/tenants.log" &
	started+=("$!")
	TENANTS=http://127.0.0.1:$PORT
	wait_until 20 eval '(exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null'
	check "an engine of many tenants answers the one that is named" eval '
		NCCLINSP_ENGINE_TENANT=team-1 "$B/ncclinsp" ranks --from "$TENANTS" --job 7 -o json | jq -e ".ranks | length == 4"'
	check "... and without a name, that is what is told" exits 1 'NCCLINSP_ENGINE_TENANT' "$B/ncclinsp" ranks --from "$TENANTS" --job 7
else
	skip "VictoriaMetrics takes its recipe" "there is no victoria-metrics (Debian: victoria-metrics)"
fi

# ---- alert routes ------------------------------------------------------------------------------

if has amtool prometheus-alertmanager; then
	ROUTES=$D/prometheus/alertmanager.yml
	check "the alertmanager takes the routes" amtool check-config "$ROUTES"
	routed() { [ "$(amtool config routes test --config.file="$ROUTES" alertname="$1" severity="$2")" = "$3" ]; }
	check "... all alerts have one that suits them" eval '
		sed -n "/- alert: /{s/.*: //;h}; /severity: /{s/.*severity: \([a-z]*\).*/\1/;H;x;s/\n/ /p}" "$D/prometheus/ncclinsp.rules.yml" >"$T/alerts"
		[ "$(wc -l <"$T/alerts")" -gt 10 ] && while read -r alert severity; do
			case $severity in critical) to=pager ;; warning) to=mail ;; *) to=nobody ;; esac
			routed "$alert" "$severity" "$to" || { echo "$alert $severity"; exit 1; }
		done <"$T/alerts"'
	# Debian's looks for a file of its package, which may be unpacked only.
	share=$(dirname "$(command -v prometheus-alertmanager)")/../share
	as_installed() {
		[ -e /usr/share/prometheus/alertmanager ] && exec "$@"
		exec unshare --mount sh -c 'mount -t overlay -o lowerdir="$0:/usr/share" overlay /usr/share && exec "$@"' "$share" "$@"
	}
	port_free
	as_installed prometheus-alertmanager --config.file="$ROUTES" --storage.path="$T/alertmanager" --cluster.listen-address= \
		--web.listen-address="127.0.0.1:$PORT" >"$T/alertmanager.log" 2>&1 &
	started+=("$!")
	AT=http://127.0.0.1:$PORT/api/v2/alerts
	wait_until 30 answers "$PORT/-/ready"
	alert() { printf '{"labels": {"alertname": "%s", "job_id": "%s", "severity": "critical"}}' "$@"; }
	curl -sf -H 'Content-Type: application/json' -d "[$(alert NcclRankNotCome 7), $(alert NcclStalled 7), $(alert NcclStalled 8)]" "$AT"
	state_of() { curl -s "$AT" | jq -r ".[] | select(.labels.alertname == \"$1\" and .labels.job_id == \"$2\").status.state"; }
	check "... of one job the cause is told, and not what follows from it" wait_until 60 eval '
		[ "$(state_of NcclStalled 7),$(state_of NcclRankNotCome 7),$(state_of NcclStalled 8)" = suppressed,active,active ]'
	# A finding, handed over by what on-finding runs.
	finding() { printf '{"id": 3, "kind": "died", "verdict": null, "severity": "critical", "active": %s, "job": "9", "comm_name": "dp \\"x\\"",
		"text": "rank 3 has died", "since_at": "%s", "until_at": %s}' "$1" "$(date -u -d -1min +%FT%TZ)" "$2" |
		ALERTMANAGER=http://127.0.0.1:$PORT "$D/on-finding/alertmanager.sh"; }
	alerts_of() { curl -s "$AT" | jq -c "[.[] | select(.labels.job_id == \"$1\") | [.labels.comm, .annotations.description]]"; }
	check "... a finding that on-finding tells is an alert" eval 'finding true null && [ "$(alerts_of 9)" = "[[\"dp \\\"x\\\"\",\"rank 3 has died\"]]" ]'
	check "... and none when it is over" eval 'finding false "\"$(date -u +%FT%TZ)\"" && wait_until 20 eval "[ \"\$(alerts_of 9)\" = \"[]\" ]"'
else
	skip "an alertmanager takes the routes" "there is no amtool (Debian: prometheus-alertmanager)"
fi
check "the collector's configuration is YAML, and listens where otlp-endpoint is to point" python3 -c '
import sys, yaml
config = yaml.safe_load(open(sys.argv[1]))
assert config["receivers"]["otlp"]["protocols"]["http"]["endpoint"] == "127.0.0.1:4318"
assert set(config["service"]["pipelines"]) == {"logs", "traces", "metrics"}
for pipeline in config["service"]["pipelines"].values():
    for part in "receivers", "processors", "exporters":
        assert all(name in config[part] for name in pipeline[part])' "$D/otel/collector.yml"
done_testing
