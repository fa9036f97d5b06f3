// Documents that the app shows and a report does not.

import type { Common, ReportData } from "../../documents";
import type { Maybe } from "../../numbers/format";

// What a report shows, and what the model does not have of its files.
export interface Overview extends ReportData {
  model_warnings: string[];
}

export interface Parameter {
  name: string;
  init: Maybe;
  bounds: [Maybe, Maybe] | null;
  fixed: boolean;
  constraint: string | null;
  is_poi: boolean;
}

export interface TreeSample {
  name: string;
  modifiers: { name: string; type: string }[];
}

export interface TreeChannel {
  name: string;
  n_bins: number;
  samples: TreeSample[];
}

export interface Tree {
  channels: TreeChannel[];
}

export interface PatchSet extends Common {
  description?: string;
  labels: string[];
  references?: { [kind: string]: string };
  patches: { name: string; values: (number | string)[] }[];
}

export interface ExclusionCurve {
  contours: { vertices: [number, number][]; ends_at_edge: boolean }[];
}

export interface Exclusion extends Common {
  x: string;
  y: string;
  observed: ExclusionCurve;
  // At −2 … +2 standard deviations of the background.
  expected: ExclusionCurve[];
}

export interface Significance extends Common {
  Z_obs: Maybe;
  p0_obs: Maybe;
  Z_exp: Maybe;
  mu_expected?: Maybe;
}

export interface Hypotest extends Common {
  mu: Maybe;
  CLs_obs: Maybe;
  CLs_exp: Maybe[] | null;
}

export interface HypotestToys extends Hypotest {
  CLs_obs_error: Maybe;
  CLs_exp_errors?: Maybe[];
  CLsb_obs: Maybe;
  CLsb_obs_error: Maybe;
  CLb_obs: Maybe;
  CLb_obs_error: Maybe;
  n_toys: number[];
  n_failed?: number[];
  seed?: number;
}
