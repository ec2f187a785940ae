#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ncclinsp report --html: one page that needs nothing else, whatever the names in it are.
. "$(dirname "$0")/lib.sh"

I=$B/ncclinsp
start_daemon --snapshot-interval 0
cat >"$T/scn" <<-SCN
	nodes 2
	comm dp ranks 0,1 channels 2
	link net latency 10us rate 20GB/s
	late rank 1 by 2ms
	loop forever
		compute 5ms
		AllReduce dp 1Mi float32
	end
SCN
start_job "$T/scn"
has_run() { api_is collectives '[.collectives[].seq] | max > 100' && api_is peers '.peers != []'; }
check "a job runs" wait_until 60 has_run
SNAP=$("$I" snapshot)
wait_until 10 test -s "$SNAP"
pkill -9 -P "$JOB_PID" 2>/dev/null
stop_daemon

# page FILE STATUS PATH...: the report as a page.
page() { local to=$1 want=$2 got; shift 2; "$I" report --html "$@" >"$to" 2>"$T/err"; got=$?; [ $got -eq "$want" ] || { echo "status $got"; cat "$T/err"; return 1; }; }
has() { grep -qF -- "$2" "$1" || { head -c 4000 "$1"; return 1; }; }

jq -c '.findings = [{kind: "straggler", active: true, grade: "found", severity: "warning", verdict: "STEADY",
	comm_id: .comms[0].comm_id, ranks: [1], text: "so it is"}] | .rows[].usual_busbw_gbs = 12.5 |
	.ranks[] |= (.blame = (if .rank == 1 then 0.25 else 0 end) | .badness = .blame)' "$SNAP" >"$T/late.json"
check "a report is a page, with the code of a finding" page "$T/late.html" 10 "$T/late.json"
check "... its verdict is the first thing in it" eval \
	'sed -n "s/.*<h1 class=.\([a-z]*\).>\(.*\)<.h1>/\1 \2/p" "$T/late.html" | head -1 | grep -q "^warning 1 warning"'
check "... in the words of the report" eval \
	'text=$("$I" report -o csv --no-header --fields text "$T/late.json" | grep -o "rank 1 of dp [(]pid [0-9]*" | head -1) &&
	 [ -n "$text" ] && has "$T/late.html" "<h3>$text"'
check "... and what to do" has "$T/late.html" '<b>What to do</b>'
check "... who is waited for stands first, with a bar" eval \
	'tr -d "\n" <"$T/late.html" | grep -Eq "id=.waits.*<tbody><tr><td class=.text.>[^<]*</td><td class=.text.>dp</td><td>1</td>.*class=.blame. width=.25"'
check "... what is usual beside the bandwidth" eval \
	'tr -d "\n" <"$T/late.html" | grep -Eq "id=.speed.*AllReduce.*<td>12.5</td>"'
check "... links between the ranks" has "$T/late.html" '<title>rank 0 to rank 1: '
check "... and how well the clocks are known, and what was lost" eval \
	'has "$T/late.html" "<th scope=\"col\">Error (us)</th>" && has "$T/late.html" "</b> lost</li>"'
jq -c '.findings = [] | .samples = [] | .peers = [] | .clocks = [] | .rows = [] | .ranks = [] | .comms = []' "$SNAP" >"$T/calm.json"
check "a file that tells of nothing makes a calm page" eval \
	'page "$T/calm.html" 0 "$T/calm.json" && has "$T/calm.html" ">Nothing is found or suspected in these files<"'
check "a page is not written over a terminal" eval \
	'script -qec "\"$I\" report --html \"$T/late.json\"" /dev/null | grep -q "send it to a file"'
check "... and a full disk is told" exits 1 'cannot be written' bash -c "'$I' report --html '$T/late.json' >/dev/full"

# Names are anybody's.
EVIL='</style><script>alert(1)</script><img src=x onerror=alert(2)>"'"'"'&amp;'
jq -c --arg evil "$EVIL" '.status.host = $evil | .comms[].name = $evil | .findings[].text = $evil | .findings[].verdict = $evil |
	.findings[].kind = $evil | .ranks[] |= (.comm_name = $evil | .verdict = $evil | .host = $evil) |
	.rows[] |= (.comm_name = $evil | .func = $evil | .algo = $evil) | .peers[] |= (.comm_name = $evil) |
	.collectives[] |= (.comm_name = $evil | .func = $evil) | .samples[].comm_name = $evil | .processes[] |= (.command = $evil | .job.id = $evil | .level = $evil) |
	.clocks[].pci_bus_id = $evil | .written_at = $evil' "$T/late.json" >"$T/evil.json"
