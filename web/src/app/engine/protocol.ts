// What the page and its workers say to each other, and the interface of the engine itself.

import type { Json } from "../../documents";

export type FileKind = "pyhf" | "hs3" | "histfactory-xml" | "card" | "patchset" | "patch" | "root" | "other";

export interface FileEntry {
  path: string;
  bytes: number;
  kind: FileKind;
}

export interface OpenRequest {
  workspace: string;
  patchset?: { file: string; patch: string };
  patches?: string[];
  measurement?: string;
  // What `$MASS` stands for in a data card.
  mass?: number;
}

export interface Settings {
  poi?: string;
  // Fit Asimov data of this signal instead of the observed data.
  asimov?: number;
  fixed?: Record<string, number>;
  bounds?: Record<string, [number, number]>;
  // Channels that are left out of the fit.
  mask?: string[];
}

export type Verb =
  | { verb: "inspect" }
  | { verb: "parameters" }
  | { verb: "tree" }
  | { verb: "overview" }
  // The parts of an overview that change when a parameter is fixed at another value.
  | { verb: "conditional" }
  | { verb: "report" }
  | { verb: "fit" }
  | { verb: "ranking" }
  | { verb: "scan"; parameter?: string; points?: number; range?: [number, number] }
  | { verb: "limit" }
  | { verb: "significance" }
  | { verb: "hypotest"; mu?: number; provenance?: boolean }
  | { verb: "hypotest-toys"; mu?: number; n_toys?: number; seed?: number };

// The tests of signals, and the labels of the axes of their plane.
export interface ExclusionQuestion {
  grid: Json;
  x: string;
  y: string;
}

export type RunRequest = { settings?: Settings } & Verb;

export interface Reproduction {
  command: string;
  python: string;
}

// The files that were dropped together; workers read them when they first need them.
export interface Library {
  id: number;
  files: { name: string; blob: Blob }[];
}

// What a worker is asked for.
export type Task =
  | { kind: "list" }
  | { kind: "patchset"; workspace: string; patchset: string }
  | { kind: "run"; open: OpenRequest; request: RunRequest }
  | { kind: "warm-up" }
  | { kind: "exclusion"; question: ExclusionQuestion }
  | { kind: "reproduce"; open: OpenRequest; request: RunRequest };

// The first message to a worker: the compiled engine, which all workers share, or why there is
// none.
export type Start = { module: WebAssembly.Module } | { broken: string };

export interface Order {
  id: number;
  library: Library;
  task: Task;
}

export interface Failure {
  message: string;
  hint?: string;
  // The worker is not to be used again.
  isFatal?: true;
}

export type Answer =
  | { id: number; progress: [number, number] }
  | { id: number; result: unknown }
  | { id: number; failure: Failure };

// The classes of the engine's module.
export interface EngineFiles {
  add(name: string, bytes: Uint8Array): string;
  list(): string;
  patchset(workspace: string, patchset: string): string;
  free(): void;
}

export interface EngineSession {
  // JSON: a list of text.
  warnings(): string;
  run(request: string, progress?: (done: number, total: number) => void): string;
  reproduce(request: string): string;
  free(): void;
}

export interface EngineModule {
  default: (options: { module_or_path: WebAssembly.Module }) => Promise<unknown>;
  Files: new () => EngineFiles;
  Session: { open(files: EngineFiles, request: string): EngineSession };
  exclusion(question: string): string;
}
