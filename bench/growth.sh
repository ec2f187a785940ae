#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How what the daemon costs grows with processes, communicators, records and clients: each is
# varied alone, and fitted to a power of it (growth.awk); ten minutes.
#
#   bench/growth.sh [PICTURE.svg]		B=build
#
# One line each: what is varied, how much of it, what is measured, the figure, its unit.
set -u
HERE=$(cd "$(dirname "$0")" && pwd)
B=${B:-build}
export B
OUT=${1:-}
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT

tell() { printf '%s\t%s\t%s\t%s\t%s\n' "$@" >>"$T/figures"; }

# idle AXIS X PROCESSES COMMUNICATORS: a core's part, and memory.
idle() {
	local cpu mib
	read -r cpu mib < <("$HERE/idle.sh" "$3" "$4" 20 | sed -n 's/.*: \([0-9.]*\) % of a core, \([0-9]*\) MiB/\1 \2/p')
	tell "$1" "$2" "the daemon beside idle ones" "${cpu:?}" "% of a core"
	tell "$1" "$2" "its memory" "${mib:?}" MiB
}

# answers COMMUNICATORS: of 8 processes, how long two answers take.
answers() {
	(
		set -- "$1"
		. "$HERE/flood.sh"
		start_flood 8 "$1"
		for path in ranks comms; do
			for i in 1 2 3 4 5; do
				curl -s -o /dev/null -w '%{time_total}\n' --unix-socket "$SOCK" "http://ncclinspd/v1/$path"
			done | sort -n | sed -n 3p | awk -v c="$1" -v path="$path" \
				'{ printf "communicators\t%d\tanswer of /v1/%s\t%.3f\tms\n", 8 * c, path, $1 * 1000 }'
		done
	) >>"$T/figures"
}

for n in 8 32 128 512; do idle processes "$n" "$n" 1; done
for n in 10 100 1000; do idle communicators $((8 * n)) 8 "$n"; answers "$n"; done
"$B/bench/bench_load" --json 10 20000 60000 200000 600000 2>/dev/null | jq -r '. as $f |
	select(.figure | test("^[0-9]+ records/s, 8 processes")) |
	(.figure | capture("^(?<n>[0-9]+) records/s, 8 processes(?<what>.*)")) as $m |
	if .unit == "% of a core" then ["records/s", $m.n, "the daemon", .value, .unit]
	elif $m.what == ": lost" then ["records/s", $m.n, "records that it lost", .value, .unit]
	else empty end | @tsv' >>"$T/figures"
for n in 1 2 4 8 16; do
	"$HERE/clients.sh" "$n" 50 | awk -v n="$n" '$1 == "metrics" { printf "clients\t%d\tp99 of /metrics\t%s\tms\n", n, $3 }'
done >>"$T/figures"
awk -v picture="$OUT" -f "$HERE/growth.awk" "$T/figures"
