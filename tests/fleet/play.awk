# SPDX-License-Identifier: Apache-2.0
# What many nodes say at one moment: two scrapes of one node's daemon, one after the other, are
# carried on in time and told as by `nodes` nodes, each into out/<node>.
#
#   awk -v nodes=1000 -v tick=7 -v out=DIR -f play.awk first second
#
# What grows between the two scrapes goes on growing, in each node at its own pace; what goes up
# and down does.  32 nodes are one job: a communicator that is on several nodes has the same id on
# all of them.

function hash(n) { n = (n * 9301 + 49297) % 233280; return n / 233280 }

/^#/ { if (NR != FNR) { line[++n] = $0; is_text[n] = 1 }; next }

{
	at = match($0, / [^ ]*$/)
	key = substr($0, 1, at - 1)
	value = substr($0, at + 1)
}

NR == FNR { first[key] = value; next }

{
	line[++n] = key
	last[n] = value
	by[n] = key in first ? value - first[key] : 0
	whole[n] = value ~ /^[0-9]+$/
	grows[n] = key ~ /_(total|bucket|sum|count|sequence)\{/
}

# The value of a line on one node at this tick.
function now(i, node,   by_now) {
	by_now = grows[i] ? by[i] * (tick + hash(node + tick) / 4) : \
		 by[i] * hash(node * 7 + tick * 13 + i)
	return last[i] + (whole[i] ? int(by_now) : by_now)
}

# Letters that stand for the job, or the node, in the ids of communicators.
function named(text, node,   job) {
	job = sprintf("%04x", int((node - 1) / 32))
	if (text ~ /comm="tp"/)
		job = sprintf("%04x", node + 32768)
	gsub(/node="[^"]*"/, "node=\"node" node "\"", text)
	gsub(/comm_id="0x..../, "comm_id=\"0x" job, text)
	return text
}

END {
	for (node = 1; node <= nodes; node++) {
		file = out "/" node
		for (i = 1; i <= n; i++)
			if (is_text[i])
				print line[i] > file
			else
				printf "%s %.12g\n", named(line[i], node), now(i, node) > file
		close(file)
	}
}
