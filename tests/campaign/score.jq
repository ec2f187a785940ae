# SPDX-License-Identifier: Apache-2.0
# One run -> one object: was the fault found, was the right one named, what was said besides?
#
# Input: {run: {kind, scenario, seed, rule, finds, verdicts}, fault: what was injected first, or
# null, pids: of the run, by process, nodes: [{comms, findings}] of each daemon}.

# A number of a communicator that has no id of its own is never asked for.
def who($node; $f): $f.ranks[] as $rank
	| $node.comms[] | select(.comm_id == $f.comm_id)
	| .local_ranks[] | select(.rank == $rank) | .pid;

# Told by the kernel's own count to have waited for a CPU for at least half of what it cost.
def is_proven: .evidence.cpu_wait_share != null and .evidence.cpu_wait_share >= .evidence.share / 2;

. as $in
| ([$in.nodes[].comms[] | select(any(.local_ranks[]; .pid as $p | $in.pids | index($p)))
	| .comm_id] | unique) as $ours
| (if $in.fault.process == null then null else $in.pids[$in.fault.process] end) as $culprit
| [$in.nodes[] as $node | $node.findings[] | select(.comm_id as $c | $ours | index($c))
	| . + {named: [who($node; .)] | unique}] as $said
| [$said[] | select($in.fault and .found_mono_ns >= $in.fault.at_mono_ns)] as $after
| [$after[] | select(.kind | test($in.run.finds))] as $found
| [$found[] | select((.verdict // "") | test($in.run.verdicts))
	| select(if $in.run.rule == "all" then true
		 elif $in.run.rule == "one" then .named == [$culprit]
		 else .named | index($culprit) end)] as $right
| [$after[] | select(.ranks != [] and $in.run.rule != "all")
	| select(.named | index($culprit) | not)] as $wrong
# What is merely told is no alarm.  Threads without CPU, and records lost by a daemon without,
# are real where nobody injected them: the machine that all of this runs on has too few.
| (($said - $after + $wrong)
	| map(select(.severity != "info" and .kind != "proxy_starved" and .kind != "loss"))) as $alarms
| [$said[] | select(.kind == "proxy_starved" and $in.fault.kind != "starve")] as $starving
# Who names all accuses nobody.
| ($right == [] and any($found[]; ((.verdict // "") | test("^(UNKNOWN|ELSEWHERE|SLOWER)$"))
	and (.ranks == [] or $in.run.rule == "all" or .named == ($in.pids | unique)))) as $untold
| {run: $in.run, fault: $in.fault, injected: ($in.fault != null), found: ($found != []),
   right: ($right != []), $untold,
   starved: ($starving != []), proven: ($starving != [] and all($starving[]; is_proven)),
   alarms: ($alarms | length),
   took_ns: (if $found == [] then null
	     else ([$found[].found_mono_ns] | min) - $in.fault.at_mono_ns end),
   said: [$said[] | {kind, severity, verdict, ranks, named, comm_name, text, evidence,
		     after_ns: (.found_mono_ns - ($in.fault.at_mono_ns // 0))}]}
