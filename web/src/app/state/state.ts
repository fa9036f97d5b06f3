// Everything that the page shows, as one value.

import type { Limit, Ranking, Report, ReportData, Scan } from "../../documents";
import type { View } from "../../report/view";
import type { Exclusion, Hypotest, HypotestToys, Overview, Parameter, PatchSet, Significance, Tree } from "../engine/documents";
import type { Failure, FileEntry, Library, Verb } from "../engine/protocol";
import type { Shared } from "./fragment";
import type { History } from "./history";

export const VIEWS = ["overview", "regions", "pulls", "correlations", "ranking", "scan", "limit", "patches", "toys", "model", "export"] as const;
export type ViewName = (typeof VIEWS)[number];

// A result that is computed apart: its last value stays until there is a new one.
export interface Part<T> {
  value: T | null;
  // What was asked for the value.
  verb: Verb | null;
  // The value is of other settings.
  stale: boolean;
  running: boolean;
  progress: [number, number] | null;
  failure: Failure | null;
  // How long the last one took, in milliseconds.
  took: number | null;
}

export function noPart<T>(): Part<T> {
  return { value: null, verb: null, stale: false, running: false, progress: null, failure: null, took: null };
}

// What was dropped, and what the engine recognised.
export interface Model {
  library: Library;
  entries: FileEntry[];
  // Addresses that the files came from; empty if they came from the reader's disk.
  urls: string[];
  patchset: { file: string; document: PatchSet } | null;
}

// The fit with the parameter of interest fixed.
export interface Conditional {
  at: number;
  report: Report;
}

export interface Parts {
  ranking: Part<Ranking>;
  scan: Part<Scan>;
  limit: Part<Limit>;
  significance: Part<Significance>;
  toys: Part<HypotestToys>;
}

export type PlaneResult = { result: Hypotest } | { failure: Failure };

export interface Plane {
  running: boolean;
  results: ReadonlyMap<string, PlaneResult>;
  wanted: number;
  // The labels of the axes, and the boundaries between the signals that have been tested.
  axes: [string, string] | null;
  exclusion: Exclusion | null;
}

// Files to open, and what a link wants of them.
export interface Candidates {
  model: Model;
  wish: Shared | null;
}

// Something that went wrong, and with what.
export interface Problem {
  what: string;
  failure: Failure;
  // An address to download by hand.
  download?: string;
  // A data card that can be opened with a mass.
  needsMass?: Candidates;
}

export interface AppState {
  // What is being read or fitted for the first time.
  busy: string | null;
  problem: Problem | null;
  notice: string | null;
  // Files with several models, until the reader picks one.
  candidates: Candidates | null;
  model: Model | null;
  history: History | null;
  overview: Part<Overview>;
  parameters: readonly Parameter[];
  tree: Tree | null;
  // Where the slider is while the parameter of interest is fixed there.
  slider: { at: number } | null;
  // Whether the slider stays when it is let go.
  stays: boolean;
  conditional: Conditional | null;
  parts: Parts;
  plane: Plane;
  view: ViewName;
  display: View;
  // What a shared link wants that waits for its file.
  awaited: Awaited | null;
}

export interface Awaited {
  digest: string | null;
  wish: Shared;
}

export function noParts(): Parts {
  return { ranking: noPart(), scan: noPart(), limit: noPart(), significance: noPart(), toys: noPart() };
}

export const NO_PLANE: Plane = { running: false, results: new Map(), wanted: 0, axes: null, exclusion: null };

export function initialState(): AppState {
  return {
    busy: null, problem: null, notice: null, candidates: null, model: null, history: null, overview: noPart(), parameters: [], tree: null,
    slider: null, stays: false, conditional: null, parts: noParts(), plane: NO_PLANE, view: "overview",
    display: { filter: "", phase: "postfit", log: false, threshold: null, theme: "auto" }, awaited: null,
  };
}

// The views that the open model has.
export function viewsOf({ model }: Pick<AppState, "model">): ViewName[] {
  return VIEWS.filter((one) => one !== "patches" || model?.patchset != null);
}

// The view on display: a link, or the model before, may have asked for one that this model lacks.
export function shownView(state: Pick<AppState, "model" | "view">): ViewName {
  return viewsOf(state).includes(state.view) ? state.view : "overview";
}

let shown: { free: ReportData; report: Report; data: ReportData } | null = null;

// The numbers on display: those of the slider while it is moved, otherwise those of the free fit.
// The same numbers are the same object, so that they are not drawn again.
export function shownData({ overview: { value: free }, conditional, slider }: AppState): ReportData | null {
  if (!conditional || !slider || !free) return free;
  const { report } = conditional;
  if (shown?.free !== free || shown.report !== report) shown = { free, report, data: { ...free, report, gof: report.goodness_of_fit } };
  return shown.data;
}
