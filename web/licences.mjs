// The licences of the packages in a bundle.
import { readFile, readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

// Returns a comment with the licences, once each text; empty without packages.
export async function licences(metafile) {
  const inputs = Object.keys(metafile.inputs).map((path) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1]);
  const packages = new Map();
  for (const name of [...new Set(inputs)].filter(Boolean).sort()) {
    const folder = join(here, "node_modules", name);
    const { version } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((entry) => /^licen[cs]e/i.test(entry));
    const text = (await readFile(join(folder, file), "utf8")).replaceAll("\r\n", "\n").trim();
    packages.set(text, [...(packages.get(text) ?? []), `${name} ${version}`]);
  }
  if (packages.size === 0) return "";
  const parts = [...packages].map(([text, names]) => `${names.join(", ")}\n\n${text}`);
  return `/*! This file contains these libraries.\n\n${parts.join("\n\n---\n\n").replaceAll("*/", "* /")}\n*/\n`;
}
