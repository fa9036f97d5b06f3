import assert from "node:assert/strict";
import { test } from "node:test";

import { Latest } from "../../src/app/state/latest";

const soon = () => new Promise((resolve) => setTimeout(resolve));

test("of jobs that come while one runs, the last is run", async () => {
  const latest = new Latest();
  const run: string[] = [];
  const gates: (() => void)[] = [];
  const job = (name: string) => () => {
    run.push(name);
    return new Promise<void>((resolve) => gates.push(resolve));
  };
  for (const name of ["a", "b", "c"]) latest.offer(job(name));
  gates[0]!();
  await soon();
  assert.deepEqual(run, ["a", "c"]);
  gates[1]!();
  await soon();
  latest.offer(job("d"));
  assert.deepEqual(run, ["a", "c", "d"]);
});

test("a job that fails is reported, and the next is run", async () => {
  const reported: unknown[] = [];
  (globalThis as { reportError?: unknown }).reportError = (error: unknown) => reported.push(error);
  const latest = new Latest();
  latest.offer(() => Promise.reject(new Error("boom")));
  await soon();
  let isRun = false;
  latest.offer(async () => { isRun = true; });
  await soon();
  assert.equal(isRun, true);
  assert.deepEqual(reported.map(String), ["Error: boom"]);
});
