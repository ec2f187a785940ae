#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One node's snapshot, written as NODES of a job: in "world" are the ranks of all, in "dp" and "pp"
# those of two nodes each, and every other communicator is of its node alone.
#
#   tests/fleet/nodes.sh SNAPSHOT NODES DIR
set -e
snapshot=$1 nodes=$2 dir=$3
local_ranks=$(jq '[.ranks[].pid] | unique | length' "$snapshot")

# What differs becomes "@...@", which the nodes' files have figures in place of.
jq -c '
	[.comms[] | select(.name == "dp" or .name == "pp").comm_id] as $paired |
	def id: "@" + (if IN($paired[]) then "p" else "o" end) + .[10:] + "@";
	def place($name): if $name == "world" then .rank |= "@w\(.)@"
		elif $name == "dp" or $name == "pp" then .rank = "@d@" else . end;
	def gpu: if .gpu_uuid then .gpu_uuid |= "@g" + . + "@" else . end;
	def row: (.comm_name // .name) as $name | gpu | (if .rank then place($name) else . end) |
		if $name == "world" then (if .nranks then .nranks = "@n@" else . end)
		elif .comm_id then .comm_id |= id else . end;
	.status.host = "@h@" | .findings = [] |
	.comms[] |= (.name as $name | .local_ranks[] |= (place($name) | gpu) | row) |
	.inflight[] |= row | .rows[] |= row | .peers[] |= row | .ranks[] |= row | .samples[] |= row
' "$snapshot" | awk -v RS='\001' -v nodes="$nodes" -v ranks="$local_ranks" -v dir="$dir" '
	function figure(what, node) {
		if (what == "h")
			return sprintf("\"node%05d\"", node)
		if (what == "n")
			return ranks * nodes
		if (what == "d")
			return node % 2
		if (what ~ /^w/)
			return substr(what, 2) + ranks * node
		if (what ~ /^g/)
			return sprintf("\"%s-%05d\"", substr(what, 2), node)
		return sprintf("\"0x%08x%s\"", what ~ /^p/ ? int(node / 2) : node, substr(what, 2))
	}
	{
		n = split($0, piece, /"@|@"/)
		for (node = 0; node < nodes; node++) {
			file = sprintf("%s/node%05d.json", dir, node)
			for (i = 1; i <= n; i++)
				printf "%s", i % 2 ? piece[i] : figure(piece[i], node) >file
			close(file)
			if (node % 500 == 499 || node == nodes - 1)
				system("cd " dir " && zstd -q --rm *.json")
		}
	}'
