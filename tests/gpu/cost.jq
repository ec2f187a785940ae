# SPDX-License-Identifier: Apache-2.0
# Input: the lines of cost.* (cost.c).  Output: medians over rounds and ranks, and
# their ratios to those without a plugin.

def median: sort | .[length / 2 | floor];
def ratio($a; $b): if $b then $a / $b * 1000 | round / 1000 else null end;

group_by([.name, .bytes])
| map({ name: .[0].name, bytes: .[0].bytes, n: length, post_ns: (map(.post_ns) | median),
	streamed_ns: (map(.streamed_ns) | median), alone_ns: (map(.alone_ns) | median) })
| (map(select(.name == "none")) | INDEX(.bytes)) as $none
| map($none["\(.bytes)"] as $n | . + {
	post_ratio: ratio(.post_ns; $n.post_ns),
	streamed_ratio: ratio(.streamed_ns; $n.streamed_ns),
	alone_ratio: ratio(.alone_ns; $n.alone_ns) })
| sort_by(.bytes, .name)
