// Results that take longer: computed after the fit, one worker each, and cancelled when the
// settings change.

import type { Documents, Engine, Subject } from "../engine/engine";
import { Cancelled } from "../engine/pool";
import type { Verb } from "../engine/protocol";
import { failureOf } from "./failure";
import type { AppState, Part, Parts } from "./state";
import type { Store } from "./store";

// What took longer is not repeated after each change, but when the reader asks for it.
const PATIENCE = 4000;
const DEBOUNCE = 300;

export type Automatic = "scan" | "limit" | "significance" | "ranking";
const AUTOMATIC: readonly Automatic[] = ["scan", "limit", "significance", "ranking"];

export interface ToyRequest {
  mu: number;
  n_toys: number;
  seed: number;
}

export class Background {
  private readonly aborts = new Map<keyof Parts, AbortController>();
  private timer = 0;
  // The parameter of the scan, if it is not the one of interest.
  private scanned: string | null = null;

  constructor(private readonly store: Store<AppState>, private readonly engine: Engine, private readonly subject: () => Subject | null) {}

  // Cancels everything: its settings are not those on display any more.
  invalidate(): void {
    clearTimeout(this.timer);
    for (const abort of this.aborts.values()) abort.abort();
    this.aborts.clear();
    const parts = Object.fromEntries(Object.entries(this.store.get().parts).map(([key, part]) => [key, { ...part, stale: true, running: false, progress: null }]));
    this.store.set({ parts: parts as unknown as Parts });
  }

  // Forgets what was chosen for another model.
  reset(): void {
    this.invalidate();
    this.scanned = null;
  }

  // Starts what was quick enough the last time.
  start(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const { parts, overview } = this.store.get();
      if (!overview.value?.report.fit.poi) return;
      for (const key of AUTOMATIC) if ((parts[key].took ?? 0) < PATIENCE) this.run(key);
    }, DEBOUNCE);
  }

  run(key: Automatic): void {
    if (key === "scan") void this.compute("scan", this.scanned === null ? { verb: "scan" } : { verb: "scan", parameter: this.scanned });
    else void this.compute(key, { verb: key });
  }

  scan(parameter: string | null): void {
    this.scanned = parameter;
    this.run("scan");
  }

  toys(request: ToyRequest): void {
    // With one worker, toys would wait minutes for a ranking that no one has asked for.
    if (this.engine.nSlow === 1 && this.store.get().parts.ranking.running) this.cancel("ranking");
    void this.compute("toys", { verb: "hypotest-toys", ...request });
  }

  cancel(key: keyof Parts): void {
    this.aborts.get(key)?.abort();
    this.update(key, { running: false, progress: null });
  }

  private async compute<K extends keyof Parts>(key: K, verb: Verb & { verb: keyof Documents }): Promise<void> {
    const subject = this.subject();
    if (!subject) return;
    this.aborts.get(key)?.abort();
    const abort = new AbortController();
    this.aborts.set(key, abort);
    this.update(key, { running: true, progress: null, failure: null });
    const begun = performance.now();
    const progress = (done: number, total: number) => this.update(key, { progress: [done, total] });
    try {
      const value = await this.engine.long(subject, verb, { signal: abort.signal, progress });
      this.update(key, { value: value as never, verb, stale: false, running: false, progress: null, took: performance.now() - begun });
    } catch (error) {
      if (error instanceof Cancelled) return;
      this.update(key, { value: null, running: false, progress: null, failure: failureOf(error), took: performance.now() - begun });
    }
  }

  private update<K extends keyof Parts>(key: K, change: Partial<Part<never>>): void {
    const { parts } = this.store.get();
    this.store.set({ parts: { ...parts, [key]: { ...parts[key], ...change } } });
  }
}
