#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The daemon's stages in short: 800,000 operations of 200 communicators, of one job
# after the other.  `make soak` is the long run.
. "$(dirname "$0")/lib.sh"

[ -x "$B/bench/bench_soak" ] || skip_all "bench_soak is not built"

check "memory stays flat over 800,000 operations of 20 jobs" "$B/bench/bench_soak" 800000
done_testing
