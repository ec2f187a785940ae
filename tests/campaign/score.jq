# SPDX-License-Identifier: Apache-2.0
# One run -> one object: was the fault found, was the right one named, with the right cause, since
# when, and what was said besides?
#
# Input: {run: {kind, scenario, seed, seconds, rule, finds, verdicts}, waited_ns: the longest that a
# thread of it waited for a CPU, faults: what was injected, pids: of the run, by process, nodes:
# [{comms, findings}] of each daemon}.

# A process that died is soon forgotten, but not whom a finding names.  A number of a
# communicator that has no id of its own is never asked for.
def who($node; $f): $f.ranks[] as $rank
	| $node.comms[] | select(.comm_id == $f.comm_id)
	| .local_ranks[] | select(.rank == $rank) | .pid;
def away: if . < 0 then -. else . end;

. as $in
| ($in.faults | map(select(.at_mono_ns)) | sort_by(.at_mono_ns)[0]) as $fault
| ([$in.nodes[].comms[] | select(any(.local_ranks[]; .pid as $p | $in.pids | index($p)))
	| .comm_id] | unique) as $ours
| [$in.faults[].process | values | $in.pids[.]] | unique as $culprits
| [$in.nodes[] as $node | $node.findings[] | select(.comm_id as $c | $ours | index($c))
	| . + {named: [(.whom[].pid | values), who($node; .)] | unique}] as $all
| [$all[] | select(.grade == "found")] as $said
| [$said[] | select($fault and .found_mono_ns >= $fault.at_mono_ns)] as $after
| [$after[] | select(.kind | test($in.run.finds))] as $found
| [$found[] | select(
	if $in.run.rule == "all" then true
	elif .named == ($in.pids | sort) then false
	elif $in.run.rule == "has" then .named - $culprits != .named
	else .named != [] and .named - $culprits == [] end)] as $named
| [$named[] | select((.verdict // "") | test($in.run.verdicts))] as $caused
| ($named != [] and ($in.run.rule != "each" or ([$named[].named[]] | unique) == $culprits)) as $right
| [$after[] | select(.ranks != [] and $in.run.rule != "all")
	| select((.verdict // "") | test("^(UNKNOWN|OUTSIDE)$") | not)
	| select(.named - $culprits == .named)] as $wrong
# What is merely told is no alarm, nor are records that a daemon without CPU lost.  A thread without
# CPU is one where the kernel did not count half of that on any thread.  Who says that it cannot
# tell accuses nobody.
| def is_alarm: .severity != "info" and .kind != "loss" and
	(.kind != "proxy_starved" or $in.waited_ns <
		(.evidence | (.share // .cpu_wait_share // 0) / 2 * .window_ns));
(if $fault.kind == "starve" then $wrong - [$wrong[] | select(.kind == "proxy_starved")]
	else $said - $after + $wrong end) as $beside
| [$beside[] | select(is_alarm)] as $alarms
| [$all[] | select($fault == null and .grade == "suspected" and is_alarm)] as $suspected
# Who names all accuses nobody.
| ($caused == [] and any($found[]; ((.verdict // "") | test("^(UNKNOWN|ELSEWHERE|SLOWER)$"))
	and (.ranks == [] or $in.run.rule == "all" or .named == ($in.pids | sort)))) as $untold
| {run: $in.run, $fault, injected: ($fault != null), found: ($found != []), $right,
   cause: ($right and $caused != []), $untold,
   over: ($in.run.rule != "over" or all($caused[]; .active | not)),
   busy: ($in.waited_ns > 0.1 * $in.run.seconds * 1e9), waited_ns: $in.waited_ns,
   alarms: ($alarms | length), suspected: ($suspected | length),
   onset_ns: (if $caused == [] then null
	      else [$caused[] | .since_mono_ns - $fault.at_mono_ns | away] | min end),
   took_ns: (if $found == [] then null
	     else ([$found[].found_mono_ns] | min) - $fault.at_mono_ns end),
   said: [$all[] | {kind, grade, severity, verdict, ranks, named, comm_name, text, evidence,
		    after_ns: ((.found_mono_ns // .since_mono_ns // 0) - ($fault.at_mono_ns // 0))}]}
