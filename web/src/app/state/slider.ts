// Numbers of the slider of the parameter of interest.

import type { PoiOfFit, Report } from "../../documents";
import { type Maybe, isNumber } from "../../numbers/format";

// Standard deviations that the range reaches to each side.
const REACH = 4;

// About how many steps the slider has.
const STEPS = 200;

export interface SliderRange {
  low: number;
  high: number;
  step: number;
}

// Returns the ends of the slider, around the best fit and inside the bounds, and a step of 1, 2 or
// 5 times a power of ten: its values are multiples of that.
export function poiRange(poi: PoiOfFit, bounds: [Maybe, Maybe] | null): SliderRange {
  const [low, high] = ends(poi, bounds);
  const power = 10 ** Math.floor(Math.log10((high - low) / STEPS));
  const step = power * ([1, 2, 5].find((factor) => factor * power * STEPS >= high - low) ?? 10);
  // The quotient may be a little beside a whole number.
  const multiple = (n: number) => Number((n * step).toPrecision(12));
  return { low: multiple(Math.ceil(low / step - 1e-9)), high: multiple(Math.floor(high / step + 1e-9)), step };
}

function ends(poi: PoiOfFit, bounds: [Maybe, Maybe] | null): [number, number] {
  const [least, most] = [bounds?.[0] ?? -Infinity, bounds?.[1] ?? Infinity];
  const best = isNumber(poi.bestfit) ? poi.bestfit : Math.max(least, 0);
  const sigma = isNumber(poi.uncertainty) && poi.uncertainty > 0 ? poi.uncertainty : Math.max(Math.abs(best), 1) / 2;
  const low = Math.max(least, best - REACH * sigma);
  const high = Math.min(most, best + REACH * sigma);
  return high > low ? [low, high] : [low, low + 1];
}

// Returns the rise of −2 ln L of a conditional fit above the free one.
export function riseOf(conditional: Report, free: Report): number | null {
  const [above, below] = [conditional.fit.twice_nll, free.fit.twice_nll];
  // Rounding may leave a little below zero.
  return isNumber(above) && isNumber(below) ? Math.max(above - below, 0) : null;
}
