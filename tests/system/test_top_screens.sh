#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The screens of ncclinsp top in a real terminal, from a daemon that always answers the
# same (tests/top/node.answers), compared with what they looked like (tests/top/golden/);
# and what each key of the help does.  GOLDEN=write writes them anew: read the difference.
. "$(dirname "$0")/lib.sh"

command -v tmux >/dev/null || skip_all "tmux is not installed"
[ -x "$B/api-answers" ] || skip_all "api-answers is not built"

I=$B/ncclinsp
GOLDEN_DIR=$TOP/tests/top/golden
TM=(tmux -S "$T/tmux" -f /dev/null)
unset COLUMNS NO_COLOR TMUX

close_terminal() { "${TM[@]}" kill-server 2>/dev/null; }
trap 'close_terminal; finish' EXIT
"${TM[@]}" new-session -d -s keep "exec sleep 1000"

start_answers() {
	"$B/api-answers" "$SOCK" "${1:-$TOP/tests/top/node.answers}" &
	ANSWERS_PID=$!
	started+=("$ANSWERS_PID")
	wait_until 5 api_answers
}

# open_top COLUMNS LINES [option...]: so slow that it looks once, and again for what
# was not asked for before.
open_top() {
	local columns=$1 lines=$2
	shift 2
	"${TM[@]}" kill-session -t top 2>/dev/null
	"${TM[@]}" new-session -d -s top -x "$columns" -y "$lines" \
		"stty -g >$T/before; env TZ=UTC LC_ALL=${TOP_LOCALE:-C.UTF-8} TERM=${TOP_TERM:-screen-256color} \
		$I top -d 1000 $*; echo ended with \$? >$T/end; stty -g >$T/after; exec sleep 1000"
	rm -f "$T/end" "$T/after"
	sees "^.RANK|^.JOB"
}

# open_ranks COLUMNS LINES: the jobs lead; a moment later, rates are known.
open_ranks() {
	open_top "$@"
	sleep 0.2
	press_until "^.RANK" 1
}

screen() { "${TM[@]}" capture-pane -p -t top; }
shows() { screen | grep -Eq -- "$1"; }
hides() { ! shows "$1"; }
sees() { wait_until 20 shows "$1" || { echo "not seen: $1"; screen; return 1; }; }
no_longer_sees() { wait_until 20 hides "$1" || { echo "still seen: $1"; screen; return 1; }; }
press() { "${TM[@]}" send-keys -t top "$@"; }

# press_until "text" key...: the keys, and what they lead to is there.
press_until() {
	local text=$1
	shift
	press "$@"
	sees "$text"
}

# A screen that is still being drawn is looked at again.
is_golden() {
	screen >"$T/screen"
	diff -u "$GOLDEN_DIR/$1" "$T/screen"
}
golden() {
	if [ "${GOLDEN:-}" = write ]; then
		sleep 1
		screen >"$GOLDEN_DIR/$1"
	fi
	wait_until 20 is_golden "$1" || is_golden "$1"
}

start_answers

# ---- what it looks like --------------------------------------------------------

for size in "80 24" "120 40" "200 60"; do
	set -- $size
	open_top "$1" "$2"
	check "of two jobs, the jobs lead at $1x$2" golden "jobs-$1x$2"
	sleep 0.2
	press_until "^.RANK" 1
	check "ranks at $1x$2" golden "ranks-$1x$2"
	sleep 2.2		# figures that need two answers: this old, they are asked for again
	press_until "COMM .*SIZE" 2
	check "operations at $1x$2" golden "operations-$1x$2"
	press_until "COMM .*DIR" 3
	check "peers at $1x$2" golden "peers-$1x$2"
	press_until "^ *AGE .*EVENT" 4
	check "what is in flight at $1x$2" golden "inflight-$1x$2"
	press_until "^.SEVERITY" 5
	check "findings at $1x$2" golden "findings-$1x$2"
done
TOP_LOCALE=C open_ranks 80 24
check "in a terminal without UTF-8" golden ranks-ascii-80x24
open_ranks 20 5
check "on the smallest screen" golden ranks-20x5

# Three jobs, and names longer than their column: what tells the ranks stays.
kill "$ANSWERS_PID"
wait "$ANSWERS_PID" 2>/dev/null
sed 's/"job":"712"/"job":"pretrain-70b-seed1"/g
	s/\("pid":400[4-7],[^{}]*\)"job":"711"/\1"job":"eval"/g' "$TOP/tests/top/node.answers" >"$T/long.answers"
