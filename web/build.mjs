// Builds the files of crates/ns-report/assets; with `--check`, compares them with what is there.
import { readFile, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

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

// The licences of the packages in a bundle, once each text.
async function licences(metafile) {
  const inputs = Object.keys(metafile.inputs).map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]);
  const packages = new Map();
  for (const name of [...new Set(inputs)].filter(Boolean).sort()) {
    const folder = join(here, "node_modules", name);
    const { version } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
    const text = (await readFile(join(folder, file), "utf8")).replaceAll("\r\n", "\n").trim();
    packages.set(text, [...(packages.get(text) ?? []), `${name} ${version}`]);
  }
  const parts = [...packages].map(([text, names]) => `${names.join(", ")}\n\n${text}`);
  return `/*! This file contains these libraries.\n\n${parts.join("\n\n---\n\n").replaceAll("*/", "* /")}\n*/\n`;
}

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
