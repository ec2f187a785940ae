#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ranges of NVTX around calls of the real NCCL: the names are their tags, in every answer and
# table, and NCCL's own ranges are not.
. "$(dirname "$0")/lib.sh"

I=$B/ncclinsp
headers=$(dirname "$(ls -d /usr/local/cuda*/include/nvtx3 2>/dev/null | head -n 1)")
[ -e "$headers/nvtx3/nvToolsExt.h" ] || skip_all "no header of NVTX is here"

cat >"$T/ranges.c" <<-'END'
	#define _GNU_SOURCE
	#include <dlfcn.h>
	#include <nvtx3/nvToolsExt.h>

	int ncclAllReduce(const void *send, void *recv, size_t count, int type, int op, void *comm,
			  void *stream)
	{
		int (*next)(const void *, void *, size_t, int, int, void *, void *);
		int r;

		*(void **)&next = dlsym(RTLD_NEXT, "ncclAllReduce");
		nvtxRangePushA("step");
		nvtxRangePushA(count > 1000 ? "gradients" : "loss");
		r = next(send, recv, count, type, op, comm, stream);
		nvtxRangePop();
		nvtxRangePop();
		return r;
	}
END
check "the wrapper builds" "${CC:-cc}" -shared -fPIC -isystem "$headers" -o "$T/ranges.so" "$T/ranges.c" -ldl

named() {
	api 'collectives?limit=10000' | jq -e '.collectives | map(select(.func == "AllReduce")) |
		length > 0 and all(.[]; .tag != null and .tag_name == (if .count > 1000 then "gradients" else "loss" end))'
}
others_have_none() {
	api 'collectives?limit=10000' | jq -e '.collectives | map(select(.func != "AllReduce")) |
		length > 0 and all(.[]; .tag == null and .tag_name == null)'
}
# By tag the rows of all processes are one.
added_up() {
	api 'summary?window=all&by=tag,func' | jq -e '[.rows[] | select(.tag) | .tag_name] |
		sort == unique and length > 0 and all(.[]; IN("gradients", "loss"))'
}

export NCCLINSP_LEVEL=net
start_daemon
LD_PRELOAD=$T/ranges.so NVTX_INJECTION64_PATH=$B/libncclinsp-nvtx.so play 2x2 basic comms threads
check "the job runs" ran
check "every operation is told as it was" same
check "operations have the name of the innermost range" named
check "those in NCCL's own ranges alone have none" others_have_none
check "rows by tag have the name, for all ranks" added_up
check "ops shows the name" exits 0 "^(gradients|loss),AllReduce$" "$I" ops -o csv --fields tag_name,func
check "a filter takes the name" exits 0 AllReduce "$I" ops -f 'tag_name = gradients'
stop_daemon

NVTX_INJECTION64_PATH=$B/libncclinsp-nvtx.so NCCL_PROFILER_PLUGIN=none \
	play 1x2 basic
check "without the plugin a job runs as ever" ran
done_testing
