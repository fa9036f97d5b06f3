// Tests every signal of a patch set, as many at a time as there are workers.

import type { Engine } from "../engine/engine";
import { Cancelled } from "../engine/pool";
import type { OpenRequest } from "../engine/protocol";
import { failureOf } from "./failure";
import { type AppState, NO_PLANE, type PlaneResult } from "./state";
import type { Store } from "./store";

// The page is drawn again at most so often while results come in, in milliseconds.
const PACE = 150;

export class PlaneRun {
  private abort: AbortController | null = null;

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
    const show = (running: boolean) => this.store.set({ plane: { running, results: new Map(results), wanted: document.patches.length } });
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

  // Results with other settings are of no use.
  forget(): void {
    this.cancel();
    this.store.set({ plane: NO_PLANE });
  }

  private async test(subject: Parameters<Engine["long"]>[0], signal: AbortSignal): Promise<PlaneResult | null> {
    try {
      return { result: await this.engine.long(subject, { verb: "hypotest", mu: 1 }, { signal, last: true }) };
    } catch (error) {
      return error instanceof Cancelled ? null : { failure: failureOf(error) };
    }
  }
}
