#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What deploy/kubernetes says exists here, and is enough: the daemon runs with the rights,
# paths and configuration of the manifest and finds what a job's manifest makes.
. "$(dirname "$0")/lib.sh"

python3 -c 'import yaml' 2>/dev/null || skip_all "needs python3-yaml"
K=$TOP/deploy/kubernetes
CONF=$K/base/ncclinspd.conf

# as_json FILE: all documents of it, as one array.
for file in "$K"/*.yaml "$K"/*/*.yaml; do
	mkdir -p "$T/json/${file%/*}"
	echo "$file" "$T/json$file"
done | python3 -c 'import json, sys, yaml
for line in sys.stdin:
    src, to = line.split()
    json.dump(list(yaml.safe_load_all(open(src))), open(to, "w"))'
as_json() { cat "$T/json$1"; }
# holds FILE JQ: of its first document, called $d.
holds() { as_json "$1" | jq -e ".[0] as \$d | $2" || { as_json "$1"; return 1; }; }
DAEMON=$K/base/daemonset.yaml
POD='$d.spec.template.spec'
BOX="$POD.containers[0]"

for file in "$K"/*.yaml "$K"/*/*.yaml; do
	check "${file#"$K"/} is one object with a kind and a version" \
		eval 'as_json "$file" | jq -e "length == 1 and (.[0] | .kind != null and .apiVersion != null)"'
done
listed() { as_json "$K/base/kustomization.yaml" | jq -r '.[0] | .resources[], .configMapGenerator[].files[]'; }
check "what is put together is there" eval 'for one in $(listed); do [ -e "$K/base/$one" ] || exit; done'
if kubectl kustomize --help >/dev/null 2>&1; then
	check "kustomize puts it together" kubectl kustomize "$K/base"
	kubectl kustomize "$K/shared" >"$T/shared.yaml"
	check "and the one with fewer rights, which differs by that" eval \
		'grep -q -- "--containers=no" "$T/shared.yaml" && ! grep -q SYS_PTRACE "$T/shared.yaml"'
	# The directory that the README shows, with a configuration of its own.
	mkdir "$T/own" && echo 'metrics-listen = 0.0.0.0:9999' >"$T/own/ncclinspd.conf"
	sed -n '/^    # kustomization.yaml/,/^$/s/^    //p' "$K/README.md" | sed "s|path/to/deploy/kubernetes/base|base|" >"$T/own/kustomization.yaml"
	cp -r "$K/base" "$T/own/base"
	check "a directory of one's own changes image and configuration" eval 'kubectl kustomize "$T/own" >"$T/own.yaml" &&
		grep -qF "image: registry.mine/ncclinsp:0.1.0" "$T/own.yaml" && grep -qF "0.0.0.0:9999" "$T/own.yaml" && ! grep -qF 9464\" "$T/own.yaml"'
else
	skip "kustomize puts it together" "there is no kubectl"
fi

# ---- rights ------------------------------------------------------------------------

check "the daemon has two capabilities, and no other" holds "$DAEMON" \
	"$BOX.securityContext.capabilities == {drop: [\"ALL\"], add: [\"DAC_READ_SEARCH\", \"SYS_PTRACE\"]}"
check "gets no more, and writes nothing of its own" holds "$DAEMON" \
	"$BOX.securityContext | .privileged == false and .allowPrivilegeEscalation == false and .readOnlyRootFilesystem"
check "behind the runtime's filter" holds "$DAEMON" "$POD.securityContext.seccompProfile.type == \"RuntimeDefault\""
check "with the node's pids, not its network" holds "$DAEMON" "$POD.hostPID and ($POD.hostNetwork | not) and ($POD.hostIPC | not)"
check "and no word to the cluster" holds "$DAEMON" "$POD.automountServiceAccountToken == false"
check "every path that is mounted is a volume" holds "$DAEMON" \
	"[$BOX.volumeMounts[].name] - [$POD.volumes[].name] == []"

# ---- configuration ------------------------------------------------------------------

# What stands in the manifest, as the kubelet makes a command line of it.
args() { as_json "$DAEMON" | jq -r ".[0] as \$d | $BOX.args[]" | sed 's/\$(NODE_NAME)/gpu-07/'; }
check "its options and its configuration are good" \
	exits 0 good "$B/ncclinspd" --config "$CONF" $(args) --check-config
