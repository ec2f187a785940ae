#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Of a critical finding: what its processes and their machine are at, gathered while they still are.  Of the processes that
# are to blame (two at most) and of one that waits for them: the threads, with where each sleeps in the kernel, and their
# stacks (py-spy, gdb or eu-stack, run as the process's own user); the kernel's log of the last ten minutes, and nvidia-smi.
# All of it goes to a folder, and the lines that matter to `ncclinsp diagnose`, process by process.  Needs root, bash, jq and
# curl; takes a minute and a half and 4 MiB at most.
#
#   EVIDENCE_DIR      where the folders are (/var/lib/ncclinsp-evidence); the newest EVIDENCE_KEEP (16) stay
#   EVIDENCE_SECONDS  for the stacks of a process (15)
#   EVIDENCE_USERS    whose processes are looked into, with blanks between (everybody's)
#   EVIDENCE_ROOT     yes: root's processes get a debugger too (no).  It would have the rights of root, and in a container
#                     root is often somebody else
#   NCCLINSP_SOCKET   the daemon's socket (/run/ncclinsp/ncclinspd.sock)
set -u
umask 077
finding=$(cat)
get() { jq -r "$1" <<<"$finding"; }
[ "$(get '.active and .grade == "found" and .severity == "critical"')" = true ] || exit 0
SOCKET=${NCCLINSP_SOCKET:-/run/ncclinsp/ncclinspd.sock}
DIR=${EVIDENCE_DIR:-/var/lib/ncclinsp-evidence}
OUT=$DIR/$(date -u +%Y%m%dT%H%M%SZ)-$(get '"\(.id)-\(.kind)"')
mkdir -p "$OUT" || exit 1
printf '%s\n' "$finding" >"$OUT/finding.json"
lines=()
tell() { lines+=("$(printf %s "$1" | iconv -c -t UTF-8 | tr -d '\000-\037\177' | head -c 240 | iconv -c -t UTF-8)"); }
bounded() { head -c 262144; }

# as PID COMMAND...: as the process's own user, with none of our rights, and not for long.
as() {
	local pid=$1 rights=-all
	[ "$UID_OF" != 0 ] || rights=-all,+sys_ptrace
	shift
	timeout -k 1 "${EVIDENCE_SECONDS:-15}" setpriv --reuid="$UID_OF" --regid="$(stat -c %g "/proc/$pid")" --clear-groups \
		--no-new-privs --bounding-set=$rights --inh-caps=-all env -i PATH="$PATH" HOME=/ LC_ALL=C "$@" </dev/null
}

