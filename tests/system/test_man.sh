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

# One table is behind the findings; the page must not fall behind it.
page=$(mandoc -T ascii "$B/man/ncclinsp-findings.7" | sed 's/.\x08//g' | tr -s ' \n' ' ')
tells() { case $page in *"$1 $2"*) ;; *) return 1 ;; esac; }
while read -r word meaning; do
	check "ncclinsp-findings(7) tells what $word means" tells "$word" "$meaning"
done < <("$B/ncclinsp" explain)
done_testing
