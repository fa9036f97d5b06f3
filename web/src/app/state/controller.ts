// What the reader can do: opens files, changes settings, and keeps the results in step with them.

import type { Documents, Engine, Subject } from "../engine/engine";
import { EngineError } from "../engine/pool";
import type { Failure, FileEntry, OpenRequest, Reproduction, Settings, Verb } from "../engine/protocol";
import { Background } from "./background";
import { digestOf } from "./digest";
import { failureOf } from "./failure";
import { NOTHING_SHARED, type Shared, openRequest } from "./fragment";
import { type Edit, begin, change, redo, undo } from "./history";
import { Latest } from "./latest";
import { AddressError, type NamedBlob, fetchFile, libraryOf, modelsOf, patchesOf, patchsetsOf } from "./loading";
import { PlaneRun, isOtherPlane } from "./plane";
import { fix } from "./settings";
import { type AppState, type Model, type Problem, NO_PLANE, noPart, noParts } from "./state";
import type { Store } from "./store";

// Changes that follow each other faster are one refit.
const DEBOUNCE = 40;

export class Controller {
  readonly background: Background;
  readonly plane: PlaneRun;
  private readonly refits = new Latest();
  private readonly slides = new Latest();
  private timer = 0;
  private loading = new AbortController();
  // The model that the tree is of.
  private described: OpenRequest | null = null;

  constructor(readonly store: Store<AppState>, readonly engine: Engine) {
    this.background = new Background(store, engine, () => this.subject());
    this.plane = new PlaneRun(store, engine);
  }

  // The open model with its settings.
  subject(): Subject | null {
    const { model, history } = this.store.get();
    return model && history ? { library: model.library, ...history.present } : null;
  }

  async openFiles(files: readonly NamedBlob[], urls: string[] = [], wish: Shared | null = null): Promise<void> {
    if (files.length === 0) return;
    const what = files.length === 1 ? files[0]!.name : `${files.length} files`;
    await this.attempt(what, (signal) => this.load(files, urls, wish, signal));
  }

  async openUrls(urls: readonly string[], wish: Shared | null = null): Promise<void> {
    await this.attempt(urls.join(", "), async (signal) => {
      const files = await Promise.all(urls.map((url) => fetchFile(url, signal)));
      if (!signal.aborted) await this.load(files, [...urls], wish, signal);
    });
  }

  // Applies a link without an address to the open model, and says if it is for another one.
  applyLink(shared: Shared): void {
    const { model, history: edits, overview } = this.store.get();
    if (!model || !edits) return;
    const open = requestFor(model, edits.present.open.workspace, shared);
    const changed = change(edits, { open, settings: shared.settings });
    this.store.set({ awaited: { digest: shared.digest, wish: shared } });
    if (changed === edits) this.compareDigest(overview.value && digestOf(overview.value));
    else this.follow(changed);
  }

  // Files that are opened from here on are not those of the link of this page.
  forgetLink(): void {
    this.store.set({ awaited: null });
    history.replaceState(null, "", location.pathname);
  }

  // Opens what the reader picked among several models.
  async pick(workspace: string, patchset: string | null): Promise<void> {
    const model = this.store.get().candidates;
    if (!model) return;
    const entries = model.entries.filter((entry) => entry.kind !== "patchset" || entry.path === patchset);
    const others = modelsOf(entries).filter((entry) => entry.path !== workspace).map((entry) => entry.path);
    const kept = entries.filter((entry) => !others.includes(entry.path));
    this.store.set({ candidates: null });
    await this.attempt(workspace, (signal) => this.openModel({ ...model, entries: kept }, null, signal));
  }

  edit(edit: Partial<Edit>): void {
    const { history } = this.store.get();
    if (history) this.follow(change(history, { ...history.present, ...edit }));
  }

  editSettings(change: (settings: Settings) => Settings): void {
    const { history } = this.store.get();
    if (history) this.edit({ settings: change(history.present.settings) });
  }

  openPatch(patch: string | null): void {
    const { history, model } = this.store.get();
    if (!history || !model?.patchset) return;
    const { patchset: _, ...rest } = history.present.open;
    this.edit({ open: patch === null ? rest : { ...rest, patchset: { file: model.patchset.file, patch } } });
  }

