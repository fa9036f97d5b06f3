// Tests every signal of a patch set, as many at a time as there are workers.

import type { Json } from "../../documents";
import type { PatchSet } from "../engine/documents";
import type { Engine } from "../engine/engine";
import { Cancelled } from "../engine/pool";
import type { OpenRequest } from "../engine/protocol";
import { failureOf } from "./failure";
import { type Edit, textOf } from "./history";
import { Latest } from "./latest";
import { type AppState, NO_PLANE, type PlaneResult } from "./state";
import type { Store } from "./store";

// The page is drawn again at most so often while results come in, in milliseconds.
const PACE = 150;

export class PlaneRun {
  private abort: AbortController | null = null;
  private readonly contours = new Latest();
  // How often results have been forgotten: what was asked for before is of other settings.
  private generation = 0;

  constructor(private readonly store: Store<AppState>, private readonly engine: Engine) {}

  // Tests the signals that have no result yet.
  async start(): Promise<void> {
    const { model, history, plane } = this.store.get();
    if (!model?.patchset || !history) return;
    this.cancel();
    const abort = new AbortController();
    this.abort = abort;
    const { file, document } = model.patchset;
    const results = new Map<string, PlaneResult>(plane.results);
    const missing = document.patches.map((patch) => patch.name).filter((name) => !results.has(name));
    const show = (running: boolean) => {
      this.store.set({ plane: { ...this.store.get().plane, running, results: new Map(results), wanted: document.patches.length } });
      this.contours.offer(() => this.drawBoundary());
    };
    show(true);
    const pace = setInterval(() => show(true), PACE);
    await Promise.all(missing.map(async (patch) => {
      const open: OpenRequest = { ...history.present.open, patchset: { file, patch } };
      const result = await this.test({ library: model.library, open, settings: history.present.settings }, abort.signal);
      if (result) results.set(patch, result);
    }));
    clearInterval(pace);
    if (this.store.get().model === model && this.abort === abort) show(false);
  }

  cancel(): void {
    this.abort?.abort();
    this.abort = null;
    const { plane } = this.store.get();
    if (plane.running) this.store.set({ plane: { ...plane, running: false } });
  }

  // Chooses the labels of the axes.
  show(axes: [string, string]): void {
    const { plane } = this.store.get();
    if (plane.axes?.[0] === axes[0] && plane.axes[1] === axes[1]) return;
    this.store.set({ plane: { ...plane, axes, exclusion: null } });
    this.contours.offer(() => this.drawBoundary());
  }

  // Finds where the exclusion ends. Before all signals are tested there is no boundary: it would
  // lead through signals whose result is not known.
  private async drawBoundary(): Promise<void> {
    const { generation } = this;
    const { model, plane } = this.store.get();
    if (!model?.patchset || !plane.axes || plane.results.size < model.patchset.document.patches.length) return;
    const [x, y] = plane.axes;
    const grid = gridOf(model.patchset.document, plane.results);
    const exclusion = await this.engine.exclusion(model.library, { grid, x, y }).catch(() => null);
    const now = this.store.get();
    if (this.generation === generation && now.model === model && now.plane.axes === plane.axes) this.store.set({ plane: { ...now.plane, exclusion } });
  }

  // Results with other settings are of no use.
  forget(): void {
    this.cancel();
    this.generation += 1;
    this.store.set({ plane: { ...NO_PLANE, axes: this.store.get().plane.axes } });
  }

  private async test(subject: Parameters<Engine["long"]>[0], signal: AbortSignal): Promise<PlaneResult | null> {
    try {
      return { result: await this.engine.long(subject, { verb: "hypotest", mu: 1, provenance: false }, { signal, last: true }) };
    } catch (error) {
      return error instanceof Cancelled ? null : { failure: failureOf(error) };
    }
  }
}

// Whether the signals have other results after an edit: all that matters but which of them is open.
export function isOtherPlane(before: Edit, after: Edit): boolean {
  const key = ({ open: { patchset: _, ...open }, settings }: Edit) => textOf({ open, settings });
  return key(before) !== key(after);
}

// Returns the results as the command writes them for all patches of a set.
function gridOf({ labels, patches }: PatchSet, results: ReadonlyMap<string, PlaneResult>): Json {
  const entries = patches.flatMap(({ name, values }): Json[] => {
    const found = results.get(name);
    if (!found) return [];
    const place = Object.fromEntries(labels.map((label, i) => [label, values[i] ?? null]));
    return [{ patch: name, values: place, ...("result" in found ? { result: found.result as unknown as Json } : { error: found.failure.message }) }];
  });
  return { n_patches: entries.length, patches: entries };
}
