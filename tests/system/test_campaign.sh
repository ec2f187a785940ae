#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A short campaign: one run of each fault that stops a job, and of some that run well.
. "$(dirname "$0")/lib.sh"

"$TOP/tests/campaign/campaign.sh" -n 1 -c 1 -j 14 -o "$T/runs" -w '^(dp|nodes)$' \
	-k '^(stuck|frozen|never|order|size|killed|paused|clean: (steady|checkpoints))' >"$T/table"
sed 's/^/# /' "$T/table"

# all_are FILTER WHAT: so is every one that FILTER selects, and there are some.
all_are() {
	jq -c "select($1)" "$T/runs" >"$T/some"
	jq -c "select($2 | not) | [.run.kind, .run.scenario, .run.seed, .said]" "$T/some" >"$T/not"
	[ -s "$T/some" ] && [ ! -s "$T/not" ] || { cat "$T/not"; return 1; }
}

check "faults that stop a job are found" all_are .injected .found
check "... the right rank is named, and the right cause, or that nothing tells it" \
	all_are .injected '.cause or .untold'
check "... and nobody else" all_are .injected '.alarms == 0'
check "jobs that run well are left alone" all_are '.injected | not' '.alarms == 0'
done_testing
