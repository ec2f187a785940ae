# SPDX-License-Identifier: Apache-2.0
# Input: `nccl-replay --print` of a recording.  The resolution of the GPU's stamps is the
# largest number that divides all differences.

BEGIN { n = 0 }

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

$5 == "KernelCh" && ($3 == "start" || $3 == "state") {
	split($NF, stamp, "=")
	see(digits(stamp[2]))
}

END {
	if (n < 20)
		print "stamps: too few for a verdict"
	else
		printf "stamps: %d, resolution %d ns\n", n, grid
}
