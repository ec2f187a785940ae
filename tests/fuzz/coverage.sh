#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# coverage.sh OBJ PARSER...: of each parser the share of its lines that was run, as gcov counts
# them in OBJ; an error if it is less than 90 % of all of them.  A parser is a source, or
# some of its functions: "util/text.c:text_fit,text_width".
obj=$1
shift
for parser; do
	source=${parser%%:*} functions=${parser#"${parser%%:*}"}
	gcov -n -r -f "$obj/${source%.c}.o" 2>/dev/null |
		tr -d "'" | awk -v source="$source" -v functions="${functions#:}" '
		BEGIN { n = split(functions, name, ","); for (i = 1; i <= n; i++) wanted[name[i]] = 1 }
		/^Function/ { counts = $2 in wanted }
		/^File/ { counts = !n && $2 == source }
		/^Lines executed/ && counts {
			split($0, part, /[:% ]+/)
			run += part[3] * part[5] / 100
			all += part[5]
			counts = 0
		}
		END { printf "%f %d %s\n", run, all, source }'
done | awk '
	$2 == 0 { print "nothing is known of " $3; bad = 1; next }
	{ printf "%6.1f %% of %4d  %s\n", 100 * $1 / $2, $2, $3; run += $1; all += $2 }
	END { printf "%6.1f %% of %4d  together\n", 100 * run / all, all; exit bad || run < 0.9 * all }'
