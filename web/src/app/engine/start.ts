// Starts workers: the engine is compiled once, and all of them share its code.

import type { MakeWorker } from "./pool";
import type { Start } from "./protocol";

export function makeWorker(): MakeWorker {
  const compiled = compile();
  return () => {
    const worker = new Worker("worker.js", { type: "module" });
    void compiled.then((start) => worker.postMessage(start));
    return worker;
  };
}

async function compile(): Promise<Start> {
  try {
    const response = await fetch("nextstat_wasm_bg.wasm");
    if (!response.ok) throw new Error(`its server answered ${response.status}`);
    return { module: await WebAssembly.compile(await response.arrayBuffer()) };
  } catch (error) {
    return { broken: `the engine could not be started: ${error instanceof Error ? error.message : String(error)}` };
  }
}
