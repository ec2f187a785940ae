#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sends and receives of one group: what they amount to has the right name, bytes and
# bandwidth for any number of ranks, and a pipeline is never taken for an exchange.
. "$(dirname "$0")/lib.sh"

# play RANKS API: the program on stdin, on all ranks of one process; its derived rows
# are left in $T/told.
play() {
	{
		echo "gpus $1"
		echo "comm world ranks 0-$(($1 - 1)) channels 1"
		cat
	} >"$T/scn"
	sim --api "v$2" "$T/scn" 2>"$T/sim" || { cat "$T/sim"; return 1; }
	wait_until 5 drained || return 1
	pid=$(sed -n 's/.* is pid \([0-9]*\)$/\1/p' "$T/sim")
	for func in AlltoAll AlltoAllv Gather Scatter Shift SendRecv; do
		api "collectives?limit=10000&pid=$pid&func=$func" | jq -c '.collectives[]'
	done >"$T/told"
}

# told_is JQ [--argjson NAME VALUE]...: of all rows, as an array.
told_is() {
	local filter=$1
	shift
	jq -e -s "$@" "$filter" "$T/told" >/dev/null || { head -c 1000 "$T/told"; return 1; }
}

start_daemon
while read -r n api place; do
	check "AlltoAll of $n ranks $place, v$api: it is played" play "$n" "$api" <<-END
		loop 2
			AlltoAll world 1Ki float32 $place
		end
	END
	# In place on 2 or 3 ranks, v4 has no sign of what stays in the rank.
	check "AlltoAll of $n ranks $place, v$api: each rank is told to have made two" told_is '
		length == 2 * $n and all(.[]; .derived and
			.func == "AlltoAll" and .parts >= 2 * ($n - 1) and .bytes == $n * 4096 and
			(.exec_ns == null or
			 ((.busbw_gbs * .exec_ns / (4096 * ($n - 1)) - 1) | fabs) < 0.001)) and
		([.[] | [.rank, .seq]] | unique | length) == 2 * $n' --argjson n "$n"
done <<-END
	2  6
	3  6
	4  6
	8  6
	32 6
	2  6 inplace
	3  6 inplace
	8  6 inplace
	2  4
	8  4
	8  4 inplace
END

# Stages that pass on activations and gradients, to both neighbours at once: of two
# stages, that is everybody.
pipeline() {
	local n=$1 i
	echo "loop 3"
	echo "	group"
	for ((i = 0; i < n; i++)); do
		echo "		Send world 4Ki float16 from $i to $(((i + 1) % n))"
		[ "$n" -gt 2 ] && echo "		Send world 4Ki float16 from $(((i + 1) % n)) to $i"
	done
	echo "	end"
	echo "	group"
	for ((i = 0; i + 1 < n; i++)); do
		echo "		Send world 4Ki float16 from $i to $((i + 1))"
	done
	echo "	end"
	echo "end"
}

for n in 2 3 4 5 8; do
	check "pipeline of $n stages: it is played" play "$n" 6 < <(pipeline "$n")
	check "pipeline of $n stages: is no AlltoAll, no Gather and no Scatter" told_is '
		length > 0 and all(.[]; .func == "SendRecv" or .func == "Shift")'
done
check "a step forward in a pipeline is a shift" told_is '
	[.[] | select(.func == "Shift")] | length == 3 * 6 and
	all(.[]; .shift == 1 and .parts == 2 and .bytes == 8192)'

check "uneven exchange is played" play 4 6 <<-END
	group
		Send world 100 int8 from 0 to 1
		Send world 100 int8 from 0 to 2
		Send world 400 int8 from 0 to 3
		Send world 700 int8 from 1 to 0
		Send world 200 int8 from 1 to 2
		Send world 200 int8 from 1 to 3
		Send world 100 int8 from 2 to 0
		Send world 100 int8 from 2 to 1
		Send world 100 int8 from 2 to 3
		Send world 100 int8 from 3 to 0
		Send world 100 int8 from 3 to 1
		Send world 100 int8 from 3 to 2
	end
END
check "uneven exchange is AlltoAllv with its skew" told_is '
	length == 4 and all(.[]; .func == "AlltoAllv") and
	(.[] | select(.rank == 0) | .skew == 2 and .bytes == 900)'
check "nothing was lost, and no group went without a name" api_is status \
	'.ingest.lost == 0 and .reconstruct.unnamed == 0'
done_testing
