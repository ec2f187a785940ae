# SPDX-License-Identifier: Apache-2.0
# Input: the lines of growth.sh.  Prints them as a table with the power of the least squares of
# the logarithms, and draws each into `picture`, an SVG, if there is one.

BEGIN { FS = "\t"; W = 300; H = 190; LEFT = 46; TOP = 30; PLOT_W = 230; PLOT_H = 120 }

{
	key = $1 "\t" $3 "\t" $5
	if (!(key in n))
		order[++keys] = key
	n[key]++
	x[key, n[key]] = $2
	y[key, n[key]] = $4
}

function log10(v) { return log(v) / log(10) }
function floor(v) { return int(v) - (v < int(v)) }

# The slope through what is no zero; "" of fewer than two.
function power(key,   i, m, sx, sy, sxx, sxy, lx, ly) {
	m = sx = sy = sxx = sxy = 0
	for (i = 1; i <= n[key]; i++) {
		if (y[key, i] <= 0)
			continue
		lx = log10(x[key, i])
		ly = log10(y[key, i])
		m++
		sx += lx
		sy += ly
		sxx += lx * lx
		sxy += lx * ly
	}
	return m < 2 ? "" : sprintf("%.2f", (m * sxy - sx * sy) / (m * sxx - sx * sx))
}

function say(text) { print text >picture }

# Both axes by logarithms; zeros lie on the ground.
function draw(key, at,   i, part, x0, x1, y0, y1, px, py, points) {
	split(key, part, "\t")
	x0 = y0 = 1e30
	x1 = y1 = 0
	for (i = 1; i <= n[key]; i++) {
		if (x[key, i] < x0) x0 = x[key, i]
		if (x[key, i] > x1) x1 = x[key, i]
		if (y[key, i] > y1) y1 = y[key, i]
		if (y[key, i] > 0 && y[key, i] < y0) y0 = y[key, i]
	}
	if (y1 <= 0)
		y0 = y1 = 1
	y0 = 10 ^ floor(log10(y0))
	if (y1 <= y0)
		y1 = y0 * 10
	say(sprintf("<g transform='translate(%d %d)'>", (at % 3) * W, int(at / 3) * H))
	say(sprintf("<text x='%d' y='14' class='t'>%s, %s</text>", LEFT, part[2], part[3]))
	say(sprintf("<path d='M%d %dv%dh%d' class='a'/>", LEFT, TOP, PLOT_H, PLOT_W))
	for (i = 1; i <= n[key]; i++) {
		px = LEFT + PLOT_W * (x1 > x0 ? (log10(x[key, i]) - log10(x0)) / (log10(x1) - log10(x0)) : 0)
		py = TOP + PLOT_H - (y[key, i] > 0 ? PLOT_H * (log10(y[key, i]) - log10(y0)) / (log10(y1) - log10(y0)) : 0)
		points = points sprintf(" %.1f,%.1f", px, py)
		say(sprintf("<circle cx='%.1f' cy='%.1f' r='3'/>", px, py))
		say(sprintf("<text x='%.1f' y='%.1f' text-anchor='middle'>%s</text>", px, TOP + PLOT_H + 12, x[key, i]))
		say(sprintf("<text x='%.1f' y='%.1f' text-anchor='%s'>%s</text>", px, py - 6, i == n[key] ? "end" : "start", y[key, i]))
	}
	say(sprintf("<polyline points='%s'/>", substr(points, 2)))
	say(sprintf("<text x='%d' y='%d' text-anchor='end'>%s</text></g>", LEFT + PLOT_W, TOP + PLOT_H + 25, part[1]))
}

END {
	for (k = 1; k <= keys; k++) {
		split(order[k], part, "\t")
		line = ""
		for (i = 1; i <= n[order[k]]; i++)
			line = line sprintf("  %s: %s", x[order[k], i], y[order[k], i])
		printf "%-14s %-28s %-12s ~ x^%-5s%s\n", part[1], part[2], part[3], power(order[k]), line
	}
	if (picture == "")
		exit
	say(sprintf("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 %d %d' font-family='sans-serif' font-size='9'>",
		3 * W, int((keys + 2) / 3) * H))
	say("<style>.t{font-size:11px;font-weight:bold}.a,polyline{fill:none;stroke:#666}polyline,circle{stroke:#1f6fb2}circle{fill:#1f6fb2}</style>")
	say("<rect width='100%' height='100%' fill='#fff'/>")
	for (k = 1; k <= keys; k++)
		draw(order[k], k - 1)
	say("</svg>")
}