  // Applies one of the JSON patches that were dropped, or none.
  openPatchFile(path: string | null): void {
    const { history } = this.store.get();
    if (!history) return;
    const { patches: _, ...rest } = history.present.open;
    this.edit({ open: path === null ? rest : { ...rest, patches: [path] } });
  }

  undo(): void {
    const { history } = this.store.get();
    if (history?.past.length) this.follow(undo(history));
  }

  redo(): void {
    const { history } = this.store.get();
    if (history?.future.length) this.follow(redo(history));
  }

  // Fits with the parameter of interest fixed; the latest value wins.
  slide(at: number): void {
    this.store.set({ slider: { at } });
    this.slides.offer(() => this.conditionalFit());
  }

  // Goes back to the free fit, unless the reader wants to stay.
  release(force = false): void {
    const { slider, stays } = this.store.get();
    if (slider && (force || !stays)) this.store.set({ slider: null, conditional: null });
  }

  // Whether the slider stays where it is when it is let go.
  keep(stays: boolean): void {
    this.store.set({ stays });
    if (!stays) this.release(true);
  }

  reproduce(verb: Verb): Promise<Reproduction> {
    const subject = this.subject();
    if (!subject) return Promise.reject(new Error("no model is open"));
    return this.engine.reproduce(subject, verb);
  }

  // Returns the document of a verb with the present settings.
  document(verb: Verb & { verb: keyof Documents }): Promise<Documents[keyof Documents]> {
    const subject = this.subject();
    if (!subject) return Promise.reject(new Error("no model is open"));
    return this.engine.long(subject, verb);
  }

