# SPDX-License-Identifier: Apache-2.0
# CUDA's events lie 4 to 8 us outside the kernel.  Only times by the GPU's stamps are compared.
# Of sends and receives the end of one send alone is stamped: its time is no longer than that
# of all.  NCCL 2.29 and later tell no more of a Broadcast than that it was called.  Stamps that
# cannot be true are refused by the daemon, and their operations have no such time: NCCL 2.28
# finds the wrong ones after AlltoAlls with a send to oneself.
#
# Input: the lines of truth.* (times.c) of all ranks; $rows: the daemon's answer.
# Output: {rows: one per span and size, bad: sentences}.

# A moment of the GPU is no later than told, and earlier by no more than the error.
def outside($at; $error; $span):
	$at != null and $error != null and ($at < $span.after or $at - $error > $span.before);
def allowed($a): [10000, 0.02 * $a] | max;
def transfers: any(.rows[]; .peer != null);
def called: all(.rows[]; . != null and .channels == null);
def near: (.event_ns - .exec_ns) as $d | $d >= -allowed(.event_ns) and (transfers or $d <= allowed(.event_ns));
def median: sort | .[length / 2 | floor];

# The operations of each process, each with its span; then the times of the spans.
def truth:
	reduce .[] as $l ({ pid: null, span: null, waiting: [], done: [] };
		if $l.pid then .pid = $l.pid
		elif $l | has("span") then
			.spans += 1 | .span = $l + { pid, id: .spans, ops: [] }
			| .done += [.span]
			| if $l.span then .waiting += [(.done | length) - 1] else . end
		elif $l | has("event_ns") then
			reduce range($l.event_ns | length) as $i (.;
				.done[.waiting[$i]] += { event_ns: $l.event_ns[$i],
					after: $l.after_mono_ns, before: $l.before_mono_ns })
			| .waiting = []
		else .done[(.done | length) - 1].ops += [$l] end)
	| .done;

# What makes an operation, but for its turn among those that are alike.
def alike: [.pid, .func, .peer, .bytes] | tojson;
def numbered: group_by(alike) | map(to_entries | map({ key: "\(.value | alike) \(.key)", value: .value })) | add // [];

truth as $spans
| ([$rows[].collectives[] | select(.derived | not)] | sort_by(.enqueued_mono_ns)
	| numbered | from_entries) as $told
| [$spans[] | . as $s | .ops[] + { pid: $s.pid, span_id: $s.id }] | numbered
| map(.value + { row: $told[.key] })
| . as $ops
| (reduce $ops[] as $o ({}; .["\($o.span_id)"] += [$o.row])) as $by_span
| [$spans[] | select(.span) | . + { rows: $by_span["\(.id)"] }
	| . + { exec_ns: [.rows[] | select(.timing_source == "kernel_gpu")
		| .batch.exec_ns // .exec_ns] | max }]
| group_by([.span, .bytes])
| map({
	span: .[0].span, bytes: .[0].bytes, n: length,
	event_ns: (map(.event_ns) | median),
	exec_ns: (map(.exec_ns) | median),
	difference_ns: (map(select(.event_ns and .exec_ns) | .event_ns - .exec_ns) | median),
	worst_ns: (map(select(.event_ns and .exec_ns) | .event_ns - .exec_ns | fabs) | max),
	near: (map(select(.event_ns and .exec_ns and near)) | length),
	refused: (map(select(.exec_ns == null and any(.rows[]; .stamps_refused > 0))) | length),
	called: (map(select(called)) | length),
	unstamped: (map(select(.exec_ns == null and transfers and all(.rows[]; .stamps_refused == 0))) | length),
	untimed: (map(select(.exec_ns == null and (transfers or called | not) and
		all(.rows[]; .stamps_refused == 0))) | length),
	outside: (map(. as $s | select(any(.rows[]; outside(.gpu_start_mono_ns; .gpu_clock_error_ns; $s) or
		outside(.gpu_stop_mono_ns; .gpu_clock_error_ns; $s)))) | length),
	unknown: (map(.rows[] | select(. == null)) | length),
})
| map(. + { verdict: (if .unknown > 0 then "operations are missing"
	elif .untimed > 0 then "\(.untimed) without a time"
	elif .outside > 0 then "\(.outside) at a time that cannot be"
	elif .event_ns == null then "not compared"
	elif .called == .n then "called only"
	elif .unstamped == .n then "not stamped"
	elif .near * 2 <= .n - .refused and .near < .n - .refused then
		"\(.n - .refused - .near) of \(.n) off"
	elif .refused > 0 then "\(.refused) refused"
	else "ok" end) })
| sort_by(.span, .bytes)
| { rows: ., bad: [.[] | select(.verdict | test("^ok$|refused$|^not (compared|stamped)$|^called only$") | not)
	| "\(.span) of \(.bytes) bytes: \(.verdict)"] }
| . + { untold: [$ops[] | select(.row == null)] | length }
