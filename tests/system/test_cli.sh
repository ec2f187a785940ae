#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ncclinsp against a real daemon and a simulated job: tables, CSV, JSON, exit codes.
. "$(dirname "$0")/lib.sh"

[ -x "$B/nccl-sim" ] && [ -x "$B/ncclinspd" ] || skip_all "the simulator or the daemon is not built"

I=$B/ncclinsp
unset COLUMNS NO_COLOR
export TERM=xterm

scenario() {
	cat >"$T/job.scn" <<-SCN
	nodes 1
	processes 4
	seed 3
	comm dp ranks 0-3 channels 2
	late rank 2 by 5ms
	loop 40
		compute 1ms
		AllReduce dp 1Mi float32
	end
	SCN
}

# ---- without a daemon --------------------------------------------------------

unset_socket() { env -u NCCLINSP_SOCKET "$@"; }

check "no daemon: exit code 3" ends 3 "$I" status
check "no daemon: the message says what, why and what next" \
	says "cannot connect to $SOCK: no such file; is ncclinspd running\?.*ncclinspd --foreground"
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$T/dead" 2>/dev/null ||
	perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => $ARGV[0], Listen => 1)' "$T/dead"
check "a socket that nobody listens on: exit code 3" ends 3 "$I" ps -S "$T/dead"
check "top without a daemon, as text: exit code 3" ends 3 "$I" top
check "an unknown command is a usage error" ends 2 "$I" nonsense
check "one that is nearly one is told" eval 'ends 2 "$I" inflght && says "is it inflight\?"'
check "what has nothing of one is not" eval 'ends 2 "$I" nonsense && ! says "is it"'
check "an unknown option is a usage error" ends 2 "$I" ps --nonsense
check "an option of another command is a usage error" ends 2 "$I" ps --older-than 3
check "one that is nearly one is told" eval 'ends 2 "$I" ps --fileds=pid && says "is it --fields\?"'
check "so is a format that was taken for an option" eval 'ends 2 "$I" ps --json && says "is it -o json\?"'
check "a value that does not fit is told what would" \
	eval 'ends 2 "$I" ops --window 5y && says "5y. is not valid for --window WINDOW: 1s, 10s, 60s or all"'
check "what is right for one command need not be for another" \
	eval 'ends 2 "$I" peers --window 10s && says "WINDOW: 60s or all"'
check "nothing lasts no time, or longer than the daemon allows" \
	eval 'ends 2 "$I" level node net --for 0 && says "from 100ms to 7d" && ends 2 "$I" trace --for 8d -o "$T/t"'
check "a format is no file that trace writes" \
	eval '(cd "$T" && ends 2 "$I" trace -o csv --for 1 && says "this command writes a file, not a table" && [ ! -e csv ])'
check "a number is told from where on" eval 'ends 2 "$I" ps -n -1 && says "whole number, 1 or more"'
check "a field that is not there is a usage error, and needs no daemon" \
	eval 'ends 2 "$I" ops --fields rank,nonsense && says "no field .nonsense.; --fields help"'
check "one that is nearly one is told, wherever it stands" eval 'ends 2 "$I" ops --fields rnk && says "is it rank\?" &&
	ends 2 "$I" ops -s rnk && says "is it rank\?" && ends 2 "$I" ops -f rnk=3 && says "is it rank\?"'
check "so it is in an order" eval 'ends 2 "$I" ops -s -nonsense && says "no field .nonsense."'
check "so it is in a filter" eval 'ends 2 "$I" ops -f "nonsense>3" && says "no field .nonsense."'
check "a filter's value that is no number is a usage error" \
	eval 'ends 2 "$I" ops -f "rank=three" && says ".three. is not a number"'
check "a user that is not there is a usage error" ends 2 "$I" ps -u no.such.user
check "fields are listed without a daemon" eval 'ends 0 "$I" ops --fields help && says "^p50_ns "'
check "tail has no samples for prom" ends 2 "$I" tail -o prom
check "a second command is a usage error" ends 2 "$I" ps comms
check "watch without a command is a usage error" eval 'ends 2 "$I" watch && says "needs a command"'
check "its help is that of what it repeats" eval \
	'diff <("$I" ps --help) <("$I" watch ps --help) && ends 0 "$I" watch --help && says "^Usage: ncclinsp watch"'
