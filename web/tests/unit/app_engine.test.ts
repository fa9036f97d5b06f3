import assert from "node:assert/strict";
import { test } from "node:test";

import { Cancelled, EngineError, Pool } from "../../src/app/engine/pool";
import type { Answer, Failure, Library, Order, Task } from "../../src/app/engine/protocol";
import { kindName, modelsOf, patchsetsOf } from "../../src/app/state/loading";
import { numericLabels, pointsOf } from "../../src/app/state/plane_points";

const LIBRARY: Library = { id: 1, files: [] };
const task = (workspace: string): Task => ({ kind: "patchset", workspace, patchset: "" });

// A worker that answers when the test says so.
class FakeWorker {
  static made: FakeWorker[] = [];
  onmessage: ((event: { data: Answer }) => void) | null = null;
  onerror: ((event: { message: string; preventDefault(): void }) => void) | null = null;
  orders: Order[] = [];
  isEnded = false;
  constructor() {
    FakeWorker.made.push(this);
  }
  postMessage(order: Order): void {
    this.orders.push(order);
  }
  terminate(): void {
    this.isEnded = true;
  }
  say(answer: Partial<{ result: unknown; failure: Failure; progress: [number, number] }>): void {
    this.onmessage!({ data: { id: this.orders.at(-1)!.id, ...answer } as Answer });
  }
}

function pool(size: number): { pool: Pool; workers: FakeWorker[] } {
  FakeWorker.made = [];
  return { pool: new Pool(size, () => new FakeWorker() as unknown as Worker), workers: FakeWorker.made };
}

test("as many tasks run as there are workers, and the others wait", async () => {
  const { pool: two, workers } = pool(2);
  const results = ["a", "b", "c"].map((name) => two.run<string>({ library: LIBRARY, task: task(name) }));
  assert.deepEqual(workers.map((worker) => worker.orders.length), [1, 1]);
  workers[1]!.say({ result: "B" });
  assert.equal(await results[1], "B");
  assert.equal(workers[1]!.orders.length, 2);
  workers[0]!.say({ result: "A" });
  workers[1]!.say({ result: "C" });
  assert.deepEqual(await Promise.all(results), ["A", "B", "C"]);
});

test("what may wait lets others pass", async () => {
  const { pool: one, workers } = pool(1);
  for (const name of ["a", "b"]) void one.run({ library: LIBRARY, task: task(name), last: true });
  void one.run({ library: LIBRARY, task: task("c") });
  workers[0]!.say({ result: null });
  assert.deepEqual(workers[0]!.orders.map(({ task: given }) => given.kind === "patchset" && given.workspace), ["a", "c"]);
});

test("a task that is cancelled ends its worker, and the next has a new one", async () => {
  const { pool: one, workers } = pool(1);
  const abort = new AbortController();
  const result = one.run({ library: LIBRARY, task: task("a"), signal: abort.signal });
  const next = one.run({ library: LIBRARY, task: task("b") });
  abort.abort();
  await assert.rejects(result, Cancelled);
  assert.deepEqual(workers.map((worker) => worker.isEnded), [true, false]);
  workers[1]!.say({ result: "B" });
  assert.equal(await next, "B");
});

test("a task that is cancelled while it waits is not run", async () => {
  const { pool: one, workers } = pool(1);
  const abort = new AbortController();
  const first = one.run({ library: LIBRARY, task: task("a") });
  const waiting = one.run({ library: LIBRARY, task: task("b"), signal: abort.signal });
  abort.abort();
  await assert.rejects(waiting, Cancelled);
  workers[0]!.say({ result: 1 });
  assert.equal(await first, 1);
  assert.deepEqual([workers.length, workers[0]!.orders.length, workers[0]!.isEnded], [1, 1, false]);
});

test("progress is told, and an error of the engine has its hint", async () => {
  const { pool: one, workers } = pool(1);
  const steps: number[] = [];
  const result = one.run({ library: LIBRARY, task: task("a"), progress: (done) => steps.push(done) });
  workers[0]!.say({ progress: [1, 2] });
  workers[0]!.say({ failure: { message: "no", hint: "do" } });
  await assert.rejects(result, (error) => error instanceof EngineError && error.message === "no" && error.hint === "do");
  assert.deepEqual(steps, [1]);
});

test("a worker that fails rejects its task, and the next has a new one", async () => {
  const { pool: one, workers } = pool(1);
  const result = one.run({ library: LIBRARY, task: task("a") });
  workers[0]!.onerror!({ message: "boom", preventDefault: () => undefined });
  await assert.rejects(result, /boom/);
  void one.run({ library: LIBRARY, task: task("b") });
  assert.equal(workers.length, 2);
});

test("a worker that says that it cannot go on is ended, whatever its words are", async () => {
  const { pool: one, workers } = pool(1);
  const first = one.run({ library: LIBRARY, task: task("a") });
  workers[0]!.say({ failure: { message: "too deep", isFatal: true } });
  await assert.rejects(first, /too deep/);
  assert.equal(workers[0]!.isEnded, true);
  const next = one.run({ library: LIBRARY, task: task("b") });
  workers[1]!.say({ failure: { message: "the engine stopped" } });
  await assert.rejects(next, /the engine stopped/);
  assert.equal(workers[1]!.isEnded, false);
});

test("cancelling many tasks starts no worker for those that wait", async () => {
  const { pool: two, workers } = pool(2);
  const abort = new AbortController();
  const results = Array.from({ length: 20 }, (_, i) => two.run({ library: LIBRARY, task: task(String(i)), signal: abort.signal }));
  abort.abort();
  const ended = await Promise.allSettled(results);
  assert.ok(ended.every((one) => one.status === "rejected" && one.reason instanceof Cancelled));
  assert.equal(workers.length, 2);
});

test("models and patch sets are told apart from what they need", () => {
  const entries = (["pyhf", "root", "card", "patchset", "other"] as const).map((kind) => ({ path: kind, bytes: 1, kind }));
  assert.deepEqual(modelsOf(entries).map((entry) => entry.path), ["pyhf", "card"]);
  assert.deepEqual(patchsetsOf(entries).map((entry) => kindName(entry.kind)), ["patch set"]);
});

test("a plane has the labels that are numbers in every patch", () => {
  const patchset = { labels: ["m1", "name", "m2"], patches: [{ name: "a", values: [1, "x", 2] }, { name: "b", values: [3, "y", 4] }] };
  const [x, y] = numericLabels(patchset);
  assert.deepEqual([x?.name, y?.name], ["m1", "m2"]);
  const result = { mu: 1, CLs_obs: 0.03, CLs_exp: [0, 0, 0.06, 0, 0] };
  const points = pointsOf(patchset, x!, y!, new Map([["a", { result }], ["b", { failure: { message: "no" } }]]));
  assert.deepEqual(points.map((point) => [point.x, point.y, point.observed, point.expected, point.state]), [[1, 2, 0.03, 0.06, "done"], [3, 4, null, null, "failed"]]);
  assert.deepEqual(pointsOf(patchset, x!, x!, new Map()).map((point) => [point.y, point.state]), [[0, "waiting"], [0, "waiting"]]);
});
