#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job of three nodes, explained from what a metrics engine has of them.
. "$(dirname "$0")/lib.sh"
for program in prometheus victoria-metrics vmauth openssl; do
	command -v "$program" >/dev/null || skip_all "there is no $program (Debian: prometheus, victoria-metrics, openssl)"
done

ports=()
while [ "${#ports[@]}" -lt 7 ]; do
	port=$(shuf -i 20000-32000 -n 1)
	(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || ports+=("$port")
done
daemons=()
for node in 0 1 2; do
	mkdir -p "$SHM/$node"
	"$B/ncclinspd" --foreground --socket "$T/$node.sock" --control "$T/$node.control" \
		--shm-dir "$SHM/$node" --state-dir "$T/state$node" --containers no --auto-thrift no \
		--metrics-profile fleet --node-name "node$node" --metrics-listen "${ports[node]}" \
		2>>"$T/daemon$node.log" &
	daemons+=("$!")
	started+=("$!")
done

# scenario FAULT: two ranks a node, in a communicator each, and across nodes.
scenario() {
	cat <<-END
		nodes 3
		processes 2
		comm world ranks 0-5 channels 2
		comm tp ranks 0,1 ranks 2,3 ranks 4,5 channels 2
		comm dp ranks 0,2,4 ranks 1,3,5 channels 2
		$1
		AllReduce world 1Ki float32
		loop forever
			compute 30ms
			AllReduce tp 1Mi float32
			AllReduce dp 1Mi float32
		end
	END
}
start_job() {	# JOB FAULT
	scenario "$2" >"$T/$1.scn"
	SLURM_JOB_ID=$1 NCCLINSP_SHM_DIR='' nice -n 5 timeout -k 1 300 "$B/nccl-sim" --plugin "$PLUGIN" \
		--shm-dir "$SHM/%n" "$T/$1.scn" 2>>"$T/sim.log" &
	JOB=$!
	started+=("$JOB")
}

openssl req -x509 -newkey rsa:2048 -nodes -keyout "$T/key.pem" -out "$T/cert.pem" -days 2 \
	-subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 2>"$T/openssl.log"
cat >"$T/web.yml" <<-END
	tls_server_config: { cert_file: cert.pem, key_file: key.pem }
END
cat >"$T/prometheus.yml" <<-END
	global: { scrape_interval: 1s }
	scrape_configs:
	  - job_name: nccl
	    static_configs:
	      - targets: ['127.0.0.1:${ports[0]}', '127.0.0.1:${ports[1]}', '127.0.0.1:${ports[2]}']
END
cat >"$T/auth.yml" <<-END
	users:
	  - bearer_token: let-me-in
	    url_prefix: http://127.0.0.1:${ports[4]}
END
nice prometheus --config.file "$T/prometheus.yml" --storage.tsdb.path "$T/tsdb" \
	--web.config.file "$T/web.yml" --web.listen-address "127.0.0.1:${ports[3]}" >"$T/prometheus.log" 2>&1 &
started+=("$!")
nice victoria-metrics -promscrape.config "$T/prometheus.yml" -storageDataPath "$T/victoria" \
	-httpListenAddr "127.0.0.1:${ports[4]}" -memory.allowedBytes 200MB -search.latencyOffset 1s \
	-loggerLevel WARN >"$T/victoria.log" 2>&1 &
started+=("$!")
nice vmauth -auth.config "$T/auth.yml" -httpListenAddr "127.0.0.1:${ports[5]}" >"$T/vmauth.log" 2>&1 &
started+=("$!")
export NCCLINSP_ENGINE_STEP=2 NCCLINSP_ENGINE_CA=$T/cert.pem NCCLINSP_ENGINE_TOKEN=let-me-in
declare -A engines=([Prometheus]=https://127.0.0.1:${ports[3]} [VictoriaMetrics]=http://127.0.0.1:${ports[5]})

# from ENGINE COMMAND... : what it says, and a filter of its JSON.
from() {
	local at=${engines[$1]}
	shift
	timeout 20 "$B/ncclinsp" "$@" --from "$at"
}
finds() {	# ENGINE FILTER
	local said
	said=$(from "$1" diagnose -o json)
	jq -e "[.findings[] | select(.kind != \"missing\")] | $2" <<<"$said" || { printf '%s\n' "$said"; return 1; }
}

start_job 7 'late rank 3 by 30ms comm tp'
for engine in "${!engines[@]}"; do
	check "$engine: the root of what is late is named, by its rank in the job and its node" wait_until 120 \
		finds "$engine" 'map(select(.kind == "straggler")) | length > 0 and all(.[];
			.whom[0].world_rank == 3 and .whom[0].host == "node1")'
	check "... in five seconds, in words" eval 'SECONDS=0; from "$engine" diagnose | tr -s " \n" " " |
		grep -q "global rank 3, pid [0-9]*, node1.*comes last" && [ "$SECONDS" -lt 5 ]'
	check "... ranks has all of them" eval '[ "$(from "$engine" ranks -o json | jq "[.ranks[] |
		select(.host and .pid and .job == \"7\")] | length")" = 18 ]'
	check "... of that job, or of none" eval '[ "$(from "$engine" ranks --job 7 -o json | jq ".ranks | length")" = 18 ] &&
		from "$engine" ranks --job 8 2>&1 | grep -q "has no series of job 8"'
done
check "top shows them" eval 'from Prometheus top -n 1 | grep -q node1'
kill "$JOB"
wait "$JOB" 2>/dev/null

start_job 9 'absent rank 3 comm tp op 60'
for engine in "${!engines[@]}"; do
	check "$engine: who has not come is named, by its rank in the job and its node" wait_until 120 \
		finds "$engine" 'map(select(.verdict == "NOT_JOINED")) | length > 0 and all(.[];
			.whom[0].world_rank == 3 and .whom[0].host == "node1")'
