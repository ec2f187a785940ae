#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every header compiles alone and is guarded by its path, and rooms include only those below
# them; no line of C is too wide, and no table is written behind its end.
. "$(dirname "$0")/lib.sh"

ROOMS="include/nci include/nccl include/nvtx shmring plugin nvtx reader judge tables rows probe ncclinspd util cli tests bench"
cd "$TOP" || exit 1

compiles() {
	"${CC:-gcc}" -Iinclude -I. -I"$B" -I"$B/nccl" -D_GNU_SOURCE -std=gnu11 -Wall -Wextra -Werror \
		$(pkg-config --cflags jansson check) \
		-fsyntax-only -x c - <<<"#include \"$1\""
}

# The installed ones, for a program of anybody's.
compiles_elsewhere() {
	local header failed=0
	for header in include/ncclinsp/*.h include/nci/*.h; do
		"${CC:-gcc}" -Iinclude -std=c11 -Wall -Wextra -Werror -fsyntax-only -x c - <<<"#include <${header#include/}>" &&
			"${CXX:-g++}" -Iinclude -std=c++11 -Wall -Wextra -Werror -fsyntax-only -x c++ - <<<"#include <${header#include/}>" ||
			{ echo "$header"; failed=1; }
	done
	return $failed
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
no_own_ends() { ! grep -rnE '(->|\.)[a-z_]+\+\+\)?\]' --include='*.[ch]' reader judge tables rows ncclinspd cli util; }

# The rooms of the lists are in the order in which they are linked: a file includes headers of its
# own room and of those behind it.
only_down() {
	local rooms roots
	rooms=$(env -u MAKEFLAGS make -s --eval "rooms: ; @echo $*" rooms) && [ -n "$rooms" ] || return 1
	roots=$(tr ' ' '\n' <<<"$rooms" | cut -d/ -f1 | sort -u)
	grep -rnE "^#include \"(${roots//$'\n'/|})/" $roots | awk -F '[:"]' -v rooms="$rooms" '
		function place(path) { sub("/[^/]*$", "", path); return at[path] }
		BEGIN { for (n = split(rooms, room, " "); n; n--) at[room[n]] = n }
		!place($1) || place($4) < place($1) { print $1 ":" $2 ": " $4; up = 1 }
		END { exit up || !NR }'
}

check "every installed header compiles alone, as C11 and C++11" compiles_elsewhere
check "every header compiles alone" each_header compiles
check "every header is guarded by its path" each_header is_guarded
check "no line of C is wider than 100 columns" no_wide_lines
check "the daemon's rooms and the reader's include only those below them" \
	only_down '$(ROOMS_OF_DAEMON)' '$(ROOMS_OF_READER)'
check "the command line's rooms include only those below them" only_down '$(ROOMS_OF_CLI)'
check "no table is written at a counter that nobody checks" no_own_ends
done_testing
