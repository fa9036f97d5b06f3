// The signals of a patch set as points of a plane.

import { type Maybe, isNumber } from "../../numbers/format";
import type { PatchSet } from "../engine/documents";
import type { PlaneResult } from "./state";

// A label whose values are numbers in every patch, and where it is in the list of values.
export interface NumericLabel {
  name: string;
  index: number;
}

export interface PlanePoint {
  patch: string;
  x: number;
  y: number;
  observed: Maybe;
  expected: Maybe;
  state: "waiting" | "failed" | "done";
}

export function numericLabels({ labels, patches }: PatchSet): NumericLabel[] {
  return labels.flatMap((name, index) => (patches.length > 0 && patches.every((patch) => isNumber(patch.values[index] as Maybe)) ? [{ name, index }] : []));
}

// Returns a point for each patch; with one label, all are on a line.
export function pointsOf(patchset: PatchSet, x: NumericLabel, y: NumericLabel, results: ReadonlyMap<string, PlaneResult>): PlanePoint[] {
  return patchset.patches.map(({ name, values }) => {
    const result = results.get(name);
    const found = result && "result" in result ? result.result : null;
    return {
      patch: name, x: Number(values[x.index]), y: x === y ? 0 : Number(values[y.index]),
      observed: found?.CLs_obs ?? null, expected: found?.CLs_exp?.[2] ?? null, state: found ? "done" : result ? "failed" : "waiting",
    };
  });
}