done
kill -KILL "${daemons[2]}"
wait "${daemons[2]}" 2>/dev/null
for engine in "${!engines[@]}"; do
	check "$engine: a node that is gone is named beside it" wait_until 60 finds "$engine" \
		'any(.[]; .verdict == "NOT_JOINED") and any(.[]; .kind == "silent" and (.text | test("node2")))'
done

# ---- what does not answer -------------------------------------------------------------

check "a wrong token is told as such" exits 1 'answers 4[0-9][0-9]: .*token right' \
	env NCCLINSP_ENGINE_TOKEN=no "$B/ncclinsp" diagnose --from "${engines[VictoriaMetrics]}"
check "an authority that is not trusted too" exits 1 'does not answer: .*(SSL|certificate)' \
	env -u NCCLINSP_ENGINE_CA "$B/ncclinsp" diagnose --from "${engines[Prometheus]}"
# Mimir and Thanos tell tenants apart by a header, the others do not read it.
perl -MIO::Socket::INET -e '
	my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => shift, Listen => 1, ReuseAddr => 1) or die;
	my $c = $s->accept; while (<$c>) { print; last if /^\r?$/ }
	print $c "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"' "${ports[6]}" >"$T/asked" &
started+=("$!")
wait_until 10 eval 'grep -q ":$(printf %04X ${ports[6]}) 00000000:0000 0A" /proc/net/tcp'
check "a tenant that is refused is named with its variable" exits 1 'refuses: 401; .*NCCLINSP_ENGINE_TENANT' \
	env NCCLINSP_ENGINE_TENANT=team-a "$B/ncclinsp" diagnose --from "http://127.0.0.1:${ports[6]}"
check "... and its name went along, with the token" eval '
	grep -q "^X-Scope-OrgID: team-a" "$T/asked" && grep -q "^Authorization: Bearer let-me-in" "$T/asked"'
check "what is no engine is told" exits 1 "answers 404.*are the path" \
	"$B/ncclinsp" ranks --from "http://127.0.0.1:${ports[0]}"
check "what listens nowhere is told" exits 1 "does not answer" "$B/ncclinsp" ranks --from http://127.0.0.1:1
check "rows that it has not are refused" exits 2 'ask the nodes' "$B/ncclinsp" ops --from http://127.0.0.1:1
check "top wants no file" exits 2 "replay" "$B/ncclinsp" top --from "$T"
done_testing
