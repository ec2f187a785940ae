// SPDX-License-Identifier: Apache-2.0
// Perfetto's trace_processor, WebAssembly, in Node: what ui.perfetto.dev reads traces with.
// Its glue was built for a browser's worker; what it asks of one is given to it here.
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import vm from "node:vm";

const PIECE_BYTES = 4 << 20;

// Only the 32-bit engine is in the package: what asks whether there could be another, a
// program of nothing but a memory (section 5) of 64 bits (flag 4), is to hear that there is not.
const wants_64_bits = (program) => program[8] === 5 && program[11] === 4;

function play_worker(dir) {
	const { Module } = WebAssembly;
	const self = { location: { href: "file:///engine.js" } };

	WebAssembly.Module = class extends Module {
		constructor(bytes) {
			if (wants_64_bits(bytes))
				throw new Error("no 64-bit engine here");
			super(bytes);
		}
	};
	class Request {
		open(method, url) {
			this.response = new Uint8Array(readFileSync(join(dir, basename(url)))).buffer;
		}
		send() {}
	}
	// What the engine has to say is in its table "stats"; this is chatter.
	for (const say of ["log", "warn"])
		console[say] = () => {};
	Object.assign(globalThis, { self, location: self.location, XMLHttpRequest: Request,
				    WorkerGlobalScope: Object });
	vm.runInThisContext(readFileSync(join(dir, "engine_bundle.node.js"), "utf8"));
	return self;
}

// open_trace(dir, path): the trace, read by the engine in dir.  rows(sql, columns...) are arrays
// of these columns; close() lets the program end.
export async function open_trace(dir, path) {
	const { EngineBase } = await import(pathToFileURL(join(dir, "engine.mjs")));
	const worker = play_worker(dir);
	const { port1, port2 } = new MessageChannel();

	class Engine extends EngineBase {
		rpcSendRequestBytes(bytes) {
			port1.postMessage(bytes);
		}
	}
	const engine = new Engine();
	port1.onmessage = (message) => engine.onRpcResponseBytes(message.data);
	worker.onmessage({ data: port2 });

	const trace = readFileSync(path);
	for (let at = 0; at < trace.length; at += PIECE_BYTES)
		await engine.parse(new Uint8Array(trace.subarray(at, at + PIECE_BYTES)));
	await engine.notifyEof();

	async function rows(sql, ...columns) {
		const result = await engine.query(sql);
		const found = [];

		for (const it = result.iter({}); it.valid(); it.next())
			found.push(columns.map((column) => it.get(column)));
		return found;
	}
	return { rows, close: () => port1.close() };
}
