#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who acts on findings is told of them by systemd's own means, once each, and holds nothing up.
. "$(dirname "$0")/lib.sh"

AT=$T/finding.sock
RECIPES=$TOP/deploy/on-finding
exporter() { api status | jq -c ".exporters[] | select(.kind == \"on-finding\")" >"$T/exporter"; jq -e "$1" "$T/exporter" || { cat "$T/exporter"; return 1; }; }
told() { cat "$T"/told.* 2>/dev/null | jq -e -s "$1"; }
# Two ranks that never end their seventh operation, until they are killed.
cat >"$T/hang.scn" <<'SCN'
nodes 2
comm world ranks 0-1 channels 2
stuck rank 0 comm world op 6 state net
loop forever
	compute 1ms
	AllReduce world 1Mi float32
end
SCN

# ---- as ncclinsp-finding.socket does ---------------------------------------------------------
if command -v systemd-socket-activate >/dev/null; then
	start_daemon --stall-min 300ms --on-finding "$AT"
	systemd-socket-activate --accept --inetd -l "$AT" sh -c "cat >'$T'/part.\$\$; mv '$T'/part.\$\$ '$T'/told.\$\$" 2>"$T/activate" &
	started+=("$!")
	wait_until 10 test -S "$AT"
	SLURM_JOB_ID=471 start_job "$T/hang.scn"
	check "a finding is told when it is found, as the API has it" wait_until 40 told \
		'any(.[]; .verdict == "LINK" and .grade == "found" and .active and .job == "471" and .whom[0].rank == 0 and (.text | test("hangs")))'
	end_job
	check "... and when it is over" wait_until 40 told \
		'[.[] | select(.verdict == "LINK") | .active] | contains([true, false])'
	check "a death is told" wait_until 40 told 'any(.[]; .kind == "died" and .severity == "critical" and .active)'
	check "each change is told once" told '(map([.id, .active, .severity]) | unique | length) == length'
	check "what was told is counted" exporter ".done == $(cat "$T"/told.* | jq -s length) and .failed == 0 and .error == null and .at == \"$AT\""
	check "... doctor tells of it" exits 0 'on-finding at .*finding.sock' "$B/ncclinsp" doctor
	cat "$T"/told.* | jq -s -c '[.[] | select(.verdict == "LINK")] | sort_by(.active | not)[]' >"$T/kept"
	stop_daemon
	rm -f "$AT"
else
	skip "a finding is told as systemd's sockets do" "there is no systemd-socket-activate"
fi

# ---- nobody, and somebody who takes nothing -------------------------------------------------
start_daemon --stall-min 300ms --on-finding "$AT"
start_job "$T/hang.scn"
check "nobody listens: it is counted, and why" wait_until 40 exporter '.done == 0 and .failed > 0 and .error == "No such file or directory"'
check "... the log tells so once" eval '[ "$(grep -c "findings are not sent" "$T/daemon.log")" -eq 1 ]'
check "... doctor warns" exits 0 'on-finding at .*: No such file' "$B/ncclinsp" doctor
end_job
stop_daemon
python3 -c 'import socket, sys, time
s = socket.socket(socket.AF_UNIX)
s.bind(sys.argv[1])
s.listen(0)
time.sleep(600)' "$AT" &
started+=("$!")
wait_until 10 test -S "$AT"
start_daemon --stall-min 300ms --on-finding "$AT"
start_job "$T/hang.scn"
check "somebody listens and takes none: findings are found" wait_until 40 api_is 'findings?active=true' 'any(.findings[]; .verdict == "LINK")'
end_job
check "... and end" wait_until 40 api_is 'findings?active=true' 'all(.findings[]; .verdict != "LINK")'
check "... what waits there is no failure" exporter '.done >= 1 and .error == null'
stop_daemon
check "... and ends at once" test "$?" -eq 0

