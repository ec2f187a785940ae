#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The configuration file of a running daemon: what is wrong is told, what is right is
# taken on SIGHUP, and nobody notices but those who wanted it.
. "$(dirname "$0")/lib.sh"

D=$B/ncclinspd
CONF=$T/ncclinspd.conf

names() { "$D" --print-config | sed -n 's/^#\([a-z-]*\) = .*/\1/p'; }

"$D" --print-config | sed 's/^#\([a-z-]* = \)/\1/' >"$CONF"
check "all defaults as the daemon prints them are good" \
	exits 0 "^$CONF: good$" "$D" --config "$CONF" --check-config
check "there are several" test "$(grep -c '^[a-z]' "$CONF")" -ge 6

# The manual pages must not fall behind the table.
flat() { mandoc -T ascii "$B/man/$1" | sed 's/.\x08//g' | tr -s ' \n' ' '; }
conf_page=$(flat ncclinspd.conf.5)
daemon_page=$(flat ncclinspd.8)
names_it() { case $1 in *"$2"*) ;; *) return 1 ;; esac; }
while read -r name value; do
	check "ncclinspd.conf(5) has $name and its default" names_it "$conf_page" "$name (default $value)"
done < <("$D" --print-config | sed -n 's/^#\([a-z-]*\) = /\1 /p')
for option in $("$D" --help | grep -o -- ' --[a-z-]*' | sort -u); do
	check "ncclinspd(8) has $option" names_it "$daemon_page" "$option"
done

printf 'stall-min = 10s\nlog-level = loud\nstal-min = 5s\n' >"$CONF"
check "what is wrong is told: file, line, what would be right" \
	exits 2 "^ncclinspd: $CONF:2: log-level must be err, warn, info or debug, not \"loud\"" \
	"$D" --config "$CONF" --check-config
check "all of it" exits 2 "^ncclinspd: $CONF:3: .*is it stall-min" "$D" -c "$CONF" -C
check "a daemon does not start with it" exits 2 "$CONF:2" "$D" -f -c "$CONF"
check "help is given all the same" exits 0 'usage:' "$D" -c "$CONF" --help
check "a file that is not there is told" exits 2 'No such file' "$D" -c "$T/none" -C

# ---- a running one -------------------------------------------------------------

logged() { grep -Eq -- "$1" "$T/daemon.log"; }
reads() { grep -c 'configuration read' "$T/daemon.log"; }
reload() {	# and wait until it has happened
	local before
	before=$(grep -c 'configuration read\|configuration refused' "$T/daemon.log")
	kill -HUP "$DAEMON_PID"
	wait_until 20 sh -c 'test "$(grep -c "configuration read\|configuration refused" "$0")" -gt "$1"' \
		"$T/daemon.log" "$before"
}

echo 'stall-min = 1h' >"$CONF"
start_daemon --config "$CONF"

# ---- what is in force, and who said so ------------------------------------------

I=$B/ncclinsp
setting() { "$I" config --no-header -o csv --fields name,value,from,change | grep -E "^$1,"; }
is_set() { [ "$(setting "$1")" = "$1,$2" ] || { setting "$1"; return 1; }; }
check "config has each setting of the file, and no other" \
	diff <(names | sort) <("$I" config --no-header -o csv --fields name | sort)
check "one of the file, with its line" is_set stall-min "3600s,$CONF:1,reload"
check "one of the command line, which the file does not change" is_set auto-thrift "no,'--auto-thrift,restart"
check "one of the environment" is_set control "$T/control,NCCLINSP_CONTROL,restart"
check "one that nobody has set" is_set straggler-window "60s,default,reload"
api config >"$T/config"
check "the API names the file and when it was read" \
	jq -e --arg f "$CONF" '.file == $f and .file_read and .read_at != null and .refused_at == null' "$T/config"
# tells PATTERN: config's table comes with that note.
tells() { "$I" config 2>&1 >/dev/null | grep -Eq -- "$1"; }
check "there is nothing to say" eval '[ -z "$("$I" config 2>&1 >/dev/null)" ]'
touch -d '+1 minute' "$CONF"
check "a file that is newer than what was read is told of" tells 'was changed after the daemon read it'
touch -d '-1 minute' "$CONF"

environment() { "$I" config -p "$1" --no-header -o csv --fields name,value,from 2>"$T/err"; }
job_like() { env NCCLINSP_LEVEL=ops SLURM_JOB_ID=4711 NCCLINSP_RUN=run-1 NCCLINSP_KERNELS= NCCLINSP_BUDGET=1 SECRET=x sleep 60; }
job_like &
started+=("$!")
runs_sleep() { sleeper=$(pgrep -P "$1" -x sleep); }
check "a process was started" wait_until 20 runs_sleep "$!"
runs_sleep "$!"
environment "$sleeper" >"$T/variables"
check "config -p has what it was told" grep -qx 'NCCLINSP_LEVEL,ops,environment' "$T/variables"
check "what is empty is not set" grep -qx 'NCCLINSP_KERNELS,,default' "$T/variables"
check "what is not read any more is told where it is set" \
	eval '"$I" config -p "$sleeper" 2>&1 | grep -q "NCCLINSP_BUDGET.*no longer read"'