mounted() { as_json "$DAEMON" | jq -r ".[0] as \$d | $BOX.volumeMounts[].mountPath"; }
is_mounted() { local at; for at in $(mounted); do case $1/ in "$at"/*) return ;; esac; done; return 1; }
paths() { "$B/ncclinspd" --print-config --config "$CONF" | sed -n 's/^#*\(socket\|state-dir\|control\|shm-dir\) = //p'; }
check "every path that it writes is mounted" eval '[ "$(paths | wc -l)" -eq 4 ] && for path in $(paths); do is_mounted "$path" || exit; done'
port=$(sed -n 's/^metrics-listen = .*://p' "$CONF")
check "its metrics are where they are collected" holds "$DAEMON" "$BOX.ports == [{name: \"metrics\", containerPort: $port}]"
check "and its health is asked" holds "$DAEMON" "$BOX.livenessProbe.httpGet == {path: \"/metrics\", port: \"metrics\"}"

# ---- jobs ---------------------------------------------------------------------------

# Variables that are neither NCCL's nor a launcher's are the plugin's, which its page names.
variables() { as_json "$1" | jq -r '.[0].spec.template.spec.containers[0].env[].name'; }
known() { grep -qF "X($1)" "$TOP/include/nci/variables.h" || grep -q "\*$1\*" "$TOP/man/libnccl-profiler-insp.7.scd"; }
for job in job job-shared; do
	check "$job.yaml sets what the plugin reads" eval \
		'for name in $(variables "$K/$job.yaml"); do known "$name" || { echo "$name"; exit 1; }; done'
	check "$job.yaml mounts what it has" holds "$K/$job.yaml" \
		"[$BOX.volumeMounts[].name] - [$POD.volumes[].name] == []"
	check "$job.yaml loads the plugin from where it is copied to" holds "$K/$job.yaml" \
		"($BOX.env[] | select(.name == \"NCCL_PROFILER_PLUGIN\").value) as \$p |
		 (\$p | test(\"^\" + ($BOX.volumeMounts[] | select(.name == \"plugin\").mountPath) + \"/libnccl-profiler-insp.so\"))"
done

# Else two pods of one job are two jobs.
check "both say as much of the job" eval \
	'diff <(variables "$K/job.yaml") <(variables "$K/job-shared.yaml" | grep -vx NCCLINSP_SHM_DIR)'

# ---- in force -------------------------------------------------------------------------

[ "$(id -u)" -eq 0 ] && unshare -m -p -f --mount-proc true 2>/dev/null || {
	skip "the daemon of the manifest" "needs root and namespaces"
	done_testing
}
caps=-all$(as_json "$DAEMON" | jq -r ".[0] as \$d | $BOX.securityContext.capabilities.add[]" | tr A-Z a-z | sed 's/^/,+/' | tr -d '\n')
mkdir "$T/run" "$T/lib" && chmod 755 "$T" && chmod 1777 "$SHM"
# The daemon's container: its paths over the node's, all else read-only.
cat >"$T/pod" <<-EOF
	mount --make-rprivate / && mount -t tmpfs tmpfs /run && mkdir /run/ncclinsp || exit
	mount --bind $T/run /run/ncclinsp && mount --bind $SHM /dev/shm || exit
	mount -t tmpfs tmpfs /var/lib && mkdir /var/lib/ncclinsp && mount --bind $T/lib /var/lib/ncclinsp || exit
	mount -o remount,bind,ro / || exit
	exec env -u NCCLINSP_SHM_DIR -u NCCLINSP_SOCKET -u NCCLINSP_CONTROL setpriv --no-new-privs \\
		--bounding-set=$caps --inh-caps=$caps $B/ncclinspd --foreground --config $T/conf $(args | tr '\n' ' ')
EOF
sed -e 's|^metrics-listen = .*|metrics-listen = none|' "$CONF" >"$T/conf"
cat >"$T/job.scn" <<-SCN
	nodes 1
	processes 1
	seed 3
	comm dp ranks 0-0 channels 2
	loop forever
		compute 50ms
		AllReduce dp 64Ki float32
	end
SCN
SIM="exec setpriv --reuid=4711 --clear-groups $B/nccl-sim --plugin $PLUGIN $T/job.scn"
if ! setpriv --reuid=4711 --clear-groups test -x "$B/nccl-sim"; then
	skip "the daemon of the manifest" "the build folder is closed to others"
	done_testing
fi
SOCK=$T/run/ncclinspd.sock
unshare -m -p -f -i --mount-proc --kill-child env -u NCCLINSP_SHM_DIR -u NCCLINSP_CONTROL POD_NAME=train-0 \
	POD_NAMESPACE=team sh -c "mount -t tmpfs -o size=64m tmpfs /dev/shm; $SIM" 2>>"$T/sim" &
started+=("$!")
unshare -m -p -f -i --mount-proc --kill-child env -u NCCLINSP_CONTROL POD_NAME=shared-0 sh -c "$SIM" 2>>"$T/sim" &
started+=("$!")
unshare -m sh "$T/pod" 2>>"$T/daemon.log" &
DAEMON_PID=$!
started+=("$DAEMON_PID")
starts() { wait_until 30 api_answers || { cat "$T/daemon.log"; return 1; }; }
check "the daemon starts with what the manifest gives it" starts
[ "$tests_failed" -eq 0 ] || done_testing
of_pod() { api_is processes "[.processes[] | select(.container.pod == \"$1\" and .uid == 4711 and .state == \"$2\")] | length == 1"; }
check "it finds the job that has its own shared memory" wait_until 30 of_pod train-0 live
check "and that which has the node's" wait_until 30 of_pod shared-0 live
check "the node has its name" api_is status '.host == "gpu-07"'
# As somebody would ask in the daemon's container, where "doctor" records for a moment.
flows() {
	nsenter -t "$DAEMON_PID" -m env -u NCCLINSP_SHM_DIR -u NCCLINSP_SOCKET -u NCCLINSP_CONTROL \
		NCCL_PROFILER_PLUGIN="$PLUGIN" "$B/ncclinsp" doctor | tee "$T/doctor"
	grep -q '^ok  *flow' "$T/doctor"
}
check "in its container the doctor sees data flow" flows
check "it has the rights of the manifest" \
	test "$(sed -n 's/^CapEff:\t0*//p' "/proc/$DAEMON_PID/status")" = 80004
kill -KILL "$(api processes | jq '.processes[] | select(.container.pod == "shared-0") | .pid')"
check "a job that died" wait_until 30 of_pod shared-0 died
removed() { ! ls "$SHM" | grep -q '^ncclinsp\.[0-9]'; }
check "leaves nothing on the node" wait_until 30 removed
done_testing
