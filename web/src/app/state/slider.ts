// Numbers of the slider of the parameter of interest.

import type { PoiOfFit, ReportData } from "../../documents";
import { type Maybe, isNumber } from "../../numbers/format";

// The range reaches so many standard deviations to each side.
const REACH = 4;

// Returns the ends of the slider: around the best fit, inside the bounds.
export function poiRange(poi: PoiOfFit, bounds: [Maybe, Maybe] | null): [number, number] {
  const [least, most] = [bounds?.[0] ?? -Infinity, bounds?.[1] ?? Infinity];
  const best = isNumber(poi.bestfit) ? poi.bestfit : Math.max(least, 0);
  const sigma = isNumber(poi.uncertainty) && poi.uncertainty > 0 ? poi.uncertainty : Math.max(Math.abs(best), 1) / 2;
  const low = Math.max(least, best - REACH * sigma);
  const high = Math.min(most, best + REACH * sigma);
  return high > low ? [low, high] : [low, low + 1];
}

// Returns the rise of −2 ln L of a conditional fit above the free one.
export function riseOf(conditional: ReportData, free: ReportData): number | null {
  const [above, below] = [conditional.report.fit.twice_nll, free.report.fit.twice_nll];
  // Rounding may leave a little below zero.
  return isNumber(above) && isNumber(below) ? Math.max(above - below, 0) : null;
}
