// Upper limits: the observed and expected ones as a bar, and CLs of every tested value.

import * as Plot from "@observablehq/plot";

import type { Limit, TestedValue } from "../documents";
import { shortText } from "../numbers/escape";
import { isNumber, probability, significant } from "../numbers/format";
import type { Range, Scaled } from "./zoom";
import { ACCENT, FONT, GRID, INK, MUTED, TIP } from "./style";

export const BAR_HEIGHT = 96;
export const CLS_HEIGHT = 260;

// Draws the expected limits with bands of one and two standard deviations, and the observed one.
export function limitBar(limit: Limit, width: number): Element {
  const [low2, low1, median, high1, high2] = limit.expected;
  const known = [...limit.expected, limit.observed].filter(isNumber);
  const [first, last] = [Math.min(...known, 0), Math.max(...known, 0) * 1.08 || 1];
  const label = `upper limit on ${shortText(limit.poi.name, 40)} at ${significant(100 * (1 - limit.level), 3)} % CL`;
  return Plot.plot({
    width, height: BAR_HEIGHT, marginLeft: 12, marginRight: 12, marginTop: 8, marginBottom: 40, style: FONT,
    x: { domain: [first, last], label: null }, y: { domain: [0, 1], axis: null },
    marks: [
      Plot.gridX({ stroke: GRID, strokeOpacity: 1 }),
      Plot.axisX({ label, labelAnchor: "right", labelArrow: "none", ticks: Math.max(3, Math.floor(width / 90)) }),
      band(low2, high2, "var(--band-2)"),
      band(low1, high1, "var(--band-1)"),
      isNumber(median) ? Plot.ruleX([median], { y1: 0.12, y2: 0.88, stroke: INK, strokeWidth: 1.6, strokeDasharray: "4 3" }) : null,
      isNumber(limit.observed) ? Plot.ruleX([limit.observed], { y1: 0.02, y2: 0.98, stroke: INK, strokeWidth: 2 }) : null,
      isNumber(limit.observed) ? Plot.dot([limit.observed], { x: (value: number) => value, y: 0.5, r: 4, fill: INK }) : null,
    ],
  });
}

function band(low: number | null | undefined, high: number | null | undefined, fill: string) {
  return isNumber(low) && isNumber(high) ? Plot.rect([0], { x1: low, x2: high, y1: 0.12, y2: 0.88, fill }) : null;
}

// Returns the ends of the tested values, and the shortest range.
export function testedRange(limit: Limit): { range: Range; step: number } {
  const values = limit.tested.map((row) => row.mu).filter(isNumber);
  const range: Range = values.length > 1 ? [Math.min(...values), Math.max(...values)] : [0, 1];
  return { range, step: (range[1] - range[0]) / 100 };
}

// Draws CLs against the tested values, with the expected bands.
export function clsChart(limit: Limit, width: number, [low, high]: Range): Element & Scaled {
  const floor = limit.level / 50;
  // A curve below the frame is cut there; zero has no place on a scale of powers.
  const at = (value: number | null | undefined) => (isNumber(value) ? Math.max(value, 1e-300) : NaN);
  const rows = limit.tested.filter((row) => isNumber(row.mu)).sort((a, b) => a.mu! - b.mu!);
  const expected = rows.filter((row) => row.CLs_exp?.every(isNumber));
  const observed = rows.filter((row) => isNumber(row.CLs_obs));
  const of = (i: number) => (row: TestedValue) => at(row.CLs_exp?.[i]);
  return Plot.plot({
    width, height: CLS_HEIGHT, marginLeft: 48, marginRight: 12, marginTop: 18, marginBottom: 36, style: FONT,
    x: { domain: [low, high], label: null }, y: { type: "log", domain: [floor, 1], label: null }, clip: true,
    marks: [
      Plot.areaY(expected, { x: "mu", y1: of(0), y2: of(4), fill: "var(--band-2)" }),
      Plot.areaY(expected, { x: "mu", y1: of(1), y2: of(3), fill: "var(--band-1)" }),
      Plot.gridY({ stroke: GRID, strokeOpacity: 1, ticks: 3 }),
      Plot.axisX({ label: shortText(limit.poi.name, 40), labelAnchor: "right", labelArrow: "none", ticks: Math.max(3, Math.floor(width / 90)) }),
      Plot.axisY({ label: "CLs", labelArrow: "none", ticks: 3, tickFormat: (value: number) => significant(value, 2) }),
      Plot.ruleY([limit.level], { stroke: "var(--bad)" }),
      Plot.lineY(expected, { x: "mu", y: of(2), stroke: INK, strokeDasharray: "4 3" }),
      Plot.dot(expected, { x: "mu", y: of(2), r: 1.8, fill: INK }),
      Plot.lineY(observed, { x: "mu", y: (row: TestedValue) => at(row.CLs_obs), stroke: ACCENT, strokeWidth: 1.6 }),
      Plot.dot(observed, { x: "mu", y: (row: TestedValue) => at(row.CLs_obs), r: 2.6, fill: ACCENT }),
      Plot.ruleX([limit.observed].filter(isNumber), { stroke: MUTED, strokeDasharray: "2 2" }),
      Plot.tip(rows.filter((row) => row.mu! >= low && row.mu! <= high), Plot.pointerX({ clip: false, x: "mu", y: (row: TestedValue) => Math.max(at(row.CLs_obs ?? row.CLs_exp?.[2]), floor), title: readOut, ...TIP })),
    ],
  });
}

function readOut(row: TestedValue): string {
  return `${significant(row.mu, 5)}\nCLs observed ${probability(row.CLs_obs)}\nexpected ${probability(row.CLs_exp?.[2])}`;
}
