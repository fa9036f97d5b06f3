// Runs the unit tests: bundles each, since this Node does not read TypeScript, and gives them to
// Node's test runner.
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = join(dirname(fileURLToPath(import.meta.url)), "unit");
const folder = await mkdtemp(join(tmpdir(), "nextstat-web-"));
const files = (await readdir(here)).filter((name) => name.endsWith(".test.ts"));
await build({
  entryPoints: files.map((name) => join(here, name)),
  outdir: folder,
  outExtension: { ".js": ".mjs" },
  bundle: true,
  format: "esm",
  platform: "node",
  jsx: "automatic",
  jsxImportSource: "preact",
  logLevel: "warning",
});
const tests = files.map((name) => join(folder, name.replace(/\.ts$/, ".mjs")));
const { status } = spawnSync(process.execPath, ["--test", ...tests], { stdio: "inherit" });
await rm(folder, { recursive: true });
process.exitCode = status ?? 1;
