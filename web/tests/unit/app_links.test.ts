// A link leads to what it was copied from, and files that are not those of the link say so.

import assert from "node:assert/strict";
import { test } from "node:test";

import { EngineError } from "../../src/app/engine/pool";
import type { Subject } from "../../src/app/engine/engine";
import { sharedState } from "../../src/app/state/address";
import type { Controller } from "../../src/app/state/controller";
import { NOTHING_SHARED, type Shared, decode, encode } from "../../src/app/state/fragment";
import { DIGEST, controller, entry, file, fitted } from "./fake_engine";

Object.assign(globalThis, { document: { baseURI: "https://example.org/" } });
globalThis.fetch = (async () => ({ ok: true, blob: async () => new Blob() })) as unknown as typeof fetch;

const OTHER = "0".repeat(64);
const urls = (...names: string[]) => names.map((name) => `https://example.org/${name}`);
const opened = (app: Controller) => app.store.get().history!.present;
const problem = (app: Controller) => app.store.get().problem?.failure.message ?? "";
const copied = (app: Controller): Shared => decode(encode(sharedState(app.store.get())));

// Opens the link of `app` in another page, and returns what is open there.
async function follow(app: Controller, replies = {}): Promise<unknown> {
  const link = copied(app);
  const other = controller(replies);
  await other.openUrls(link.urls, link);
  assert.equal(problem(other), "");
  return opened(other);
}

test("a link leads to the same patches, whichever are applied", async () => {
  for (const names of [["a.json"], ["a.json", "patch1.json"], ["a.json", "patch1.json", "patch2.json"], ["a.json", "patchset.json"], ["a.json", "patchset.json", "patch1.json"]]) {
    const app = controller();
    await app.openUrls(urls(...names));
    const check = async () => assert.deepEqual(await follow(app), opened(app), JSON.stringify(opened(app)));
    await check();
    const changes = [
      () => app.openPatch("s2"), () => app.openPatchFile("patch1.json"), () => app.openPatch(null), () => app.openPatchFile(null),
      () => app.edit({ open: { ...opened(app).open, measurement: "m", mass: 125 } }), () => app.editSettings((settings) => ({ ...settings, mask: ["CR"] })),
    ];
    for (const [i, apply] of changes.entries()) {
      if (i % 2 === 1 && i < 4 && !names.includes("patch1.json")) continue;
      apply();
      await fitted();
      await check();
    }
  }
});

test("a link of one of several models opens that one, with its settings", async () => {
  const replies = { list: async () => ["z/one.json", "z/two.json", "z/patchset1.json", "z/patchset2.json"].map(entry) };
  for (const patchset of ["z/patchset2.json", null]) {
    const app = controller(replies);
    await app.openUrls(urls("z.zip"));
    await app.pick("z/two.json", patchset);
    app.edit({ settings: { mask: ["CR"] } });
    await fitted();
    assert.equal(opened(app).open.workspace, "z/two.json");
    assert.deepEqual(await follow(app, replies), opened(app));
  }
});

test("a choice among models keeps the settings of the link", async () => {
  const app = controller();
  await app.openFiles([file("one.json"), file("two.json")], [], { ...NOTHING_SHARED, settings: { mask: ["CR"] }, measurement: "m" });
  assert.notEqual(app.store.get().candidates, null);
  await app.pick("two.json", null);
  assert.deepEqual(opened(app), { open: { workspace: "two.json", measurement: "m" }, settings: { mask: ["CR"] } });
});

test("a choice that cannot be opened can be made again", async () => {
  const overview = async ({ open }: Subject) => {
    if (open.workspace === "two.json") throw new EngineError({ message: "no channel" });
    return { report: { fit: {} } };
  };
  const app = controller({ overview });
  await app.openFiles([file("one.json"), file("two.json")]);
  await app.pick("two.json", null);
  assert.equal(problem(app), "no channel");
  await app.pick("one.json", null);
  assert.equal(opened(app).open.workspace, "one.json");
  assert.equal(app.store.get().candidates, null);
});

test("a patch set that is added keeps settings and edits", async () => {
  const app = controller();
  await app.openFiles([file("one.json"), file("two.json")]);
  await app.pick("two.json", null);
  app.edit({ settings: { mask: ["CR"] } });
  await fitted();
  await app.openFiles([file("patchset.json")]);
  assert.deepEqual(opened(app), { open: { workspace: "two.json", patchset: { file: "patchset.json", patch: "s1" } }, settings: { mask: ["CR"] } });
  app.undo();
  assert.deepEqual(opened(app), { open: { workspace: "two.json" }, settings: { mask: ["CR"] } });
  await fitted();
});

