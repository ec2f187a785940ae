#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job of many nodes, explained from one place, by one command, in each of three ways: ssh, Prometheus
# and VictoriaMetrics.  A few nodes; with LONG=1 (`make check-nodes`) 32, each answer within 5 s.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/hosts.sh"

nodes_can_be || skip_all "needs root, namespaces, ssh and dropbear"
export -n NCCLINSP_SOCKET	# is of no node
unset NCCLINSP_SOCKET
LONG=${LONG:-}
NODES=${NODES:-${LONG:+32}}
NODES=${NODES:-4}
RANKS=$((2 * NODES))
LATE=$((2 * (NODES * 3 / 4) + 1))	# on the node at three quarters
GONE=$((NODES / 2 + 1))			# the node that dies
ABSENT=$((2 * (NODES / 4) + 1))		# who does not come
WINDOW=${LONG:+60s}			# three of them are judged; 60s is the default
STEP=${LONG:+4}				# an engine's, of which some twenty are judged
ALL=$(printf 'node[00-%02d]' $((NODES - 1)))

# ---- the nodes, and who collects what they know ---------------------------------------------

nodes_start 0
port_free() { until PORT=$(shuf -i 20000-32000 -n 1) && ! (exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null; do :; done; }
targets=()
daemons=()
for ((i = 0; i < NODES; i++)); do
	mkdir "$SHM/$i"
	port_free
	targets+=("'127.0.0.1:$PORT'")
	node_daemon "$i" --metrics-profile fleet --metrics-listen "$PORT" --stall-min 5s \
		--straggler-window "${WINDOW:-3s}"
	daemons+=("${started[-1]}")
	node_server "$i"
done
all_answer() { local i; for ((i = 0; i < NODES; i++)); do node_answers "$i" || return 1; done; }
wait_until 120 all_answer || { cat "$T"/*.log; exit 1; }

cat >"$T/prometheus.yml" <<-END
	global: { scrape_interval: $((${STEP:-2} / 2))s }
	scrape_configs:
	  - job_name: nccl
	    static_configs:
	      - targets: [$(IFS=,; echo "${targets[*]}")]
END
declare -A ways=([ssh]="-H $ALL")
if command -v prometheus >/dev/null; then
	port_free
	ways[Prometheus]="--from http://127.0.0.1:$PORT"
	nice prometheus --config.file "$T/prometheus.yml" --storage.tsdb.path "$T/tsdb" \
		--web.listen-address "127.0.0.1:$PORT" >"$T/prometheus.log" 2>&1 &
	started+=("$!")
fi
if command -v victoria-metrics >/dev/null; then
	port_free
	ways[VictoriaMetrics]="--from http://127.0.0.1:$PORT"
	nice victoria-metrics -promscrape.config "$T/prometheus.yml" -storageDataPath "$T/victoria" -httpListenAddr "127.0.0.1:$PORT" \
		-memory.allowedBytes 200MB -search.latencyOffset 1s -loggerLevel WARN >"$T/victoria.log" 2>&1 &
	started+=("$!")
fi
export NCCLINSP_ENGINE_STEP=${STEP:-2}

# ---- the job --------------------------------------------------------------------------------

# pairs FROM TO: the two ranks of each node, for a line of the scenario.
pairs() { local i; for ((i = $1; i < $2; i++)); do printf ' ranks %d,%d' $((2 * i)) $((2 * i + 1)); done; }
start_job() {	# FAULT
	cat >"$T/job.scn" <<-END
		nodes $NODES
		processes 2
		comm tp$(pairs 0 $((NODES / 2))) channels 1
		comm ep$(pairs $((NODES / 2)) "$NODES") channels 1
		comm dp ranks 0-$((RANKS - 1)) channels 1 algo tree
		$1
		loop forever
			compute 60ms
			AllReduce tp 64Ki float32
			AllReduce ep 64Ki float32
			compute 30ms
			AllReduce dp 64Ki float32
		end
	END
	SLURM_JOB_ID=7 nice -n 5 "$B/nccl-sim" --shm-dir "$SHM/%n" --plugin "$PLUGIN" "$T/job.scn" 2>"$T/sim" &
	JOB=$!
	started+=("$JOB")
	sleep 1
	kill -0 "$JOB" || { cat "$T/sim"; exit 1; }
}
end_job() { end_all "$JOB"; wait "$JOB" 2>/dev/null; }

# explains WAY FILTER: the command's findings, in $T/out; the time that it took is in TOOK, ms.
explains() {
	local began
	began=$(date +%s%N)
	timeout 30 "$B/ncclinsp" diagnose ${ways[$1]} -o json >"$T/out" 2>"$T/err"
	TOOK=$((($(date +%s%N) - began) / 1000000))
	jq -e "[.findings[] | select(.active != false)] | $2" "$T/out" >/dev/null ||
		{ cat "$T/err"; jq -c '.findings[] | [.kind, .verdict, .grade, .host, .text]' "$T/out"; return 1; }
}
# Now and then: on one machine the logins take a second of both cores from the job.
comes_to_explain() {
	local end=$((SECONDS + 180))
	until explains "$@"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 8
	done
}
# explained WHAT FILTER: in each way, and how long it took.
explained() {
	local way
	for way in ssh Prometheus VictoriaMetrics; do
		if [ -z "${ways[$way]-}" ]; then
			skip "$way: $1" "there is no such engine (Debian: prometheus, victoria-metrics)"
			continue
		fi
		check "$way: $1" comes_to_explain "$way" "$2"
		explains "$way" "$2" >/dev/null
		echo "# $way: asked of $NODES nodes, answered in $TOOK ms"
		jq -r '.findings[] | select(.active != false) | "# \(.kind) \(.verdict) \(.grade), rank \(.whom[0].world_rank) \(
			.host // .whom[0].host // ""): \(.text[:160])"' "$T/out" | head -6
		[ -z "$LONG" ] || check "... within 5 s of asking" [ "$TOOK" -le 5000 ]
	done
}

FAMILY=ep
[ "$LATE" -ge "$NODES" ] || FAMILY=tp
start_job "late rank $LATE by 40ms comm $FAMILY"
# Beside other tests a rank may come late for want of a CPU: then only the worst is looked at.
WORST=${LONG:+100}
WORST=${WORST:-1}
explained "of all nodes the late rank is named first, with its node, and none of those that wait for it" "
	map(select(.kind == \"straggler\" and .grade == \"found\")) | length > 0 and all(.[:$WORST][];
		.whom[0].world_rank == $LATE and .whom[0].host == \"$(node $((LATE / 2)))\")"
end_job

start_job "absent rank $ABSENT comm dp op 60"
HANGS="map(select(.verdict == \"NOT_JOINED\")) | length > 0 and all(.[];
		.whom[0].world_rank == $ABSENT and .whom[0].host == \"$(node $((ABSENT / 2)))\")"
explained "the rank that has not come is named, with its node" "$HANGS"

# Its daemon is killed; to ssh it says nothing any more, which takes longest.
kill -KILL "${daemons[GONE]}"
wait "${daemons[GONE]}" 2>/dev/null
printf '#!/bin/sh\nexec sleep 1000\n' >"$T/mute"
sed -i "1i Host $(node $GONE)\n\tProxyCommand sh $T/mute" "$T/ssh"
explained "... also where a node is dead, which is named beside it" "($HANGS) and
	any(.[]; .kind == \"silent\" and (.text | test(\"$(node $GONE)\")))"
end_job
done_testing
