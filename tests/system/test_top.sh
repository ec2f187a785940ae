#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ncclinsp top in a real terminal: keys, sizes, a daemon that goes and comes, and
# a terminal that is given back whatever ends it.
. "$(dirname "$0")/lib.sh"

command -v tmux >/dev/null || skip_all "tmux is not installed"
[ -x "$B/nccl-sim" ] && [ -x "$B/ncclinspd" ] || skip_all "the simulator or the daemon is not built"

I=$B/ncclinsp
TM=(tmux -S "$T/tmux" -f /dev/null)
unset COLUMNS NO_COLOR TMUX

close_terminal() { "${TM[@]}" kill-server 2>/dev/null; }
trap 'close_terminal; finish' EXIT

# A session that stays: a server without one ends, and may take a last connection.
"${TM[@]}" new-session -d -s keep "exec sleep 1000"

# open_terminal COLUMNS LINES command...: the command in a shell that tells its exit code.
open_terminal() {
	local columns=$1 lines=$2
	shift 2
	"${TM[@]}" kill-session -t top 2>/dev/null
	"${TM[@]}" new-session -d -s top -x "$columns" -y "$lines" \
		"env LC_ALL=${TOP_LOCALE:-C.UTF-8} TERM=screen-256color $* ; echo ended with \$?; stty -a; exec sleep 1000"
}

screen() { "${TM[@]}" capture-pane -p -t top; }
shows() { screen | grep -Eq -- "$1"; }
hides() { ! shows "$1"; }
sees() { wait_until 20 shows "$1" || { screen; return 1; }; }
no_longer_sees() { wait_until 20 hides "$1" || { screen; return 1; }; }
press() { "${TM[@]}" send-keys -t top "$@"; }
resize() { "${TM[@]}" resize-window -t top -x "$1" -y "$2"; }

# Back on the main screen, echoing, with the exit code that was told.
given_back() {
	sees "ended with $1" && sees " echo " && sees " icanon " &&
		[ "$("${TM[@]}" display-message -p -t top '#{alternate_on}')" = 0 ]
}

fits() { screen | awk -v most="$1" 'length($0) > most { exit 1 }'; }

# A job that stays until it is told to go, with rank 1 late.
cat >"$T/job.scn" <<-SCN
nodes 1
processes 4
seed 3
comm dp ranks 0-3 channels 2
late rank 1 by 5ms
loop forever
	compute 10ms
	AllReduce dp 1Mi float32
end
SCN

cd "$T"		# where traces are written
start_daemon
open_terminal 120 30 "$I" top -d 0.2
check "an idle node is shown" sees "no live process uses NCCL"

# A group of its own: the simulator's processes end with it.
setsid "$B/nccl-sim" --plugin "$PLUGIN" "$T/job.scn" >/dev/null 2>&1 &
JOB=$!
check "a job that starts appears by itself" sees "processes 4"
check "its ranks are listed" sees "RANK .* BLAME"
check "what runs is shown with its source" sees "AllReduce .*kernel_gpu"
check "the late rank is named" sees "rank 1 of dp .pid [0-9]+, [^ ]+. comes last"
check "records per second come with the second look" sees "records/s [0-9]"

# choose "text" key...: the keys, and what they lead to.
choose() {
	local text=$1
	shift
	press "$@"
	sees "$text" && knows_all_fields
}
# The daemon knew all that it was asked for.
knows_all_fields() { hides "unknown field"; }
press Home
check "L asks whom a level is for" choose "^>the node" L
check "and which it is to be" choose "^>net" Enter
check "and whether" choose "Level of the node: kernel.  Do it" k Enter
check "a no changes nothing" eval "press n; no_longer_sees 'Do it'; api_is level '.wishes == []'"
choose "^>the node" L >/dev/null; choose "^>net" Enter >/dev/null
choose "Do it" k Enter >/dev/null
check "a yes changes it" eval \
	"press y; sees 'level kernel' && api_is level '.wishes[0].target == \"node\"'"
choose "^>the node" L >/dev/null; choose "^>net" Enter >/dev/null
choose "Do it" End Enter >/dev/null
check "and it can be taken back" eval "press y; sees 'level net' && api_is level '.wishes == []'"

written() { compgen -G "$T/state/blackbox/*-request.json*" >/dev/null || compgen -G "$T/state/snapshots/*" >/dev/null; }
check "x has a file written, and says where" eval \
	"choose '^snapshot: $T/state/' x && wait_until 20 written"
press Space Down Space
check "T asks whether to trace what is tagged, and names the file" choose \
	"^Trace the 2 tagged for 10 s into trace-[0-9TZ]+.json.gz[?] .y/n" T
check "and a yes does it, and tells how far it is" eval \
	"press y; sees '^tracing the 2 tagged: [0-9]+ of 10 s'"
check "for a while, of these" wait_until 20 api_is level \
	'[.wishes[] | select(.level == "trace" and .until_at != null) | .pid] | unique | length == 2'
check "when it is there, its size is told as well" sees "^written: trace-[0-9TZ]+.json.gz, [0-9.]+[KM]iB"
press U

press Tab
check "Tab shows the operations" sees "^ COMM .*OP .*SIZE"
check "Enter shows single operations" choose "^Single operations" Enter
check "and all that is known of one" choose "^stamps_why" Enter G
press Escape Escape 1
sees "^.RANK" >/dev/null
press Escape Enter
sees "^Ranks .*comm dp" >/dev/null
check "Enter shows what a rank ran" choose "^Operations .*rank" Enter
press 1 1
check "3 shows links, or that there are none" choose \
	"^.COMM .*DIR|no transfer over a network" 3
