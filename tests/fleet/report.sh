#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `ncclinsp report` needs for many nodes: a real daemon's snapshot of a node with eight ranks is
# written as those of NODES nodes (nodes.sh), compressed as the daemon keeps them.
#
#   NODES="100 1000 10000" tests/fleet/report.sh
. "$(dirname "${BASH_SOURCE[0]}")/../system/lib.sh"
NODES=${NODES:-100 1000}
HERE=$TOP/tests/fleet

fail() { echo "$*" >&2; exit 1; }

mkdir -p "$SHM/0" "$SHM/1"
# Nobody is late: else a rank of each node would be.
grep -v '^late' "$HERE/node.scn" >"$T/node.scn"
"$B/ncclinspd" --foreground --socket "$SOCK" --control "$T/control" --shm-dir "$SHM/0" \
	--state-dir "$T/state" --containers no --auto-thrift no 2>"$T/daemon.log" &
started+=("$!")
NCCLINSP_SHM_DIR='' nice -n 10 timeout -k 1 120 "$B/nccl-sim" --plugin "$PLUGIN" --shm-dir "$SHM/%n" \
	"$T/node.scn" 2>"$T/sim.log" &
started+=("$!")
JOB=$!
snapshot() { curl -sf --unix-socket "$SOCK" "http://ncclinspd/v1/snapshot?window=all" >"$T/node.json"; }
is_whole() { snapshot && [ "$(jq '.samples | length' "$T/node.json")" -ge "${SAMPLES:-1000}" ]; }
wait_until 100 is_whole || fail "the simulated job has no samples: $(cat "$T/sim.log")"
kill "$JOB"
wait "$JOB" 2>/dev/null

printf '%8s %12s %12s %10s %10s %12s\n' nodes "MB of JSON" "CPU s" "ms/node" "wall s" "MiB at most"
for n in $NODES; do
	mkdir "$T/many"
	"$HERE/nodes.sh" "$T/node.json" "$n" "$T/many"
	/usr/bin/env python3 - "$B/ncclinsp" "$T/many" "$n" "$(wc -c <"$T/node.json")" <<-'END'
		import resource, subprocess, sys, time
		program, path, nodes, size = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
		began = time.monotonic()
		code = subprocess.run([program, "report", path], stdout=subprocess.DEVNULL).returncode
		wall = time.monotonic() - began
		used = resource.getrusage(resource.RUSAGE_CHILDREN)
		cpu = used.ru_utime + used.ru_stime
		assert code in (0, 10), code
		print("%8d %12.0f %12.2f %10.2f %10.2f %12.0f" % (nodes, nodes * size / 1e6, cpu,
		      1e3 * cpu / nodes, wall, used.ru_maxrss / 1024))
		# 512 MiB for 10,000 nodes.
		sys.exit(used.ru_maxrss > (16 << 10) + nodes * (496 << 10) / 10000)
	END
	[ $? -eq 0 ] || fail "more memory than is wanted"
	rm -r "$T/many"
done
