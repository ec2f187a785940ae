// SPDX-License-Identifier: Apache-2.0
// Requests, checked against OpenTelemetry's own descriptions (the generated code of
// @opentelemetry/otlp-transformer): what is read and written again by them has to be the same.
// A member that they do not know, a number where a string belongs, or a name where a number
// belongs would not be.
//
// usage: check_bodies.mjs ROOT.JS FILE...    (files are called <number>.<signal>.json)
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const [root, ...files] = process.argv.slice(2);
const services = createRequire(import.meta.url)(root).opentelemetry.proto.collector;
const types = {
	logs: services.logs.v1.ExportLogsServiceRequest,
	traces: services.trace.v1.ExportTraceServiceRequest,
	metrics: services.metrics.v1.ExportMetricsServiceRequest,
};
const ids = { traceId: 32, spanId: 16, parentSpanId: 16 };
let wrong = 0;

function say(file, what) {
	if (++wrong < 20)
		console.log(`${file}: ${what}`);
}

// As Protocol Buffers' own JSON has it: bytes are base64, and OTLP alone writes ids as hex.
function plain(file, value, key) {
	if (Array.isArray(value))
		return value.map((item) => plain(file, item, key));
	if (value && typeof value === "object")
		return Object.fromEntries(Object.entries(value)
			.filter(([, item]) => !(Array.isArray(item) && item.length === 0))
			.map(([name, item]) => [name, plain(file, item, name)]));
	if (!(key in ids))
		return value;
	if (!new RegExp(`^[0-9a-f]{${ids[key]}}$`).test(value) || /^0+$/.test(value))
		say(file, `${key} is ${value}`);
	return Buffer.from(value, "hex").toString("base64");
}

function compare(file, path, sent, read) {
	if (sent && read && typeof sent === "object" && typeof read === "object") {
		for (const key of new Set([...Object.keys(sent), ...Object.keys(read)]))
			compare(file, `${path}.${key}`, sent[key], read[key]);
	} else if (sent !== read) {
		say(file, `${path}: ${JSON.stringify(sent)} is read as ${JSON.stringify(read)}`);
	}
}

for (const file of files) {
	const type = types[file.split(".").at(-2)];
	const sent = plain(file, JSON.parse(readFileSync(file, "utf8")));
	const message = type.fromObject(sent);
	const fault = type.verify(message);
	if (fault)
		say(file, fault);
	const read = type.toObject(type.decode(type.encode(message).finish()),
		{ longs: String, bytes: String, json: false });
	compare(file, "", sent, read);
}
console.log(wrong ? `${wrong} wrong` : `as described: ${files.length}`);
process.exit(wrong ? 1 : 0);
