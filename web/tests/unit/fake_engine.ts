// The controller with an engine that answers at once, or when a test says so.

import { Engine } from "../../src/app/engine/engine";
import type { FileEntry, FileKind, Library } from "../../src/app/engine/protocol";
import { Controller } from "../../src/app/state/controller";
import type { NamedBlob } from "../../src/app/state/loading";
import { initialState } from "../../src/app/state/state";
import { Store } from "../../src/app/state/store";

export const DIGEST = "d".repeat(64);

type Replies = { [K in keyof Engine]?: (...given: never[]) => unknown };

export function controller(replies: Replies = {}): Controller {
  const report = { fit: { poi: { name: "mu" } }, provenance: { workspace: { digest: DIGEST } } };
  const patches = [["s1", 1, 2], ["s2", 2, 3], ["s3", 3, 1]].map(([name, ...values]) => ({ name, values }));
  const engine = {
    nSlow: 1,
    list: async (library: Library) => library.files.map((file) => entry(file.name)),
    patchset: async () => ({ labels: ["a", "b"], patches }),
    overview: async () => ({ report }),
    conditional: async () => report,
    parameters: async () => [],
    tree: async () => ({ channels: [] }),
    long: async () => ({ CLs_obs: 0.5 }),
    exclusion: async () => ({ x: "a", y: "b", observed: { contours: [] }, expected: [] }),
    ...replies,
  };
  return new Controller(new Store(initialState()), engine as unknown as Engine);
}

// An entry whose kind is in its name.
export function entry(path: string): FileEntry {
  const kinds: [string, FileKind][] = [["patchset", "patchset"], ["patch", "patch"], ["card", "card"], ["other", "other"]];
  return { path, bytes: 1, kind: kinds.find(([word]) => path.includes(word))?.[1] ?? "pyhf" };
}

export function file(name: string): NamedBlob {
  return { name, blob: new Blob() };
}

// Lets what has been asked for arrive; `fitted` waits for a refit as well.
export const soon = () => new Promise((resolve) => setTimeout(resolve, 1));
export const fitted = () => new Promise((resolve) => setTimeout(resolve, 80));

// A promise and what fulfils it.
export function gate<T>(): { promise: Promise<T>; open: (value: T) => void; refuse: (error: Error) => void } {
  let [open, refuse] = [(_: T) => {}, (_: Error) => {}];
  const promise = new Promise<T>((resolve, reject) => { [open, refuse] = [resolve, reject]; });
  return { promise, open, refuse };
}
