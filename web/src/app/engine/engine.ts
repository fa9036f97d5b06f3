// The engine as the page uses it: typed questions, and which workers answer them.

import type { Fit, Limit, Ranking, Report, Scan } from "../../documents";
import type { Exclusion, HypotestToys, Hypotest, Overview, Parameter, PatchSet, Significance, Tree } from "./documents";
import { type MakeWorker, Pool, type Progress } from "./pool";
import type { ExclusionQuestion, FileEntry, Library, OpenRequest, Reproduction, RunRequest, Settings, Task, Verb } from "./protocol";

// A model with settings, which questions are about.
export interface Subject {
  library: Library;
  open: OpenRequest;
  settings: Settings;
}

// The verbs of long work, and their documents.
export interface Documents {
  fit: Fit;
  report: Report;
  ranking: Ranking;
  scan: Scan;
  limit: Limit;
  significance: Significance;
  hypotest: Hypotest;
  "hypotest-toys": HypotestToys;
}

export interface Watch {
  signal?: AbortSignal;
  progress?: Progress;
  last?: boolean;
}

// More workers than this have little to do, and each has its copy of the files.
const MOST = 6;

export class Engine {
  private readonly quick: Pool;
  private readonly slow: Pool;

  constructor(make: MakeWorker, cores: number) {
    this.quick = new Pool(1, make);
    // One core is for the page, which has to answer.
    this.slow = new Pool(Math.min(Math.max(cores - 1, 1), MOST), make);
  }

  get nSlow(): number {
    return this.slow.size;
  }

  // Starts the first worker, so that it is there when it is needed.
  warmUp(): void {
    // Where the engine cannot be started, the first file says why.
    this.ask({ id: 0, files: [] }, { kind: "warm-up" }).catch(() => undefined);
  }

  list(library: Library, signal?: AbortSignal): Promise<FileEntry[]> {
    return this.ask(library, { kind: "list" }, signal);
  }

  patchset(library: Library, workspace: string, patchset: string, signal?: AbortSignal): Promise<PatchSet> {
    return this.ask(library, { kind: "patchset", workspace, patchset }, signal);
  }

  overview(subject: Subject, signal?: AbortSignal): Promise<Overview> {
    return this.ask(subject.library, run(subject, { verb: "overview" }), signal);
  }

  conditional(subject: Subject): Promise<Report> {
    return this.ask(subject.library, run(subject, { verb: "conditional" }));
  }

  parameters(subject: Subject): Promise<Parameter[]> {
    return this.ask(subject.library, run(subject, { verb: "parameters" }));
  }

  tree(subject: Subject): Promise<Tree> {
    return this.ask(subject.library, run(subject, { verb: "tree" }));
  }

  reproduce(subject: Subject, verb: Verb): Promise<Reproduction> {
    return this.ask(subject.library, { ...run(subject, verb), kind: "reproduce" });
  }

  exclusion(library: Library, question: ExclusionQuestion): Promise<Exclusion> {
    return this.ask(library, { kind: "exclusion", question });
  }

  // Long work, which can be watched and cancelled.
  long<V extends keyof Documents>(subject: Subject, verb: Verb & { verb: V }, watch: Watch = {}): Promise<Documents[V]> {
    return this.slow.run({ library: subject.library, task: run(subject, verb), ...watch });
  }

  private ask<T>(library: Library, task: Task, signal?: AbortSignal): Promise<T> {
    return this.quick.run({ library, task, signal });
  }
}

function run({ open, settings }: Subject, verb: Verb): Task & { kind: "run" } {
  const request: RunRequest = { ...verb, settings };
  return { kind: "run", open, request };
}
