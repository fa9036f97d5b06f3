// Builds the files of crates/ns-report/assets; with `--check`, compares them with what is there.
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

import { licences } from "./licences.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const assets = join(here, "..", "crates", "ns-report", "assets");
const MAX_BYTES = 450_000;

const options = {
  absWorkingDir: here,
  bundle: true,
  minify: true,
  charset: "utf8",
  legalComments: "none",
  metafile: true,
  target: "es2022",
  write: false,
};

async function script() {
  const result = await build({ ...options, entryPoints: ["src/report/main.tsx"], format: "iife" });
  const text = (await licences(result.metafile)) + result.outputFiles[0].text;
  if (/<\/script|<!--/i.test(text)) throw new Error("the script contains text that ends an element `script`");
  if (Buffer.byteLength(text) > MAX_BYTES) throw new Error(`the script has more than ${MAX_BYTES} bytes`);
  return text;
}

async function style() {
  const result = await build({ ...options, entryPoints: ["src/report/report.css"] });
  return result.outputFiles[0].text;
}

const files = {
  "report.js": await script(),
  "report.css": await style(),
  "template.html": await readFile(join(here, "src", "report", "template.html"), "utf8"),
};
for (const [name, text] of Object.entries(files)) {
  const path = join(assets, name);
  if (!process.argv.includes("--check")) {
    await writeFile(path, text);
    console.log(`${name}: ${Buffer.byteLength(text)} bytes`);
  } else if ((await readFile(path, "utf8").catch(() => "")) !== text) {
    console.error(`error: crates/ns-report/assets/${name} is not what web/ gives\nhint: run \`make web\` and commit the result`);
    process.exitCode = 1;
  }
}
