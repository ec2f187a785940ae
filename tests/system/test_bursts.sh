#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The ranks of a job on two nodes, with a daemon each and clocks that are 2 ms apart, time
# the same operations without a word between them.  LONG=1: as many operations as the
# machine can do, up to 20,000 a second of each rank, for a minute; else 20,000 a second
# of all eight ranks together.
. "$(dirname "$0")/lib.sh"
unset NCCLINSP_KERNELS	# bursts, as people have them, but in a hurry
export NCCLINSP_LEVEL=kernel NCCLINSP_SETTLE=0

SKEW_NS=2000000
if [ -n "${LONG:-}" ]; then
	seconds=70 latency=3us
else
	seconds=14 latency=28us
fi

# job PEERS: 8 ranks, 4 on each node, that wait for each other every 5 operations.
job() {
	cat <<-SCN
		nodes 2
		processes 4
		seed 3
		peers $1
		link intra latency $latency
		link net latency $latency
		comm dp ranks 0-7 channels 1 proto ll
		loop forever
			loop 5
				AllReduce dp 256 float32
			end
		end
	SCN
}

# on_node N command...: with that node's clock.
on_node() {
	local skew=$(($1 * SKEW_NS))
	shift
	LD_PRELOAD=$B/skewed-clock.so SKEWED_CLOCK_NS=$skew "$@"
}

# The cost is given: two nodes may come to different steps by what they find it to be.
start_node() {
	mkdir "$SHM/$1"
	SOCK=$T/sock$1 NCCLINSP_CONTROL=$T/control$1 SHM=$SHM/$1 on_node "$1" start_daemon \
		--auto-detail no --kernel-cost 10us --state-dir "$T/state$1" --socket "$T/sock$1" \
		--shm-dir "$SHM/$1" --snapshot-interval 0
}

# run PEERS: the job for so long; what it was asked to time, by KernelCh (64), is in timed-PEERS.
run() {
	job "$1" >"$T/job.scn"
	on_node 0 timeout -s TERM "$seconds" "$B/nccl-sim" --plugin "$PLUGIN" \
		--shm-dir "$SHM/%n" --asked "$T/asked" \
		--env 0:NCCLINSP_CONTROL="$T/control0" --env 1:NCCLINSP_CONTROL="$T/control1" \
		--env 1:SKEWED_CLOCK_NS=$SKEW_NS "$T/job.scn" 2>"$T/sim"
	[ $? -eq 124 ] && jq -c 'select(.mask % 128 >= 64)' "$T/asked" >"$T/timed-$1"
}

# A line for each rank: how many operations of it were timed, and which part of them on
# all; then how many bursts there were.  Ranks that begin on either side of a second know
# their rate a second apart, so the first ones are left out; bursts begin on the second.
# Of one that goes on, as the machine is too slow for more, its begin is.
in_common() {
	jq -rs '(map(.first_real_ns) | min / 1e9 | floor + 4.6) as $from | (map(.last) | max / 2) as $half |
		map(select(.last > $half and .first_real_ns / 1e9 <= $from)) as $on | ($on | map(.first) | max) as $cut |
		([.[] | select(.first_real_ns / 1e9 > $from)] + ($on | map(.first = $cut)))[] |
		[.world_rank, .first, .last] |
		@tsv' "$T/timed-$1" | awk '
		{ for (i = $2; i <= $3; i++) on[i]++; timed[$1] += $3 - $2 + 1; runs[$1]++ }
		END {
			for (i in on) all += on[i] == 8
			for (r in timed) print "rank", r, timed[r], all / timed[r], runs[r]
		}' | sort -k2n
}
least() { awk 'NR == 1 || $4 < least { least = $4 } END { print NR == 8 ? least : 0 }' "$1"; }
# least_is PEERS CONDITION: or each rank's part, and its bursts.
least_is() {
	awk -v least="$(least "$T/common-$1")" "BEGIN { exit !(least $2) }" && return
	cat "$T/common-$1"
	jq -r '"\(.world_rank) \(.first)-\(.last)"' "$T/timed-$1" |
		awk '{ runs[$1] = runs[$1] " " $2 } END { for (r in runs) print "rank", r ":" runs[r] }'
	return 1
}
report() {
	awk -v who="$1" -v least="$(least "$T/common-$1")" '{ n += $3; b += $5 }
		END { printf "# %s: %d operations of %d ranks timed in %d bursts; ", who, n / NR, NR, b / NR
		      printf "%.1f %% of those of the worst rank on all\n", 100 * least }' "$T/common-$1"
}

for node in 0 1; do start_node $node; done

check "a job of eight ranks on two nodes is played" run together
for node in 0 1; do SOCK=$T/sock$node wait_until 30 drained; done
in_common together >"$T/common-together"
report together
for node in 0 1; do
	SOCK=$T/sock$node api 'summary?by=rank'
done | jq -s '[.[].rows[] | { rank, ops, timed: (.exec.n // 0) }] | group_by(.rank) |
	map({ rank: .[0].rank, ops: map(.ops) | add, timed: map(.timed) | add })' >"$T/daemons"
jq -r --arg s "$seconds" '"# the daemons have seen " +
	"\(map(.ops) | add / ($s | tonumber) | round) operations a second of \(length) ranks"' "$T/daemons"

check "at least 95 % of what one rank times is timed on all" \
	least_is together '>= 0.95'
# What is rarer than 500 a second is timed all the time.
fast() { jq -e --arg s "$seconds" 'all(.[]; .ops / ($s | tonumber) > 700)' "$T/daemons" >/dev/null; }
several() { ! awk '$5 < 4' "$T/common-together" | grep .; }
if fast; then
	check "in several bursts" several
else
	skip "in several bursts" "this machine was too slow for any"
fi
clocks_differ() {
	local a b
	a=$(on_node 0 date +%s%N) b=$(on_node 1 date +%s%N)
	[ $((b - a)) -ge $SKEW_NS ]
}
check "the clocks are apart" clocks_differ
nothing_is_lost() {
	for node in 0 1; do SOCK=$T/sock$node api processes; done |
		jq -se '[.[].processes[].lost.overrun] | add == 0' >/dev/null
}
as_timed() {
	jq -s 'group_by(.world_rank)[] | map(.last - .first + 1) | add' "$T/timed-together" \
		>"$T/counted"
	jq -r '.[].timed' "$T/daemons" | paste - "$T/counted" |
		awk '$1 > $2 || $1 < 0.95 * $2 { bad = 1 } { print } END { exit bad || NR != 8 }'
}
if nothing_is_lost; then
	check "the daemons have a time for what was asked for, and for nothing else" as_timed
else
	skip "the daemons have a time for what was asked for" "this machine was too slow for them"
fi

if [ -n "${LONG:-}" ]; then
	check "the same job, but with nobody who waits for his peers" run apart
	in_common apart >"$T/common-apart"
	report apart
fi
done_testing
