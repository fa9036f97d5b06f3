// Runs the engine: keeps the files and the compiled model of the last order, because the next one
// mostly wants the same.

import example from "../../../../examples/shapes.json";
import type { Answer, EngineFiles, EngineModule, EngineSession, Failure, Library, OpenRequest, Order, Start, Task } from "./protocol";

interface Scope {
  onmessage: ((event: MessageEvent<Order | Start>) => void) | null;
  postMessage(answer: Answer): void;
}

const scope = globalThis as unknown as Scope;
let start: (message: Start) => void;
const engine = new Promise<Start>((resolve) => { start = resolve; }).then(load);
let files: { id: number; files: EngineFiles } | null = null;
let session: { key: string; session: EngineSession } | null = null;
// Orders are executed one by one: reading files waits in between.
let last: Promise<void> = Promise.resolve();

async function load(message: Start): Promise<EngineModule> {
  if ("broken" in message) throw new Error(message.broken);
  const place = new URL("./nextstat_wasm.js", import.meta.url).href;
  const module = (await import(place)) as EngineModule;
  await module.default({ module_or_path: message.module });
  return module;
}

scope.onmessage = ({ data }) => {
  if ("task" in data) last = last.then(() => execute(data));
  else start(data);
};

async function execute({ id, library, task }: Order): Promise<void> {
  try {
    const module = await engine;
    if (task.kind === "warm-up") return scope.postMessage({ id, result: warmUp(module) });
    const from = await filesOf(library);
    const text = perform(module, from, library.id, task, (done, total) => scope.postMessage({ id, progress: [done, total] }));
    scope.postMessage({ id, result: complete(JSON.parse(text) as object, task) });
  } catch (error) {
    scope.postMessage({ id, failure: failureOf(error) });
  }
}

function perform(module: EngineModule, from: EngineFiles, library: number, task: Exclude<Task, { kind: "warm-up" }>, progress: (done: number, total: number) => void): string {
  if (task.kind === "list") return from.list();
  if (task.kind === "patchset") return from.patchset(task.workspace, task.patchset);
  if (task.kind === "exclusion") return module.exclusion(JSON.stringify(task.question));
  const opened = sessionOf(module, from, library, task.open);
  const request = JSON.stringify(task.request);
  return task.kind === "reproduce" ? opened.reproduce(request) : opened.run(request, progress);
}

// An overview says what the model does not have of its files, too.
function complete(result: object, task: Task): unknown {
  if (task.kind !== "run" || task.request.verb !== "overview") return result;
  return { ...result, model_warnings: JSON.parse(session!.session.warnings()) as string[] };
}

// Code that has run once is compiled, which is half of the time of a first fit.
function warmUp({ Files, Session }: EngineModule): null {
  const made = new Files();
  const name = "example.json";
  made.add(name, new TextEncoder().encode(JSON.stringify(example)));
  const opened = Session.open(made, JSON.stringify({ workspace: name }));
  opened.run(JSON.stringify({ verb: "overview" }));
  opened.free();
  made.free();
  return null;
}

async function filesOf(library: Library): Promise<EngineFiles> {
  if (files?.id === library.id) return files.files;
  const { Files } = await engine;
  const made = new Files();
  try {
    for (const { name, blob } of library.files) made.add(name, new Uint8Array(await blob.arrayBuffer()));
  } catch (error) {
    if (isOfEngine(error)) made.free();
    throw error;
  }
  forget();
  files = { id: library.id, files: made };
  return made;
}

function sessionOf({ Session }: EngineModule, from: EngineFiles, library: number, open: OpenRequest): EngineSession {
  const key = JSON.stringify([library, open]);
  if (session?.key === key) return session.session;
  const opened = Session.open(from, JSON.stringify(open));
  session?.session.free();
  session = { key, session: opened };
  return opened;
}

function forget(): void {
  session?.session.free();
  files?.files.free();
  [session, files] = [null, null];
}

// Errors that the engine reports. Every other exception is a defect that may leave its memory half
// changed: nothing of it is used or freed after that, and the page ends this worker.
function isOfEngine(error: unknown): error is Error {
  return error instanceof Error && (error.name === "EngineError" || "hint" in error);
}

function failureOf(error: unknown): Failure {
  if (isOfEngine(error)) {
    const { hint } = error as Error & { hint?: unknown };
    return typeof hint === "string" ? { message: error.message, hint } : { message: error.message };
  }
  const isStopped = error instanceof WebAssembly.RuntimeError || error instanceof RangeError;
  const message = error instanceof Error ? error.message : String(error);
  return { message: isStopped ? `the engine stopped: ${message}` : message, isFatal: true };
}
