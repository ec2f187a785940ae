#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone and is guarded by its path, and rooms include only those below
# them; no line of C is too wide, and no table is written behind its end.
. "$(dirname "$0")/lib.sh"

ROOMS="include/nci shmring plugin ncclinspd util cli tests bench"
cd "$TOP" || exit 1

compiles() {
	"${CC:-gcc}" -Iinclude -I. -I"$B/nccl" -D_GNU_SOURCE -std=gnu11 -Wall -Wextra -Werror \
		$(pkg-config --cflags jansson liburing check) \
		-fsyntax-only -x c - <<<"#include \"$1\""
}

is_guarded() {
	local guard
	guard=$(tr 'a-z/.-' 'A-Z___' <<<"${1#include/}")
	grep -qx "#ifndef $guard" "$1" && grep -qx "#define $guard" "$1"
}

# What is made from the debug information of NCCL is there where that is.
can_be_made() { [ -e "$B/nccl/layout.h" ] || ! grep -qx '#include "layout.h"' "$1"; }

each_header() {
	local header failed=0
	for header in $(find $ROOMS -name '*.h'); do
		can_be_made "$header" || continue
		"$1" "$header" || { echo "$header"; failed=1; }
	done
	return $failed
}

# Tabs are of eight columns, and a letter beyond ASCII is one.
no_wide_lines() {
	find $ROOMS record -name '*.[ch]' -exec perl -CSD -ne '
		s/[\r\n]+$//;
		1 while s/\t/" " x (8 - $-[0] % 8)/e;
		if (length > 100) { print "$ARGV:$.: ", length, " columns\n"; $wide = 1 }
		close ARGV if eof;
		END { exit $wide }' {} +
}

# A lasting table is written by util/list.h, which knows its end, and nowhere else.
no_own_ends() { ! grep -rnE '(->|\.)[a-z_]+\+\+\)?\]' --include='*.[ch]' ncclinspd cli util; }

# one_way PROGRAM: its rooms, which the Makefile lists from top to bottom, include only those
# behind them.
one_way() {
	local file line room upward=0
	set -- $(make -np 2>/dev/null </dev/null | sed -n "s/^ROOMS_OF_$1 := //p")
	[ $# -gt 0 ] || { echo "no list of rooms"; return 1; }
	local top=$1
	while [ $# -gt 0 ]; do
		while IFS=: read -r file line; do
			room=${line#*\"} room=${room%/*}
			[[ " $* " == *" $room "* ]] || { echo "$file: $line"; upward=1; }
		done < <(grep -HE "^#include \"$top/" "$1"/*.[ch])
		shift
	done
	return $upward
}

check "every header compiles alone" each_header compiles
check "every header is guarded by its path" each_header is_guarded
check "no line of C is wider than 100 columns" no_wide_lines
check "the daemon's rooms include only those below them" one_way DAEMON
check "no table is written at a counter that nobody checks" no_own_ends
done_testing
