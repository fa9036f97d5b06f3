// Times answers of the engine in Node, for comparison with the example `answer_times` of
// nextstat-wasm: answer_times.mjs FILE VERB N prints the least and the median of N times in
// milliseconds.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const engine = join(dirname(fileURLToPath(import.meta.url)), "..", "target", "web");
const { default: init, Files, Session } = await import(pathToFileURL(join(engine, "nextstat_wasm.js")).href);
await init({ module_or_path: readFileSync(join(engine, "nextstat_wasm_bg.wasm")) });

const [file, verb, n] = process.argv.slice(2);
const files = new Files();
files.add("workspace", readFileSync(file));
const session = Session.open(files, JSON.stringify({ workspace: "workspace" }));
const times = [];
for (let i = 0; i < Number(n); i += 1) {
  const begun = performance.now();
  session.run(JSON.stringify({ verb }));
  times.push(performance.now() - begun);
}
times.sort((a, b) => a - b);
console.log(times[0].toFixed(2), times[times.length >> 1].toFixed(2));