  private follow(history: AppState["history"]): void {
    if (!history || history === this.store.get().history) return;
    const { overview, slider, history: before } = this.store.get();
    this.background.invalidate();
    if (before && isOtherPlane(before.present, history.present)) this.plane.forget();
    this.store.set({ history, overview: { ...overview, stale: true, running: true }, ...(slider ? { slider: null, conditional: null } : {}) });
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.refits.offer(() => this.refit()), DEBOUNCE);
  }

  private async refit(): Promise<void> {
    const subject = this.subject();
    if (!subject) return;
    const { present } = this.store.get().history!;
    const isCurrent = () => this.store.get().history?.present === present;
    const begun = performance.now();
    try {
      const value = await this.engine.overview(subject);
      if (!isCurrent()) return;
      this.store.set({ overview: { ...noPart(), value, took: performance.now() - begun } });
      if (this.store.get().awaited) this.compareDigest(digestOf(value));
      await this.describe(subject, isCurrent);
      if (isCurrent()) this.background.start();
    } catch (error) {
      if (isCurrent()) this.store.set({ overview: { ...this.store.get().overview, running: false, stale: true, failure: failureOf(error) } });
    }
  }

  private async conditionalFit(): Promise<void> {
    const { slider, overview, history } = this.store.get();
    const [subject, poi] = [this.subject(), overview.value?.report.fit.poi];
    if (!slider || !subject || !poi) return;
    const isCurrent = () => this.store.get().history?.present === history?.present;
    try {
      const report = await this.engine.conditional({ ...subject, settings: fix(subject.settings, poi.name, slider.at) });
      if (isCurrent() && this.store.get().slider) this.store.set({ conditional: { at: slider.at, report } });
    } catch (error) {
      // Where the slider has been moved on, another fit is to come.
      if (isCurrent() && this.store.get().slider === slider) this.store.set({ slider: null, conditional: null, notice: failureOf(error).message });
    }
  }

  private async load(files: readonly NamedBlob[], urls: string[], wish: Shared | null, signal: AbortSignal): Promise<void> {
    const model = await this.recognise(files, urls);
    if (signal.aborted) return;
    if (modelsOf(model.entries).length === 0) throw new EngineError(nothingToFit(model.entries));
    const isClear = modelsOf(model.entries).length === 1 && patchsetsOf(model.entries).length <= 1;
    const wished = wish ?? this.awaited();
    if (isClear || wished?.workspace) await this.openModel(model, wished, signal);
    else this.store.set({ candidates: model, busy: null });
  }

  private async recognise(files: readonly NamedBlob[], urls: string[]): Promise<Model> {
    const library = libraryOf(files);
    const entries = await this.engine.list(library);
    const { model } = this.store.get();
    const isAddition = model && modelsOf(entries).length === 0 && entries.some((entry) => entry.kind === "patchset" || entry.kind === "patch");
    if (!isAddition) return { library, entries, urls, patchset: null };
    // A patch set that is dropped alone is for the open workspace.
    const both = libraryOf([...model.library.files, ...files]);
    const all = (await this.engine.list(both)).filter((entry) => modelsOf(model.entries).some((one) => one.path === entry.path) || modelsOf([entry]).length === 0);
    return { library: both, entries: all, urls: urls.length > 0 ? [...model.urls, ...urls] : [], patchset: null };
  }

  private async openModel(found: Model, wish: Shared | null, signal: AbortSignal): Promise<void> {
    const workspace = wish?.workspace ?? modelsOf(found.entries)[0]!.path;
    const file = wish?.patchset ?? patchsetsOf(found.entries)[0]?.path ?? null;
    const document = file === null ? null : await this.engine.patchset(found.library, workspace, file);
    const model: Model = { ...found, patchset: file !== null && document ? { file, document } : null };
    const open = requestFor(model, workspace, wish);
    const present: Edit = { open, settings: wish?.settings ?? {} };
    const subject: Subject = { library: model.library, ...present };
    const begun = performance.now();
    const value = await this.engine.overview(subject);
    if (signal.aborted) return;
    this.background.reset();
    this.plane.cancel();
    this.store.set({
      busy: null, problem: null, candidates: null, model, history: begin(present), slider: null, conditional: null, parts: noParts(), plane: NO_PLANE,
      overview: { ...noPart(), value, took: performance.now() - begun }, tree: null, parameters: [], notice: null,
    });
    this.compareDigest(digestOf(value));
    await this.describe(subject, () => this.store.get().model === model);
    this.background.start();
  }

  private async describe(subject: Subject, isCurrent: () => boolean): Promise<void> {
    const parameters = await this.engine.parameters(subject);
    if (!isCurrent()) return;
    this.store.set({ parameters });
    // The tree is that of the model, whatever its settings are.
    if (this.store.get().tree && this.described === subject.open) return;
    const tree = await this.engine.tree(subject);
    if (!isCurrent()) return;
    this.described = subject.open;
    this.store.set({ tree });
  }

  private awaited(): Shared | null {
    return this.store.get().awaited?.wish ?? null;
  }

  private compareDigest(digest: string | null): void {
    const { awaited } = this.store.get();
    const wanted = awaited?.digest ?? null;
    const isOther = wanted !== null && digest !== null && wanted !== digest;
    this.store.set({ awaited: null, notice: isOther ? `This is another workspace than that of the link: its digest is \`${digest.slice(0, 12)}…\`, that of the link is \`${wanted.slice(0, 12)}…\`.` : null });
  }

  // Runs a step of opening, in the place of one that is under way; what fails is told, and the
  // former model stays.
  private async attempt(what: string, step: (signal: AbortSignal) => Promise<void>): Promise<void> {
    this.loading.abort();
    this.loading = new AbortController();
    const { signal } = this.loading;
    this.store.set({ busy: what, problem: null });
    try {
      await step(signal);
    } catch (error) {
      if (signal.aborted) return;
      const problem: Problem = error instanceof AddressError ? error.problem : { what, failure: failureOf(error) };
      this.store.set({ problem });
    }
    if (!signal.aborted) this.store.set({ busy: null });
  }
}

// Patches are for a background: the first signal is opened, unless a link says which.
function requestFor(model: Model, workspace: string, wish: Shared | null): OpenRequest {
  const first = model.patchset?.document.patches[0]?.name ?? patchesOf(model.entries)[0]?.path ?? null;
  const file = model.patchset?.file ?? null;
  return openRequest({ ...(wish ?? NOTHING_SHARED), patch: wish?.patch ?? first }, workspace, file);
}

function nothingToFit(entries: readonly FileEntry[]): Failure {
  const list = entries.slice(0, 5).map((entry) => `\`${entry.path}\``).join(", ");
  return { message: `none of these files is a model: ${list}${entries.length > 5 ? ", …" : ""}`, hint: "drop a workspace of pyhf or HS3, a HistFactory measurement or a data card, with the files that it names" };
}