check "so is one that cannot be repeated" eval 'ends 2 "$I" watch explain && says "explain does not take --watch"'
check "so is watch itself, and what is no command" eval 'ends 2 "$I" watch watch && ends 2 "$I" watch nonsense'
check "so is a job or phase that is no text, which must not become the node" \
	eval 'ends 2 "$I" level -j $'"'\\377'"' off && says UTF-8 && ends 2 "$I" mark $'"'\\377'"' && says UTF-8'
check "a dry run of nothing is a usage error" eval 'ends 2 "$I" mark --dry-run && ends 2 "$I" level --dry-run'
check "help of a command names its page" eval '"$I" help top | grep -q "More: man ncclinsp-top\$"'
check "help of none that there is is bad usage, and names the one that is meant" eval \
	'ends 2 "$I" help nonsense && ends 2 "$I" help rnks && says "is it ranks?"'
check "the help of run has the exit codes of run" eval \
	'ends 0 "$I" run --help && says "that of COMMAND" && ! says "3 no daemon" && ends 0 "$I" diff --help && says "3 no daemon"'
check "help is no error and needs no daemon" ends 0 "$I" --help
check "the help of a command names its own options" eval 'ends 0 "$I" inflight -h && says older-than'
check "the version is printed" eval 'ends 0 "$I" --version && says "^ncclinsp [0-9]"'

denied() {
	local code
	mkdir -p "$T/shut" && chmod 700 "$T/shut" && chmod 755 "$T"
	install -m 755 "$I" "$T/ncclinsp"
	setpriv --reuid 65534 --clear-groups "$T/ncclinsp" -S "$T/shut/s" ps 2>"$T/err"
	code=$?
	[ $code -eq 5 ] && grep -q "permission denied" "$T/err" || { echo "exit $code"; cat "$T/err"; return 1; }
}
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	check "no permission: exit code 5" denied
else
	skip "no permission: exit code 5" "needs root and setpriv"
fi

# ---- with a daemon, nothing to show --------------------------------------------

start_daemon
check "no process: ps exits with 4 and says how to get one" \
	eval 'ends 4 "$I" ps && says NCCL_PROFILER_PLUGIN=insp'
check "no process: status is still 0" ends 0 "$I" status
check "no command and no terminal: status" eval 'ends 0 "$I" && says "ncclinspd .* up"'
check "the user's own daemon is found" \
	eval 'mkdir -p "$T/xdg/ncclinsp" && ln -s "$SOCK" "$T/xdg/ncclinsp/ncclinspd.sock" &&
	      ends 0 unset_socket XDG_RUNTIME_DIR="$T/xdg" "$I" status'

if [ ! -e /run/ncclinsp/ncclinspd.sock ]; then
	check "where neither daemon is, both places are told" eval \
		'ends 3 unset_socket XDG_RUNTIME_DIR="$T/none" "$I" ps && says "/run/.* or $T/none/ncclinsp/ncclinspd.sock: no such"'
fi

# ---- with a job ------------------------------------------------------------------

scenario
"$I" tail -n 20 -o json >"$T/tail.json" 2>"$T/tail.err" &
TAIL=$!
"$I" tail -n 20 -o json --fields func,rank >"$T/fields.json" 2>"$T/fields.err" &
FIELDS=$!
started+=("$TAIL" "$FIELDS")
sleep 0.3
check "the job runs" sim "$T/job.scn"
wait_until 5 drained

check "ps lists its processes" eval 'ends 0 "$I" ps && says "nccl-sim"'
check "... with their ranks, though no launcher tells them" \
	eval '[ "$("$I" ps -o csv --no-header --fields rank -s rank | tr "\n" " ")" = "0 1 2 3 " ]'
check "an option before the command means the same" eval 'ends 0 "$I" --no-header ps && ! says PID'
check "comms has a row for each rank" \
	eval 'ends 0 "$I" comms --no-header && [ "$(grep -c " dp " "$T/out")" -eq 4 ]'
check "ops counts every operation" \
	eval '[ "$("$I" ops -o json | jq "[.rows[].ops] | add")" -eq 160 ]'
