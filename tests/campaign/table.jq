# SPDX-License-Identifier: Apache-2.0
# Runs, as score.jq tells them -> the table, and the figures that have a bound.
def pad($n): . + " " * ([0, $n - length] | max);
def left($n): " " * ([0, $n - length] | max) + .;
def count(f): map(select(f)) | length;
def seconds: if . == null then "-" else (. / 1e8 | round / 10 | tostring) end;
def median: sort | if . == [] then null else .[length / 2 | floor] end;
def row: "| " + (.[0] | pad(18)) + " | " + (.[1] | pad(19)) + " | "
	+ (.[2:] | map(tostring | left(6)) | join(" | ")) + " |";

# bound(WHAT; PART; OF; LEAST): a share of runs, of those that the machine gave their CPU.
def bound($what; part; $least): length as $of | count(part) as $n
	| select($of > 0)
	| "\($what): \($n) of \($of), at least \($least * 100) %\(if $n < $least * $of then ": BEYOND" else "" end)";
def is_slow: .run.kind | test("^(slow|starved|everybody)");
def is_late: .run.kind | test("^late");
def is_too_little: .run.kind | test("^late 1 %");
def is_hard: .injected and (is_slow or is_late | not);

(["kind", "scenarios", "runs", "found", "rank", "cause", "untold", "alarms", "busy", "median", "most",
  "onset"] | row),
"| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |",
(group_by(.run.kind) | sort_by(map(.run.seed) | min)[]
	| (map(.took_ns) | map(values)) as $took
	| (if .[0].injected then [count(.found), count(.right), count(.cause), count(.untold)]
	   else ["-", "-", "-", "-"] end) as $told
	| [.[0].run.kind, (map(.run.scenario) | unique | join(" ")), length] + $told
		+ [count(.alarms > 0), count(.busy), ($took | median | seconds),
		   ($took | max | seconds), (map(.onset_ns) | map(values) | max | seconds)] | row),
"",
(map(select(.busy)) | "\(length) runs in which a thread waited for a CPU for a tenth of the time are beside the bounds"),
(map(select(.busy | not))
	| (map(select(is_hard)) | bound("hard faults found"; .found; 1)),
	  (map(select(is_hard and .found)) | bound("... the right rank, or that nothing tells it"; .right or .untold; 0.98),
		bound("... and the right cause"; .cause or .untold; 0.98)),
	  (map(select(is_late and (is_too_little | not))) | bound("late ranks from 2 % on found, the right ones"; .right; 0.95)),
	  (map(select(is_too_little)) | bound("late ranks of 1 % not found"; .found | not; 0.98)),
	  (map(select(is_slow)) | bound("slow links, channels, stages and threads, and slow computing found, the right ones"; .right; 0.95)),
	  (map(select(.run.rule == "over")) | bound("repaired ones over"; .over; 0.95)),
	  # A job that waits for a CPU is behind its plan, which says when the fault was to begin.
	  (map(select(.onset_ns != null)) | bound("beginnings within 10 s"; .onset_ns <= 10e9 + .waited_ns; 0.95)),
	  (map(select(.injected)) | bound("runs with a fault in which nobody else is accused"; .alarms == 0; 0.98)),
	  (map(select(.injected | not)) | select(length > 0) | (map(.run.seconds) | add / 3600) as $hours
		| (map(.alarms + .suspected / 2) | add) as $n
		| "false alarms in \($hours * 100 | round / 100) clean hours: \($n), at most one in 200 runs\(if $n > length / 200 then ": BEYOND" else "" end)"))
