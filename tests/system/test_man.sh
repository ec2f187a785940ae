#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every manual page is one that mandoc understands and prints whole.
. "$(dirname "$0")/lib.sh"

lint() { mandoc -T lint -W error "$1"; }
prints() { [ "$(mandoc -T utf8 "$1" | wc -l)" -gt 20 ]; }

for page in "$B"/man/*; do
	[ -e "$page" ] || skip_all "no manual page was built"
	check "${page##*/} has no error" lint "$page"
	check "${page##*/} prints" prints "$page"
done
done_testing