check "and its job" grep -qx 'SLURM_JOB_ID,4711,environment' "$T/variables"
check "what the plugin does not read stays where it is" eval '! grep -q SECRET "$T/variables"'
# Defaults are those of the manual.
plugin_page=$(flat libnccl-profiler-insp.7)
defaults_told() {
	local name value missing=0
	while IFS=, read -r name value _; do
		[ -z "$value" ] || grep -Eq "$name .*$value" <<<"$plugin_page" || { echo "$name $value"; missing=1; }
	done < <(grep ',default$' "$T/variables")
	return $missing
}
check "libnccl-profiler-insp(7) has the defaults" defaults_told
check "each variable that the plugin reads is among them" \
	diff <(grep -aoE 'NCCLINSP_[A-Z_]+|NCCL_PROFILE_[A-Z_]+' "$PLUGIN" | sort -u) \
		<("$I" config -p "$sleeper" --no-header -o csv --fields name 2>/dev/null | grep -E '^NCCLINSP_|^NCCL_PROFILE_' | grep -v BUDGET | sort)
kill "$sleeper"
check "who is not there has no environment" exits 4 'no such process' "$I" config -p 4194303
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$T"
	check "another user's is his own" \
		exits 5 'ask its user' setpriv --reuid=65534 --regid=65534 --clear-groups "$I" config -p $$
else
	skip "another user's is his own" "only root can become somebody else"
fi

# ---- jobs do not notice -----------------------------------------------------------

# A few seconds of records, fewer than the rings hold: whoever loses one has let go of it.
sed 's/^loop .*/loop 400/' "$TOP/tests/scenarios/steady.scn" >"$T/steady.scn"
RECORDS=$((400 * 6))
"$B/nccl-sim" --plugin "$PLUGIN" "$T/steady.scn" 2>"$T/sim" &
job=$!
started+=("$job")
some_records() { api_is processes '[.processes[] | select(.records > 50)] | length == 4'; }
all_records() { api_is processes "[.processes[] | .records] == [$RECORDS, $RECORDS, $RECORDS, $RECORDS]"; }
check "a job is seen" wait_until 20 some_records
curl -sN --unix-socket "$SOCK" 'http://ncclinspd/v1/stream?kinds=finding' >"$T/stream" &
client=$!
started+=("$client")
ids=$(api processes | jq -c '[.processes[].id] | sort')
for i in 1 2 3 4 5; do check "it reads its configuration (time $i)" reload; done
check "every record is delivered" wait_until 30 all_records
check "none was lost" api_is status '.ingest.lost == 0 and .ingest.before == 0'
check "the processes are the same as before" \
	test "$(api processes | jq -c '[.processes[].id] | sort')" = "$ids"
check "a client that listens is still there" kill -0 "$client"
pkill -P "$job"

# An operation that hangs: whether it is a finding is up to the configuration.
"$B/nccl-sim" --plugin "$PLUGIN" "$TOP/tests/scenarios/frozen-gpu.scn" 2>"$T/sim" &
job=$!
started+=("$job")
stalls='[.findings[] | select(.kind == "stall" and .grade == "found")]'
hangs() { api_is inflight '[.inflight[] | select(.age_ns > 2e9)] | length > 0'; }
check "a job hangs" wait_until 60 hangs
check "and is no finding where an hour is fine" api_is findings "$stalls == []"

printf 'stall-min = 300ms\nlog-level = quiet\n' >"$CONF"
check "it reads what is wrong" reload
check "it says what" logged "err: configuration: $CONF:2: log-level must be"
check "and stays as it was" logged 'configuration refused, the one before stays in force'
check "config tells what was wrong" tells "was refused, and the one before is in force: $CONF:2: log-level must be err"
check "and what is in force" is_set stall-min "3600s,$CONF:1,reload"
printf 'stall-min = 300ms\nlog-level = debug\nstate-dir = /elsewhere\n' >"$CONF"
check "it reads what is right" reload
check "the job that hangs is a finding now" \
	wait_until 60 api_is findings "$stalls != []"
check "config has it" is_set stall-min "300ms,$CONF:1,reload"
check "and forgets what was wrong" api_is config '.refused_at == null and .refused_why == null'
check "what the command line sets does not change" sh -c '! grep -q "state-dir needs" "$0"' "$T/daemon.log"
pkill -P "$job"
stop_daemon TERM
check "it ends with status 0" test $? -eq 0
check "the log has the new level" logged 'debug: asked to stop'

printf 'state-dir = %s\n' "$T/state" >"$CONF"
"$D" --foreground --config "$CONF" 2>>"$T/daemon.log" &
DAEMON_PID=$!
started+=("$DAEMON_PID")
check "a daemon starts from the file" wait_until 20 api_answers
check "its state is where the file says" test -d "$T/state/blackbox"
echo 'state-dir = /elsewhere' >"$CONF"
check "it reads that this has changed" reload
check "and says that it needs a restart" logged 'a change of state-dir needs a restart'
check "config shows what is in force, and that another waits" is_set state-dir "$T/state,$CONF:1,waits for a restart"
check "it says what to do" tells 'systemctl restart ncclinspd'
stop_daemon TERM
done_testing
