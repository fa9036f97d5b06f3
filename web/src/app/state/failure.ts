// Errors as the page shows them.

import { Cancelled, EngineError } from "../engine/pool";
import type { Failure } from "../engine/protocol";

export function failureOf(error: unknown): Failure {
  if (error instanceof EngineError) return error.hint === undefined ? { message: error.message } : { message: error.message, hint: error.hint };
  if (error instanceof Cancelled) return { message: "this was cancelled" };
  return { message: error instanceof Error ? error.message : String(error) };
}
