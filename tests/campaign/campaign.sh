#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Faults of all kinds, and clean runs, of jobs that nccl-sim plays to real daemons:
# what is found, what is named right, what is said without cause.
#
#     campaign.sh [-n RUNS] [-c RUNS] [-j JOBS] [-s SECONDS] [-x SEED] [-k KINDS]
#                 [-w SCENARIOS] [-o FILE] [-r] [-b]
#
# RUNS of each kind of fault in each scenario (-n 3), and of each kind of noise (-c 8), each
# with a seed of its own from SEED (drawn anew) on and SECONDS (18) long, JOBS at a time (8),
# watched by the same two daemons, one per node.  KINDS and SCENARIOS are regular expressions;
# FILE gets one JSON object per run (score.jq).  -r: in real time, by daemons with the settings
# that people have.  -b: fails where a figure is beyond its bound (table.jq).  One run of seed
# S comes again by -x S -n 1 -c 1 -k '^KIND$' -w SCENARIO.
. "$(dirname "$0")/../system/lib.sh"
HERE=$TOP/tests/campaign

runs=3 clean=8 jobs=8 seconds=18 kinds=. scenarios=. out=$T/runs bounds=false real=false
first_seed=$((RANDOM * 32768 + RANDOM))
# Times of a daemon for people, divided by some 30: everything below takes seconds, not minutes.
daemon_options=(--stall-min 300ms --straggler-window 2s)
while getopts n:c:j:s:x:k:w:o:rb option; do
	case $option in
	n) runs=$OPTARG ;;
	c) clean=$OPTARG ;;
	j) jobs=$OPTARG ;;
	s) seconds=$OPTARG ;;
	k) kinds=$OPTARG ;;
	w) scenarios=$OPTARG ;;
	o) out=$OPTARG ;;
	x) first_seed=$OPTARG ;;
	r) real=true daemon_options=() ;;
	b) bounds=true ;;
	*) exit 2 ;;
	esac
done

# Per scenario: ranks; communicators that all ranks are in one of, with operations per second;
# where ReduceScatter and AllGather alternate; the links between nodes.
declare -A ranks=([dp]=4 [nested]=8 [moe]=4 [nodes]=8 [root]=4 [pipe]=4)
declare -A comms=([dp]="world:64" [nested]="tp:74 dp:37 world:18" [moe]="world:62 ep:62"
		  [nodes]="tp:62 dp:62" [root]="world:64" [pipe]="stages:275")
declare -A pairs=([dp]="world:64" [nested]="dp:37" [moe]="world:62" [nodes]="dp:62" [root]="world:64"
		  [pipe]="stages:275")
declare -A links=([nested]="0:4 5:1 2:6 7:3" [moe]="1:2 3:0" [nodes]="2:4 3:5 6:0 7:1")
declare -A period_us=([dp]=31000 [nested]=54000 [moe]=32000 [nodes]=32000 [root]=31000 [pipe]=87000)

