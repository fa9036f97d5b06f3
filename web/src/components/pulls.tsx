// Pulls and constraints of nuisance parameters.

import * as Plot from "@observablehq/plot";

import type { Pull } from "../documents";
import { shortText } from "../numbers/escape";
import { fixed, isNumber, precise } from "../numbers/format";
import { FONT, GRID, INK, MUTED, TIP, labelRoom, labels } from "./style";

const ROW = 15;

export function pullsHeight(n: number): number {
  return n * ROW + 60;
}

// Draws the pulls of `rows`, one line each, with bars of their constraints.
export function pullsChart(rows: readonly Pull[], width: number): Element {
  const { margin, characters } = labelRoom(width);
  const marks = rows.map((row, y) => ({ row, y, pull: row.pull, low: end(row, -1), high: end(row, 1) }));
  const shown = marks.filter((mark) => isNumber(mark.pull));
  const ticks = width < 500 ? 5 : 9;
  const reach = Math.max(2.4, ...shown.map((mark) => Math.max(-mark.low, mark.high) * 1.05));
  return Plot.plot({
    width, height: pullsHeight(rows.length), marginLeft: margin, marginRight: 12, marginTop: 22, marginBottom: 38, style: FONT,
    x: { domain: [-Math.min(reach, 12), Math.min(reach, 12)], label: null, ticks },
    y: { type: "band", domain: rows.map((_, i) => i), label: null, padding: 0 },
    marks: [
      ...bands(),
      Plot.gridX({ stroke: GRID, strokeOpacity: 1, ticks }),
      Plot.axisX({ anchor: "top", label: null, ticks }),
      Plot.axisX({ anchor: "bottom", label: "(θ̂ − θ₀) / σ₀", labelAnchor: "center", labelArrow: "none", ticks }),
      Plot.axisY({ tickFormat: labels(rows.map((row) => row.parameter), characters), tickSize: 0, fontSize: 11 }),
      Plot.ruleX([0], { stroke: MUTED }),
      Plot.ruleY(shown, { x1: "low", x2: "high", y: "y", stroke: INK, strokeWidth: 1.2, clip: true }),
      Plot.dot(shown, { x: "pull", y: "y", r: 2.6, fill: INK, clip: true }),
      Plot.tip(shown, Plot.pointerY({ x: "pull", y: "y", title: (mark: (typeof shown)[number]) => readOut(mark.row), ...TIP })),
    ],
  });
}

function bands() {
  return [2, 1].map((sigma) => Plot.rectX([sigma], { x1: -sigma, x2: sigma, fill: `var(--shade-${sigma})` }));
}

function end(row: Pull, side: -1 | 1): number {
  return (row.pull ?? 0) + side * (row.constraint ?? 0);
}

function readOut(row: Pull): string {
  return `${shortText(row.parameter, 64)}\n${precise(row.bestfit, row.uncertainty)}\npull ${fixed(row.pull, 3)}, constraint ${fixed(row.constraint, 3)}`;
}
