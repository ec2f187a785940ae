#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What /metrics of many nodes costs those who collect it: two scrapes of a real daemon are carried
# on as NODES nodes (play.awk), and a real Prometheus and a real VictoriaMetrics collect them every
# INTERVAL seconds, TURNS times.  Figures per series, and a table of what follows for others.
#
#   PROFILE=fleet NODES=1000 INTERVAL=15 TURNS=28 tests/fleet/cost.sh
. "$(dirname "${BASH_SOURCE[0]}")/../system/lib.sh"
PROFILE=${PROFILE:-fleet}
NODES=${NODES:-1000}
INTERVAL=${INTERVAL:-15}
TURNS=${TURNS:-28}
HERE=$TOP/tests/fleet

say() { printf '%-44s %s\n' "$1" "$2"; }
fail() { echo "$*" >&2; exit 1; }
for program in prometheus victoria-metrics; do
	command -v "$program" >/dev/null || fail "there is no $program (Debian: $program)"
done

# ---- one node ------------------------------------------------------------------------

mkdir -p "$SHM/0" "$SHM/1" "$T/nodes/a" "$T/nodes/b"
"$B/ncclinspd" --foreground --socket "$SOCK" --control "$T/control" --shm-dir "$SHM/0" \
	--state-dir "$T/state" --containers no --metrics-profile "$PROFILE" 2>"$T/daemon.log" &
started+=("$!")
NCCLINSP_SHM_DIR='' nice -n 10 timeout -k 1 120 "$B/nccl-sim" --plugin "$PLUGIN" --shm-dir "$SHM/%n" \
	"$HERE/node.scn" 2>"$T/sim.log" &
started+=("$!")
JOB=$!
scrape() { curl -sf --unix-socket "$SOCK" http://ncclinspd/metrics; }
all_works() { [ "$(scrape | grep -c '^ncclinsp_last_sequence{.*ReduceScatter')" -ge 16 ]; }
wait_until 60 all_works || fail "the simulated job does not run: $(cat "$T/sim.log")"
sleep 2
scrape >"$T/first"
sleep 5
scrape >"$T/second"
kill "$JOB"
wait "$JOB" 2>/dev/null
series=$(grep -vc '^#' "$T/second")
bytes=$(wc -c <"$T/second")
say "profile" "$PROFILE"
say "series of a node" "$series"
say "bytes of a scrape" "$bytes"

# ---- many ----------------------------------------------------------------------------

# The nodes' answers of a turn appear at once: `now` leads to one of two folders.
play() {
	local to=a
	[ "$(readlink "$T/nodes/now")" = a ] && to=b
	awk -v nodes="$NODES" -v tick="$1" -v out="$T/nodes/$to" -f "$HERE/play.awk" "$T/first" "$T/second"
	ln -sfn "$to" "$T/nodes/next" && mv -T "$T/nodes/next" "$T/nodes/now"
}
free_port() {
	local port
	for port in $(shuf -i 20000-32000 -n 50); do
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
	done
}
play 0
PLAYER=$(free_port)
python3 -m http.server "$PLAYER" --bind 127.0.0.1 --directory "$T/nodes" >/dev/null 2>&1 &
started+=("$!")
player_pid=$!
seq "$NODES" | jq -n --arg at "127.0.0.1:$PLAYER" '[inputs | {targets: [$at],
	labels: {__metrics_path__: "/now/\(.)", instance: "node\(.)"}}]' >"$T/nodes.json"
cat >"$T/prometheus.yml" <<-END
	global: { scrape_interval: ${INTERVAL}s, scrape_timeout: ${INTERVAL}s, evaluation_interval: 30s }
	rule_files: [$TOP/deploy/prometheus/ncclinsp.rules.yml]
	scrape_configs:
	  - job_name: nccl
	    file_sd_configs: [{ files: ['$T/nodes.json'] }]
END
grep -v rule_files "$T/prometheus.yml" | sed 's/, evaluation_interval: 30s//' >"$T/victoria.yml"

PROMETHEUS=$(free_port)
nice prometheus --config.file "$T/prometheus.yml" --storage.tsdb.path "$T/tsdb" --web.enable-admin-api \
	--web.listen-address "127.0.0.1:$PROMETHEUS" >"$T/prometheus.log" 2>&1 &
started+=("$!")
prometheus_pid=$!
VICTORIA=$(free_port)
nice victoria-metrics -promscrape.config "$T/victoria.yml" -storageDataPath "$T/victoria" \
	-httpListenAddr "127.0.0.1:$VICTORIA" -memory.allowedBytes 1GB -search.latencyOffset 1s \
	-loggerLevel WARN >"$T/victoria.log" 2>&1 &
started+=("$!")
victoria_pid=$!