start_answers "$T/long.answers"
open_top 80 24
check "of three jobs with long names, the jobs" golden jobs-long-80x24
sleep 0.2
press_until "^.RANK" 1
check "and their ranks, with how long they wait" golden ranks-long-80x24
press_until "^ *AGE .*EVENT" 4
check "and what is in flight, of which job" golden inflight-long-80x24
kill "$ANSWERS_PID"
wait "$ANSWERS_PID" 2>/dev/null
start_answers

TOP_TERM=vt100 open_ranks 80 24
check "in a terminal without colours" golden ranks-80x24

# ---- what each key does ---------------------------------------------------------

tried=" "

# key "name in the help" "pattern" tmux-key...: the last of the keys leads to the pattern.
key() {
	local name=$1 pattern=$2
	shift 2
	tried="$tried$name "
	check "$name: $pattern" press_until "$pattern" "$@"
}

open_ranks 120 40
key F1 "^RANK +The rank within" F1
check "q leaves the help alone, as it does menus" press_until "^.RANK " q
key h "this help" h h
check "any other key leaves the help" eval 'press x; no_longer_sees "this help"'
key '?' "this help" '?' Tab
press Escape

key Tab "COMM .*SIZE" Tab
key Right "COMM .*DIR" Right
key Left "COMM .*SIZE" Left
key Shift-Tab "^.RANK " BTab
key 5 "^.SEVERITY" 5
key 4 "^ *AGE " 4
key 3 "COMM .*DIR" 3
key 2 "COMM .*SIZE" 2
key 1 "^.RANK " 1
key 6 "^.JOB " 6
press 1 1
sees "^.RANK "

key Esc "^Communicators" Escape
check "Esc, again: the jobs" press_until "^.JOB " Escape
key Enter "^Communicators  job 712" Enter
check "Enter: ranks of a communicator" press_until "^Ranks .*comm world" Enter
press Escape Escape
sees "^.JOB "
press j
check "Enter: another job" press_until "^Communicators  job 711" Enter
press 1 1
sees "^.RANK "

press 2
sees "COMM .*SIZE"
key Down "^>(711 +)?dp:0ebf .*ReduceScatter" Down
check "Enter: single operations of one kind" press_until "^Single operations .*ReduceScatter" Enter
check "Enter: all that is known of one" press_until "^comm_id " Enter
press Escape Escape
key Up "^>(711 +)?tp:e669" Up
key j "^>(711 +)?dp:0ebf" j
key k "^>(711 +)?tp:e669" k
key End "^>(711 +)?pp:[0-9a-f]* *Send" End
key Home "^>(711 +)?tp:e669" Home
key G "^>(711 +)?pp:[0-9a-f]* *Send" G
press Home
sees "^>(711 +)?tp:e669"
press 1
sees "^.RANK "
key PgDn "^>.*tp:5e66" PgDn
key PgUp "^>.*LINK" PgUp
key Ctrl-D "^>.*tp:5e66" C-d
key Ctrl-U "^>.*LINK" C-u

key F3 "^Search" F3
check "what is typed is searched" press_until "^>.*tp:d570" -l tp:d5
press Enter
key n "^> * 1  .*tp:d570" n
key N "^> * 0  .*tp:d570" N
key / "^Search" /
press Escape Home

key F4 "^Filter" F4
check "what is typed is filtered" press_until "^.*filter world" -l world
check "and the rest is gone" no_longer_sees "tp:d570"
press Enter
key '\' "^Filter .*now: world" '\'
press -l none
sees "none"
press C-u Enter
check "an empty filter shows all" sees "dp:2596"

key F5 "job 712" F5
check "the tree can be gone into" press_until "^Communicators  job 712" Enter
press Escape
press Home j
sees "^>  - world"
key - "^>  [+] world [(]2[)]" -
key + "^>  - world" +
check "and its ranks are there again" sees "^     rank 0"
key '*' "^   [+] dp:0ebf [(]2[)]" '*'
check "* folds them all" no_longer_sees "^     rank"
check "* again opens them all" press_until "^     rank" '*'
key t "^.RANK " t
press Home

