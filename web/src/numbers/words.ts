// Counts in words.

import type { Check } from "../documents";

// Returns a number with its noun, in the plural where there is not one.
export function counted(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 || noun.endsWith("s") ? "" : "s"}`;
}

// Returns how many findings of each severity there are.
export function findingCounts({ n_errors, n_warnings, n_notes }: Check): string {
  return [counted(n_errors, "error"), counted(n_warnings, "warning"), counted(n_notes, "note")].join(", ");
}
