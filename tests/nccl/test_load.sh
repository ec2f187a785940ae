#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# NCCL finds the plugin by every name that it tries, and calls it through every
# version of its interface that it still translates.
. "$(dirname "$0")/lib.sh"

export NCCLINSP_LEVEL=trace
mkdir "$T/lib"
ln -s "$PLUGIN" "$T/lib/libnccl-profiler.so"
ln -s "$PLUGIN" "$T/lib/${PLUGIN##*/}"

# load HOW NAME: with the plugin found in LD_LIBRARY_PATH, if need be.
load() {
	start_daemon
	LD_LIBRARY_PATH=$T/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} NCCL_PROFILER_PLUGIN=$2 play 1x2 nothing
	check "$1: the job runs" ran
	check "$1: it is loaded" api_is processes '.processes | length == 1'
	check "$1: every operation is told as it was" same
	stop_daemon
}

load "by path" "$PLUGIN"
load "by a name for people" insp
load "by the name of its file" "${PLUGIN##*/}"
load "by the name that NCCL looks for when it is told none" ""

start_daemon
NCCL_PROFILER_PLUGIN=none play 1x2 nothing
check "not at all: the job runs" ran
check "not at all: nobody is seen" api_is processes '.processes == []'
stop_daemon

# What a version cannot tell is null: up to 3 whose communicator it was, and of
# which size; up to 4 what the application passed to some collectives.
known() {
	local fields='.rank, .func, .seq, .root, .peer'
	[ "$1" -ge 4 ] && fields+=', (.comm_name // .comm), .nranks, .bytes'
	echo "[$fields] | tojson"
}
same_in() {
	cat "$J"/truth.* | jq -r "select($announced) | $(known "$1")" | sort >"$T/true"
	api 'collectives?limit=10000' | jq -r ".collectives[] | select(.derived | not) | $(known "$1")" | sort >"$T/told"
	[ -s "$T/true" ] && diff "$T/true" "$T/told"
}

for v in 1 2 3 4; do
	start_daemon
	NCCL_PROFILER_PLUGIN=$NCCL/v$v/${PLUGIN##*/} play 2x1 basic
	check "v$v: the job runs" ran
	check "v$v: it is what NCCL speaks" api_is processes \
		".processes | length == 2 and all(.[]; .api_version == $v)"
	check "v$v: every operation is told as far as it goes" same_in $v
	check "v$v: nothing was lost or refused" api_is status \
		'.ingest | .lost == 0 and .before == 0 and .rejected == 0'
	stop_daemon
done
done_testing
