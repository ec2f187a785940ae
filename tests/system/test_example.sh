#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The example, built alone as its reader would: what it prints beside a running job is
# what the simulator knows, and it refuses what is no segment of its layout.
. "$(dirname "$0")/lib.sh"

TAIL=$T/nci-tail
build() { (cd "$T" && ${CC:-cc} -std=gnu11 -Wall -Wextra -Werror -O2 -o "$1" "$2"); }
check "the example compiles alone" build "$TAIL" "$TOP/examples/nci-tail.c"
[ -x "$TAIL" ] || done_testing

# job LAST-LINE: one process for each of two ranks.
job() {
	cat <<-SCN
		nodes 1
		processes 2
		seed 3
		comm dp ranks 0,1 channels 2
		loop 150
			compute 5ms
			AllReduce dp 64Ki float32
			ReduceScatter dp 8Ki float32
			AllReduce dp 1Ki float32
		end
		$1
	SCN
}
ready() { [ "$(od -An -tu4 -j12 -N4 "$1" 2>/dev/null)" -eq 1 ]; }
segments() {
	files=("$SHM"/ncclinsp.*)
	[ ${#files[@]} -eq 2 ] && ready "${files[0]}" && ready "${files[1]}"
}
play() {
	job "$1" >"$T/job.scn"
	sim --truth "$T/truth" "$T/job.scn" 2>"$T/sim" &
	JOB=$!
	started+=("$JOB")
	wait_until 30 segments && cp "${files[0]}" "$T/segment"
}
tails=()
follow() {
	local i
	for i in 0 1; do
		"$TAIL" "${files[i]}" >"$T/tail.$i" 2>&1 &
		tails+=("$!")
		started+=("$!")
	done
}
# Each of the readers ends by itself, soon after the process that it reads; only this
# shell, which check is not, can wait for it.
end() {
	local one
	wait "$JOB"
	job_status=$?
	ended_ns=$(awk '{ printf "%.0f", $1 * 1e9 }' /proc/uptime)
	status=0
	for one in "${tails[@]}"; do
		wait_until 20 eval "! kill -0 $one" || { status="$one runs on"; return; }
		wait "$one" || status=$?
	done
	tails=()
}
totals() { tail -qn 1 "$T/tail.0" "$T/tail.1"; }
nothing_missed() {
	totals
	[ "$(totals | grep -Ec '^[1-9][0-9]* records, 0 of unknown events, 0 missed$')" -eq 2 ]
}
same() {
	jq -r 'select(.path == "kernel") | "\(.func) rank \(.rank)"' "$T/truth" |
		sort | uniq -c >"$T/true"
	awk '$2 == "Coll" { print $3, $4, $5 }' "$T/tail.0" "$T/tail.1" |
		sort | uniq -c >"$T/told"
	[ -s "$T/true" ] && diff "$T/true" "$T/told"
}
# Posting comes before the kernel that the truth is about, by less than a second; a slow machine
# falls behind the truth, but not behind the end of the job.
in_time() {
	local first
	first=$(jq -rs 'map(.start_mono_ns) | min' "$T/truth")
	awk -v first="$first" -v last="$ended_ns" '$2 != "Coll" { next }
		{ n++; if ($7 < first - 1e9 || $7 > last || $9 < 0 || $9 > 1e9) { print; bad++ } }
		END { exit !n || bad }' "$T/tail.0" "$T/tail.1"
}

play "hold 500ms"
follow
end
check "the job ends" test "$job_status" -eq 0
check "so do its readers" test "$status" = 0
check "they print each operation of each rank" same
check "at its time" in_time
check "and miss nothing" nothing_missed

# ---- who is killed leaves the segment behind ---------------------------------------------

play "hold forever"
follow
printed() { [ "$(grep -c ' Coll ' "$T/tail.$1")" -eq 450 ]; }
check "one process is read to the end of its work" wait_until 30 printed 0
check "and the other one" wait_until 30 printed 1
kill -KILL $(sed -n 's/.* is pid \([0-9]*\)$/\1/p' "$T/sim")
end
check "readers of killed processes end" test "$status" = 0
check "they miss nothing" nothing_missed
check "a reader that comes after them prints the same" \
	eval 'timeout 10 "$TAIL" "${files[0]}" >"$T/late" &&
		diff <(cut -d" " -f2-5 "$T/tail.0" | sort) <(cut -d" " -f2-5 "$T/late" | sort)'

# ---- what is no segment of this layout ---------------------------------------------------

patched() {
	cp "$T/segment" "$T/patched"
	printf "$2" | dd of="$T/patched" bs=1 seek="$1" conv=notrunc status=none
}
patched 8 '\3'
check "another major version is refused" exits 1 "nci-tail: .*patched: .*major version" \
	timeout 10 "$TAIL" "$T/patched"
patched 0 'x'
check "another magic is refused" exits 1 "nci-tail: .*: not a segment" \
	timeout 10 "$TAIL" "$T/patched"
patched 12 '\0'
check "what is not ready is refused" exits 1 "not yet" timeout 10 "$TAIL" "$T/patched"
patched 16 '\377\377\377\377\377\377\377\377'
check "an offset outside of the file is refused" exits 1 "offset in it is wrong" \
	timeout 10 "$TAIL" "$T/patched"
head -c 8192 /dev/urandom >"$T/rubbish"
check "rubbish is refused" exits 1 "rubbish: not a segment" \
	timeout 10 "$TAIL" "$T/rubbish"
: >"$T/empty"
check "an empty file is refused" exits 1 "too short" timeout 10 "$TAIL" "$T/empty"
check "a missing file is refused" exits 1 "No such file" timeout 10 "$TAIL" "$T/none"
done_testing