check "ops by rank has four rows" eval '[ "$("$I" ops --by-rank --no-header | wc -l)" -eq 4 ]'
check "a rank can be asked for" eval '[ "$("$I" ops --no-header --rank 2 | wc -l)" -eq 1 ]'
check "the communicator's name and id select the same" \
	eval 'id=$("$I" comms -o json | jq -r ".comms[0].comm_id") &&
	      diff <("$I" comms -o csv --comm dp) <("$I" comms -o csv --comm "${id#0x}")'
check "what matches nothing exits with 4" \
	eval 'ends 4 "$I" ops --comm nonsense -f rank=7 && says "nothing matches --comm nonsense, rank=7$"'
check "json is what the API answered" \
	eval 'diff <("$I" ps -o json) <(api processes | sed "s/^{/{\"schema\":1,/")'
check "JSON lines and CSV have nothing but fields" \
	eval '! "$I" ps -o jsonl --fields pid | grep schema && ! "$I" ps -o csv | grep schema'
check "json that is filtered keeps the answer's form" \
	eval '"$I" comms --rank 2 -o json | jq -e ".comms[0].local_ranks | length == 1" >/dev/null'
check "csv has raw base units" \
	eval '"$I" ops -o csv | sed -n 2p | cut -d, -f5 | grep -qx 4194304'
check "csv has as many fields in each line" \
	eval '[ "$("$I" ps -o csv | awk -F, "{print NF}" | sort -u | wc -l)" -eq 1 ]'
check "jsonl has the fields of csv, one row a line" \
	eval 'diff <("$I" comms -o csv | head -1) <("$I" comms -o jsonl | head -1 | jq -r "keys_unsorted | join(\",\")") &&
	      [ "$("$I" comms -o jsonl | jq -s length)" -eq 4 ]'
