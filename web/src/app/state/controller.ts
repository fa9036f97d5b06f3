// What the reader can do: opens files, changes settings, and keeps the results in step with them.

import type { Documents, Engine, Subject } from "../engine/engine";
import { EngineError } from "../engine/pool";
import type { Failure, FileEntry, OpenRequest, Reproduction, Settings, Verb } from "../engine/protocol";
import { Background } from "./background";
import { digestOf } from "./digest";
import { failureOf } from "./failure";
import { NOTHING_SHARED, type Shared, openRequest } from "./fragment";
import { type Edit, type History, begin, change, redo, undo } from "./history";
import { Latest } from "./latest";
import { OpeningError, type NamedBlob, fetchFile, libraryOf, modelsOf, openableOf, patchesOf, patchsetsOf, settled } from "./loading";
import { PlaneRun, isOtherPlane } from "./plane";
import { fix } from "./settings";
import { type AppState, type Model, type Problem, NO_PLANE, noPart, noParts } from "./state";
import type { Store } from "./store";

const WHAT_TO_OPEN = "drop a workspace of pyhf or HS3, a HistFactory measurement or a data card, with the files that it names";

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

  // Applies a link to the open model, and says if it is for another one.
  async applyLink(shared: Shared): Promise<void> {
    const { model, history: edits, overview } = this.store.get();
    if (!model || !edits) return;
    const { open } = edits.present;
    const here = { workspace: open.workspace, patchset: model.patchset?.file ?? "" };
    const named = { ...shared, workspace: shared.workspace ?? here.workspace, patchset: shared.patchset ?? here.patchset, mass: shared.mass ?? open.mass ?? null };
    const wish = settled(model.entries, named) ?? { ...named, ...here };
    await this.attempt(wish.workspace!, async (signal) => {
      if (wish.workspace !== here.workspace || wish.patchset !== here.patchset) return this.openModel({ ...model, patchset: null }, wish, signal);
      const changed = change(edits, { open: requestFor(model, wish), settings: wish.settings });
      this.store.set({ awaited: { digest: wish.digest, wish } });
      if (changed === edits) this.compareDigest(overview.value && digestOf(overview.value), wish.digest);
      else this.follow(changed);
    });
  }

  // Files that are opened from here on are not those of the link of this page.
  forgetLink(): void {
    this.store.set({ awaited: null });
    history.replaceState(null, "", location.pathname);
  }

  // Ends opening, also where the engine is busy with it.
  cancelOpening(): void {
    this.loading.abort();
    this.store.set({ busy: null });
  }

  // Opens what the reader picked among several models. The choice stays until one is open.
  async pick(workspace: string, patchset: string | null): Promise<void> {
    const { candidates } = this.store.get();
    if (!candidates) return;
    const wish = { ...(candidates.wish ?? NOTHING_SHARED), workspace, patchset: patchset ?? "" };
    await this.attempt(workspace, (signal) => this.openModel(candidates.model, wish, signal));
  }

  // Opens the data card that could not be opened without a mass.
  async openWithMass(mass: number): Promise<void> {
    const { problem } = this.store.get();
    if (!problem?.needsMass) return;
    const { model, wish } = problem.needsMass;
    await this.attempt(problem.what, (signal) => this.openModel(model, { ...(wish ?? NOTHING_SHARED), mass }, signal));
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
      const { awaited } = this.store.get();
      if (awaited) this.compareDigest(digestOf(value), awaited.digest);
      await this.describe(subject, isCurrent);
      if (isCurrent()) this.background.start();
    } catch (error) {
      const { awaited, model } = this.store.get();
      const failure = awaited && model ? (await this.explained(error, subject, { model, wish: awaited.wish })).problem.failure : failureOf(error);
      if (isCurrent()) this.store.set({ overview: { ...this.store.get().overview, running: false, stale: true, failure } });
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
    const { history: edits, model: before } = this.store.get();
    const library = libraryOf(files);
    const entries = await this.engine.list(library, signal);
    if (signal.aborted) return;
    const isAddition = before && edits && modelsOf(entries).length === 0 && entries.some((entry) => entry.kind === "patchset" || entry.kind === "patch");
    if (isAddition) return this.add(files, entries, urls, wish, signal);
    if (openableOf(entries).length === 0) throw new EngineError(nothingToFit(entries));
    await this.openOrAsk({ library, entries, urls, patchset: null }, wish ?? this.awaited(), signal, null);
  }

  // Patches that are dropped alone are for the open workspace, whose settings stay.
  private async add(files: readonly NamedBlob[], added: FileEntry[], urls: string[], wish: Shared | null, signal: AbortSignal): Promise<void> {
    const { history: edits, model: before } = this.store.get();
    if (!before || !edits) return;
    const library = libraryOf([...before.library.files, ...files]);
    const all = await this.engine.list(library, signal);
    if (signal.aborted) return;
    const entries = all.filter((entry) => before.entries.some((one) => one.path === entry.path) || added.some((one) => one.path === entry.path));
    const model: Model = { library, entries, urls: urls.length > 0 ? [...before.urls, ...urls] : [], patchset: null };
    const wished = wish ? { ...wish, workspace: wish.workspace ?? edits.present.open.workspace } : withPatches(before, edits.present, added);
    // Edits with another patch set cannot be gone back to.
    const isOtherSet = before.patchset !== null && patchsetsOf(added).length > 0;
    await this.openOrAsk(model, wished, signal, isOtherSet ? null : edits);
  }

  private async openOrAsk(model: Model, wish: Shared | null, signal: AbortSignal, edits: History | null): Promise<void> {
    const choice = settled(model.entries, wish);
    if (choice) await this.openModel(model, choice, signal, edits);
    else this.store.set({ candidates: { model, wish } });
  }

  // Opens what a wish, which names its workspace and its patch set, is about. Edits go on where
  // the workspace is the same as before.
  private async openModel(found: Model, wish: Shared, signal: AbortSignal, edits: History | null = null): Promise<void> {
    const workspace = wish.workspace!;
    const file = wish.patchset || null;
    const document = file === null ? null : await this.engine.patchset(found.library, workspace, file, signal);
    const model: Model = { ...found, patchset: file !== null && document ? { file, document } : null };
    const present: Edit = { open: requestFor(model, wish), settings: wish.settings };
    const subject: Subject = { library: model.library, ...present };
    const begun = performance.now();
    const value = await this.engine.overview(subject, signal).catch(async (error: unknown) => {
      if (signal.aborted) throw error;
      throw await this.explained(error, subject, { model: found, wish });
    });
    if (signal.aborted) return;
    this.background.reset();
    this.plane.cancel();
    this.store.set({
      busy: null, problem: null, candidates: null, model, history: edits ? change(edits, present) : begin(present), slider: null, conditional: null, parts: noParts(), plane: NO_PLANE,
      overview: { ...noPart(), value, took: performance.now() - begun }, tree: null, parameters: [], notice: null,
    });
    this.compareDigest(digestOf(value), wish.digest);
    await this.describe(subject, () => this.store.get().model === model);
    this.background.start();
  }

  // Says why a model cannot be fitted: first, whether it is another one than that of the link.
  private async explained(error: unknown, subject: Subject, given: { model: Model; wish: Shared }): Promise<OpeningError> {
    const what = subject.open.workspace;
    const isRecognised = modelsOf(given.model.entries).some((entry) => entry.path === what);
    const failure = isRecognised ? failureOf(error) : { message: failureOf(error).message, hint: WHAT_TO_OPEN };
    if (failure.message.includes("$MASS")) return new OpeningError({ what, failure: { message: failure.message }, needsMass: given });
    const wanted = given.wish.digest;
    const digest = wanted === null ? null : await this.engine.overview({ ...subject, settings: {} }).then(digestOf, () => null);
    const other = otherThanWanted(digest, wanted);
    if (other === null) return new OpeningError({ what, failure });
    return new OpeningError({ what, failure: { message: `${other}\n${failure.message}`, hint: "open the file that the link was made for" } });
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

  private compareDigest(digest: string | null, wanted: string | null): void {
    this.store.set({ awaited: null, notice: otherThanWanted(digest, wanted) });
  }

  // Runs a step of opening, instead of one that is under way; what fails is told, and the
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
      const problem: Problem = error instanceof OpeningError ? error.problem : { what, failure: failureOf(error) };
      this.store.set({ problem });
    }
    if (!signal.aborted) this.store.set({ busy: null });
  }
}

