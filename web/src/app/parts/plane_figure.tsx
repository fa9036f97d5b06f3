// The plane of signals: colours of CLs, the boundary of the exclusion, and a click that opens one.

import * as Plot from "@observablehq/plot";
import { useRef } from "preact/hooks";

import { Chart } from "../../components/chart";
import { FONT, GRID, INK, MUTED, TIP } from "../../components/style";
import { shortText } from "../../numbers/escape";
import { isNumber, probability } from "../../numbers/format";
import type { Exclusion, ExclusionCurve } from "../engine/documents";
import type { PlanePoint } from "../state/plane_points";

const HEIGHT = 420;
const LEVEL = 0.05;

interface Props {
  points: readonly PlanePoint[];
  x: string;
  // No name where there is one label only.
  y: string | null;
  kind: "observed" | "expected";
  exclusion: Exclusion | null;
  open: string | null;
  pick: (patch: string) => void;
}

export function PlaneFigure({ points, x, y, kind, exclusion, open, pick }: Props) {
  const pointed = useRef<PlanePoint | null>(null);
  const draw = (width: number) => {
    const plot = planeChart(points, { x, y, kind, exclusion, open }, width);
    plot.addEventListener("input", () => {
      pointed.current = (plot as unknown as { value: PlanePoint | null }).value;
    });
    plot.addEventListener("click", () => pointed.current && pick(pointed.current.patch));
    return plot;
  };
  return (
    <div class="plane">
      <Chart label={`CLs of ${points.length} signals; the table below has their numbers`} draw={draw} inputs={[points, x, y, kind, exclusion, open]} height={y === null ? 150 : HEIGHT} />
      <figcaption>
        <span class="key excluded" aria-hidden="true" /> CLs below 0.05: excluded, <span class="key allowed" aria-hidden="true" /> above; line: observed boundary at 95 % CL, dashed: expected, dotted: ±1σ. A click opens a signal.
      </figcaption>
    </div>
  );
}

function planeChart(points: readonly PlanePoint[], { x, y, kind, exclusion, open }: Omit<Props, "points" | "pick">, width: number): Element {
  const value = (point: PlanePoint) => point[kind];
  const known = points.filter((point) => isNumber(value(point)));
  const waiting = points.filter((point) => !isNumber(value(point)));
  const radius = Math.max(4, Math.min(9, width / (3 * Math.sqrt(points.length) + 10)));
  return Plot.plot({
    width, height: y === null ? 150 : HEIGHT, marginLeft: 56, marginRight: 16, marginTop: 20, marginBottom: 40, style: FONT, inset: 14,
    x: { label: null, nice: true }, y: { label: null, nice: true, ...(y === null ? { axis: null } : {}) },
    color: { type: "diverging-log", pivot: LEVEL, domain: [LEVEL / 40, 1], range: ["#1a6fb4", "#d9dee4", "#d1661b"], clamp: true },
    marks: [
      Plot.gridX({ stroke: GRID, strokeOpacity: 1 }),
      y === null ? null : Plot.gridY({ stroke: GRID, strokeOpacity: 1 }),
      Plot.axisX({ label: shortText(x, 40), labelAnchor: "right", labelArrow: "none", ticks: Math.max(3, Math.floor(width / 90)) }),
      y === null ? null : Plot.axisY({ label: shortText(y, 40), labelArrow: "none" }),
      Plot.dot(waiting.filter((point) => point.state !== "failed"), { x: "x", y: "y", r: radius, stroke: MUTED }),
      Plot.dot(waiting.filter((point) => point.state === "failed"), { x: "x", y: "y", r: radius, stroke: MUTED, symbol: "times" }),
      Plot.dot(known, { x: "x", y: "y", r: radius, fill: (point: PlanePoint) => Math.max(value(point)!, 1e-12), stroke: INK, strokeOpacity: 0.45 }),
      ...boundary(exclusion),
      Plot.dot(points.filter((point) => point.patch === open), { x: "x", y: "y", r: radius + 4, stroke: "var(--accent)", strokeWidth: 2 }),
      Plot.tip(points, Plot.pointer({ x: "x", y: "y", title: readOut, ...TIP })),
    ],
  });
}

function boundary(exclusion: Exclusion | null) {
  if (!exclusion) return [];
  const lines = (curve: ExclusionCurve | undefined, strokeWidth: number, strokeDasharray?: string) =>
    (curve?.contours ?? []).map(({ vertices }) => Plot.line(vertices, { stroke: INK, strokeWidth, ...(strokeDasharray ? { strokeDasharray } : {}) }));
  return [lines(exclusion.expected[1], 1, "1 3"), lines(exclusion.expected[3], 1, "1 3"), lines(exclusion.expected[2], 1.6, "6 4"), lines(exclusion.observed, 2)].flat();
}

function readOut(point: PlanePoint): string {
  const cls = point.state === "done" ? `CLs ${probability(point.observed)} observed, ${probability(point.expected)} expected` : point.state === "failed" ? "no result" : "not tested yet";
  return `${shortText(point.patch, 60)}\n${cls}`;
}
