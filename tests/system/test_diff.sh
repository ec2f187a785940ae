#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Two runs are compared: what is slower, which link, which setting; and nothing where nothing is.
. "$(dirname "$0")/lib.sh"

I=$B/ncclinsp

# scenario FAULT [ALGORITHM]: three sizes by turns on four nodes.
scenario() {
	cat <<-SCN
		nodes 4
		comm dp ranks 0-3 channels 2 algo ${2:-ring}
		$1
		loop 170
			compute 1ms jitter 10%
			AllReduce dp 4Mi float32
			AllReduce dp 512Ki float32
			AllReduce dp 64Ki float32
		end
	SCN
}

# run_job NAME SEED OPERATIONS SCENARIO...: its snapshot is in $T/NAME.
run_job() {
	mkdir -p "$T/$1"
	"${@:4}" >"$T/$1.scn"
	start_daemon --snapshot-interval 0
	nice -n 10 "$B/nccl-sim" --plugin "$PLUGIN" --seed "$2" "$T/$1.scn" 2>"$T/sim" || return 1
	wait_until 30 drained "$3" || return 1
	cp "$("$I" snapshot)" "$T/$1/" || return 1
	stop_daemon
	rm -rf "$T/state"
}
# All records are read, and every operation of all ranks has ended.
drained() { api_is summary?window=all "[.rows[].ops] | add == $1"; }

# differs STATUS JQ A B
differs() { ends "$1" "$I" diff -o json "$T/$3" "$T/$4" && jq -e "$2" "$T/out" >/dev/null || { cat "$T/out" "$T/err"; return 1; }; }

check "a run" run_job one 1 2040 scenario ""
check "... and another one, with other noise" run_job two 2 2040 scenario ""
check "nothing differs" differs 0 '.differences == [] and .operations == 3 and .ranks == 12' one two
check "... which it says, with the test and what was compared" exits 0 \
	'^no difference beyond noise' "$I" diff "$T/one" "$T/two"
check "... with how many operations, by which test" exits 0 \
	'operations 3, ranks 12 .Mann-Whitney test, false discovery rate 1 %' "$I" diff "$T/one" "$T/two"
check "a run with itself is no difference" differs 0 '.differences == []' one one

check "a run whose large operations take a tenth longer" run_job slower 3 2040 scenario "slow link 1 to 2 by 1.1x every 3"
check "is told, for that size alone" differs 10 '
	[.differences[] | select(.what == "operation") | [.role, .func, .size_class, .test]] ==
		[["dp", "AllReduce", 16777216, "Mann-Whitney"]] and
	(.differences[] | select(.what == "operation") | .change > 0.07 and .change < 0.13 and .a_ns < .b_ns and .n_a >= 16)' one slower
check "... as docs/schema/diff.json says" \
	eval 'PYTHONWARNINGS=ignore jsonschema -i "$T/out" "$TOP/docs/schema/diff.json"'
check "... and the other way round it is faster" differs 10 '
	[.differences[] | select(.what == "operation") | .change < 0] == [true]' slower one
check "... in a table and as CSV" eval \
	'exits 10 "^operation +dp +AllReduce +16.?MiB" "$I" diff "$T/one" "$T/slower" &&
	 exits 10 "^operation,dp,AllReduce,16777216," "$I" diff -o csv --no-header "$T/one" "$T/slower"'

# On a busy machine the simulator's links have no line below their transfers: they get those of an idle one.
# lines NAME FROM RATE: the link that begins there has that rate.
lines() {
	jq -c --argjson from "$2" --argjson rate "$3" '.peers[].fit |= {latency_ns: 10000, rate_gbs: 20.0, r2: 0.99} |
		(.peers[] | select(.rank == $from).fit.rate_gbs) = $rate' <(zstdcat -f "$T"/one/*) >"$T/$1.json"
}
check "of links, the one that is slower is named" eval 'lines fast 1 20 && lines link 1 7 && differs 10 "
	[.differences[] | [.what, .role, .rank, .peer, .test]] == [[\"link\", \"dp\", 1, 2, \"other links\"]] and .links == 4" fast.json link.json'
check "... not where all are slower by as much, nor by a little" eval '
	sed "s/20\.0/7.0/g; s/:20,/:7,/g" "$T/fast.json" >"$T/all.json" && lines little 1 17 &&
	differs 0 .links==4 fast.json all.json && differs 0 .links==4 fast.json little.json'

check "a run with a late rank" run_job late 5 2040 scenario "late rank 3 by 3ms"
check "names the rank and no other" differs 10 '
	[.differences[] | select(.what == "rank") | .rank] | unique == [3]' one late
check "... and no operation takes longer by itself" differs 10 '
	[.differences[] | select(.what == "operation" or .what == "link")] == []' one late

NCCL_ALGO=Tree NCCL_COMM_ID=10.0.0.1:4711 check "a run with another algorithm" run_job tree 6 2040 scenario "" tree
check "names the variable, unset before" differs 10 '
	[.differences[] | select(.what == "setting") | [.name, .in_a, .in_b]] == [["NCCL_ALGO", "unset", "Tree"]]' one tree
check "... and what NCCL chose for which size" differs 10 '
	[.differences[] | select(.what == "algorithm") | [.role, .func, .size_class, .in_a, .in_b]] | sort_by(.[2]) ==
		[262144, 2097152, 16777216 | ["dp", "AllReduce", ., "RING/SIMPLE", "TREE/SIMPLE"]]' one tree
check "... before all else" differs 10 '.differences[0].what == "setting"' one tree

check "the files of another day are none" exits 4 'the second run: no snapshot found of that time' \
	"$I" diff "$T/one" "$T/two@1999-01-01"
check "... and of this one are" differs 0 '.files_a == 1 and .files_b == 1' \
	"one@$(date -u +%Y)" "two@$(date -u +%Y-%m)"
check "what cannot be compared is not called alike" eval '
	jq -c ".rows = [] | .samples = [] | .peers = []" <(zstdcat -f "$T"/one/*) >"$T/empty.json" &&
	exits 4 "no operation and no link has enough values" "$I" diff "$T/empty.json" "$T/two"'
check "one run is not enough" exits 2 'diff needs two runs' "$I" diff "$T/one"
check "... nor are three" exits 2 'takes no argument' "$I" diff "$T/one" "$T/two" "$T/link"

done_testing
