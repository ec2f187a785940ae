// SPDX-License-Identifier: Apache-2.0
// check_perfetto.mjs ENGINE FILE: does Perfetto's trace_processor, of the folder ENGINE, see in
// FILE what FILE says?  Every slice, at its time, on its thread and as deep as it is nested;
// every arrow, from slice to slice; the names of processes and threads; nothing refused.
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { open_trace } from "./trace_processor.mjs";

const SHOWN = 5;
const [ENGINE, FILE] = process.argv.slice(2);

const say = (line) => process.stdout.write(`${line}\n`);

function load(path) {
	const bytes = readFileSync(path);

	return JSON.parse(path.endsWith(".gz") ? gunzipSync(bytes) : bytes);
}

// Times are multiples of 125 ns: as microseconds a double has them exactly.
const ns = (us) => us * 1000;

function by_thread(events) {
	const threads = new Map();

	for (const event of events) {
		const key = `${event.pid}/${event.tid}`;

		if (!threads.has(key))
			threads.set(key, []);
		threads.get(key).push(event);
	}
	return threads;
}

// A slice has ended where the next one begins; two of no length at one moment lie within each
// other.
function is_over(slice, next) {
	const end = slice.ts + slice.dur;

	return end < next.ts || (end === next.ts && (slice.dur > 0 || next.dur > 0));
}

// Gives each slice of a thread its depth: in how many others it lies.
function nest(slices) {
	const open = [];

	slices.sort((a, b) => a.ts - b.ts || b.dur - a.dur);
	for (const slice of slices) {
		while (open.length && is_over(open.at(-1), slice))
			open.pop();
		slice.depth = open.length;
		open.push(slice);
	}
}

// The slice that an end of an arrow lies in: of several the one that began last.  Slices are
// sorted by their start; where one ends counts as within.
function slice_at(slices, ts) {
	let low = 0, high = slices.length;

	while (low < high) {
		const middle = (low + high) >> 1;

		if (slices[middle].ts <= ts)
			low = middle + 1;
		else
			high = middle;
	}
	for (let i = low - 1; i >= 0; i--) {
		if (slices[i].ts + slices[i].dur >= ts)
			return slices[i];
		if (slices[i].depth === 0)
			return null;
	}
	return null;
}

const place = (pid, tid, start, depth) => [pid, tid, start, depth].join(" ");
const place_of = (slice) => slice ? place(slice.pid, slice.tid, ns(slice.ts), slice.depth) : "nowhere";

function meant(trace) {
	const events = trace.traceEvents;
	const of_phase = (phase) => events.filter((event) => event.ph === phase);
	const named = (name) => events.filter((event) => event.ph === "M" && event.name === name);
	const slices = of_phase("X");
	const threads = by_thread(slices);
	const heads = new Map(of_phase("s").map((event) => [event.id, event]));

	for (const of_one of threads.values())
		nest(of_one);
	const end = (event) => event
		? place_of(slice_at(threads.get(`${event.pid}/${event.tid}`) ?? [], event.ts))
		: "nowhere";
	return {
		slices: slices.map((s) => `${place_of(s)} ${ns(s.dur)} ${s.cat}: ${s.name}`),
		arrows: of_phase("f").map((f) => `${end(heads.get(f.id))} -> ${end(f)}`),
		pairs: of_phase("b").map((b) => `${b.pid} ${ns(b.ts)} ${b.name}`),
		instants: of_phase("i").map((i) => `${ns(i.ts)} ${i.name}`),
		processes: named("process_name").map((m) => `${m.pid} ${m.args.name}`),
		threads: named("thread_name").map((m) => `${m.pid} ${m.tid} ${m.args.name}`),
		arguments: slices.filter((s) => s.cat === "Coll")
			.map((s) => `${s.args.seq} ${s.args.algo} ${s.args.count} ${s.args.parent}`),
	};
}

const SLICES = `select s.id, s.ts, s.dur, s.depth, s.name, s.category, t.tid, p.pid, s.arg_set_id
	from slice s join thread_track tt on s.track_id = tt.id join thread t using (utid)
	join process p using (upid)`;

async function seen(rows) {
	const slices = await rows(SLICES, "pid", "tid", "ts", "depth", "dur", "category", "name");
	const arrows = await rows(`with s as (${SLICES})
		select a.pid, a.tid, a.ts, a.depth, b.pid as pid2, b.tid as tid2, b.ts as ts2,
		       b.depth as depth2
		from flow f join s a on f.slice_out = a.id join s b on f.slice_in = b.id`,
		"pid", "tid", "ts", "depth", "pid2", "tid2", "ts2", "depth2");
	const pairs = await rows(`select p.pid, s.ts, s.name from slice s
		join process_track pt on s.track_id = pt.id join process p using (upid)
		where s.dur > 0`, "pid", "ts", "name");
	const instants = await rows(`select s.ts, s.name from slice s
		where s.dur = 0 and s.track_id not in (select id from thread_track)`, "ts", "name");
	const processes = await rows("select pid, name from process where name is not null",
				     "pid", "name");
	const threads = await rows(`select p.pid, t.tid, t.name from thread t
		join process p using (upid) where t.name is not null`, "pid", "tid", "name");
	const args = await rows(`select extract_arg(s.arg_set_id, 'args.seq') as seq,
		extract_arg(s.arg_set_id, 'args.algo') as algo,
		extract_arg(s.arg_set_id, 'args.count') as count,
		extract_arg(s.arg_set_id, 'args.parent') as parent
		from slice s where s.category = 'Coll'`, "seq", "algo", "count", "parent");
	const joined = (found) => found.map((row) => row.join(" "));

	return {
		slices: slices.map(([pid, tid, ts, depth, dur, category, name]) =>
			`${place(pid, tid, ts, depth)} ${dur} ${category}: ${name}`),
		arrows: arrows.map((row) => `${row.slice(0, 4).join(" ")} -> ${row.slice(4).join(" ")}`),
		pairs: joined(pairs),
		instants: joined(instants),
		processes: joined(processes),
		threads: joined(threads),
		arguments: joined(args),
	};
}

// The lines that one has and the other has not, as often as they are there.
function without(lines, others) {
	const count = new Map();

	for (const line of others)
		count.set(line, (count.get(line) ?? 0) + 1);
	return lines.filter((line) => {
		const n = count.get(line) ?? 0;

		count.set(line, n - 1);
		return n <= 0;
	});
}

const { rows, close } = await open_trace(ENGINE, FILE);
const [said, read] = [meant(load(FILE)), await seen(rows)];
const refused = await rows(`select name, value from stats
	where value > 0 and severity in ('error', 'data_loss')`, "name", "value");
let wrong = refused.length;

refused.forEach(([name, value]) => say(`${FILE}: refused: ${name} ${value}`));
for (const what of Object.keys(said)) {
	const missing = without(said[what], read[what]);
	const more = without(read[what], said[what]);

	wrong += missing.length + more.length;
	missing.slice(0, SHOWN).forEach((line) => say(`${what}: not seen: ${line}`));
	more.slice(0, SHOWN).forEach((line) => say(`${what}: not meant: ${line}`));
}
const counts = Object.entries(said).map(([what, lines]) => `${lines.length} ${what}`).join(", ");
const deepest = read.slices.reduce((most, line) => Math.max(most, +line.split(" ")[3]), 0);

say(`${wrong ? `${wrong} things differ` : "as meant"}: ${counts}, ${deepest + 1} levels deep`);
close();
process.exitCode = wrong ? 1 : 0;
