// Builds the app into web/dist: bundles, static files, examples, and the engine as WebAssembly.
//
// node build-app.mjs [--engine FOLDER] [--output FOLDER]: FOLDER of the engine has nextstat_wasm.js
// and the other files of scripts/wasm.py, target/web unless it is given.
import { createHash } from "node:crypto";
import { copyFile, mkdir, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

import { licences } from "./licences.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, "..");
const output = resolve(option("--output") ?? join(here, "dist"));
const engine = resolve(option("--engine") ?? join(root, "target", "web"));
const EXAMPLES = ["simple.json", "shapes.json", "background.json", "signals.json", "plane.json"];
const STATIC = ["index.html", "manifest.webmanifest", "icon.svg", "icon-maskable.svg"];
const ENGINE = ["nextstat_wasm.js", "nextstat_wasm_bg.wasm", "THIRD-PARTY.txt"];

const options = { absWorkingDir: here, bundle: true, minify: true, charset: "utf8", legalComments: "none", metafile: true, target: "es2022", format: "esm", write: false };

function option(name) {
  const at = process.argv.indexOf(name);
  return at < 0 ? undefined : process.argv[at + 1];
}

async function copy(folder, names, to = output) {
  await mkdir(to, { recursive: true });
  for (const name of names) await copyFile(join(folder, name), join(to, name));
}

async function bundle(entry, name, more = {}) {
  const result = await build({ ...options, ...more, entryPoints: [entry] });
  const head = name.endsWith(".js") ? await licences(result.metafile) : "";
  await writeFile(join(output, name), head + result.outputFiles[0].text);
}

// All files in `folder` as paths with forward slashes.
async function filesIn(folder) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => relative(folder, join(entry.parentPath ?? entry.path, entry.name)).split(sep).join("/")).sort();
}

async function serviceWorker() {
  const files = await Promise.all((await filesIn(output)).map(async (path) => [path, `sha256-${createHash("sha256").update(await readFile(join(output, path))).digest("base64")}`]));
  const version = createHash("sha256").update(JSON.stringify(files)).digest("hex").slice(0, 16);
  await bundle("app/service-worker.ts", "service-worker.js", { format: "iife", define: { FILES: JSON.stringify(files), VERSION: JSON.stringify(version) } });
}

const missing = (await Promise.all(ENGINE.map((name) => readFile(join(engine, name)).then(() => null, () => name)))).filter(Boolean);
if (missing.length > 0) {
  console.error(`error: ${engine} has no ${missing.join(" and no ")}\nhint: build the engine first (\`make web\` builds both), or name its folder with --engine`);
  process.exit(1);
}
await rm(output, { recursive: true, force: true });
await copy(join(here, "app"), STATIC);
await copy(engine, ENGINE);
await copy(join(root, "examples"), EXAMPLES, join(output, "examples"));
await bundle("src/app/main.tsx", "app.js");
await bundle("src/app/engine/worker.ts", "worker.js");
await bundle("src/app/embed/element.ts", "embed.js", { format: "iife" });
await bundle("src/app/app.css", "app.css");
await serviceWorker();
for (const path of await filesIn(output)) console.log(`${path}: ${(await readFile(join(output, path))).length} bytes`);
