# SPDX-License-Identifier: Apache-2.0
# Input: `nccl-replay --print` of a recording.  The GPU's stamps: their resolution
# is the largest number that divides all differences, their drift how much less or
# more they get ahead than the host's clock, by the quickest deliveries of the
# first and the last fifth.

BEGIN { n = starts = 0 }

# Doubles hold 13 digits to the nanosecond.
function digits(text) { return substr(text, length(text) - 12) + 0 }

function gcd(a, b,   t) {
	while (b > 0) {
		t = a % b
		a = b
		b = t
	}
	return a
}

function see(stamp) {
	if (n++ == 0)
		first = stamp
	grid = gcd(grid, stamp > first ? stamp - first : first - stamp)
}

$3 == "start" && $5 == "KernelCh" {
	split($NF, stamp, "=")
	see(digits(stamp[2]))
	host[starts] = $1 * 1000
	gpu[starts++] = digits(stamp[2])
}

$3 == "state" && $5 == "KernelCh" {
	split($NF, stamp, "=")
	see(digits(stamp[2]))
}

function quickest(from, to,   i) {
	at = -1
	for (i = from; i < to; i++)
		if (at < 0 || host[i] - gpu[i] < host[at] - gpu[at])
			at = i
	return at
}

END {
	if (starts < 10) {
		print "stamps: too few for a verdict"
		exit
	}
	a = quickest(0, int(starts / 5))
	b = quickest(starts - int(starts / 5), starts)
	ran = host[b] - host[a]
	printf "stamps: %d, resolution %d ns, ", n, grid
	if (ran < 1e9)
		print "too short a run for their drift"
	else
		printf "drift %.3f ppm over %.1f s\n", ((gpu[b] - gpu[a]) / ran - 1) * 1e6, ran / 1e9
}