# threads PID: a line each: number, name, state, seconds on a CPU, the place in the kernel where it sleeps, the system call.
threads() {
	local task stat call hz
	hz=$(getconf CLK_TCK)
	for task in "/proc/$1/task/"*; do
		stat=$(cat "$task/stat" 2>/dev/null) || continue
		read -r call _ 2>/dev/null <"$task/syscall" || call=-
		set -- ${stat##*) }
		printf '%s\t%s\t%s\t%d\t%s\t%s\n' "${task##*/}" "$(tr -d '\t\n' <"$task/comm")" "$1" $(((${12} + ${13}) / hz)) \
			"$(cat "$task/wchan" 2>/dev/null)" "$call"
	done | head -n 1024
}

# stacks PID: of all its threads, the first one's last.  A debugger stops the process meanwhile: one with a thread that does
# not come out of the kernel would stay stopped.
stacks() {
	if [ "$UID_OF" = 0 ] && [ "${EVIDENCE_ROOT:-no}" != yes ]; then
		echo "it is root's: EVIDENCE_ROOT is not yes"
	elif cut -f 3 "$OUT/$1.threads" | grep -q D; then
		echo 'a thread of it is in the kernel and does not come out'
	elif command -v py-spy >/dev/null; then
		as "$1" py-spy dump --nonblocking --pid "$1"
	elif command -v gdb >/dev/null; then
		as "$1" gdb -nx -nh --batch -iex 'set auto-load off' -iex 'set debuginfod enabled off' -iex "set sysroot /proc/$1/root" \
			-p "$1" -ex 'set pagination off' -ex 'set print frame-arguments none' -ex 'thread apply all bt 24'
	elif command -v eu-stack >/dev/null; then
		as "$1" eu-stack -n 24 -p "$1"
	else
		echo 'none of py-spy, gdb and eu-stack is installed'
	fi 2>&1 | bounded
	# What was killed may have left it stopped.
	[ "${PIPESTATUS[0]}" -lt 124 ] || grep -q "^$1	[^	]*	[Tt]" "$OUT/$1.threads" || as "$1" kill -CONT "$1"
}

# inside PID FILE: the functions that its main thread is in, the innermost first.
inside() {
	awk -v main="$1" '
		/^Thread .*"MainThread"/ || /^Thread .*\(LWP / || /^TID / { on = /MainThread/ || $0 ~ "[(]LWP " main "[) ]" || $2 == main ":"; n = 0; next }
		!on || n == 6 || NF < 2 { next }
		/^#/ { name = $2; if ($2 ~ /^0x/) name = $3 == "in" ? $4 : $3; names = names (n++ ? " < " : "") name; next }
		/^ +[^ ]+ \(.*\)$/ { sub(/^ +/, ""); names = names (n++ ? " < " : "") $0 }
		END { print names }' "$2"
}

# look PID WHO: into a process, of the finding's user and no other: its number may be another one's by now.
look() {
	local pid=$1 who=$2 user state where kernel
	read -r UID_OF user < <(stat -c '%u %U' "/proc/$pid" 2>/dev/null) || { tell "$who: process $pid is gone"; return; }
	[ "$UID_OF" = "$(get .uid)" ] || return
	case " ${EVIDENCE_USERS:-$user} " in *" $user "*) ;; *) return ;; esac
	threads "$pid" >"$OUT/$pid.threads"
	for task in "/proc/$pid/task/"*; do echo "== ${task##*/}"; cat "$task/stack"; done 2>/dev/null | bounded >"$OUT/$pid.kernel"
	bounded <"/proc/$pid/status" >"$OUT/$pid.status"
	stacks "$pid" >"$OUT/$pid.stacks"
	state=$(awk -v pid="$pid" -F '\t' '$1 == pid { print $3 }' "$OUT/$pid.threads")
	kernel=$(awk -v pid="$pid" -F '\t' '$1 == pid && $5 != "0" && $5 != "" { print ", in the kernel at " $5 }' "$OUT/$pid.threads")
	where=$(inside "$pid" "$OUT/$pid.stacks")
	[ -n "$where" ] || where="no stack ($(tail -n 1 "$OUT/$pid.stacks"))"
	tell "$who (process $pid), main thread, state ${state:-?}$kernel: $where"
}

# show LINES...: in `ncclinsp diagnose`, from now on.
show() {
	printf '%s\n' "$@" >"$OUT/lines"
	jq -R -s -c --argjson id "$(get .id)" '{id: $id, gathered: (split("\n") | map(select(. != "")) | .[:6])}' <"$OUT/lines" |
		curl -sSf -m 5 --unix-socket "$SOCKET" -X PUT --data-binary @- -o /dev/null http://ncclinspd/v1/findings
}

get '([.whom[] | select(.pid) | [.pid, "rank \(.world_rank // .rank)"]] + [select(.pid) | [.pid, "what it is about"]]) |
	unique_by(.[0]) | .[:2][] | @tsv' >"$OUT/whom"
get 'select(.comm_id) | .comm_id' | while read -r comm; do
	curl -sSf -m 5 --unix-socket "$SOCKET" "http://ncclinspd/v1/ranks?comm=$comm&fields=pid,uid,rank,global_rank" | jq -r --slurpfile blamed <(cut -f 1 "$OUT/whom") --argjson uid "$(get .uid)" \
		'[.ranks[] | select(.pid and .uid == $uid and (.pid | IN($blamed[]) | not))][0] // empty |
		[.pid, "rank \(.global_rank // .rank), which waits"] | @tsv'
done >>"$OUT/whom" 2>/dev/null
while IFS=$'\t' read -r pid who; do
	look "$pid" "$who"
	[ "${#lines[@]}" -eq 0 ] || show "${lines[@]}"
done <"$OUT/whom"
(timeout 5 journalctl -k -o short-iso --since -10min 2>/dev/null || timeout 5 dmesg --ctime 2>/dev/null) | tail -c 262144 >"$OUT/kernel.log"
# Others' processes are nobody's business: a line is told that names one of these.
seen=$(grep -E 'Xid|Killed process|blocked for more than|segfault' "$OUT/kernel.log" | grep -wFf <(cut -f 1 "$OUT/whom" | grep .) | tail -n 1)
[ -z "$seen" ] || tell "kernel: $seen"
! command -v nvidia-smi >/dev/null || timeout -k 1 10 nvidia-smi -q 2>&1 | bounded >"$OUT/nvidia-smi"
tell "more of it in $OUT"
show "${lines[@]}"
printf '%s\n' "${lines[@]}"
ls -1d "$DIR"/*-*-* | sort | head -n -"${EVIDENCE_KEEP:-16}" | xargs -r -d '\n' rm -rf
