#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# NCCL 2.31, as it is played: kernels are timed in a job's first seconds or always, never in
# turns, no operation has another time than it took, and who sets the mask from outside is
# neither undone nor the cause of a finding.
. "$(dirname "$0")/lib.sh"
unset NCCLINSP_KERNELS	# as people have it

I=$B/ncclinsp
# job NCCL PASSES [LINE...]: two nodes, all kinds of operations, counted as NCCL does.
job() {
	cat <<-SCN
		nccl $1
		nodes 2
		processes 2
		seed 3
		stamps ring
		comm dp ranks 0-3 channels 2
		comm tp ranks 0,1 ranks 2,3 channels 2
		${3:-}
		loop $2
			compute 10ms
			AllReduce dp 64Ki float32 tag 7
			AllReduce tp 64Ki float32 symmetric
			group
				Send dp 4Ki float32 from 0 to 2
				Send dp 4Ki float32 from 2 to 0
			end
			${4:-ReduceScatter dp 8Ki float32}
		end
	SCN
}
play() {
	"$B/nccl-sim" --plugin "$PLUGIN" --truth "$T/truth" --asked "$T/asked" "$T/job.scn" 2>"$T/sim" &
	JOB=$!
	started+=("$JOB")
}
all_are() { api_is processes "[.processes[] | select(.state == \"live\") | $1] | length == 4 and all(.)"; }
fields=comm_id,derived,rank,func,seq,exec_ns,timing_source,stamps_refused,tag
told() { api "collectives?limit=10000&fields=$fields" | jq -c '.collectives[]'; }
# Each line: "comm rank func seq", what it took, and by which source that is told.
compare() {
	jq -r 'select(.seq != null) | ["\(.comm_id) \(.rank) \(.func) \(.seq)", .exec_ns] | @tsv' \
		"$T/truth" >"$T/true"
	told | jq -r 'select(.seq != null and (.derived | not)) | [(.comm_id | ltrimstr("0x")) + " \(.rank) \(.func) \(.seq)",
		.exec_ns // "-", .timing_source // "-"] | @tsv' >"$T/told"
	awk -F'\t' -v least="$1" 'NR == FNR { true_ns[$1] = $2; next }
		$3 != "kernel_gpu" { next }
		{ timed++; if (true_ns[$1] != $2) { print $1, $2, "took", true_ns[$1]; wrong++ } }
		END { print timed + 0 " of " FNR " timed, " wrong + 0 " wrong"
		      exit wrong || timed < least }' "$T/true" "$T/told" | tail -20
	return "${PIPESTATUS[0]}"
}
# Waits for the job, which is a child of this shell alone.
end() { wait "$JOB"; status=$?; wait_until 20 drained; }
ended() { [ "$status" -eq 0 ]; }
# What could be a fault of the job is one of two things that cannot be told apart: no more.
# A busy machine may well starve its threads.
nobody_is_accused() {
	api_is findings '[.findings[] | select(.severity != "info" and .kind != "proxy_starved")] == []'
}

# ---- first seconds, then never ----------------------------------------------------------

start_daemon --stall-min 300ms
job 2.31 600 >"$T/job.scn"
NCCLINSP_KERNELS="first 4s" play
check "kernels are timed from the first work on" wait_until 30 all_are \
	'.steering.kernels == "inside" and .steering.kernels_mode == "first 4s"'
put() { curl -sf --unix-socket "$SOCK" -X PUT -d "$1" http://ncclinspd/v1/level >"$T/answer"; }
put '{"level":"ops"}'
check "a level does not touch them" wait_until 20 all_are \
	'.level == "ops" and .steering.kernels == "inside"'
put '{"level":"default"}'
check "and are not any more after that time" wait_until 30 all_are \
	'.steering.kernels == "never" and (.level_reason | test("first seconds")) and .event_mask % 128 < 64'
check "ps says so" exits 0 "first seconds" "$I" ps --fields pid,level_reason
end
check "the job ends" ended
check "each that was timed took what is told" compare 400
check "the mask was changed once" jq -es \
	'group_by([.comm_id, .rank]) | all(.[]; map(.mask % 128 >= 64) as $on |
		[range(1; $on | length) | select($on[.] and ($on[. - 1] | not))] == [])' "$T/asked"
by_source() {
	api "collectives?limit=10000&fields=comm_name,func,arrival_source" | jq -e '
		[.collectives[] | select(.arrival_source == "initial_sync")]
		| length > 100 and all(.[]; .comm_name == "tp" and .func == "AllReduce")'
}
check "symmetric kernels, and no others, tell themselves who waited" by_source
check "the tag of the application is told" eval \
	'told | jq -es "map(select(.tag == \"0x0000000000000007\")) | length > 0 and all(.[]; .func == \"AllReduce\")"'
check "ops has a row of the tagged ones" exits 0 "^0x0000000000000007,AllReduce$" \
	"$I" ops -o csv --fields tag,func
check "nobody is accused" nobody_is_accused
stop_daemon

# ---- who sets it from outside -----------------------------------------------------------

start_daemon --stall-min 300ms
job 2.31 500 "ras 0 comm dp op 300
		ras 65535 comm dp op 400" >"$T/job.scn"
NCCLINSP_KERNELS=always play
check "what somebody else has set is taken over" wait_until 60 all_are \
	'.steering.source == "outside" and (.level_reason | test("another program"))'
end
check "the job ends" ended
check "no time is told that was not" compare 400
check "nobody is accused" nobody_is_accused
check "the mask was left as it was set" jq -es \
	'map(select(.comm == "dp") | .mask) | unique | map(select(. == 65535)) | length == 1' "$T/asked"
stop_daemon

start_daemon --stall-min 300ms
job 2.31 400 "ras 0 comm dp op 300
		hold 15s" >"$T/job.scn"
NCCLINSP_KERNELS=always play
is_told() { api_is findings '[.findings[] | select(.verdict == "SILENCED")] | length > 0'; }
check "recording that was switched off from outside is said to be" wait_until 60 is_told
check "nobody is accused" nobody_is_accused
kill "$JOB" 2>/dev/null; wait "$JOB"
stop_daemon

# ---- Broadcasts, of which NCCL tells nothing ----------------------------------------------

start_daemon --stall-min 300ms
job 2.31 300 "" "group
				Broadcast dp 64Ki float32 root 0
				Broadcast dp 64Ki float32 root 1
			end" >"$T/job.scn"
NCCLINSP_KERNELS=always play
end
check "a job of Broadcasts ends" ended
check "none of its operations has another's time" compare 0
check "nobody is accused" nobody_is_accused
stop_daemon

# ---- 2.29 to 2.30: they could keep it from ending -------------------------------------------

for version in 2.29 2.30; do
	start_daemon --stall-min 300ms
	sed "s/nccl 2.31/nccl $version/; s/ symmetric//; s/ tag 7//" "$T/job.scn" >"$T/older.scn"
	mv "$T/older.scn" "$T/job.scn"
	NCCLINSP_SETTLE=0 play
	end
	check "$version: AllGatherV, and the job ends" ended
	check "$version: no operation has another's time" compare 0
	check "$version: kernels are not timed any more" api_is processes \
		'all(.processes[]; .level_reason | test("several roots"))'
	stop_daemon
	sed -i "s/nccl $version/nccl 2.31/" "$T/job.scn"
done
done_testing
