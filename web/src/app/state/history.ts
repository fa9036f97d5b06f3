// Edits with undo and redo: which model is open, and with which settings it is fitted.

import type { OpenRequest, Settings } from "../engine/protocol";

export interface Edit {
  open: OpenRequest;
  settings: Settings;
}

export interface History {
  past: readonly Edit[];
  present: Edit;
  future: readonly Edit[];
}

// Edits before this many are forgotten.
const DEPTH = 200;

export function begin(present: Edit): History {
  return { past: [], present, future: [] };
}

// Returns the history with a new present; the same edit again changes nothing.
export function change(history: History, edit: Edit): History {
  if (sameEdit(history.present, edit)) return history;
  return { past: [...history.past, history.present].slice(-DEPTH), present: edit, future: [] };
}

export function undo({ past, present, future }: History): History {
  const before = past.at(-1);
  return before ? { past: past.slice(0, -1), present: before, future: [present, ...future] } : { past, present, future };
}

export function redo({ past, present, future }: History): History {
  const after = future[0];
  return after ? { past: [...past, present], present: after, future: future.slice(1) } : { past, present, future };
}

export function sameEdit(a: Edit, b: Edit): boolean {
  return textOf(a) === textOf(b);
}

// Returns the same text for equal edits, in whatever order their parts were set.
export function textOf({ open, settings }: Edit): string {
  return JSON.stringify([Object.entries(open).sort(([a], [b]) => (a < b ? -1 : 1)), settings]);
}
