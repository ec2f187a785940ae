#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The daemon's stages in short: 800,000 operations of 200 communicators, of one job
# after the other.  `make soak` is the long run.
. "$(dirname "$0")/lib.sh"

[ -x "$B/bench/bench_soak" ] || skip_all "bench_soak is not built"

export OUT=$T/first.json
check "memory stays flat over 800,000 operations of 20 jobs" "$TOP/bench/bench.sh" soak
check "... which is a figure with its unit" jq -e '.figures | length == 1 and
	(.[0] | .bench == "soak" and .unit == "KiB" and .value > 1000)' "$OUT"
jq '.figures[0].value *= 2' "$OUT" >"$T/base.json"
jq -c '.figures[0]' "$OUT" >"$T/figure"
check "a file without figures is no base" exits 2 '' env BASE="$T/figure" "$TOP/bench/bench.sh" none
mkdir -p "$T/b/bench"
ln -s "$B/ncclinsp" "$T/b/ncclinsp"
printf '#!/bin/sh\ncat "%s"\n' "$T/figure" >"$T/b/bench/bench_again"
chmod +x "$T/b/bench/bench_again"
check "beside a base, a figure has the ratio to it" exits 0 'x 0\.5$' \
	env B="$T/b" BASE="$T/base.json" "$TOP/bench/bench.sh" again
done_testing
