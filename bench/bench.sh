#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# All benchmarks, or those named, as one file of figures; and beside each figure the ratio to that
# of an earlier file, if there is one.
#
#   bench/bench.sh [NAME...]		B=build BASE=FILE OUT=FILE
#
# docs/lab/measurements.md describes the file.
set -u
B=${B:-build} OUT=${OUT:-$B/bench.json}
# What the longest ones need, to leave all together below three minutes.
declare -A SHORT=([load]=5 [soak]=800000)

[ -z "${BASE:-}" ] || jq -e .figures "$BASE" >/dev/null || exit 2
T=$(mktemp -d) || exit 1
trap 'rm -rf "$T"' EXIT
from=$SECONDS failed=0
[ $# -gt 0 ] || set -- answer clock drain load pipeline publish soak
for name; do
	"$B/bench/bench_$name" --json ${SHORT[$name]:-} >>"$T/figures" ||
		{ echo "bench_$name failed" >&2; failed=1; }
done
jq -s --arg version "$("$B/ncclinsp" --version | awk '{ print $2 }')" --arg at "$(date -u +%FT%TZ)" \
	--arg cpu "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" \
	--argjson cpus "$(nproc)" --argjson load "$(cut -d ' ' -f 1 /proc/loadavg)" \
	--argjson seconds $((SECONDS - from)) \
	'{version: $version, at: $at, cpu: $cpu, cpus: $cpus, load: $load, seconds: $seconds, figures: .}' \
	"$T/figures" >"$T/all" && mv "$T/all" "$OUT" || exit 1
jq -r --slurpfile base "${BASE:-/dev/null}" '
	(($base[0].figures // []) | map({key: "\(.bench) \(.figure)", value: .value}) | from_entries) as $was |
	.figures[] | $was["\(.bench) \(.figure)"] as $b | [.bench, .figure, .value, .unit,
	if $b == null then "" elif $b == 0 then "was \($b)" else "x \(.value / $b * 100 | round / 100)" end] |
	@tsv' "$OUT" | awk -F '\t' '{ printf "%-9s %-58s %12.6g %-13s %s\n", $1, $2, $3, $4, $5 }'
echo "$OUT: $(jq '.figures | length' "$OUT") figures in $(jq .seconds "$OUT") s"
exit $failed
