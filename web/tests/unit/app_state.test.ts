import assert from "node:assert/strict";
import { test } from "node:test";

import { NOTHING_SHARED, decode, encode, openRequest, type Shared } from "../../src/app/state/fragment";
import { begin, change, redo, undo, type Edit } from "../../src/app/state/history";
import { bound, boundsOf, countChanges, fix, fixedAt, isMasked, mask, withAsimov, withPoi } from "../../src/app/state/settings";
import { poiRange, riseOf } from "../../src/app/state/slider";
import { initialState, shownView, viewsOf, type Model } from "../../src/app/state/state";
import type { Report } from "../../src/documents";

const edit = (poi: string): Edit => ({ open: { workspace: "a.json" }, settings: { poi } });

test("undo and redo go through all edits, and a new edit forgets what was undone", () => {
  const three = change(change(begin(edit("a")), edit("b")), edit("c"));
  assert.equal(undo(three).present.settings.poi, "b");
  assert.equal(undo(undo(undo(three))).present.settings.poi, "a");
  assert.equal(redo(undo(three)).present.settings.poi, "c");
  assert.equal(redo(three).present.settings.poi, "c");
  const other = change(undo(undo(three)), edit("d"));
  assert.deepEqual([other.future.length, undo(other).present.settings.poi], [0, "a"]);
});

test("an edit that changes nothing is not one", () => {
  const history = begin(edit("a"));
  assert.equal(change(history, edit("a")), history);
});

test("a change that is taken back leaves the settings as they were", () => {
  const changed = mask(bound(fix({}, "JES", 0.5), "mu", [0, 3]), "SR", true);
  assert.deepEqual([fixedAt(changed, "JES"), boundsOf(changed, "mu"), isMasked(changed, "SR")], [0.5, [0, 3], true]);
  assert.equal(countChanges(changed), 3);
  assert.deepEqual(mask(bound(fix(changed, "JES", null), "mu", null), "SR", false), {});
  assert.deepEqual(withPoi(withAsimov(withPoi(withAsimov({}, 0), "a"), null), null), {});
});

test("equal settings are equal as text, in whatever order they were made", () => {
  const one = mask(fix(fix({}, "b", 1), "a", 2), "SR", true);
  const other = fix(fix(mask({}, "SR", true), "a", 2), "b", 1);
  assert.equal(JSON.stringify(one), JSON.stringify(other));
});

test("`__proto__` is a name as any other", () => {
  const settings = fix({}, "__proto__", 1);
  assert.equal(fixedAt(settings, "__proto__"), 1);
  assert.equal(fixedAt(settings, "toString"), null);
  assert.equal(fixedAt(decode(encode({ ...PLAIN, settings })).settings, "__proto__"), 1);
});

const PLAIN = NOTHING_SHARED;

test("a fragment says what the state was", () => {
  const settings = { asimov: 1, bounds: { "mu & co": [0, 3] as [number, number] }, fixed: { "JES#1": -0.25 }, mask: ["SR[0]", "ÅÄ?=&"], poi: "mu" };
  const shared: Shared = { view: "pulls", urls: ["https://example.org/a.json?b=1&c=2", "x.json"], workspace: "a/b.json", patchset: "p.json", patch: "s 1", patches: ["a.json", "b&c.json"], measurement: "m", mass: 125.5, settings, digest: "0".repeat(64), theme: "dark", embedded: true };
  assert.deepEqual(decode(encode(shared)), shared);
  assert.equal(encode(PLAIN), "");
  assert.deepEqual(decode(""), PLAIN);
});

test("a fragment that is not of the expected form is left out", () => {
  const hostile = `#view=constructor&sha256=abc&mass=Infinity&theme=red&settings=${encodeURIComponent('{"fixed":{"a":"1"},"bounds":{"b":[1]},"mask":[1],"poi":7,"asimov":null,"init":{"c":1},"extra":1}')}`;
  assert.deepEqual(decode(hostile), PLAIN);
  assert.deepEqual(decode("#settings={"), PLAIN);
  assert.deepEqual(decode("#settings=[1]"), PLAIN);
});

test("a link without names opens what the files have", () => {
  assert.deepEqual(openRequest({ ...PLAIN, patch: "s" }, "w.json", "p.json"), { workspace: "w.json", patchset: { file: "p.json", patch: "s" } });
  assert.deepEqual(openRequest({ ...PLAIN, patch: "a.json" }, "w.json", null), { workspace: "w.json", patches: ["a.json"] });
  assert.deepEqual(openRequest({ ...PLAIN, patch: "" }, "w.json", "p.json"), { workspace: "w.json" });
  assert.equal(decode(encode({ ...PLAIN, patch: "" })).patch, "");
  assert.deepEqual(openRequest({ ...PLAIN, workspace: "b.json", measurement: "m" }, "w.json", null), { workspace: "b.json", measurement: "m" });
});

test("a model without a patch set has no view of signals, and shows another one", () => {
  const model: Model = { library: { id: 1, files: [] }, entries: [], urls: [], patchset: null };
  const without = { ...initialState(), model, view: "patches" as const };
  assert.equal(viewsOf(without).includes("patches"), false);
  assert.equal(shownView(without), "overview");
  const patched = { ...without, model: { ...model, patchset: { file: "p.json", document: { labels: [], patches: [] } as never } } };
  assert.equal(shownView(patched), "patches");
});

test("the slider reaches four standard deviations, inside the bounds", () => {
  const poi = { name: "mu", index: 0, bestfit: 1, uncertainty: 0.5 };
  assert.deepEqual(poiRange(poi, null), { low: -1, high: 3, step: 0.02 });
  assert.deepEqual(poiRange(poi, [0, 2.5]), { low: 0, high: 2.5, step: 0.02 });
  assert.deepEqual(poiRange({ ...poi, bestfit: 0, uncertainty: null }, [0, 10]), { low: 0, high: 2, step: 0.01 });
  assert.deepEqual(poiRange({ ...poi, bestfit: 1.3662, uncertainty: 0.7391 }, [0, 10]), { low: 0, high: 4.3, step: 0.05 });
});

test("the rise of a conditional fit is not below zero", () => {
  const fit = (twice_nll: number | null) => ({ fit: { twice_nll } }) as unknown as Report;
  assert.equal(riseOf(fit(103.84), fit(100))?.toFixed(2), "3.84");
  assert.equal(riseOf(fit(100 - 1e-12), fit(100)), 0);
  assert.equal(riseOf(fit(null), fit(100)), null);
});
