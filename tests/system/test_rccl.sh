#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job that runs on AMD's RCCL, which is told by the name of its file: its GPU stamps are no
# nanoseconds, so operations have the host's times, and no stamp is called a lie.
. "$(dirname "$0")/lib.sh"

start_daemon
cat >"$T/job.scn" <<-END
	nccl 2.29
	processes 2
	comm dp ranks 0-1 channels 2
	hold 20s
	loop 100
		compute 5ms
		AllReduce dp 4Mi float32
	end
END
cp "$B/nccl-sim" "$T/librccl.so.1"
NCCLINSP_KERNELS=always timeout -k 1 120 "$T/librccl.so.1" --plugin "$PLUGIN" "$T/job.scn" 2>"$T/sim" &
started+=("$!")
works() { api_is collectives '[.collectives[] | select(.exec_ns != null)] | length > 20'; }
check "operations of RCCL are put together" wait_until 60 works
check "... the library is told" wait_until 10 api_is processes '[.processes[].library] | unique == ["rccl"]'
check "... their times are the host's" api_is collectives \
	'[.collectives[] | select(.exec_ns != null) | .timing_source] | unique == ["kernel_cpu"]'
check "... no stamp is refused" api_is collectives '[.collectives[].stamps_refused // 0] | add == 0'
done_testing
