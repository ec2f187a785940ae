#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `make screenshots` runs: pictures of the screens of ncclinsp top, as a terminal
# shows them, beside two simulated jobs: one with a rank that comes late, one that hangs.
#
#   tests/screenshots.sh DIRECTORY      B=build COLUMNS_BY_LINES=120x36 THEME=black
. "$(dirname "$0")/system/lib.sh"

out=${1:?a directory for the pictures}
size=${COLUMNS_BY_LINES:-120x36}
theme=${THEME:-black}
for tool in tmux aha chromium pngquant; do
	command -v "$tool" >/dev/null || { echo "$tool is needed: apt-get install $tool"; exit 1; }
done
mkdir -p "$out"
unset COLUMNS NO_COLOR TMUX
TM=(tmux -S "$T/tmux" -f /dev/null)

screen() { "${TM[@]}" capture-pane -p -t top; }
shows() { screen | grep -Eq -- "$1"; }
sees() { wait_until 60 shows "$1" || { screen; echo "not seen: $1"; exit 1; }; }

start_job() {
	SLURM_JOB_ID=$1 setsid "$B/nccl-sim" --plugin "$PLUGIN" "$2" >/dev/null 2>&1 &
	jobs+=($!)
}

end_all_of_it() {
	"${TM[@]}" kill-server 2>/dev/null
	for pid in "${jobs[@]}"; do kill -- "-$pid" 2>/dev/null; done
	finish
}
jobs=()
trap end_all_of_it EXIT

# picture NAME: what the terminal shows now, with its colours.
picture() {
	local columns=${size%x*} lines=${size#*x}
	local options=()
	[ "$theme" = black ] && options=(--black)
	# Default colours right after a reset would end a bar, as aha reads them; and its black
	# is a grey, which cannot be read on yellow.
	"${TM[@]}" capture-pane -N -e -p -t top |
		sed 's/\(\x1b\[0[;0-9]*m\)\x1b\[39m\x1b\[49m/\1/g' | aha "${options[@]}" --title "$1" |
		sed -e 's|color:dimgray;background-color:yellow|color:black;background-color:yellow|' \
			-e 's|</head>|<style>body{margin:8px}pre{margin:0;font:13px/16px "DejaVu Sans Mono"}</style></head>|' \
		>"$T/$1.html"
	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$T/chromium" \
		--window-size=$((columns * 783 / 100 + 18)),$((lines * 16 + 18)) \
		--screenshot="$T/$1.png" "file://$T/$1.html" >/dev/null 2>&1
	[ -s "$T/$1.png" ] || { echo "chromium made no picture of $1"; exit 1; }
	pngquant --force --output "$out/$1.png" 32 "$T/$1.png" || exit 1
	echo "$out/$1.png"
}

start_daemon --straggler-window 5
start_job 711 "$TOP/tests/scenarios/training.scn"
start_job 712 "$TOP/tests/scenarios/stuck-step.scn"
found() { api_is "findings?grade=found" '[.findings[] | select(.active) | .kind] | contains(["straggler", "stall"])'; }
wait_until 120 found || { echo "the daemon has not found what is wrong in 120 s"; exit 1; }

"${TM[@]}" new-session -d -s top -x "${size%x*}" -y "${size#*x}" \
	"env LC_ALL=C.UTF-8 TERM=screen-256color $B/ncclinsp top -d 1; exec sleep 1000"
sees "WAIT\(%\) +[0-9]"
sleep 20		# for a plot
for screen in 6:jobs 1:ranks 2:operations 3:peers 4:in-flight 5:findings; do
	"${TM[@]}" send-keys -t top "${screen%%:*}"
	sleep 5
	sees "^.(RANK|JOB|COMM|SEVERITY)|^ *AGE"
	picture "${screen#*:}"
done