check "prom has each metric once, with its samples together" \
	eval 'ends 0 "$I" ops -o prom && says "^ncclinsp_ops_ops\{.*func=.AllReduce.*\} 160$" &&
	      [ -z "$(grep "^# TYPE" "$T/out" | sort | uniq -d)" ] &&
	      [ "$(grep -v "^#" "$T/out" | sed "s/{.*//" | uniq | sort | uniq -d | wc -l)" -eq 0 ]'
check "no two samples of prom have the same labels" \
	eval 'for c in ps comms ops inflight status; do "$I" $c -o prom; done | grep -v "^#" |
	      sed "s/ [^ ]*$//" >"$T/out"; [ -s "$T/out" ] && [ -z "$(sort "$T/out" | uniq -d)" ]'
check "wide has what the table leaves out" \
	eval 'ends 0 "$I" ops -o wide && says BATCH_P50 && ends 0 "$I" ops && ! says BATCH_P50'
check "fields are chosen, and in which order" \
	eval '[ "$("$I" comms --fields rank,comm_id,name | head -1 | tr -s " ")" = "RANK COMM_ID NAME" ]'
check "also of csv and of json" \
	eval '[ "$("$I" comms --fields rank,name -o csv | head -2 | tail -1)" = 0,dp ] &&
	      "$I" comms --fields rank,name -o json | jq -e ".comms == [range(4) | {rank: ., name: \"dp\"}]"'
check "also of a page" eval '[ "$("$I" status --fields version,lost --no-header | wc -w)" -eq 2 ]'
check "rows are ordered by a field" \
	eval '[ "$("$I" ops --by-rank -s -rank -o csv --no-header --fields rank | tr "\n" " ")" = "3 2 1 0 " ] &&
	      [ "$("$I" ops --by-rank -s rank -o csv --no-header --fields rank | tr "\n" " ")" = "0 1 2 3 " ]'
check "also of ranks inside communicators" \
	eval '"$I" comms -s -rank -o json | jq -e "[.comms[0].local_ranks[].rank] == [3, 2, 1, 0]"'
check "an order holds in json too" \
	eval '"$I" ops --by-rank -s -rank -o json | jq -e "[.rows[].rank] == [3, 2, 1, 0]"'
check "who asks for a rank gets a row of it, however he asks" \
	eval '[ "$("$I" ops -f rank=2 --no-header | wc -l)" -eq 1 ] && [ "$("$I" ops -s -rank --no-header | wc -l)" -eq 4 ] &&
	      [ "$("$I" ops --fields rank,ops --no-header | wc -l)" -eq 4 ] && [ "$("$I" ops -s -ops --no-header | wc -l)" -eq 1 ]'
check "filters on fields must all hold" \
	eval '[ "$("$I" ops --by-rank -f "rank>=1" -f "rank<3" --no-header | wc -l)" -eq 2 ]'
check "a fixed string is looked for in all cells" eval 'ends 0 "$I" ops -f reduce && ends 4 "$I" ops -f "send|recv"'
check "filters hold for json in the answer's form" \
	eval '"$I" comms -f rank=2 -o json | jq -e "[.comms[].local_ranks[].rank] == [2]"'
check "a process's row of ops is that of its rank" \
	eval 'pid=$("$I" comms -f rank=2 -o csv --no-header --fields pid) && [ -n "$pid" ] &&
	      [ "$("$I" ops -p "$pid" -o csv --no-header --fields rank)" = 2 ]'
check "a user's rows can be asked for, by name and number" \
	eval 'ends 0 "$I" ops -u "$(id -un)" && ends 0 "$I" ps -u "$(id -u)" && ends 4 "$I" ops -u 4000000'
check "a job's rows can be asked for" eval 'ends 4 "$I" ops -j no.such.job'
check "units are those asked for" \
	eval 'ends 0 "$I" ops && says 4MiB && ends 0 "$I" ops --units si && says 4.19MB &&
	      ends 0 "$I" ops --units raw && says " 4194304 " && says "P50\(ns\)"'
check "nothing has colours in a file" eval '! "$I" status | grep -q "$(printf "\033")"'
check "colours can be asked for" eval '"$I" --color always status | grep -q "$(printf "\033")"'

# coloured [NAME=VALUE...] command...: on a terminal, it writes escapes.
coloured() { script -qec "env $*" /dev/null </dev/null | grep -q "$(printf "\033\\[[0-9]")"; }
if command -v script >/dev/null; then
	check "a terminal has colours" coloured TERM=xterm "$I" status
	check "but not where NO_COLOR is set" eval '! coloured TERM=xterm NO_COLOR=1 "$I" status'
	check "nor where TERM is dumb" eval '! coloured TERM=dumb "$I" status'
	check "nor where they are not wanted" eval '! coloured TERM=xterm "$I" --color never status'
	check "however that is said" eval '! coloured TERM=xterm "$I" --no-color status'
	cleared() { script -qec "$I $*" /dev/null </dev/null | grep -q "$(printf "\033\\[2J")"; }
	check "samples clear a terminal" cleared ps -n 2 -d 0.1
	check "in a batch they do not" eval '! cleared ps -n 2 -d 0.1 --batch'
	check "nor where TERM is dumb, empty or not known" \
		eval '(export TERM=dumb; ! cleared ps -n 2 -d 0.1) && (export TERM=; ! cleared ps -n 2 -d 0.1) &&
		      (unset TERM; ! cleared ps -n 2 -d 0.1) && (export TERM=; ! coloured TERM= "$I" status)'
	check "nor does the live view" eval '! cleared top -n 1 -b'
	check "those asked for win over NO_COLOR" coloured TERM=xterm NO_COLOR=1 "$I" --color always status
	check "an empty NO_COLOR means nothing" coloured TERM=xterm NO_COLOR= "$I" status
else
	skip "a terminal has colours" "no script(1)"
fi
check "output that cannot be written is a failure" \
	eval 'ends 1 sh -c "\"$I\" ps >/dev/full" && says "cannot write the output: No space"'
check "and ends what would go on" eval 'ends 1 timeout 5 sh -c "\"$I\" ps -w -d 0.1 >/dev/full"'
check "a delay that would keep the daemon busy is refused, with the shortest" \
	eval 'ends 2 "$I" ps -w -d 0 && says "from 100ms" && ends 2 "$I" ps -w -d 50ms'
check "watch repeats a command" eval '[ "$("$I" watch ps --no-header -n 2 -d 0.1 -o json | wc -l)" -eq 2 ]'
check "watch goes on until it is ended" eval 'ends 130 timeout --preserve-status -s INT 1 "$I" watch -d 0.1 ps'
check "quiet: the exit code alone tells" \
	eval 'ends 0 "$I" -q ps && [ ! -s "$T/out" ] && ends 4 "$I" -q ops --comm nonsense && [ ! -s "$T/err" ]'
check "verbose: what was asked, and what came of it, beside the table" \
	eval 'ends 0 "$I" -v ps && grep -q "/v1/processes[^ ]*: 200, [0-9]* bytes, [0-9.]* ms$" "$T/err" &&
	      diff <("$I" ps -v 2>/dev/null | cut -c1-40) <("$I" ps | cut -c1-40)'
check "-n repeats, and numbers the samples" \
	eval '[ "$("$I" ps --no-header -n 2 -d 0.1 -o json | wc -l)" -eq 2 ]'
check "a reader that goes away ends it quietly" \
	eval '"$I" ps -w -d 0.1 2>"$T/err" | head -1 >/dev/null; [ ! -s "$T/err" ]'
check "also where nobody gets a SIGPIPE" \
	eval '(trap "" PIPE; timeout 20 "$I" ps -w -d 0.1 2>"$T/err" | head -1 >/dev/null); [ ! -s "$T/err" ]'
check "interrupted: 130, and not a word" \
	eval 'ends 130 timeout --preserve-status -s INT 1 "$I" ps -w -d 0.1 && [ ! -s "$T/err" ]'
check "without a locale, and with one that is not there, figures are the same" \
	eval 'shown() { "$I" ops --fields func,size,p50,p99,busbw; }; diff <(LC_ALL=C shown) <(LC_ALL=xx_YY.UTF-8 shown) &&
	      diff <(LC_ALL=C shown) <(shown)'
check "tail ended by itself after 20 operations" wait "$TAIL"
check "tail wrote one JSON object per line" \
	eval '[ "$(jq -c "select(.kind == \"collective\") | .func" "$T/tail.json" | wc -l)" -eq 20 ]'
check "with --fields these only" eval 'wait "$FIELDS" &&
	[ "$(jq -c "select(.func) | keys" "$T/fields.json" | sort | uniq -c | xargs)" = "20 [func,rank,schema]" ]'
check "top as text shows the ranks' operations" eval 'ends 0 "$I" top --window all && says AllReduce'
check "top as text keeps to COLUMNS" \
	eval 'COLUMNS=60 "$I" top --window all >"$T/out" && [ "$(wc -L <"$T/out")" -le 60 ]'

# ---- who is late -------------------------------------------------------------------

status_says() { "$I" status >"$T/out" && grep -q "comes last" "$T/out"; }
check "whose job is over comes last no more" eval '! status_says'
sed 's/loop 40/loop forever/' "$T/job.scn" >"$T/late.scn"
setsid "$B/nccl-sim" --plugin "$PLUGIN" "$T/late.scn" >/dev/null 2>&1 &
JOB=$!
check "the late rank is named" wait_until 60 eval \
	'"$I" status | grep -Eq "! suspected: rank 2 of dp .pid [0-9]+, [^ ]+. comes last in [0-9]+ % of AllReduce"'
check "diagnose and check tell of it as well, and raise no alarm" \
	eval 'ends 0 "$I" diagnose -f kind=straggler && says "^suspected warning: straggler STEADY on dp" &&
	      "$I" check | grep -q "suspected: .*rank 2 of dp"'
kill -- -"$JOB"
check "... until its job ends" wait_until 20 eval '! status_says'

# ---- a daemon that does not answer ------------------------------------------------

kill -STOP "$DAEMON_PID"
check "a stopped daemon: exit code 6" ends 6 "$I" status
kill -CONT "$DAEMON_PID"

"$I" tail >"$T/out" 2>"$T/err" &
TAIL=$!
sleep 0.3
stop_daemon
wait "$TAIL"
check "tail ends with 3 when the daemon goes" test $? -eq 3

# ---- many hosts, told one after the other --------------------------------------------

each_host() {
	(ulimit -n 48; NCCLINSP_SSH=false "$I" status -H 'n[1-50]' >"$T/out" 2>"$T/err") && return 1
	[ "$(sed 's/:.*//' "$T/err" | tr '\n' ' ')" = "$(printf 'n%d ' {1..50})" ]
}
check "more hosts than descriptors: each is told, in order" each_host
check "more processes than attach takes are refused: none is cut off a list" exits 2 'too many processes' "$I" attach "$(seq -s, 1 2000)"

done_testing
