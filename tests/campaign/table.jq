# SPDX-License-Identifier: Apache-2.0
# Runs, as score.jq tells them -> the table.
def pad($n): . + " " * ([0, $n - length] | max);
def left($n): " " * ([0, $n - length] | max) + .;
def count(f): map(select(f)) | length;
def seconds: if . == null then "-" else (. / 1e8 | round / 10 | tostring) end;
def median: sort | if . == [] then null else .[length / 2 | floor] end;
def row: "| " + (.[0] | pad(18)) + " | " + (.[1] | pad(8)) + " | "
	+ (.[2:] | map(tostring | left(7)) | join(" | ")) + " |";

(["kind", "scenario", "runs", "found", "right", "untold", "alarms", "starved", "median", "most"]
	| row),
"| --- | --- | --: | --: | --: | --: | --: | --: | --: | --: |",
(group_by([.run.kind, .run.scenario]) | sort_by(map(.run.seed) | min)[]
	| (map(.took_ns) | map(values)) as $took
	| (if .[0].injected then [count(.found), count(.right), count(.untold)]
	   else ["-", "-", "-"] end) as $told
	| [.[0].run.kind, .[0].run.scenario, length] + $told
		+ [count(.alarms > 0), count(.starved), ($took | median | seconds),
		   ($took | max | seconds)] | row),
"",
"\(count(.injected)) runs with a fault: \(count(.injected and .found)) found, "
	+ "\(count(.injected and .right)) named right, "
	+ "\(count(.injected and .untold)) said to be beyond telling; "
	+ "\(count(.injected | not)) clean runs: "
	+ "\(count((.injected | not) and .alarms > 0)) with a false alarm; "
	+ "in \(count(.starved)) of all runs the machine itself left threads without CPU, "
	+ "which the kernel's own count confirms in \(count(.proven))"
