// The address as the page keeps it: views are steps of the browser's history.

import assert from "node:assert/strict";
import { test } from "node:test";

import { followAddress } from "../../src/app/state/address";
import { controller, file } from "./fake_engine";

// A browser's history, as far as the page uses it.
class FakeHistory {
  entries: { hash: string; state: unknown }[] = [{ hash: "", state: null }];
  at = 0;
  listener = () => {};
  get hash(): string {
    return this.entries[this.at]!.hash;
  }
  get state(): unknown {
    return this.entries[this.at]!.state;
  }
  pushState(state: unknown, _: string, hash: string): void {
    this.at += 1;
    this.entries = [...this.entries.slice(0, this.at), { hash, state }];
  }
  replaceState(state: unknown, _: string, hash: string): void {
    this.entries[this.at] = { hash, state };
  }
  go(step: number): void {
    this.at += step;
    this.listener();
  }
  paste(hash: string): void {
    this.pushState(null, "", hash);
    this.listener();
  }
}

function browser(): FakeHistory {
  const history = new FakeHistory();
  Object.assign(globalThis, {
    document: { baseURI: "https://example.org/", documentElement: { dataset: {} } }, history,
    location: { get hash() { return history.hash; }, pathname: "/", search: "" },
    window: { addEventListener: (_: string, listener: () => void) => { history.listener = listener; } },
  });
  return history;
}

const written = () => new Promise((resolve) => setTimeout(resolve, 400));

test("Back leads to the view before, and leaves the settings", async () => {
  const history = browser();
  const app = controller();
  followAddress(app);
  await app.openFiles([file("a.json")]);
  await written();
  app.store.set({ view: "pulls" });
  await written();
  app.edit({ settings: { mask: ["CR"] } });
  await written();
  assert.equal(history.entries.length, 2);
  history.go(-1);
  assert.equal(app.store.get().view, "overview");
  assert.deepEqual(app.store.get().history!.present.settings, { mask: ["CR"] });
  history.go(1);
  assert.equal(app.store.get().view, "pulls");
});

test("a link to the open address is applied without another download", async () => {
  const history = browser();
  const app = controller();
  let n = 0;
  globalThis.fetch = (async () => {
    n += 1;
    return { ok: true, blob: async () => new Blob() };
  }) as unknown as typeof fetch;
  followAddress(app);
  history.paste("#url=a.json");
  await written();
  assert.equal(n, 1);
  history.paste("#view=pulls&url=a.json&settings=" + encodeURIComponent('{"mask":["CR"]}'));
  await written();
  const { view, history: edits } = app.store.get();
  assert.deepEqual([n, view, edits!.present.settings], [1, "pulls", { mask: ["CR"] }]);
  history.paste("#url=b.json");
  await written();
  assert.equal(n, 2);
  assert.equal(app.store.get().history!.present.open.workspace, "b.json");
});