# ask PORT QUERY: at the moment that all is asked about.
ask() { curl -sf "http://127.0.0.1:$1/api/v1/query" -d "time=$MOMENT" --data-urlencode "query=$2"; }
value() { ask "$1" "$2" | jq -r '.data.result[0].value[1] // 0'; }
own() { curl -sf "http://127.0.0.1:$1/metrics" | awk -v name="$2" 'index($0, name) == 1 { sum += $NF }
	END { printf "%.15g", sum }'; }
cpu_s() { awk -v tick="$(getconf CLK_TCK)" '{ printf "%.1f", ($14 + $15) / tick }' "/proc/$1/stat"; }
rss() { awk '/^VmRSS/ { printf "%.0f", $2 * 1024 }' "/proc/$1/status"; }
# spent PORT PID: the CPU time that the queries on stdin take, in seconds.
spent() {
	local before query
	before=$(cpu_s "$2")
	while IFS= read -r query || [ -n "$query" ]; do
		ask "$1" "$query" >/dev/null || echo "$query fails" >&2
	done
	per "$(awk -v a="$before" -v b="$(cpu_s "$2")" 'BEGIN { print b - a }')" 1
}

for ((turn = 1; turn <= TURNS; turn++)); do
	next=$((SECONDS + INTERVAL))
	play "$turn"
	while [ "$SECONDS" -lt "$next" ]; do sleep 0.2; done
done

# ---- what it took --------------------------------------------------------------------

# All of it is asked about one moment, when nothing is collected any more.
MOMENT=$(date +%s)
COLLECTING=("$(cpu_s "$prometheus_pid")" "$(cpu_s "$victoria_pid")")
kill "$player_pid"
wait "$player_pid" 2>/dev/null
sleep 5

# Of all ranks of all nodes the ten that are inside for the shortest time, against their median.
LATE='topk(10, quantile by (comm_id) (0.5, rate(ncclinsp_op_inside_seconds_total[5m]) /
	(rate(ncclinsp_op_inside_ops_total[5m]) > 0)) - on (comm_id) group_right ()
	rate(ncclinsp_op_inside_seconds_total[5m]) / (rate(ncclinsp_op_inside_ops_total[5m]) > 0))'
STUCK='max by (comm_id, op) (ncclinsp_last_sequence) - min by (comm_id, op) (ncclinsp_last_sequence) > 0'

per() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", b ? a / b : 0 }'; }
engine() {	# NAME PORT PID SAMPLES CPU
	say "$1: nodes that answer" "$(value "$2" 'sum(up{job="nccl"})')"
	say "$1: samples" "$4"
	say "$1: CPU seconds per million samples" "$(per "$5" "$(per "$4" 1000000)")"
	say "$1: memory per series, bytes" "$(per "$(rss "$3")" $((NODES * series)))"
	say "$1: who is late over all nodes, CPU s" "$(tr '\n' ' ' <<<"$LATE" | spent "$2" "$3")"
	say "$1: who has not come, CPU s" "$(spent "$2" "$3" <<<"$STUCK")"
}
engine Prometheus "$PROMETHEUS" "$prometheus_pid" \
	"$(own "$PROMETHEUS" prometheus_tsdb_head_samples_appended_total)" "${COLLECTING[0]}"
say "Prometheus: all rules once, CPU s" \
	"$(curl -sf "http://127.0.0.1:$PROMETHEUS/api/v1/rules" | jq -r '.data.groups[].rules[].query |
	gsub("\n"; " ")' | spent "$PROMETHEUS" "$prometheus_pid")"
curl -sf -X POST "http://127.0.0.1:$PROMETHEUS/api/v1/admin/tsdb/snapshot" >/dev/null ||
	fail "Prometheus makes no snapshot"
block=$(echo "$T"/tsdb/snapshots/*/*/)
kept=$(jq .stats.numSamples "$block/meta.json")
chunks=$(du -sb "$block/chunks" | cut -f 1)
index=$(stat -c %s "$block/index")
prometheus_sample=$(per "$chunks" "$kept")
prometheus_index=$(per "$index" "$(jq .stats.numSeries "$block/meta.json")")
say "Prometheus: bytes per sample" "$prometheus_sample"
say "Prometheus: bytes of index per series" "$prometheus_index"

curl -sf "http://127.0.0.1:$VICTORIA/internal/force_flush" >/dev/null
curl -sf "http://127.0.0.1:$VICTORIA/internal/force_merge" >/dev/null
sleep 3
rows=$(own "$VICTORIA" 'vm_rows{type="storage/')
engine VictoriaMetrics "$VICTORIA" "$victoria_pid" "$rows" "${COLLECTING[1]}"
victoria_sample=$(per "$(own "$VICTORIA" 'vm_data_size_bytes{type="storage/')" "$rows")
say "VictoriaMetrics: bytes per sample" "$victoria_sample"
say "VictoriaMetrics: bytes of index per series" \
	"$(per "$(own "$VICTORIA" 'vm_data_size_bytes{type="indexdb')" $((NODES * series)))"

echo
echo "| nodes | series | MB a collection | samples/s at 15 s | Prometheus, GB a day | VictoriaMetrics, GB a day |"
echo "| --- | --- | --- | --- | --- | --- |"
for nodes in 100 1000 10000; do
	awk -v nodes="$nodes" -v series="$series" -v bytes="$bytes" -v p="$prometheus_sample" \
		-v v="$victoria_sample" 'BEGIN { n = nodes * series; day = n / 15 * 86400
		printf "| %d | %d | %.1f | %d | %.2f | %.2f |\n", nodes, n, nodes * bytes / 1e6, n / 15,
			day * p / 1e9, day * v / 1e9 }'
done
