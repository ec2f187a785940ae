/* Zoom and movement of the timeline.  All else on the page needs no script. */
(function () {
	"use strict";
	const svg = document.querySelector("svg.time");
	if (!svg)
		return;
	const out = document.querySelector("#timeline output");
	const all = svg.viewBox.baseVal.width, height = svg.viewBox.baseVal.height;
	let from = 0, width = all, held = null;

	function time(us) {
		return us >= 1e6 ? (us / 1e6).toPrecision(4) + " s" :
		       us >= 1e3 ? (us / 1e3).toPrecision(4) + " ms" : us.toPrecision(4) + " us";
	}
	function show() {
		width = Math.min(all, Math.max(width, 1));
		from = Math.min(all - width, Math.max(from, 0));
		svg.setAttribute("viewBox", from + " 0 " + width + " " + height);
		out.textContent = width === all ? time(all) :
			time(width) + " of " + time(all) + ", from " + time(from) + " on";
	}
	function zoom(by, at) {
		const fixed = from + width * at;
		width = Math.min(all, width * by);
		from = fixed - width * at;
		show();
	}
	function place(event) {
		const box = svg.getBoundingClientRect();
		return (event.clientX - box.left) / box.width;
	}
	const keys = {
		"+": () => zoom(0.5, 0.5), "=": () => zoom(0.5, 0.5), "-": () => zoom(2, 0.5),
		"ArrowLeft": () => { from -= width / 4; show(); },
		"ArrowRight": () => { from += width / 4; show(); },
		"0": () => { width = all; show(); },
	};
	svg.addEventListener("keydown", (event) => {
		if (!keys[event.key] || event.ctrlKey || event.altKey || event.metaKey)
			return;
		keys[event.key]();
		event.preventDefault();
	});
	svg.addEventListener("wheel", (event) => {
		if (!event.ctrlKey)
			return;
		zoom(event.deltaY < 0 ? 0.8 : 1.25, place(event));
		event.preventDefault();
	}, { passive: false });
	svg.addEventListener("pointerdown", (event) => { held = place(event); });
	window.addEventListener("pointerup", () => { held = null; });
	svg.addEventListener("pointermove", (event) => {
		if (held === null)
			return;
		from += (held - place(event)) * width;
		held = place(event);
		show();
	});
})();
