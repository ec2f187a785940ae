// SPDX-License-Identifier: Apache-2.0
// run.mjs MODULES FILES QUERY: the rows of a query of deploy/duckdb over snapshots, as JSON.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const [modules, files, query] = process.argv.slice(2);
const { DuckDBInstance } = createRequire(modules + "/")("@duckdb/node-api");
const connection = await (await DuckDBInstance.create()).connect();
await connection.run(`SET VARIABLE files = '${files}'`);
const result = await connection.runAndReadAll(readFileSync(query, "utf8"));
console.log(JSON.stringify(result.getRowObjectsJson()));
