#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The container image, built by the command of deploy/container/README.md on a base that is made
# here, and run by it: the daemon in one container finds jobs in others and on the node.
. "$(dirname "$0")/../system/lib.sh"
. "$(dirname "$0")/tree.sh"
cd "$TOP" || exit 1

have podman || skip_all "needs podman"
NAME=ncclinsp-test-$$
P="podman --root $T/storage --runroot $T/run"
for RUNTIME in runc crun; do
	have $RUNTIME && break
done
# Limits that a root without CAP_SYS_RESOURCE may set.
export CONTAINERS_CONF=$T/containers.conf
printf '%s\n' '[containers]' 'default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]' \
	'[engine]' "runtime = \"$RUNTIME\"" 'cgroup_manager = "cgroupfs"' >"$CONTAINERS_CONF"
end_containers() {
	$P rm -af >/dev/null 2>&1
	umount -l "$T/storage/overlay" 2>/dev/null
	finish
}
trap end_containers EXIT
fresh_tree base apt
tar -C "$T/base" -c . | $P import -q - localhost/base:here >"$T/out" 2>&1 || skip_all "podman takes no image here: $(tail -n 1 "$T/out")"
rm -rf "$T/base"
$P run --rm --network=none localhost/base:here true >"$T/out" 2>&1 || skip_all "podman runs no container here: $(tail -n 1 "$T/out")"

check "the image is built by one command" \
	$P build -q --network=host --build-arg BASE=localhost/base:here -f deploy/container/Containerfile -t ncclinsp .
[ "$tests_failed" -eq 0 ] || done_testing
IMAGE=localhost/ncclinsp
mkdir "$T/node" "$T/lib" && chmod 1777 "$SHM"
# The README's command, with a node's directories that are the test's own.
readme() { sed -n '/^    podman run -d/,/[^\\]$/p' deploy/container/README.md | tr -d '\n\\'; }
daemon=$(readme | sed -e "s|podman run -d --name ncclinspd|$P run -d --name $NAME|" -e "s|-v /dev/shm:|-v $SHM:|" \
	-e "s|-v /run/ncclinsp:|-v $T/node:|" -e "s|-v /var/lib/ncclinsp:|-v $T/lib:|" -e "s| ncclinsp --node| $IMAGE --node|")
SOCK=$T/node/ncclinspd.sock
check "the daemon starts by the README's command" eval "$daemon"
answers() { wait_until 30 api_answers || { $P logs "$NAME"; return 1; }; }
check "... and answers on the node" answers
check "... with the capabilities that it asks for alone" eval \
	'[ "$(sed -n "s/^CapEff:\t0*//p" "/proc/$($P inspect -f "{{.State.Pid}}" "$NAME")/status")" = 80004 ]'

# The plugin out of the image, as an init container copies it, into a job that has no other right.
cid=$($P create $IMAGE)
check "the plugin is in the image" eval '$P cp "$cid:$(tar -tf "$TREES/base.tar" | sed -n "s|^\./usr/lib/\([a-z0-9_]*-linux-gnu\)/$|/usr/lib/\1|p" | head -n 1)/libnccl-profiler-insp.so" "$T/libnccl-profiler-insp.so"'
cat >"$T/job.scn" <<-'SCN'
	nodes 1
	processes 1
	comm dp ranks 0-0 channels 2
	loop forever
		compute 50ms
		AllReduce dp 64Ki float32
	end
SCN
chmod 755 "$T"
# job NAME OPTION...: a simulated job in a container of its own.  The image has the libraries that the simulator loads.
job() {
	local name=$1
	shift
	$P run -d --name "$NAME-$name" --network=none --cap-drop=ALL --user=4711 -e POD_NAME="$name" -v "$T:$T:ro" -v "$B:$B:ro" "$@" \
		--entrypoint "$B/nccl-sim" $IMAGE --plugin "$T/libnccl-profiler-insp.so" "$T/job.scn"
}
of_pod() { api_is processes "[.processes[] | select(.container.pod == \"$1\" and .uid == 4711 and .state == \"live\")] | length == 1"; }
check "a job runs in a container with its own /dev/shm" job own
check "... and the daemon finds it" wait_until 30 of_pod own
check "a job runs in one with the node's /dev/shm" job shared -v "$SHM:/dev/shm" -v "$T/node:/run/ncclinsp:ro"
check "... and the daemon finds it" wait_until 30 of_pod shared
check "ncclinsp in the daemon's container shows both" eval '[ "$($P exec "$NAME" ncclinsp ps | grep -c nccl-sim)" -eq 2 ]'
$P rm -f -t 0 "$NAME-own" "$NAME-shared" >/dev/null
removed() { ! ls "$SHM" | grep -q '^ncclinsp\.[0-9]'; }
check "jobs that are ended leave nothing on the node" wait_until 30 removed
check "the daemon ends when it is asked to" $P stop -t 10 "$NAME"
done_testing
