// The profile likelihood of one parameter, with the intervals of one and two standard deviations.

import * as Plot from "@observablehq/plot";

import type { Scan } from "../documents";
import { shortText } from "../numbers/escape";
import { fixed, isNumber, significant } from "../numbers/format";
import type { Range, Scaled } from "./zoom";
import { ACCENT, FONT, GRID, INK, MUTED, TIP } from "./style";

export const SCAN_HEIGHT = 260;

// Returns the ends of the scanned values, and the shortest range that shows a point.
export function scanRange(scan: Scan): { range: Range; step: number } {
  const values = scan.values.filter(isNumber);
  const range: Range = values.length > 1 ? [Math.min(...values), Math.max(...values)] : [0, 1];
  return { range, step: (range[1] - range[0]) / Math.max(values.length - 1, 1) };
}

// A conditional fit that is marked in the profile.
export interface ScanMark {
  at: number;
  rise: number | null;
}

// Draws −2Δ ln L of a scan; points whose fit did not converge are left out.
export function scanChart(scan: Scan, width: number, [low, high]: Range, mark: ScanMark | null = null): Element & Scaled {
  const points = scan.values.map((value, i) => ({ value, rise: scan.twice_delta_nll[i] ?? null }));
  const inside = (value: number) => value >= low && value <= high;
  const shown = points.filter((point) => isNumber(point.value) && isNumber(point.rise) && inside(point.value));
  const highest = Math.max(0, ...shown.map((point) => point.rise!));
  const isWhole = shown.length >= points.filter((point) => isNumber(point.rise)).length;
  const top = isWhole ? Math.min(Math.max(4.6, highest), 12) : Math.max(highest * 1.08, 0.01);
  const crossings = crossingsOf(scan).filter(({ at, rise }) => inside(at) && rise <= top);
  const lines = [1, 4].filter((rise) => rise <= top);
  const label = shortText(scan.parameter ?? "", 40);
  return Plot.plot({
    width, height: SCAN_HEIGHT, marginLeft: 44, marginRight: 26, marginTop: 18, marginBottom: 36, style: FONT,
    x: { domain: [low, high], label: null }, y: { domain: [0, top], label: null },
    marks: [
      Plot.gridY({ stroke: GRID, strokeOpacity: 1 }),
      Plot.axisX({ ticks: Math.max(3, Math.floor(width / 90)), label, labelAnchor: "right", labelArrow: "none" }),
      Plot.axisY({ ticks: 6, label: "−2 Δ ln L", labelArrow: "none" }),
      Plot.ruleY(lines, { stroke: MUTED, strokeDasharray: "3 3" }),
      Plot.text(lines, { y: (rise: number) => rise, frameAnchor: "right", textAnchor: "start", dx: 6, text: (rise: number) => `${Math.sqrt(rise)}σ`, fill: MUTED }),
      Plot.ruleX(crossings, { x: "at", y1: 0, y2: "rise", stroke: ACCENT, strokeDasharray: "2 2" }),
      isNumber(scan.bestfit) && inside(scan.bestfit) ? Plot.ruleX([scan.bestfit], { stroke: MUTED, strokeOpacity: 0.6 }) : null,
      Plot.lineY(points, { x: "value", y: "rise", stroke: ACCENT, strokeWidth: 1.8, clip: true }),
      Plot.dot(shown, { x: "value", y: "rise", r: 2.2, fill: ACCENT, clip: true }),
      Plot.dot(crossings, { x: "at", y: "rise", r: 3.2, stroke: INK, fill: "var(--surface)" }),
      mark && inside(mark.at) ? Plot.ruleX([mark.at], { stroke: "var(--bad)", strokeWidth: 1.4 }) : null,
      mark && isNumber(mark.rise) && inside(mark.at) ? Plot.dot([mark], { x: "at", y: Math.min(mark.rise, top), r: 5, fill: "var(--bad)", stroke: "var(--surface)" }) : null,
      Plot.tip(shown, Plot.pointerX({ x: "value", y: (point: { rise: number }) => Math.min(point.rise, top), title: readOut, ...TIP })),
    ],
  });
}

// Where the profile crosses one and two standard deviations.
function crossingsOf(scan: Scan): { at: number; rise: number }[] {
  return (scan.intervals ?? []).flatMap(({ cl, bestfit, down, up }) => {
    const rise = riseAt(cl);
    if (!isNumber(bestfit) || rise === null) return [];
    return [down, up].filter(isNumber).map((distance) => ({ at: bestfit + distance, rise }));
  });
}

// The rise of −2 ln L at a two-sided confidence level of one or two standard deviations.
function riseAt(cl: number): number | null {
  if (Math.abs(cl - 0.682689) < 1e-4) return 1;
  return Math.abs(cl - 0.9545) < 1e-4 ? 4 : null;
}

function readOut(point: { value: number; rise: number }): string {
  return `${significant(point.value, 5)}\n−2 Δ ln L ${fixed(point.rise, 3)}`;
}
