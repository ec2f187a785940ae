#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Levels of running jobs: who may change them, what is said, what lasts.
. "$(dirname "$0")/lib.sh"

I=$B/ncclinsp

cat >"$T/job.scn" <<-SCN
	nodes 1
	processes 4
	seed 3
	comm dp ranks 0-3 channels 2
	comm tp ranks 0-1 ranks 2-3 channels 1
	loop forever
		compute 1ms
		AllReduce dp 64Ki float32
		AllGather tp 16Ki float32
	end
SCN

put() { curl -s -o "$T/answer" -w '%{http_code}' --unix-socket "$SOCK" -X PUT -d "$1" http://ncclinspd/v1/level; }
put_is() { [ "$(put "$2")" = "$1" ] || { cat "$T/answer"; return 1; }; }
ops_seen() { api_is collectives '.collectives | length > 50'; }
wanted() { api_is level "[.processes[].wanted | $1] | length == 4 and all(.)"; }
pid() { api processes | jq '.processes[0].pid'; }

start_daemon
SLURM_JOB_ID=4711 "$B/nccl-sim" --plugin "$PLUGIN" "$T/job.scn" 2>"$T/sim" &
JOB_PID=$!
started+=("$JOB_PID")
check "a job runs" wait_until 20 ops_seen

# ---- what is said --------------------------------------------------------------

check "without a level it shows what there is" \
	eval 'exits 0 "LEVEL .*WANTED" "$I" level && [ "$("$I" level --no-header | wc -l)" -eq 4 ]'
check "of one process" eval '[ "$("$I" level $(pid) --no-header | wc -l)" -eq 1 ]'
check "of a communicator" eval '[ "$("$I" level --comm dp --no-header | wc -l)" -eq 4 ]'
check "a job is changed, all ranks of it at once" exits 0 "^job 4711: kernel for 1h00m; . of 4 " \
	"$I" level --job 4711 kernel --for 1h
check "which is seen" wanted '.level == "kernel" and .why == "person" and .until_at != null'
check "a communicator by its name" exits 0 "^comm 0x[0-9a-f]*: sample all; . of 4 " \
	"$I" level --comm dp --sample all
check "adds to what was wanted" wanted '.level == "kernel" and .sampling == "all"'
check "one name of two communicators is not guessed" exits 2 "2 communicators .*give the id" \
	"$I" level --comm tp ops
check "one of the processes" exits 0 "^process $(pid): ops; . of 1 " "$I" level "$(pid)" ops
check "all of it is listed" exits 0 "set for job 4711: kernel for .*, by uid $(id -u)" "$I" level
check "what was wanted is taken back" eval \
	'exits 0 "as before" "$I" level $(pid) default && wanted ".level == \"kernel\""'
check "json is what the daemon answered" eval \
	'"$I" level node net -o json | jq -e ".target == \"node\" and .control.sequence > 0" >/dev/null'
check "a pid that is not there" exits 4 "process 1 does not use NCCL" "$I" level 1 ops
check "a job that is not there" exits 4 "no process of job 'x'" "$I" level --job x ops
check "a communicator that is not there" exits 4 "no communicator 'x'" "$I" level --comm x ops
check "what is no level is a usage error" exits 2 "there are off, ops" "$I" level node loud
check "a time without a level too" exits 2 "goes with a level" "$I" level node --for 3
check "two targets too" exits 2 "one of a pid, --job and --comm" "$I" level --job 4711 --comm dp ops
check "overhead tells what the daemon costs" \
	eval '"$I" overhead 2>&1 | grep "^ncclinspd: [0-9.]*% of a core"'

# ---- who may --------------------------------------------------------------------

as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$T"
	install -m 755 "$I" "$T/ncclinsp"
	check "the node is not everybody's" exits 5 "^ncclinsp: only root" \
		as_nobody "$T/ncclinsp" -S "$SOCK" level node off
	check "another user's process is not there for him" exits 4 "or is not yours" \
		as_nobody "$T/ncclinsp" -S "$SOCK" level "$(pid)" off
	check "nor his job" exits 4 "or none of yours" \
		as_nobody "$T/ncclinsp" -S "$SOCK" level --job 4711 off
	check "everybody may read the control file and nobody else write it" \
		test "$(stat -c %a "$NCCLINSP_CONTROL")" = 644
else
	skip "levels are not everybody's" "needs root and setpriv"
fi

# ---- what lasts -----------------------------------------------------------------

sequence=$(api status | jq .control.sequence)
stop_daemon KILL 2>/dev/null
start_daemon
goes_on() { api_is status ".control.sequence > $sequence and .control.error == null"; }
check "the next daemon wants the same of them" wait_until 20 wanted \
	'.level == "kernel" and .sampling == "all" and .why == "person"'
check "its writes go on where the last one's ended" wait_until 20 goes_on
SLURM_JOB_ID=4711 "$B/nccl-sim" --plugin "$PLUGIN" --hold 60000 "$TOP/tests/scenarios/smoke.scn" \
	2>"$T/late" &
started+=($!)
late() { api_is level '[.processes[] | select(.wanted.level == "kernel")] | length > 4'; }
check "what was said of a job holds for who comes later" wait_until 20 late
kill "${started[-1]}"
only_four() { api_is level '.processes | length == 4'; }
wait_until 20 only_four

check "every field of level is documented" eval '
	for word in $(api level | jq -r "[.. | objects | keys[]] | unique[]"); do
		grep -q "[.\`]$word\`\|[.\`]${word%_mono_ns}_at\`" "$TOP/docs/api.md" || echo "$word"
	done | (! grep .)'

# ---- when jobs cannot be told -----------------------------------------------------

until rm -f "$NCCLINSP_CONTROL"; mkdir "$NCCLINSP_CONTROL" 2>/dev/null; do :; done	# the daemon writes it too
check "a control file that cannot be written is told" put_is 503 '{"level":"off"}'
check "and to be seen in status" exits 0 "levels cannot be changed.*directory" "$I" status
check "nothing has changed" wanted '.level == "kernel"'
rmdir "$NCCLINSP_CONTROL"
check "it is made anew" wait_until 20 put_is 200 '{"level":"ops"}'
check "the log has said it once" eval \
	'[ "$(grep -c "levels cannot be changed" "$T/daemon.log")" -eq 1 ]'
"$B/ncclinspd" -f --containers no -S "$T/second.sock" -m "$SHM" -s "$T/second" 2>"$T/second.log" &
started+=($!)
check "nobody but the first daemon writes it" \
	wait_until 20 grep -q "another daemon writes it" "$T/second.log"
stop_daemon
check "the daemon ends cleanly" test $? -eq 0
done_testing
