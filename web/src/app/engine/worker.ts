// Runs the engine: keeps the files and the compiled model of the last order, because the next one
// mostly wants the same.

import type { Answer, EngineFiles, EngineModule, EngineSession, Failure, Library, OpenRequest, Order, Task } from "./protocol";

interface Scope {
  onmessage: ((event: MessageEvent<Order>) => void) | null;
  postMessage(answer: Answer): void;
}

const scope = globalThis as unknown as Scope;
const engine = load();
let files: { id: number; files: EngineFiles } | null = null;
let session: { key: string; session: EngineSession } | null = null;
// Orders are executed one by one: reading files waits in between.
let last: Promise<void> = Promise.resolve();

async function load(): Promise<EngineModule> {
  const place = new URL("./nextstat_wasm.js", import.meta.url).href;
  const module = (await import(place)) as EngineModule;
  await module.default({ module_or_path: new URL("./nextstat_wasm_bg.wasm", import.meta.url) });
  return module;
}

scope.onmessage = ({ data: order }) => {
  last = last.then(() => execute(order));
};

async function execute({ id, library, task }: Order): Promise<void> {
  try {
    const from = await filesOf(library);
    const result = perform(await engine, from, library.id, task, (done, total) => scope.postMessage({ id, progress: [done, total] }));
    scope.postMessage({ id, result: JSON.parse(result) as unknown });
  } catch (error) {
    scope.postMessage({ id, failure: failureOf(error) });
  }
}

function perform(module: EngineModule, from: EngineFiles, library: number, task: Task, progress: (done: number, total: number) => void): string {
  if (task.kind === "list") return from.list();
  if (task.kind === "patchset") return from.patchset(task.workspace, task.patchset);
  if (task.kind === "exclusion") return module.exclusion(JSON.stringify(task.question));
  const opened = sessionOf(module, from, library, task.open);
  const request = JSON.stringify(task.request);
  return task.kind === "reproduce" ? opened.reproduce(request) : opened.run(request, progress);
}

async function filesOf(library: Library): Promise<EngineFiles> {
  if (files?.id === library.id) return files.files;
  const { Files } = await engine;
  const made = new Files();
  try {
    for (const { name, blob } of library.files) made.add(name, new Uint8Array(await blob.arrayBuffer()));
  } catch (error) {
    made.free();
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

function failureOf(error: unknown): Failure {
  if (!(error instanceof Error)) return { message: String(error) };
  const { hint } = error as Error & { hint?: unknown };
  const message = error instanceof WebAssembly.RuntimeError ? `the engine stopped: ${error.message}` : error.message;
  return typeof hint === "string" ? { message, hint } : { message };
}