// Patches are for a background: the first signal is opened, unless a wish says which.
function requestFor(model: Model, wish: Shared): OpenRequest {
  const { entries, patchset } = model;
  const first = patchset?.document.patches[0]?.name ?? patchesOf(entries)[0]?.path ?? null;
  if (wish.patch && !patchset && !entries.some((entry) => entry.path === wish.patch)) {
    const message = `the link names the patch \`${wish.patch}\`, and the files have neither a patch set nor a file of that name`;
    throw new EngineError({ message, hint: "open the workspace together with its patch set or patch" });
  }
  return openRequest({ ...wish, patch: wish.patch ?? first }, wish.workspace!, patchset?.file ?? null);
}

// Returns what is open, with patches that have been added to it.
function withPatches(model: Model, { open, settings }: Edit, added: readonly FileEntry[]): Shared {
  const [sets, files] = [patchsetsOf(added).map((entry) => entry.path), patchesOf(added).map((entry) => entry.path)];
  const file = sets.length === 1 ? sets[0]! : sets.length > 1 ? null : (model.patchset?.file ?? "");
  const patches = files.length > 0 ? files.slice(0, 1) : (open.patches ?? []);
  const kept = { ...NOTHING_SHARED, workspace: open.workspace, patchset: file, measurement: open.measurement ?? null, mass: open.mass ?? null, settings };
  if (file === "") return { ...kept, patch: patches[0] ?? "", patches: patches.slice(1) };
  // The first signal of a set that is new.
  return { ...kept, patch: sets.length > 0 ? null : (open.patchset?.patch ?? ""), patches: files.length > 0 ? patches : sets.length > 0 ? [] : patches };
}

function otherThanWanted(digest: string | null, wanted: string | null): string | null {
  if (wanted === null || digest === null || wanted === digest) return null;
  return `This is another workspace than that of the link: its digest is \`${digest.slice(0, 12)}…\`, that of the link is \`${wanted.slice(0, 12)}…\`.`;
}

function nothingToFit(entries: readonly FileEntry[]): Failure {
  const list = entries.slice(0, 5).map((entry) => `\`${entry.path}\``).join(", ");
  return { message: `none of these files is a model: ${list}${entries.length > 5 ? ", …" : ""}`, hint: WHAT_TO_OPEN };
}
