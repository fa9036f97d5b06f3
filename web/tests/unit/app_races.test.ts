// Answers that come late are of a model or of settings that are not on display any more.

import assert from "node:assert/strict";
import { test } from "node:test";

import type { Subject } from "../../src/app/engine/engine";
import { Cancelled } from "../../src/app/engine/pool";
import { controller, file, fitted, gate, soon } from "./fake_engine";

Object.assign(globalThis, { document: { baseURI: "https://example.org/" } });

test("files that are dropped while an address is fetched stay open", async () => {
  const slow = gate<object>();
  let signal: AbortSignal | null | undefined;
  globalThis.fetch = ((_: URL, options: RequestInit) => {
    signal = options.signal;
    return slow.promise;
  }) as typeof fetch;
  const app = controller();
  const older = app.openUrls(["https://example.org/slow.json"]);
  await app.openFiles([file("later.json")]);
  assert.equal(signal?.aborted, true);
  slow.open({ ok: true, blob: async () => new Blob() });
  await older;
  const { model, busy, problem } = app.store.get();
  assert.deepEqual([model?.entries.map((one) => one.path), busy, problem], [["later.json"], null, null]);
});

test("opening is cancelled, and what is opened next does not wait for it", async () => {
  const signals: (AbortSignal | undefined)[] = [];
  const stuck = gate<unknown>();
  const app = controller({
    overview: (_: Subject, signal?: AbortSignal) => {
      signals.push(signal);
      if (signals.length > 1) return Promise.resolve({ report: { fit: {}, provenance: null } });
      signal?.addEventListener("abort", () => stuck.refuse(new Cancelled()));
      return stuck.promise;
    },
  });
  const opening = app.openFiles([file("a.json")]);
  await soon();
  assert.equal(app.store.get().busy, "a.json");
  app.cancelOpening();
  await opening;
  const { model, busy, problem } = app.store.get();
  assert.deepEqual([signals[0]?.aborted, model, busy, problem], [true, null, null, null]);
  await app.openFiles([file("b.json")]);
  assert.deepEqual(app.store.get().model?.entries.map((one) => one.path), ["b.json"]);
});

test("the slider does not show a fit with former settings", async () => {
  const asked: { subject: Subject; answer: ReturnType<typeof gate<unknown>> }[] = [];
  const app = controller({
    conditional: (subject: Subject) => {
      asked.push({ subject, answer: gate() });
      return asked.at(-1)!.answer.promise;
    },
  });
  await app.openFiles([file("a.json")]);
  app.slide(1);
  app.edit({ settings: { mask: ["CR"] } });
  app.slide(2);
  asked[0]!.answer.open("without the mask");
  await soon();
  assert.equal(app.store.get().conditional, null);
  assert.deepEqual(asked[1]!.subject.settings, { fixed: { mu: 2 }, mask: ["CR"] });
  asked[1]!.answer.open("with the mask");
  await soon();
  assert.deepEqual(app.store.get().conditional, { at: 2, report: "with the mask" });
});

test("a fit that fails does not take the slider from where it has been moved since", async () => {
  const first = gate<unknown>();
  let n = 0;
  const app = controller({ conditional: () => (n++ === 0 ? first.promise : Promise.resolve("at 2")) });
  await app.openFiles([file("a.json")]);
  app.slide(1);
  app.slide(2);
  first.refuse(new Error("no minimum"));
  await soon();
  const { slider, conditional, notice } = app.store.get();
  assert.deepEqual([slider, conditional, notice], [{ at: 2 }, { at: 2, report: "at 2" }, null]);
});

test("a plane has no results of another measurement or of other settings", async () => {
  const app = controller();
  await app.openFiles([file("a.json"), file("patchset.json")]);
  const tested = async () => {
    await app.plane.start();
    return app.store.get().plane.results.size;
  };
  const { open } = app.store.get().history!.present;
  assert.equal(await tested(), 3);
  app.openPatch("s2");
  assert.equal(app.store.get().plane.results.size, 3);
  app.edit({ open: { ...open, measurement: "other" } });
  assert.equal(app.store.get().plane.results.size, 0);
  assert.equal(await tested(), 3);
  app.edit({ settings: { mask: ["CR"] } });
  assert.equal(app.store.get().plane.results.size, 0);
  await fitted();
});

test("a boundary that comes late is not drawn in the plane of other settings", async () => {
  const boundary = gate<unknown>();
  const app = controller({ exclusion: () => boundary.promise });
  await app.openFiles([file("a.json"), file("patchset.json")]);
  app.plane.show(["a", "b"]);
  await app.plane.start();
  await soon();
  app.edit({ settings: { mask: ["CR"] } });
  boundary.open("of former settings");
  await soon();
  assert.equal(app.store.get().plane.exclusion, null);
  await fitted();
});