key F6 "^ Sort by" F6
check "a column that is chosen" eval 'press j; press_until "^>   1 " Enter'
key 0 "^>.*LINK" 0
key '>' "^> *1 .*LINK|^>   1 " '>'
key I "^>   0 " I
key i "^>   1 " i
key '<' "^>.*LINK" '<'
press Home
key s "^>   1 .*dp|^>   1 " s
press 0
sees "^>.*LINK"
key F2 "^>F3 / " F2
press Escape
key S "^>F3 / " S
check "the menu does what the key does" eval 'press G k k k k k k; press_until "Only this communicator" Enter'
press Escape
no_longer_sees "Only this"

press Home
key Space "^ [*]   1 .*LINK" Space
check "it is counted" sees "\[1 tagged\]"
key T "^Trace the 1 tagged for 10 s into trace-[0-9TZ]*.json.gz[?] .y/n" T
press n
key U "^>   0 " U
check "and is gone" no_longer_sees "tagged"
key x "^snapshot: /var/lib/.*json.zst" x

key F "\[follow\]" F
check "F again lets go" eval 'press F; no_longer_sees "\[follow\]"'

key u "^ Only this user" u
check "one user" eval 'press j j; press_until "\[user bo\]" Enter'
check "has only his ranks" no_longer_sees "ada"
press u
sees "^ Only this user"
press Home Enter
key g "^ Only this GPU" g
check "one GPU" eval 'press j; press_until "\[GPU 0000:10:00.0\]" Enter'
press g
sees "^ Only this GPU"
press Home Enter
key c "^ Only this communicator" c
press Escape
no_longer_sees "Only this"

key Z "\[paused\]" Z
check "Z again goes on" eval 'press Z; no_longer_sees "\[paused\]"'
key p "\[paused\]" p
press p

key d "^Seconds between two looks: .*now: 16m40s" d
check "an unknown delay is refused" press_until "! seconds, at least" x Enter
press Escape
key L "^ Change the level of" L
press Escape
key m "\[mouse\]" m
check "the terminal sends clicks then" eval '[ "$("${TM[@]}" display-message -p -t top "#{mouse_standard_flag}")" = 1 ]'
press m
check "and no longer" wait_until 5 eval '[ "$("${TM[@]}" display-message -p -t top "#{mouse_any_flag}")" = 0 ]'
key Ctrl-L "^.RANK " C-l
for name in F10 q; do
	open_top 120 40
	tried="$tried$name "
	check "$name ends it" eval 'press $name; wait_until 20 test -s "$T/after"'
done

# What the help names, and nothing else, was tried.
open_top 120 80
press h h
sees "any other key: back"
names=$(screen | sed -n '/this help/,/^.*quit$/p' | cut -c 1-16)
all_tried() {
	local name missing=0
	for name in $names; do
		case $tried in *" $name "*) ;; *) echo "not tried: $name"; missing=1 ;; esac
	done
	[ -n "$names" ] && return $missing
}
set -f
check "every key of the help was tried" all_tried
set +f

# ncclinsp-top(1) has them all.
in_manual() {
	local name missing=0 page
	page=$(mandoc -T utf8 "$B/man/ncclinsp-top.1" | sed 's/.\x08//g' | sed -n '/^KEYS/,/^EXAMPLES/p')
	for name in $names; do
		grep -qF -- "$name" <<<"$page" || { echo "not in the manual: $name"; missing=1; }
	done
	return $missing
}
set -f
check "and stands in the manual" in_manual
set +f

# ---- sizes ----------------------------------------------------------------------

storm() {
	local i
	for i in $(seq 60); do
		"${TM[@]}" resize-window -t top -x $((20 + i * 37 % 180)) -y $((5 + i * 23 % 55)) || return 1
	done
	"${TM[@]}" resize-window -t top -x 80 -y 24
}
open_ranks 80 24
check "a storm of sizes" storm
check "leaves the screen as it was" golden ranks-80x24

# ---- the terminal's state -------------------------------------------------------

# same_state ACTION...: however it ends, the line's settings are those from before.
same_state() {
	open_top 80 24 || return 1
	"$@"
	wait_until 20 test -s "$T/after" && cmp "$T/before" "$T/after" && cat "$T/end" &&
		[ "$("${TM[@]}" display-message -p -t top '#{alternate_on}')" = 0 ]
}
kill_top() { kill "-$1" "$(pgrep -P "$("${TM[@]}" display-message -p -t top '#{pane_pid}')" -f " top " | head -1)"; }
check "q leaves the line's settings as they were" same_state press q
check "Ctrl-C leaves them" same_state press C-c
check "SIGTERM leaves them" same_state kill_top TERM
check "a crash leaves them" same_state kill_top SEGV

done_testing