# KIND|SCENARIOS|WHO|FINDINGS|VERDICTS|FAULT[|SECONDS], in runs of so many SECONDS at least.  WHO:
# the finding names `one` rank, the right one; it `has` it among others where they cannot be told
# apart; there is one for `each` of several; or it is about `all`.  In FAULT (\n is a line): R and
# S ranks, C communicator, K operation, P the first of a pair and Q its communicator, A and B the
# ends of a link, LATEn: n percent of an iteration, START and Kn the operations of Q that are posted
# half a second after the start (in real time a minute: kernels are timed then) and n seconds.
faults='
late 1 %|dp nested moe nodes|one|^straggler$|.|late rank R by LATE1 comm Q every 2 from START
late 2 %|dp nested moe nodes|one|^straggler$|.|late rank R by LATE2 comm Q every 2 from START
late 3 %|dp nested moe nodes|one|^straggler$|.|late rank R by LATE3 comm Q every 2 from START
late 5 %|dp nested moe nodes|one|^straggler$|.|late rank R by LATE5 comm Q every 2 from START
late 20 %|dp nested moe nodes|one|^straggler$|.|late rank R by LATE20 comm Q every 2 from START
late 50 %|dp nested moe nodes|one|^straggler$|.|late rank R by LATE50 comm Q every 2 from START
late in bursts|dp nested moe nodes|one|^straggler$|.|late rank R by LATE40 comm Q every 50 for 10 from START
late two|dp moe|each|^straggler$|.|late rank R by LATE10 comm Q every 2 from START\nlate rank S by LATE10 comm Q every 2 from START
late two unlike|dp moe|each|^straggler$|.|late rank R by LATE5 comm Q every 2 from START\nlate rank S by LATE20 comm Q every 2 from START
late evenly|dp moe|one|^straggler$|.|late rank 1 by LATE4 comm Q every 2 from START\nlate rank 2 by LATE8 comm Q every 2 from START\nlate rank 3 by LATE12 comm Q every 2 from START
late 1 %, evenly|dp moe|one|^straggler$|.|late rank 1 by 100us comm Q every 2 from START\nlate rank 2 by 200us comm Q every 2 from START\nlate rank 3 by LATE1 comm Q every 2 from START
late, repaired|dp moe|over|^straggler$|^STEADY$|late rank R by LATE20 comm Q every 2 from 20 until 480
late host|dp nested moe nodes|one|^straggler$|.|late rank R by LATE100 host comm Q every 2 from START
slow link|nested moe nodes|has|^(slow_peer\|straggler)$|.|slow link A to B by 6x from 60
slow stage|pipe|one|^straggler$|^STEADY$|late rank R by LATE2 comm Q from START|45
everybody slower|dp moe|all|^slow_compute$|^|late rank 0 by LATE30 comm Q every 2 from K200\nlate rank 1 by LATE30 comm Q every 2 from K200\nlate rank 2 by LATE30 comm Q every 2 from K200\nlate rank 3 by LATE30 comm Q every 2 from K200|340
everybody slower, young|dp|all|^slow_compute$|^|late rank 0 by LATE30 comm Q every 2 from K28\nlate rank 1 by LATE30 comm Q every 2 from K28\nlate rank 2 by LATE30 comm Q every 2 from K28\nlate rank 3 by LATE30 comm Q every 2 from K28|60
slow channel|nested moe nodes|has|^(slow_peer\|straggler)$|.|slow channel 0 rank A by 6x comm Q from 60
starved proxy|nested moe nodes|has|^proxy_starved$|^|starve rank A by STARVE comm Q every 8 from 40
stuck network|nested moe nodes|one|^stall$|^LINK$|stuck rank A comm Q op P state net
stuck GPU|nested moe nodes|has|^stall$|^GPU_STUCK$|stuck rank A comm Q op P state gpu
no room|nested moe|all|^stall$|^NO_ROOM$|stuck rank A comm Q op P state peer
frozen GPU|dp nested moe nodes|has|^stall$|^(GPU_STUCK\|NOT_RUNNING)$|freeze rank R comm C op K
never joins|dp nested moe nodes|one|^desync$|^NOT_JOINED$|absent rank R comm C op K
order|dp nested moe nodes|has|^desync$|^ORDER_MISMATCH$|swap rank R comm Q op P
size|dp nested moe nodes|has|^desync$|^METADATA_MISMATCH$|mismatch rank R comm Q op P count 1000
type|dp nested moe nodes|has|^desync$|^METADATA_MISMATCH$|mismatch rank R comm Q op P datatype float32
other root|root|has|^desync$|^METADATA_MISMATCH$|mismatch rank R comm Q op P root 1
absent of root|root|one|^desync$|^NOT_JOINED$|absent rank R comm C op K
stopped|dp nested moe nodes|one|^(desync\|stall)$|^STOPPED$|signal STOP rank R
deadlock|nested moe|has|^desync$|^COMM_DEADLOCK$|swap rank R DEADLOCK
killed|dp nested moe nodes|one|^(died\|stall)$|^|kill process R comm C op K
paused|dp nested moe nodes|all|^stall$|^OUTSIDE$|pause comm C op K
'

# What is uneven without being wrong; \n is a line.
noises='
steady|dp nested moe nodes root pipe|
jitter|dp nested moe nodes root pipe|compute 5ms jitter 90% rare 20ms every 3
checkpoints|dp nested moe nodes|idle 1200ms jitter 20%
evaluation|dp nested moe nodes|loop 30\ncompute 3ms jitter 10%\nAllReduce COMM 1 float32\nend
uneven work|dp nested moe nodes|loop 40\ncompute 2ms jitter 60%\nAlltoAll COMM 64Ki bfloat16 uneven 80% inplace\nend
'
declare -A noise_comm=([pipe]=stages [dp]=world [nested]=world [moe]=ep [nodes]=dp [root]=world)

# ---- chance, the same for the same seed ---------------------------------------
chance=0
below() {
	chance=$(((chance * 1103515245 + 12345) & 0x7fffffff))
	drawn=$(((chance >> 8) % $1))
}
one_of() {
	below $#
	shift "$drawn"
	drawn=$1
}

