// Impacts of nuisance parameters on a parameter of interest, beside their pulls.

import * as Plot from "@observablehq/plot";

import type { Impacts, RankedParameter } from "../documents";
import { shortText } from "../numbers/escape";
import { fixed, isNumber, precise, significant } from "../numbers/format";
import { DOWN, FONT, GRID, INK, MUTED, TIP, UP, labelRoom, labels } from "./style";

const ROW = 18;

export function rankingHeight(n: number): number {
  return n * ROW + 62;
}

interface Bar {
  row: RankedParameter;
  y: number;
  impact: number;
  side: "up" | "down";
}

// Draws impacts at the left and pulls at the right, one line for each of `rows`.
export function rankingChart(rows: readonly RankedParameter[], poi: string, width: number): Element {
  const room = labelRoom(width);
  const right = Math.round((width - room.margin) * 0.42);
  const both = document.createElement("div");
  both.className = "panels";
  both.append(impacts(rows, poi, width - right, room), pulls(rows, right));
  return both;
}

function impacts(rows: readonly RankedParameter[], poi: string, width: number, room: ReturnType<typeof labelRoom>): Element {
  const [before, after] = [bars(rows, (row) => row.prefit), bars(rows, (row) => row.postfit)];
  const reach = Math.max(...[...before, ...after].map((bar) => Math.abs(bar.impact)), 1e-300) * 1.06;
  const label = `Δ ${shortText(poi, 24)}`;
  return Plot.plot({
    ...frame(rows, width), marginLeft: room.margin,
    x: { domain: [-reach, reach], label: null, ticks: width < 420 ? 3 : 5 },
    marks: [
      Plot.gridX({ stroke: GRID, strokeOpacity: 1, ticks: width < 420 ? 3 : 5 }),
      Plot.axisX({ anchor: "bottom", label, labelAnchor: "center", labelArrow: "none", ticks: width < 420 ? 3 : 5 }),
      Plot.axisY({ tickFormat: labels(rows.map((row) => row.parameter), room.characters), tickSize: 0, fontSize: 11 }),
      barMark(before, { fill: "none", stroke: colourOf, strokeWidth: 1.1, insetTop: 2, insetBottom: 2 }),
      barMark(after, { fill: colourOf, insetTop: 4, insetBottom: 4 }),
      Plot.ruleX([0], { stroke: MUTED }),
      Plot.tip(rows, Plot.pointerY({ x: () => 0, y: (_: unknown, i: number) => i, title: readOut, ...TIP })),
    ],
  });
}

function barMark(data: Bar[], style: object) {
  return Plot.barX(data, { x1: 0, x2: "impact", y: "y", ...style } as Plot.BarXOptions);
}

function colourOf(bar: Bar): string {
  return bar.side === "up" ? UP : DOWN;
}

function frame(rows: readonly unknown[], width: number) {
  const color = { type: "identity" as const };
  const y = { type: "band" as const, domain: rows.map((_, i) => i), label: null, padding: 0 };
  return { width, height: rankingHeight(rows.length), marginTop: 8, marginBottom: 40, marginRight: 10, style: FONT, color, y };
}

function bars(rows: readonly RankedParameter[], of: (row: RankedParameter) => Impacts | null): Bar[] {
  return rows.flatMap((row, y) => {
    const shifts = of(row);
    if (!shifts) return [];
    const both = (["up", "down"] as const).map((side) => ({ row, y, side, impact: shifts[side].impact }));
    return both.filter((bar): bar is Bar => isNumber(bar.impact));
  });
}

function pulls(rows: readonly RankedParameter[], width: number): Element {
  const shown = rows.map((row, y) => ({ y, pull: row.pull, low: (row.pull ?? 0) - (row.constraint ?? 0), high: (row.pull ?? 0) + (row.constraint ?? 0) }));
  const points = shown.filter((point) => isNumber(point.pull));
  const reach = Math.min(Math.max(1.6, ...points.map((point) => Math.max(-point.low, point.high) * 1.05)), 12);
  const ticks = width < 180 ? 3 : 5;
  return Plot.plot({
    ...frame(rows, width), marginLeft: 12,
    y: { type: "band", domain: rows.map((_, i) => i), axis: null, padding: 0 },
    x: { domain: [-reach, reach], label: null, ticks },
    marks: [
      Plot.rectX([1], { x1: -1, x2: 1, fill: "var(--shade-1)" }),
      Plot.gridX({ stroke: GRID, strokeOpacity: 1, ticks }),
      Plot.axisX({ anchor: "bottom", label: "(θ̂ − θ₀) / σ₀", labelAnchor: "center", labelArrow: "none", ticks }),
      Plot.ruleX([0], { stroke: MUTED }),
      Plot.ruleY(points, { x1: "low", x2: "high", y: "y", stroke: INK, strokeWidth: 1.2, clip: true }),
      Plot.dot(points, { x: "pull", y: "y", r: 2.6, fill: INK, clip: true }),
    ],
  });
}

function readOut(row: RankedParameter): string {
  const lines = [shortText(row.parameter, 64), precise(row.bestfit, row.uncertainty)];
  for (const [name, shifts] of [["post-fit", row.postfit], ["pre-fit", row.prefit]] as const) {
    if (shifts) lines.push(`${name}: +1σ ${significant(shifts.up.impact, 3)}, −1σ ${significant(shifts.down.impact, 3)}`);
  }
  if (isNumber(row.pull)) lines.push(`pull ${fixed(row.pull, 3)}, constraint ${fixed(row.constraint, 3)}`);
  return lines.join("\n");
}
