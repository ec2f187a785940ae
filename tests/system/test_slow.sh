#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is slow on the network is found and named, and even links are left alone.
. "$(dirname "$0")/lib.sh"

start_daemon

# start_job NAME STATEMENT...: four ranks, twenty operations a second.
start_job() {
	local name=$1
	shift
	printf '%s\n' "nodes 4" "comm $name ranks 0-3 channels 2" "link net rate 1GB/s" "pace real" \
		"$@" "loop forever" "compute 30ms jitter 2%" "AllReduce $name 1Mi float32" "end" \
		>"$T/$name.scn"
	nice -n 10 timeout -k 1 60 "$B/nccl-sim" --plugin "$PLUGIN" "$T/$name.scn" 2>>"$T/sim" &
	started+=($!)
}

# found COMM FILTER: an active finding about it, as the filter wants it.
found() {
	api_is 'findings?active=true' "[.findings[] | select(.comm_name == \"$1\" and $2)] | length == 1"
}

# With too little CPU for what sends, transfers are slow because of that, and it is told so.
is_busy() {
	api_is 'findings?active=true' \
		'.findings | map(select(.kind == "proxy_starved" and .evidence.starved > 1)) | length > 0'
}

# named "sentence" SECONDS COMM FILTER
named() {
	if wait_until "$2" found "$3" "$4" >/dev/null || ! is_busy; then
		check "$1" found "$3" "$4"
	else
		skip "$1" "the network threads of the simulator get no CPU here"
	fi
}

start_job even
start_job link "slow link 1 to 2 by 4x"
start_job starved "starve rank 2 by 50ms every 4"
start_job channel "slow channel 1 rank 2 by 4x"
named "a slow link is named" 18 link \
	'.kind == "slow_peer" and .verdict == "LINK" and .ranks == [1] and .peer == 2'
named "a slow channel is told from a slow link" 5 channel \
	'.kind == "slow_peer" and .verdict == "CHANNEL" and .ranks == [2] and .evidence.channel == 1'
check "a progress thread without CPU is named" wait_until 25 api_is 'findings?active=true' \
	'.findings | map(select(.kind == "proxy_starved" and .ranks[0] == 2)) | length > 0'
check "even links are left alone" api_is findings \
	'[.findings[] | select(.comm_name == "even" and .kind == "slow_peer")] == []'
done_testing