# ---- scenarios ----------------------------------------------------------------
# The operation that is posted 1.5 to 2.5 s after the start, $1 per second.
draw_op() {
	below 1000
	drawn=$(($1 * (1500 + drawn) / 1000))
}

fault_line() {
	local scenario=$1 text=$2 r s c k q p a=0 b=0 percent
	below "${ranks[$scenario]}"
	r=$drawn
	below "$((ranks[$scenario] - 1))"
	s=$(((r + 1 + drawn) % ranks[$scenario]))
	one_of ${comms[$scenario]}
	c=$drawn
	draw_op "${c#*:}"
	k=$drawn
	q=${pairs[$scenario]}
	draw_op "${q#*:}"
	p=$((drawn / 2 * 2))
	if [ -n "${links[$scenario]:-}" ]; then
		one_of ${links[$scenario]}
		a=${drawn%:*} b=${drawn#*:}
	fi
	if [ "$scenario" = nested ]; then
		text=${text//DEADLOCK/comm dp op $p comm world op $((p / 2))}
	else
		text=${text//DEADLOCK/comm ep op $((p + 1)) comm world op $p}
	fi
	while [[ $text =~ LATE([0-9]+) ]]; do
		percent=${BASH_REMATCH[1]}
		text=${text//LATE$percent /$((period_us[$scenario] * percent / 100))us }
	done
	# Launched an iteration ahead: what is shorter is over when the kernel begins.
	text=${text//STARVE/$((period_us[$scenario] + 10000))us}
	text=${text// R / $r } text=${text/% R/ $r} text=${text// S / $s } text=${text// A / $a } text=${text// B / $b }
	text=${text// C / ${c%:*} } text=${text// Q / ${q%:*} }
	text=${text//START/$($real && echo "$((${q#*:} * 60))" || echo 20)}
	while [[ $text =~ K([0-9]+) ]]; do
		text=${text//K${BASH_REMATCH[1]}/$((${q#*:} * BASH_REMATCH[1]))}
	done
	text=${text/% K/ $k} text=${text// P/ $p}
	echo "$text"
}

# write_scenario NUMBER SCENARIO FAULT NOISE
write_scenario() {
	local noise fault
	printf -v noise '%b' "${4//COMM/${noise_comm[$2]}}"
	[[ $3 = signal* ]] && fault= || printf -v fault '%b' "$3"
	awk -v fault="$fault" -v noise="$noise" '
		$0 == "@fault@" { print fault; next }
		$0 == "@noise@" { print noise; next }
		{ print }' "$HERE/$2.scn" >"$T/$1.scn"
}

# ---- runs -----------------------------------------------------------------------
# plan: one line per run, KIND|SCENARIO|WHO|FINDINGS|VERDICTS|FAULT|NOISE
plan() {
	local kind where who finds verdicts fault noise scenario least i
	while IFS='|' read -r kind where who finds verdicts fault least; do
		[ "${least:-0}" -le "$seconds" ] || continue
		for scenario in $where; do
			for ((i = 0; i < runs; i++)); do
				echo "$kind|$scenario|$who|$finds|$verdicts|$fault|"
			done
		done
	done < <(grep . <<<"${faults//\\|/@}")
	while IFS='|' read -r kind where noise; do
		for scenario in $where; do
			for ((i = 0; i < clean; i++)); do
				echo "clean: $kind|$scenario|none|.|.||$noise"
			done
		done
	done < <(grep . <<<"$noises")
}

shm_of() { [ "$1" = nodes ] && echo "$SHM/%n" || echo "$SHM/0"; }

# start_run NUMBER SCENARIO KIND: kernels are not timed before a job is half a minute old, if not told else.
start_run() {
	local kernels=
	$real || [[ $3 != late* && $3 != slow* && $3 != starved* && $3 != clean* ]] ||
		kernels=always
	NCCLINSP_KERNELS=$kernels nice -n 5 "$B/nccl-sim" --plugin "$PLUGIN" --seed "$1" --shm-dir "$(shm_of "$2")" \
		--injected "$T/$1.injected" "$T/$1.scn" 2>"$T/$1.log" &
	sims+=($!)
	started+=($!)
}

pids_of() { sed -n 's/.*process [0-9]* is pid //p' "$T/$1.log"; }

# send_signal NUMBER FAULT: two seconds after the start, to a process of one rank.
send_signal() {
	local pid
	pid=$(pids_of "$1" | sed -n "$((${2##* } + 1))p")
	kill -"$(cut -d' ' -f2 <<<"$2")" "$pid"
	jq -c -n --argjson process "${2##* }" --arg at "$(awk '{ printf "%.0f", $1 * 1e9 }' /proc/uptime)" \
		'{kind: "signal", $process, at_mono_ns: ($at | tonumber)}' >"$T/$1.injected"
}

# The longest that a thread of the run could have run and got no CPU, by the kernel's count.
waited_ns() {
	local pid
	for pid in $(pids_of "$1"); do cat /proc/"$pid"/task/*/schedstat; done 2>/dev/null |
		awk '$2 > most { most = $2 } END { printf "%.0f\n", most }'
}

start_daemons() {
	local node
	daemons=()
	for node in 0 1; do
		mkdir -p "$SHM/$node"
		SOCK=$T/$node.sock SHM=$SHM/$node start_daemon "${daemon_options[@]}"
		daemons+=("$DAEMON_PID")
	done
}

# What daemon $1 says of everything.
ask_node() {
	SOCK=$T/$1.sock api comms >"$T/comms"
	SOCK=$T/$1.sock api findings >"$T/findings"
	jq -c -n --slurpfile c "$T/comms" --slurpfile f "$T/findings" \
		'{comms: ($c[0].comms // []), findings: ($f[0].findings // [])}'
}

score() {	# NUMBER PLAN-LINE
	local kind scenario who finds verdicts rest
	IFS='|' read -r kind scenario who finds verdicts rest <<<"$2"
	pids_of "$1" >"$T/pids"
	head -n 100 "$T/$1.injected" >"$T/faults"	# the first ones of each tell all
	jq -c -n --slurpfile faults "$T/faults" --slurpfile pids "$T/pids" --slurpfile nodes "$T/nodes" \
		--arg kind "$kind" --arg scenario "$scenario" --argjson seed "$1" --arg rule "$who" \
		--argjson seconds "$seconds" --argjson waited_ns "$(cat "$T/$1.waited")" \
		--arg finds "${finds//@/|}" --arg verdicts "${verdicts//@/|}" \
		'{run: {$kind, $scenario, $seed, $seconds, $rule, $finds, $verdicts}, $waited_ns,
		  $faults, $pids, $nodes}' | jq -c -f "$HERE/score.jq" >>"$out"
}

stop_all() {
	local pid
	for pid in "${sims[@]}"; do
		pkill -9 -P "$pid"
		kill -9 "$pid"
	done 2>/dev/null
	kill "${daemons[@]}"
	wait "${sims[@]}" "${daemons[@]}" 2>/dev/null
	started=()
	rm -rf "${SHM:?}"/[01] "$T/state"
}

batch() {	# PLAN-LINE...
	local line kind scenario who finds verdicts fault noise number=$seed
	start_daemons
	sims=()
	for line; do
		IFS='|' read -r kind scenario who finds verdicts fault noise <<<"$line"
		chance=$((number * 7919))
		[ -z "$fault" ] || fault=$(fault_line "$scenario" "$fault")
		echo "$fault" >"$T/$number.fault"
		write_scenario "$number" "$scenario" "$fault" "$noise"
		start_run "$number" "$scenario" "$kind"
		number=$((number + 1))
	done
	sleep 2
	number=$seed
	for line; do
		[[ $line != *\|signal* ]] || send_signal "$number" "$(cat "$T/$number.fault")"
		number=$((number + 1))
	done
	sleep "$((seconds - 2))"
	for ((number = seed; number < seed + $#; number++)); do waited_ns "$number" >"$T/$number.waited"; done
	{ ask_node 0; ask_node 1; } >"$T/nodes"
	stop_all
	for line; do
		score "$seed" "$line"
		seed=$((seed + 1))
	done
}

echo "# seeds from $first_seed on (-x $first_seed)"
seed=$first_seed
: >"$out"
mapfile -t lines < <(plan | awk -F'|' -v k="$kinds" -v w="$scenarios" '$1 ~ k && $2 ~ w')
for ((at = 0; at < ${#lines[@]}; at += jobs)); do
	batch "${lines[@]:at:jobs}"
	[ ! -t 2 ] || printf '\r%d of %d' "$((seed - first_seed))" "${#lines[@]}" >&2
done
jq -r -s -f "$HERE/table.jq" "$out" | tee "$T/table"
! $bounds || ! grep -q "BEYOND$" "$T/table"