test("a patch that is added is applied, whatever was before", async () => {
  const app = controller();
  await app.openFiles([file("a.json"), file("patch1.json")]);
  await app.openFiles([file("patch0.json")]);
  await app.openFiles([file("patch2.json")]);
  assert.deepEqual(opened(app).open, { workspace: "a.json", patches: ["patch2.json"] });
  await app.openFiles([file("patchset.json")]);
  await app.openFiles([file("patch3.json")]);
  assert.deepEqual(opened(app).open, { workspace: "a.json", patchset: { file: "patchset.json", patch: "s1" }, patches: ["patch3.json"] });
});

test("a link that names a patch says that its patch set is missing", async () => {
  for (const patch of ["s2", "patch1.json"]) {
    const app = controller();
    await app.openFiles([file("a.json")], [], { ...NOTHING_SHARED, patch });
    assert.match(problem(app), new RegExp(`the link names the patch \`${patch}\`, and the files have neither`));
    assert.equal(app.store.get().model, null);
  }
});

// Settings name a parameter that the model does not have.
const withoutJes = async ({ settings }: Subject) => {
  if (settings.fixed) throw new EngineError({ message: "fixed names the parameter JES", hint: "model.par_names lists them" });
  return { report: { fit: {}, provenance: { workspace: { digest: DIGEST } } } };
};

test("a file that is not the one of the link says this first", async () => {
  const wish = { ...NOTHING_SHARED, settings: { fixed: { JES: 1 } } };
  const app = controller({ overview: withoutJes });
  await app.openFiles([file("a.json")], [], { ...wish, digest: OTHER });
  assert.match(problem(app), /^This is another workspace than that of the link: .*dddd.*0000.*\nfixed names the parameter JES$/);
  await app.openFiles([file("a.json")], [], { ...wish, digest: DIGEST });
  assert.equal(problem(app), "fixed names the parameter JES");
});

test("a link for another file that is applied to the open model says this first", async () => {
  const app = controller({ overview: withoutJes });
  await app.openFiles([file("a.json")]);
  await app.applyLink({ ...NOTHING_SHARED, settings: { fixed: { JES: 1 } }, digest: OTHER });
  await fitted();
  assert.match(app.store.get().overview.failure!.message, /^This is another workspace than that of the link/);
});

test("a link with an address notices that its file has changed", async () => {
  const app = controller();
  await app.openUrls(urls("a.json"), { ...NOTHING_SHARED, digest: OTHER });
  assert.match(app.store.get().notice ?? "", /another workspace/);
  await app.openUrls(urls("a.json"), { ...NOTHING_SHARED, digest: DIGEST });
  assert.equal(app.store.get().notice, null);
});

test("a link is applied to the model that it names among those of an archive", async () => {
  const app = controller();
  await app.openFiles(["one.json", "two.json", "patchset1.json", "patchset2.json"].map(file));
  await app.pick("two.json", null);
  await app.applyLink({ ...NOTHING_SHARED, settings: { mask: ["CR"] } });
  assert.deepEqual(opened(app), { open: { workspace: "two.json" }, settings: { mask: ["CR"] } });
  await app.applyLink({ ...NOTHING_SHARED, workspace: "one.json" });
  assert.deepEqual(opened(app), { open: { workspace: "one.json" }, settings: {} });
  await app.applyLink({ ...NOTHING_SHARED, patchset: "patchset2.json", patch: "s3" });
  assert.deepEqual(opened(app).open, { workspace: "one.json", patchset: { file: "patchset2.json", patch: "s3" } });
  assert.equal(app.store.get().model!.patchset!.file, "patchset2.json");
  await fitted();
});

test("the engine says what is wrong with a file that is alone", async () => {
  const overview = async ({ open }: Subject) => { throw new EngineError({ message: `${open.workspace} is empty at line 1`, hint: "`nextstat build` makes one" }); };
  const app = controller({ overview });
  await app.openFiles([file("other.json")]);
  assert.equal(problem(app), "other.json is empty at line 1");
  assert.match(app.store.get().problem!.failure.hint!, /^drop a workspace/);
  await app.openFiles([file("other1.json"), file("other2.json")]);
  assert.match(problem(app), /none of these files is a model/);
});

test("a card that needs a mass is opened with it, and its link has it", async () => {
  const overview = async ({ open }: Subject) => {
    if (!("mass" in open)) throw new EngineError({ message: "the card names `$MASS`, and no mass is given", hint: "give the mass with `-m`" });
    return { report: { fit: {} } };
  };
  const app = controller({ overview });
  await app.openUrls(urls("card.txt"), { ...NOTHING_SHARED, settings: { mask: ["CR"] } });
  assert.deepEqual(app.store.get().problem?.failure, { message: "the card names `$MASS`, and no mass is given" });
  await app.openWithMass(125.5);
  assert.deepEqual(opened(app), { open: { workspace: "card.txt", mass: 125.5 }, settings: { mask: ["CR"] } });
  assert.deepEqual(await follow(app, { overview }), opened(app));
});
