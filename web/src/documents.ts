// The documents that a page shows, with the keys of their JSON schemas (`nextstat schema NAME`).
//
// Only what the page uses is declared. P is the number of parameters, in the order of `par_names`.

import type { Maybe } from "./numbers/format";

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export interface Common {
  nextstat_version?: string;
  measurement?: string | null;
  provenance?: { [key: string]: Json } | null;
  warnings?: string[];
  converged?: boolean;
  complete?: boolean;
}

export interface Inspect extends Common {
  // Names of the channels and their numbers of bins.
  channels: [string, number][];
  samples: string[];
  // Names of the parameters, their kind of constraint, and the types of their modifiers.
  systematics?: [string, string, string[]][];
  parameters?: [string, string][];
  // Names, parameters of interest, and configured parameters.
  measurements?: [string, string | null, string[]][];
  summary?: { [key: string]: number };
}

export type Severity = "error" | "warning" | "note";

export interface Finding {
  severity: Severity;
  code: string;
  message: string;
  pointer?: string;
  channel?: string;
  sample?: string;
  modifier?: string;
  parameter?: string;
  n_bins?: number;
}

export interface Check extends Common {
  findings: Finding[];
  n_errors: number;
  n_warnings: number;
  n_notes: number;
}

export interface PoiOfFit {
  name: string;
  index: number;
  bestfit: Maybe;
  uncertainty: Maybe;
  statistical?: Maybe;
  systematic?: Maybe;
}

export interface Interval {
  parameter: string;
  cl: number;
  bestfit: Maybe;
  // Distances to the ends; `null` where the range ends before.
  down: Maybe;
  up: Maybe;
}

export interface Minimum {
  twice_nll: Maybe;
  depth: Maybe;
  poi: { name: string; bestfit: Maybe } | null;
  found_by: string;
  n_starts: number;
  bestfit: Maybe[];
}

export interface Fit {
  par_names: string[];
  bestfit: Maybe[];
  uncertainties: Maybe[];
  converged: boolean;
  outcome: string;
  poi?: PoiOfFit | null;
  pois?: PoiOfFit[];
  twice_nll?: Maybe;
  edm?: Maybe;
  n_free?: number;
  n_iterations?: number;
  n_evaluations?: number;
  at_bounds?: { parameter: string; side: string; bound: Maybe }[];
  flat_directions?: { curvature: Maybe; parameters: [string, Maybe][] }[];
  not_parabolic?: { parameter: string; twice_delta_nll_down: Maybe; twice_delta_nll_up: Maybe }[];
  minos?: Interval[];
  minima?: Minimum[];
  warnings?: string[];
}

export interface Pull {
  parameter: string;
  index: number;
  bestfit: Maybe;
  uncertainty: Maybe;
  prefit: Maybe;
  prefit_uncertainty: Maybe;
  pull: Maybe;
  constraint: Maybe;
}

export interface Yields {
  // By bin; `null` where there is none.
  yields: Maybe[];
  uncertainties: Maybe[];
  sum: Maybe;
  sum_uncertainty: Maybe;
}

export interface Prediction {
  samples: (Yields & { sample: string })[];
  total: Yields;
}

export interface ChannelYields {
  channel: string;
  // Event counts by bin; `null` where they are hidden.
  data: Maybe[];
  prefit: Prediction;
  postfit: Prediction;
}

export interface ChannelGoodness {
  channel: string;
  n_bins?: number;
  // Σ 2 D(n, λ) of a fit, χ² of a prediction that did not use the data.
  deviance?: Maybe;
  statistic?: Maybe;
  n_dof: Maybe;
  p_value: Maybe;
}

export interface Goodness extends Common {
  statistic: Maybe;
  n_dof: Maybe;
  p_value: Maybe;
  n_bins?: number;
  n_constraints?: number;
  n_free?: number;
  constraint_deviance?: Maybe;
  channels: ChannelGoodness[];
}

export interface Report extends Common {
  fit: Fit;
  goodness_of_fit: Goodness | null;
  pulls: Pull[];
  yields: { channels: ChannelYields[] };
}

// The correlations of P parameters in millionths: row i has i entries, those below the diagonal.
export interface Correlation {
  par_names: string[];
  millionths: (number | null)[][];
}

export interface Shift {
  impact: Maybe;
  at: Maybe;
  clipped?: boolean;
  outcome?: string;
}

export interface Impacts {
  down: Shift;
  up: Shift;
}

export interface RankedParameter {
  parameter: string;
  bestfit: Maybe;
  uncertainty: Maybe;
  prefit_uncertainty: Maybe;
  pull: Maybe;
  constraint: Maybe;
  prefit: Impacts | null;
  postfit: Impacts | null;
  global?: Impacts | null;
  covariance_postfit?: Maybe;
}

export interface Ranking extends Common {
  poi: PoiOfFit;
  ranking: RankedParameter[];
  groups?: { group: string; members: string[]; frozen: Maybe; global: Maybe }[];
  breakdown?: { [part: string]: Maybe };
}

export interface Scan extends Common {
  parameter?: string;
  parameters?: [string, string];
  values: Maybe[];
  bestfit: Maybe;
  uncertainty?: Maybe;
  twice_delta_nll: Maybe[];
  outcomes?: (string | null)[];
  intervals?: Interval[];
}

export interface TestedValue {
  mu: Maybe;
  CLs_obs: Maybe;
  CLs_exp: Maybe[] | null;
}

export interface Limit extends Common {
  poi: { name: string; index: number; bestfit: Maybe };
  observed: Maybe;
  // At −2 … +2 standard deviations of the background.
  expected: Maybe[];
  level: number;
  test_stat: string;
  tested: TestedValue[];
}

// Everything that a report shows. Parts that are absent have a reason in `absent`.
export interface ReportData {
  title: string;
  report: Report;
  inspect?: Inspect | null;
  check?: Check | null;
  correlation?: Correlation | null;
  ranking?: Ranking[] | null;
  gof?: Goodness | null;
  scans?: Scan[] | null;
  limits?: Limit[] | null;
  minima?: Minimum[] | null;
  absent?: { [section: string]: string } | null;
}