# ---- what is gathered, of real processes by a real debugger ------------------------------------
if [ "$(id -u)" -eq 0 ] && have gdb setpriv; then
	start_daemon --stall-min 300ms
	chmod 711 "$T"
	chmod 1777 "$SHM"
	setpriv --reuid=65003 --regid=65003 --clear-groups -- "$B/nccl-sim" --plugin "$PLUGIN" "$T/hang.scn" >/dev/null 2>"$T/sim" &
	JOB_PID=$!
	started+=("$JOB_PID")
	wait_until 40 api_is 'findings?active=true' 'any(.findings[]; .verdict == "LINK" and .grade == "found")'
	gather() { api 'findings?active=true' | jq -c '.findings[] | select(.verdict == "LINK")' >"$T/found"
		PATH=$B:$PATH EVIDENCE_DIR=$T/gathered NCCLINSP_SOCKET=$SOCK "$@" "$RECIPES/evidence.sh" <"$T/found"; }
	check "what hangs is looked into" gather env
	check "... the stack of who is to blame is told, and of one that waits" api_is 'findings?active=true' \
		'.findings[] | select(.verdict == "LINK") | .gathered | (.[0] | test("^rank 0 \\(process [0-9]+\\), main thread, state [SR].*: .*sleep.* < ")) and
		(.[1] | test("^rank 1, which waits \\(process")) and (.[-1] | test("^more of it in "))'
	check "... diagnose shows it" exits 10 'rank 1, which waits' "$B/ncclinsp" diagnose
	FOLDER=$(ls -d "$T"/gathered/*)
	boxed() { cat "$T"/state/blackbox/*.json | jq -e -s 'any(.[].findings[]; .gathered | length >= 3)'; }
	check "... a black box has it" wait_until 40 boxed
	snapshot=$("$B/ncclinsp" snapshot)
	wait_until 10 test -s "$snapshot"
	check "... and the page of a report" eval '"$B/ncclinsp" report --html "$snapshot" >"$T/page.html"; grep -q "<p>rank 1, which waits .process" "$T/page.html"'
	check "... and diagnose of nodes together" exits 10 'rank 0 .process [0-9]+., main thread' "$B/ncclinsp" diagnose --from "$snapshot"
	check "... threads, stacks, the kernel's log are kept" eval 'for f in finding.json kernel.log lines whom; do [ -e "$FOLDER/$f" ] || { ls -l "$FOLDER"; exit 1; }; done
		[ "$(cat "$FOLDER"/*.threads | awk -F "\t" "NF == 6" | wc -l)" -ge 4 ] && grep -q "^#0 .* in " "$FOLDER"/*.stacks'
	check "... for nobody else to read" test "$(stat -c %a "$FOLDER" "$FOLDER"/* | sort -u | tr '\n' ' ')" = "600 700 "
	goes_on() { ps -o stat= -p "$(jq .whom[0].pid "$T/found")" | grep -q '^[SR]'; }
	check "... its process goes on" wait_until 10 goes_on
	mkdir -p "$T/slow"
	printf '#!/bin/sh\necho "as $(id -u) $(grep CapEff /proc/self/status)" >"%s/gdb.called"; exec sleep 60\n' "$T/slow" >"$T/slow/gdb"
	chmod 755 "$T/slow/gdb"; chmod 777 "$T/slow"
	check "a debugger that hangs is left" eval 'PATH=$T/slow:$PATH gather timeout 30 env EVIDENCE_SECONDS=1'
	check "... it has had the rights of the job's user, and no other" grep -q '^as 65003 CapEff:.*\b0000000000000000$' "$T/slow/gdb.called"
	check "... and the process goes on" wait_until 10 goes_on
	check "another user's process of that number is let be" eval 'rm -f "$T/slow/gdb.called"; jq -c ".uid = 65004" "$T/found" >"$T/other" &&
		PATH=$T/slow:$B:$PATH EVIDENCE_DIR=$T/gathered NCCLINSP_SOCKET=$SOCK "$RECIPES/evidence.sh" <"$T/other" && [ ! -e "$T/slow/gdb.called" ]'
	check "users whose processes are not to be looked into are not" eval 'rm -f "$T/slow/gdb.called"; PATH=$T/slow:$PATH gather env EVIDENCE_USERS=nobody && [ ! -e "$T/slow/gdb.called" ]'
	check "... the newest folders stay" eval 'gather env EVIDENCE_USERS=nobody EVIDENCE_KEEP=1; [ "$(ls "$T/gathered" | wc -l)" -eq 1 ]'
	check "root's processes get no debugger" eval 'jq -c ".uid = 0 | .pid = $$ | .whom = [] | .comm_id = null" "$T/found" >"$T/other" &&
		PATH=$T/slow:$B:$PATH EVIDENCE_DIR=$T/gathered NCCLINSP_SOCKET=$SOCK "$RECIPES/evidence.sh" <"$T/other" >"$T/out" && [ ! -e "$T/slow/gdb.called" ] &&
		says "what it is about .process $$., main thread, state .*no stack .it is root"'
	check "what is no finding of today is let be" eval 'jq -c ".active = false" "$T/found" | PATH=$B:$PATH EVIDENCE_DIR=$T/none "$RECIPES/evidence.sh" && [ ! -e "$T/none" ]'
	gdb -nx --batch -p "$(jq .whom[0].pid "$T/found")" -ex 'shell sleep 100' >/dev/null 2>&1 &
	started+=("$!")
	check "a debugger that stays is told, and not only looks" wait_until 60 api_is 'findings?active=true' \
		'any(.findings[]; .verdict == "STOPPED" and (.text | test("by a debugger .gdb, pid [0-9]+")))'
	curl -sf -m 5 --unix-socket "$SOCK" -X PUT -d "{\"id\": $(jq .id "$T/found"), \"gathered\": [\"in \\u001b[31m$(printf 'x%.0s' {1..200})\"]}" -o /dev/null http://ncclinspd/v1/findings
	check "no letter of it is one for the terminal" eval '! "$B/ncclinsp" diagnose | grep -q "$(printf "\033")"'
	end_job
	stop_daemon
else
	skip "what is gathered of a finding" "needs root, gdb and setpriv"
fi

# ---- the recipes, with played programs where the real ones need a cluster --------------------
mkdir "$T/bin"
for program in scontrol kubectl; do
	printf '#!/bin/sh\nprintf "%%s\\n" "$@" >"%s/%s.called"\n' "$T" "$program" >"$T/bin/$program"
	chmod 755 "$T/bin/$program"
done
recipe() { PATH=$T/bin:$PATH "$RECIPES/$1.sh"; }
finding() { jq -n -c --argjson active "$2" --arg severity "$3" --arg kind "$1" '{id: 7, kind: $kind, verdict: null, severity: $severity,
	grade: "found", active: $active, job: "471", comm_name: "a \"b\" $(c)", text: "rank 3'"'"'s process has died; $(touch x) \"quoted\"",
	since_at: "2026-11-24T10:00:00.000Z", until_at: (if $active then null else "2026-11-24T10:10:00.000Z" end)}'; }
finding died true critical | recipe slurm-drain
check "Slurm: the node is drained, with the reason" eval 'grep -qx State=DRAIN "$T/scontrol.called" && grep -Fqx "Reason=ncclinsp: died of job 471: rank 3'"'"'s process has died; \$(touch x) \"quoted\"" "$T/scontrol.called"'
rm "$T/scontrol.called"
for row in "died false critical" "straggler true critical" "died true warning"; do
	finding $row | recipe slurm-drain
done
check "... not for what is over, blames a job, or can wait" test ! -e "$T/scontrol.called"
finding died true critical | recipe kubernetes-condition
check "Kubernetes: the node has a condition" eval 'tail -n 1 "$T/kubectl.called" | jq -e ".status.conditions[0] | .type == \"NcclFinding\" and .status == \"True\" and .reason == \"died\""'
finding died false critical | recipe kubernetes-condition
check "... until it is over" eval 'tail -n 1 "$T/kubectl.called" | jq -e ".status.conditions[0].status == \"False\""'
done_testing
