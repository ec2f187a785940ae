#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Rules, alerts and dashboards, and a real Prometheus that collects from two nodes of one job.  Here
# minutes of the rules are seconds; with LONG=1 it is minutes of load.
. "$(dirname "$0")/lib.sh"
RULES=$TOP/deploy/prometheus
BOARDS=$TOP/deploy/grafana

# ---- the files ---------------------------------------------------------------------

names_there() {
	local name missing=0
	for name in $(grep -ohE '\<ncclinsp_[a-z_]+[a-z]' "$RULES"/*.yml "$BOARDS"/*.json | sort -u); do
		grep -q "record: [a-z]*:$name:" "$RULES"/*.yml && continue
		grep -q "^${name%_bucket}: " "$TOP/schema/metrics.schema" ||
			{ echo "$name is not served"; missing=1; }
	done
	[ -n "$name" ] && return $missing
}
check "all that rules and dashboards name is served" names_there

# Labels of a panel's legend and filters are such that ncclinsp-metrics(7) has.
sound() {
	jq -e '.title and (.panels | length > 0) and (.panels | map(.id) | unique | length) ==
		(.panels | length) and all(.panels[].targets[]; (.expr | length > 0) and
		.datasource.uid == "${datasource}")' "$1"
}
labels_there() {
	local label missing=0
	for label in $(jq -r '.panels[].targets[] | .legendFormat, .expr' "$1" |
			grep -oE '\{\{[a-z_]+\}\}|[{,][a-z_]+(=~|=|!=)"' | tr -cd 'a-z_\n' | sort -u); do
		[ "$label" = __name__ ] || grep -qE "(^|[^a-z_])_${label}_($|[^a-z_])" \
			"$B/obj/man/ncclinsp-metrics.7.scd" || { echo "there is no label $label"; missing=1; }
	done
	[ -n "$label" ] && return $missing
}
for board in "$BOARDS"/*.json; do
	check "${board##*/} is sound" sound "$board"
	check "... its labels are there" labels_there "$board"
done
alerts_tested() {
	local alert missing=0
	for alert in $(sed -n 's/.*- alert: //p' "$RULES/ncclinsp.rules.yml"); do
		grep -A3 "alertname: $alert" "$RULES/ncclinsp.test.yml" | grep -q exp_labels ||
			{ echo "$alert has no test in which it fires"; missing=1; }
	done
	[ -n "$alert" ] && return $missing
}
check "each alert has a test in which it fires" alerts_tested

if ! command -v promtool >/dev/null || ! command -v prometheus >/dev/null; then
	skip "the rules do what they say" "there is no promtool and prometheus (Debian: prometheus)"
	done_testing
fi
check "the rules do what they say" timeout 120 promtool test rules "$RULES/ncclinsp.test.yml"

# ---- two nodes -----------------------------------------------------------------------

LONG=${LONG:-}
UNIT=${LONG:+20}
UNIT=${UNIT:-2}		# a minute of the rules, in seconds

ports=()
while [ "${#ports[@]}" -lt 3 ]; do
	port=$(shuf -i 20000-32000 -n 1)
	(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || ports+=("$port")
done
mkdir -p "$SHM/0" "$SHM/1"
daemons=()
profiles=(fleet full)	# rules and joins are for both, also side by side
for node in 0 1; do
	"$B/ncclinspd" --foreground --socket "$T/$node.sock" --control "$T/$node.control" \
		--shm-dir "$SHM/$node" --state-dir "$T/state$node" --containers no --straggler-window 1s \
		--auto-thrift no --stall-min 1s --metrics-inspector yes --metrics-profile "${profiles[node]}" --node-name "node$node" \
		--metrics-listen "${ports[node]}" 2>>"$T/daemon$node.log" &
	daemons+=("$!")
	started+=("$!")
done

# start_job SCENARIO: as one job on the two nodes.
start_job() {
	SLURM_JOB_ID=4711 NCCLINSP_SHM_DIR='' nice -n 10 timeout -k 1 900 "$B/nccl-sim" --plugin "$PLUGIN" \
		--shm-dir "$SHM/%n" "$1" 2>>"$T/sim.log" &
	JOB=$!
	started+=("$JOB")
}
cat >"$T/late.scn" <<-END
	nodes 2
	processes 2
	comm world ranks 0-3 channels 2
	late rank 3 by 40ms
	loop forever
		compute 50ms
		AllReduce world 1Mi float32
	end
END
cat >"$T/hung.scn" <<-END
	nodes 2
	processes 2
	comm world ranks 0-3 channels 2
	absent rank 2 comm world op 50
	loop forever
		compute 10ms
		AllReduce world 1Mi float32
	end
END

# Times of a minute and more become units; those of a week stay.
shrink() {
	sed -E "s/(\[|for: |offset )([0-9]+)m/\1\2u/g; s/> 60\b/> $UNIT/" |
		awk -v unit="$UNIT" '{ while (match($0, /[0-9]+u/)) $0 = substr($0, 1, RSTART - 1) \
			substr($0, RSTART, RLENGTH - 1) * unit "s" substr($0, RSTART + RLENGTH); print }'
}
shrink <"$RULES/ncclinsp.rules.yml" >"$T/rules.yml"
cat >"$T/prometheus.yml" <<-END
	global: { scrape_interval: 1s, evaluation_interval: 1s }
	rule_files: [rules.yml]
	scrape_configs:
	  - job_name: nccl
	    static_configs:
	      - targets: ['127.0.0.1:${ports[0]}', '127.0.0.1:${ports[1]}']
END
check "the rules are still good" promtool check config "$T/prometheus.yml"

start_job "$T/late.scn"
P=127.0.0.1:${ports[2]}
nice -n 5 timeout 1200 prometheus --config.file "$T/prometheus.yml" --storage.tsdb.path "$T/tsdb" \
	--web.listen-address "$P" >"$T/prometheus.log" 2>&1 &
started+=("$!")

# result QUERY JQ: what it gives satisfies the filter.
result() {
	local answer
	answer=$(curl -s "http://$P/api/v1/query" --data-urlencode "query=$1")
	jq -e ".data.result | $2" <<<"$answer" >/dev/null || { printf '%s\n' "$answer"; return 1; }
}
fires() { result "ALERTS{alertname=\"$1\",alertstate=\"firing\"}" "$2"; }

check "Prometheus collects from both nodes" wait_until 60 result up 'length == 2 and all(.[]; .value[1] == "1")'
check "four processes of one job are there" wait_until 30 \
	result 'sum by (job_id) (ncclinsp_processes)' '.[0].metric.job_id == "4711" and .[0].value[1] == "4"'
panels_answer() {
	local expr answer n=0
	while IFS= read -r expr; do
		answer=$(curl -s "http://$P/api/v1/query" --data-urlencode "query=$(sed -E \
			's/\$__rate_interval/20s/g; s/\$(job|comm|node)/.*/g' <<<"$expr")")
		jq -e '.status == "success"' <<<"$answer" || { echo "$expr: $answer"; return 1; }
		n=$((n + $(jq '.data.result | length > 0 | if . then 1 else 0 end' <<<"$answer")))
	done < <(jq -r '.panels[].targets[].expr' "$BOARDS"/*.json)
	[ "$n" -ge 24 ] || { echo "only $n panels show anything"; return 1; }
}
check "the dashboards' panels have something to show" wait_until $((UNIT * 10 + 60)) panels_answer
# As Inspector's own dashboard asks: a panel for each collective, by size and ranks.
check "the dashboards of NVIDIA's Inspector have something to show" wait_until 60 result \
	'avg by (message_size, nranks, n_nodes) (nccl_bus_bandwidth_gbs{slurm_job_id="4711",collective="AllReduce",n_nodes!="1"})' \
	'length == 1 and .[0].metric == {message_size: "4-5MB", nranks: "4", n_nodes: "2"} and (.[0].value[1] | tonumber > 0)'
check "the late rank of the second node is named" wait_until $((UNIT * 30 + 60)) \
	fires NcclStraggler 'map(.metric.rank) == ["3"] and .[0].metric.job_id == "4711"'
check "... also as one of all ranks of the job" wait_until $((UNIT * 30 + 60)) \
	fires NcclStragglerOfJob 'map(.metric.rank) == ["3"] and .[0].metric.comm == "world" and
		.[0].metric.node == "node1" and .[0].metric.world_rank == "3" and .[0].metric.job_id == "4711"'
if [ -n "$LONG" ]; then
	sleep 300
	check "five minutes of load later no collection has failed" \
		result 'min_over_time(up[5m])' 'length == 2 and all(.[]; .value[1] == "1")'
	fired() { result "max by (rank) (max_over_time(ALERTS{alertname=\"$1\",alertstate=\"firing\"}[5m]))" "$2"; }
	check "... the late rank was named, and nobody else" fired NcclStraggler 'map(.metric.rank) == ["3"]'
	check "... nor of all nodes' ranks" fired NcclStragglerOfJob 'map(.metric.rank) == ["3"]'
	check "... and no counter went back" result 'sum(resets(ncclinsp_ops_total[5m]))' '.[0].value[1] == "0"'
fi
kill "$JOB"
wait "$JOB" 2>/dev/null

start_job "$T/hung.scn"
check "what hangs is told" wait_until $((UNIT * 10 + 60)) \
	fires NcclStalled 'length > 0 and all(.[]; .metric.comm == "world" and .metric.job_id == "4711")'
check "... and where its ranks are out of step" wait_until $((UNIT * 10 + 60)) \
	fires NcclDesync 'length == 1 and .[0].metric.op == "AllReduce"'
check "... and who has not come, on which node" wait_until $((UNIT * 10 + 60)) \
	fires NcclRankNotCome 'map(.metric | [.world_rank, .node, .job_id]) == [["2", "node1", "4711"]]'
kill -KILL "${daemons[1]}"
wait "${daemons[1]}" 2>/dev/null
check "a daemon that was killed is missed" wait_until $((UNIT * 10 + 60)) \
	fires NcclInspectorDown "map(.metric.instance) == [\"127.0.0.1:${ports[1]}\"]"
done_testing
