#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Completion in the shells themselves: commands, options, their words, and what runs now.
. "$(dirname "$0")/lib.sh"

[ -x "$B/nccl-sim" ] && [ -x "$B/ncclinspd" ] || skip_all "the simulator or the daemon is not built"

I=$B/ncclinsp
PATH=$(cd "$B" && pwd):$PATH

"$I" completion >"$T/out" 2>&1
check "a shell must be named" test $? -eq 2
"$I" completion tcsh >"$T/out" 2>&1
check "and known" test $? -eq 2

start_daemon
cat >"$T/job.scn" <<-SCN
nodes 1
processes 2
seed 3
comm dp ranks 0-1 channels 2
loop 5
	AllReduce dp 1Mi float32
end
SCN
check "a job runs and ends" sim "$T/job.scn"
wait_until 5 drained
"$I" ps --no-header -o csv --fields pid | sort -u >"$T/pids"
check "there are pids to complete" test "$(wc -l <"$T/pids")" -eq 2

# of_SHELL words...: what can stand in the place of the last word, one a line.
of_bash() {
	cat >"$T/drive.bash" <<-'EOF'
	source <(ncclinsp completion bash)
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
	_ncclinsp
	printf '%s\n' "${COMPREPLY[@]}"
	EOF
	bash --norc "$T/drive.bash" "$@"
}

of_fish() {
	HOME=$T XDG_CONFIG_HOME=$T XDG_DATA_HOME=$T fish --no-config -c \
		'ncclinsp completion fish | source; complete -C "$argv"' "$*" | cut -f 1
}

# compadd shows what the function found; the completion system itself needs a terminal.
of_zsh() {
	cat >"$T/drive.zsh" <<-'EOF'
	compdef() { :; }
	compset() { :; }
	compadd() { typeset -a all=("${(@P)argv[-1]}"); print -rl -- ${(M)all:#$cur*} }
	_files() { print -rl -- $cur* }
	source <(ncclinsp completion zsh)
	words=("$@") CURRENT=$#
	_ncclinsp
	EOF
	zsh -f "$T/drive.zsh" "$@"
}

# gives WANTED... -- words...: exactly these, in whichever order.
gives() {
	local wanted=()
	while [ "$1" != -- ]; do wanted+=("$1"); shift; done
	shift
	diff <(printf '%s\n' "${wanted[@]}" | grep . | sort) <("of_$SHELL_NAME" "$@" | grep . | sort)
}

# What is asked for while people type has two seconds, which a busy machine may not give.
asks() { wait_until 30 gives "$@" || gives "$@"; }

all_options() { "$I" "$1" --help | grep -o -- '--[a-z-]*' | sort -u; }

for SHELL_NAME in bash fish zsh; do
	if ! command -v "$SHELL_NAME" >/dev/null; then
		skip "$SHELL_NAME completes" "$SHELL_NAME is not here"
		continue
	fi
	check "$SHELL_NAME: commands" gives ps peers -- ncclinsp p
	check "$SHELL_NAME: an argument's words" gives bash fish zsh -- ncclinsp completion ""
	check "$SHELL_NAME: an argument that a command lists" asks STEADY -- ncclinsp explain STE
	check "$SHELL_NAME: an option's words" gives json jsonl -- ncclinsp ops --output j
	check "$SHELL_NAME: those of its letter" gives json jsonl -- ncclinsp ops -o j
	check "$SHELL_NAME: the command's own fields" asks age age_ns -- ncclinsp inflight --fields age
	check "$SHELL_NAME: pids that are there" asks $(cat "$T/pids") -- ncclinsp ops -p ""
	check "$SHELL_NAME: communicators that are there" asks dp -- ncclinsp ops --comm d
	check "$SHELL_NAME: what can be repeated" gives ps peers -- ncclinsp watch p
	check "$SHELL_NAME: options of what is repeated" gives --by-rank -- ncclinsp watch ops --by
	check "$SHELL_NAME: the node, and pids" asks node $(cat "$T/pids") -- ncclinsp mark ""
	check "$SHELL_NAME: no job where none is called anything" asks -- ncclinsp ps -j ""
	check "$SHELL_NAME: levels where a pid could stand" asks off ops -- ncclinsp level o
	check "$SHELL_NAME: nothing where nobody knows" gives -- ncclinsp ps -n ""
	for c in ps diagnose check; do
		check "$SHELL_NAME: all options of $c" gives $(all_options $c) -- ncclinsp $c --
	done
done
done_testing
