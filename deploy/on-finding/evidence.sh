#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Of a critical finding: what its processes and their machine are at, gathered while they still are.  Of the processes that
# are to blame (two at most) and of one that waits for them: the threads, with where each sleeps in the kernel, and their
# stacks (py-spy, else gdb, else eu-stack, run as the process's own user); the kernel's log of the last ten minutes,
# nvidia-smi, and PyTorch's Flight Recorder where the job has a pipe for it.  All of it goes to a folder, and the lines that
# matter to `ncclinsp diagnose`.  Needs root, bash, jq and curl; takes a minute and 4 MiB at most.
#
#   EVIDENCE_DIR      where the folders are (/var/lib/ncclinsp-evidence); the newest EVIDENCE_KEEP (16) stay
#   EVIDENCE_SECONDS  for the stacks of a process (15)
#   EVIDENCE_USERS    whose processes are looked into, with blanks between (everybody's)
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

# as PID COMMAND...: as the process's own user, with none of our rights, and not for long.  Root's processes have rights of their own,
# and only who may trace looks into them.
as() {
	local pid=$1 uid gid rights=-all
	read -r uid gid < <(stat -c '%u %g' "/proc/$pid") || return 1
	[ "$uid" != 0 ] || rights=-all,+sys_ptrace
	shift
	timeout -k 1 "${EVIDENCE_SECONDS:-15}" setpriv --reuid="$uid" --regid="$gid" --clear-groups --no-new-privs --bounding-set=$rights --inh-caps=-all \
		env -i PATH="$PATH" HOME=/ LC_ALL=C "$@" </dev/null
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

# stacks PID: of all its threads, the first one's last.
stacks() {
	if command -v py-spy >/dev/null && as "$1" py-spy dump --nonblocking --pid "$1"; then
		:
	elif command -v gdb >/dev/null; then
		as "$1" gdb -nx -nh --batch -iex 'set auto-load off' -iex 'set debuginfod enabled off' -p "$1" \
			-ex 'set pagination off' -ex 'set print frame-arguments none' -ex 'thread apply all bt 24'
	elif command -v eu-stack >/dev/null; then
		as "$1" eu-stack -n 24 -p "$1"
	else
		echo 'none of py-spy, gdb and eu-stack is installed'
	fi 2>&1 | bounded
}

# inside PID FILE: the functions that its main thread is in, the innermost first.
inside() {
	awk -v main="$1" '
		/^Thread .*"MainThread"/ || /^Thread .*\(LWP / || /^TID / { on = /MainThread/ || index($0, "(LWP " main ")") || $2 == main ":"; n = 0; next }
		!on || n == 6 || NF < 2 { next }
		/^#/ { name = $2; if ($2 ~ /^0x/) name = $3 == "in" ? $4 : $3; names = names (n++ ? " < " : "") name; next }
		/^ +[^ ]+ \(.*\)$/ { sub(/^ +/, ""); names = names (n++ ? " < " : "") $0 }
		END { print names }' "$2"
}

# look PID WHO: into a process.
look() {
	local pid=$1 who=$2 user state where kernel
	user=$(stat -c %U "/proc/$pid" 2>/dev/null) || { tell "$who: process $pid is gone"; return; }
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

# record PID RANK: PyTorch's Flight Recorder writes its buffer where the job wants it.
record() {
	local pipe
	pipe=$(tr '\0' '\n' <"/proc/$1/environ" 2>/dev/null | sed -n 's/^TORCH_NCCL_DEBUG_INFO_PIPE_FILE=//p')
	pipe=${pipe:+$pipe$2.pipe}
	[ -p "/proc/$1/root/${pipe:-none}" ] || return
	as "$1" timeout 2 sh -c 'echo 1 >"$1"' sh "/proc/$1/root/$pipe" 2>/dev/null && tell "rank $2: the Flight Recorder was told to write (its pipe is $pipe)"
}

get '([.whom[] | select(.pid) | [.pid, "rank \(.world_rank // .rank)", .world_rank // .rank]] +
	[select(.pid) | [.pid, "what it is about", -1]]) | unique_by(.[0]) | .[:2][] | @tsv' >"$OUT/whom"
get 'select(.comm_id) | .comm_id' | while read -r comm; do
	ncclinsp --socket "$SOCKET" ranks --comm "$comm" -o json | jq -r --slurpfile blamed <(cut -f 1 "$OUT/whom") \
		'[.ranks[] | select(.pid and (.pid | IN($blamed[]) | not))][0] // empty | [.pid, "rank \(.global_rank // .rank), which waits", .global_rank // .rank] | @tsv'
done >>"$OUT/whom" 2>/dev/null
while IFS=$'\t' read -r pid who rank; do
	look "$pid" "$who"
	record "$pid" "$rank"
done <"$OUT/whom"
(journalctl -k -o short-iso --since -10min 2>/dev/null || dmesg --ctime 2>/dev/null) | tail -c 262144 >"$OUT/kernel.log"
seen=$(grep -E 'Xid|NVRM|Out of memory|oom-kill|mlx5|[Ll]ink is [Dd]own|hung_task|blocked for more than|Machine check' "$OUT/kernel.log" | tail -n 1)
[ -z "$seen" ] || tell "kernel: $seen"
! command -v nvidia-smi >/dev/null || timeout -k 1 10 nvidia-smi -q 2>&1 | bounded >"$OUT/nvidia-smi"
tell "more of it in $OUT"
printf '%s\n' "${lines[@]}" | tee "$OUT/lines"
printf '%s\0' "${lines[@]}" | jq -R -s -c --argjson id "$(get .id)" '{id: $id, gathered: (split("\u0000") | map(select(. != "")) | .[-6:])}' |
	curl -sSf -m 5 --unix-socket "$SOCKET" -X PUT --data-binary @- -o /dev/null http://ncclinspd/v1/findings
ls -1d "$DIR"/*-*-* | sort | head -n -"${EVIDENCE_KEEP:-16}" | xargs -r -d '\n' rm -rf