# The elements and attributes of both pages are the same ones.
shape() {
	python3 - "$1" <<-'PY'
		import sys
		from html.parser import HTMLParser
		class Shape(HTMLParser):
		    def handle_starttag(self, tag, attrs):
		        if tag not in ("article", "h3", "b", "p"):
		            print(tag, sorted(k for k, v in attrs))
		Shape().feed(open(sys.argv[1], encoding="utf-8").read())
	PY
}
same_shape() { page "$T/evil.html" 10 "$T/evil.json" && has "$T/evil.html" '&lt;script&gt;alert(1)' && diff <(shape "$T/late.html" | sort -u) <(shape "$T/evil.html" | sort -u); }
check "names full of markup are text" same_shape

loads_nothing() { ! grep -oE '(src|href|action|data)="[^#"][^"]*"|url\([^)]*\)|@import|https?://[^ "<]*' "$1"; }
check "a page loads nothing" loads_nothing "$T/late.html"
check "... and tells the browser so" has "$T/late.html" "default-src 'none'"

# 64 ranks in 4 communicators, links of all with all in one, eight sizes.
jq -c '.ranks[0] as $rank | .rows[0] as $row | (.peers | map(select(.direction == "send"))[0]) as $peer | .processes[0] as $p |
	.ranks = [range(4) as $c | range(64) | . as $r | $rank | .rank = $r | .comm_id = "0x\($c)" | .comm_name = "comm\($c)"] |
	.rows = [range(4) as $c | range(64) as $r | range(8) as $s | $row | .rank = $r | .comm_id = "0x\($c)" |
		.comm_name = "comm\($c)" | .size_class = 1024 * pow(4; $s)] |
	(.collectives | map(select(.exec_ns))[0]) as $op |
	.collectives = [range(64) as $r | range(199; -1; -1) as $i | $op | .rank = $r | .comm_id = "0x0" |
		(.gpu_start_mono_ns, .done_mono_ns) += 600000000000 / 200 * $i] |
	.peers = [range(64) as $from | range(64) as $to | $peer | .rank = $from | .peer = $to | .window = "all"] |
	.processes = [range(64) as $r | $p | .pid = 1000 + $r]' "$T/late.json" >"$T/wide.json"
small() { page "$T/wide.html" 10 "$T/wide.json" && [ "$(stat -c %s "$T/wide.html")" -lt 3000000 ] && [ "$(grep -c '<title>rank [0-9]* to' "$T/wide.html")" -gt 4000 ] &&
	[ "$(grep -c '<title>rank [0-9]*: ' "$T/wide.html")" -eq 8192 ] && has "$T/wide.html" '<output>6m21s'; }
check "64 ranks with links from all to all take less than 3 MB" small

# ---- in a browser -----------------------------------------------------------------------
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
# browse OPTION...: it ends well, and has nothing to complain about.
browse() {
	timeout 60 "$browser" --headless --no-sandbox --disable-gpu --disable-quic --no-first-run --hide-scrollbars \
		--disable-background-networking --disable-component-update --disable-sync --enable-logging=stderr \
		--user-data-dir="$T/browser" "$@" >"$T/out" 2>"$T/err" || { cat "$T/err"; return 1; }
	! grep CONSOLE "$T/err"
}
shot() { rm -f "$T/shot"; browse --screenshot="$T/shot.png" --window-size="$2" "${@:3}" "file://$1" && [ -s "$T/shot.png" ]; }
prints() { browse --print-to-pdf="$T/page.pdf" "file://$1" && [ "$(head -c 5 "$T/page.pdf")" = %PDF- ]; }
dark_differs() { shot "$T/late.html" 1280,900 && mv "$T/shot.png" "$T/light.png" && shot "$T/late.html" 1280,900 --blink-settings=preferredColorScheme=0 && ! cmp -s "$T/shot.png" "$T/light.png"; }
# What the keys + and right make of the part that is seen, of a whole of 1.
keys_zoom() {
	{ grep -v '^</body>' "$T/late.html"; echo '<script>
		const s = document.querySelector("svg.time"), w = s.viewBox.baseVal.width;
		for (const key of ["+", "ArrowRight"])
			s.dispatchEvent(new KeyboardEvent("keydown", { key }));
		const v = s.viewBox.baseVal;
		document.title = "seen " + (v.x / w).toFixed(3) + " " + (v.width / w).toFixed(3);
		</script></body>'; } >"$T/keys.html"
	[ "$(grep -c '<title>rank [0-9]*: AllReduce #' "$T/late.html")" -gt 50 ] &&
		browse --dump-dom "file://$T/keys.html" && has "$T/out" "<title>seen 0.375 0.500</title>"
}
if [ -n "$browser" ]; then
	check "a browser shows it without complaint, light and dark" dark_differs
	check "the timeline has a bar for each operation, and its keys zoom and move it" keys_zoom
	check "... narrow" shot "$T/late.html" 500,900
	check "... with hostile names" shot "$T/evil.html" 1280,900
	check "... of 64 ranks" shot "$T/wide.html" 1280,900
	check "... and prints it" prints "$T/late.html"
else
	skip "a browser shows it" "needs chromium"
fi
done_testing
