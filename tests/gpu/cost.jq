# SPDX-License-Identifier: Apache-2.0
# Input: the lines of cost.* (cost.c), and how many callbacks an operation of 64 bytes makes (run.sh): a
# rank's, and those of a thread that posts.  Output: medians over rounds and processes, their ratios to those
# without a plugin, and what each callback adds to posting (with what NCCL does for it), where all are wanted.

def median: sort | .[length / 2 | floor];
def round3: . * 1000 | round / 1000;
def ratio($a; $b): if $b then $a / $b | round3 else null end;

(map(select(.calls)) | INDEX("\(.what) \(.nodes)")) as $calls
| map(select(.name))
| group_by([.what, .nodes, .name, .bytes])
| map((.[0] | {what, nodes, name, bytes}) + { n: length, post_ns: (map(.post_ns) | median),
	streamed_ns: (map(.streamed_ns) | median), alone_ns: (map(.alone_ns) | median) })
| (map(select(.name == "none")) | INDEX("\(.what) \(.nodes) \(.bytes)")) as $none
| map($none["\(.what) \(.nodes) \(.bytes)"] as $n | $calls["\(.what) \(.nodes)"] as $calls | . + {
	post_ratio: ratio(.post_ns; $n.post_ns),
	streamed_ratio: ratio(.streamed_ns; $n.streamed_ns),
	alone_ratio: ratio(.alone_ns; $n.alone_ns) } + if .bytes == 64 and $n and $calls and (.name == "empty" or .name == "trace") then {
	calls: $calls.calls, posted: $calls.posted,
	call_ns: ((.post_ns - $n.post_ns) / $calls.posted | round3) } else {} end)
| sort_by(.what, .nodes, .bytes, .name)