check "5 shows findings, or that there are none" choose "^.SEVERITY|nothing was found" 5
check "4 shows what is in flight" choose "AGE .*EVENT" 4
check "and all of one" choose "^kernel_started" Enter G
press Escape
check "h explains the screen's columns" choose "^AGE +The time since it began" h
check "and then the keys" choose "this help" h
press x
check "any key leaves the help" no_longer_sees "this help"
press p
check "p pauses" sees "\[paused\]"
press p
check "and goes on" no_longer_sees "\[paused\]"
press 1
resize 60 12
check "a smaller window is filled anew" eval 'sees "^ RANK" && fits 60'
resize 200 50
check "a larger window shows more columns" sees "IDLE"


stop_daemon KILL
check "a daemon that goes is told" sees "! cannot connect to"
check "and the last data stay, with their age" sees "what follows is .* old"
start_daemon
check "a daemon that comes back is found" no_longer_sees "cannot connect"

press q
check "q gives the terminal back" given_back 0
check "and the trace's name stays there" sees "^ncclinsp: written: trace-"
# Each rank is a process of its own.
has() { gzip -dc "$T"/trace-*.json.gz | jq -e "[.traceEvents[] | select(.cat == \"Coll\") | .pid] | unique | length == $1"; }
check "in it is what was tagged" has 2
rm -f "$T"/trace-*

open_terminal 100 20 "$I" top -d 0.2
sees "^>.* dp " >/dev/null
choose "^Trace process [0-9]+ " T >/dev/null
check "one that is quitted in its midst is ended, and kept" eval \
	"press y; sees '^tracing process [0-9]+: [1-9]' && press q; sees '^ncclinsp: written: trace-' && has 1"
check "and the level falls back" wait_until 20 api_is level '[.processes[].level] | unique == ["net"]'

mkdir "$T/gone"
cd "$T/gone"
open_terminal 100 20 "$I" top -d 0.2
cd "$T"
sees "^>.* dp " >/dev/null
choose "^Trace process [0-9]+ " T >/dev/null
rmdir "$T/gone"
check "what cannot be written is told, with the reason" eval \
	"press y; sees '^! no trace: cannot write trace-.*: No such file'"
press q

open_terminal 100 20 "$I"
check "no command on a terminal is top" sees "every 2.0s"
press C-c
check "Ctrl-C gives the terminal back" given_back 130

# ends_with SIGNAL CODE: top ends by the signal, and leaves a good terminal.
ends_with() {
	open_terminal 100 20 "$I" top
	sees "every 2.0s" || return 1
	kill "-$1" "$(pgrep -P "$("${TM[@]}" display-message -p -t top '#{pane_pid}')" | head -1)"
	given_back "$2"
}
check "SIGTERM gives the terminal back" ends_with TERM 143
check "SIGHUP gives the terminal back" ends_with HUP 129
check "even a crash gives the terminal back" ends_with SEGV 139

open_terminal 100 20 "$I" top --readonly
sees "every 2.0s" >/dev/null
press T L h h End
check "--readonly has no key for levels" sees "nothing can be changed"
press q

TOP_LOCALE=C open_terminal 100 20 "$I" top -n 1
check "-n ends by itself" given_back 0

open_terminal 140 50 TERM=no-such-terminal "$I" top --batch -n 1
check "as text on a terminal that is not asked for more, it needs no terminfo" \
	eval 'given_back 0 && hides "no terminfo"'
open_terminal 140 50 TERM=no-such-terminal "$I" top
check "a terminal that terminfo does not know gets text" eval 'sees "^processes [0-9]" && given_back 0'
check "... and is told why, and what to do" \
	sees "no terminfo entry for TERM=no-such-terminal, so this is text; .* try TERM=xterm"

# The least processor time of five: how long it takes beside others says nothing about
# the program.
first_paint() {
	local ms best=100000 user system
	local TIMEFORMAT='%U %S'
	for _ in 1 2 3 4 5; do
		{ time "$I" top >/dev/null; } 2>"$T/time" || return 1
		read -r user system <"$T/time"
		ms=$((10#${user/./} + 10#${system/./}))
		[ "$ms" -lt "$best" ] && best=$ms
	done
	echo "$best ms"
	[ "$best" -le 100 ]
}
check "a frame takes at most 100 ms of processor time, from exec to exit" first_paint

kill -- "-$JOB" 2>/dev/null
wait "$JOB" 2>/dev/null

# A job that times a sample of its operations, as jobs do by themselves.
NCCLINSP_KERNELS=burst NCCLINSP_SETTLE=0 setsid "$B/nccl-sim" --plugin "$PLUGIN" "$T/job.scn" >/dev/null 2>&1 &
JOB=$!
is_sampled() { api_is processes '[.processes[] | select(.sampling == "budget")] | length == 4'; }
wait_until 20 is_sampled
open_terminal 120 30 "$I" top -d 0.2
sees "^>.* dp " >/dev/null
press Escape; sees "^Communicators" >/dev/null
press Enter; sees "^Ranks " >/dev/null
check "who goes into a rank is asked to have it all timed" choose "Time every operation" Enter
check "a yes does it" eval "press y; sees 'all timed' && \
	api_is level '.wishes[0].target == \"process\" and .wishes[0].sampling == \"all\"'"
check "who turns away has it end by itself" eval "press Escape; no_longer_sees 'all timed' && \
	api_is level '.wishes[0].until_at != null'"
check "and is not asked again" eval "press j Enter; sees 'all timed' && hides 'Time every'"
press q
kill -- "-$JOB" 2>/dev/null
wait "$JOB" 2>/dev/null
done_testing
