// Data and prediction of a region: stacked samples, hatched uncertainty, data, and their ratio.

import * as Plot from "@observablehq/plot";

import type { ChannelYields } from "../documents";
import { shortText } from "../numbers/escape";
import { fixed, isNumber, precise, significant } from "../numbers/format";
import { type BinSummary, type Phase, layersOf, summaryOf } from "./stack";
import { FONT, GRID, HATCH, INK, MUTED, TIP } from "./style";
import type { Range, Scaled } from "./zoom";

export interface PredictionOptions {
  phase: Phase;
  log: boolean;
  colours: ReadonlyMap<string, string>;
  order: readonly string[];
  // Ends of the axis of ratios, the same in every region.
  ratio: readonly [number, number];
  // Names of the bins, if they are not numbers.
  names?: readonly string[];
}

export const PREDICTION_HEIGHT = 320;
const [MAIN, RATIO, LEFT] = [226, 96, 52];

// Draws the bins `from` … `to` of the region in `width` pixels.
export function predictionChart(channel: ChannelYields, options: PredictionOptions, width: number, [from, to]: Range): Element & Scaled {
  const bins = summaryOf(channel, options.phase).filter(({ bin }) => bin >= from && bin < to);
  const both = document.createElement("div");
  both.className = "stacked";
  const main = mainPanel(channel, bins, options, width);
  both.append(main, ratioPanel(bins, options, width));
  return Object.assign(both, { scale: main.scale });
}

// Returns an axis of ratios that suits most bins of all regions, before and after the fit.
export function ratioRange(channels: readonly ChannelYields[]): readonly [number, number] {
  const bins = channels.flatMap((channel) => [...summaryOf(channel, "prefit"), ...summaryOf(channel, "postfit")]);
  const distances = bins.filter((bin) => isNumber(bin.data) && bin.total > 0).map((bin) => Math.abs(bin.data! / bin.total - 1));
  const within = (reach: number) => distances.filter((distance) => distance <= reach).length >= 0.9 * distances.length;
  return within(0.45) ? [0.5, 1.5] : [0, 2];
}

function mainPanel(channel: ChannelYields, bins: BinSummary[], options: PredictionOptions, width: number): Element & Scaled {
  const { log, order, colours, phase } = options;
  const [bottom, top] = yDomain(bins, log);
  const floor = (value: number) => (log ? Math.max(value, bottom) : value);
  const [first, last] = ends(bins);
  const inside = layersOf(channel[phase], order).filter(({ bin }) => bin >= first && bin < last);
  const layers = inside.map((layer) => ({ ...layer, low: floor(layer.low), high: floor(layer.high) }));
  const shown = layers.filter((layer) => layer.high > layer.low);
  return Plot.plot({
    width, height: MAIN, marginLeft: LEFT, marginRight: 8, marginTop: 20, marginBottom: 6, style: FONT,
    x: xScale(bins), color: { type: "identity" },
    y: { type: log ? "log" : "linear", domain: [bottom, top], label: null },
    marks: [
      hiddenMark(bins, bottom, top),
      Plot.gridY({ stroke: GRID, strokeOpacity: 1, ticks: 4 }),
      Plot.axisY({ ticks: log ? 4 : 5, tickFormat: (value: number) => tick(value, log), label: "events", labelArrow: "none", labelOffset: 46 }),
      Plot.rect(shown, { x1: "bin", x2: next, y1: "low", y2: "high", fill: (layer: { sample: string }) => colours.get(layer.sample) ?? "#888", clip: true, shapeRendering: "crispEdges" }),
      bandMark(bins, (bin) => [floor(bin.total - bin.uncertainty!), floor(bin.total + bin.uncertainty!)]),
      Plot.ruleY(bins.filter((bin) => Number.isFinite(bin.total)), { x1: "bin", x2: next, y: (bin: BinSummary) => floor(bin.total), stroke: INK, strokeWidth: 1 }),
      ...dataMarks(bins, (_, value) => floor(value)),
      Plot.ruleY([bottom], { stroke: MUTED }),
      Plot.tip(bins, Plot.pointerX({ x: centre, y: (bin: BinSummary) => floor(bin.total || 0), title: (bin: BinSummary) => readOut(channel, bin, options), ...TIP })),
    ],
  });
}

function ratioPanel(bins: BinSummary[], options: PredictionOptions, width: number): Element {
  const [low, high] = options.ratio;
  const ratios = bins.filter((bin) => bin.total > 0);
  const outside = ratios.filter((bin) => isNumber(bin.data) && (bin.data / bin.total < low || bin.data / bin.total > high));
  const bottom = isTilted(bins.length, options.names, width) ? 66 : 30;
  const isAbove = (bin: BinSummary) => bin.data! / bin.total > high;
  return Plot.plot({
    width, height: RATIO - 30 + bottom, marginLeft: LEFT, marginRight: 8, marginTop: 4, marginBottom: bottom, style: FONT,
    x: xScale(bins), y: { domain: [low, high], label: null },
    marks: [
      hiddenMark(bins, low, high),
      Plot.gridY({ stroke: GRID, strokeOpacity: 1, ticks: 4 }),
      Plot.axisY({ ticks: 4, label: null }),
      binAxis(bins, options.names, width),
      bandMark(ratios, (bin) => [1 - bin.uncertainty! / bin.total, 1 + bin.uncertainty! / bin.total], true),
      Plot.ruleY([1], { stroke: MUTED }),
      ...dataMarks(ratios, (bin, value) => value / bin.total, true),
      Plot.dot(outside.filter(isAbove), { x: centre, y: high, dy: 5, r: 3.4, fill: INK, symbol: "triangle" }),
      Plot.dot(outside.filter((bin) => !isAbove(bin)), { x: centre, y: low, dy: -5, r: 3.4, fill: INK, symbol: "triangle", rotate: 180 }),
      Plot.text([""], { x: ends(bins)[0], y: 1, text: () => "data / pred.", rotate: -90, dx: -41, frameAnchor: "left", fontSize: 10, fill: "currentColor" }),
    ],
  });
}

function xScale(bins: readonly BinSummary[]) {
  return { domain: ends(bins), label: null, axis: null };
}

// Returns the edges of the shown bins.
function ends(bins: readonly BinSummary[]): Range {
  const first = bins[0]?.bin ?? 0;
  return [first, first + Math.max(bins.length, 1)];
}

function next(item: { bin: number }): number {
  return item.bin + 1;
}

function centre(item: { bin: number }): number {
  return item.bin + 0.5;
}

function hiddenMark(bins: readonly BinSummary[], low: number, high: number) {
  const hidden = bins.filter((bin) => bin.data === null);
  return Plot.rect(hidden, { x1: "bin", x2: next, y1: () => low, y2: () => high, fill: "var(--hidden)" });
}

function bandMark(bins: readonly BinSummary[], ends: (bin: BinSummary) => [number, number], clip = false) {
  const known = bins.filter((bin) => isNumber(bin.uncertainty) && Number.isFinite(bin.total));
  return Plot.rect(known, { x1: "bin", x2: next, y1: (bin: BinSummary) => ends(bin)[0], y2: (bin: BinSummary) => ends(bin)[1], fill: HATCH, clip });
}

// Points and bars of the bins whose data are shown.
function dataMarks(bins: readonly BinSummary[], place: (bin: BinSummary, value: number) => number, clip = false) {
  const shown = bins.filter((bin) => bin.data !== null);
  const low = (bin: BinSummary) => place(bin, bin.errors!.lower);
  const high = (bin: BinSummary) => place(bin, bin.errors!.upper);
  return [
    // A margin in the colour of the page keeps them apart from the stack.
    Plot.ruleX(shown, { x: centre, y1: low, y2: high, stroke: "var(--surface)", strokeWidth: 3.4, strokeOpacity: 0.8, clip }),
    Plot.ruleX(shown, { x: centre, y1: low, y2: high, stroke: INK, strokeWidth: 1.4, clip }),
    Plot.dot(shown, { x: centre, y: (bin: BinSummary) => place(bin, bin.data!), r: 3.4, fill: INK, stroke: "var(--surface)", clip }),
  ];
}

function binAxis(bins: readonly BinSummary[], names: readonly string[] | undefined, width: number) {
  const room = (width - LEFT) / Math.max(bins.length, 1);
  const step = names ? 1 : Math.max(1, Math.ceil(18 / room));
  const ticks = bins.filter((_, i) => i % step === 0).map(centre);
  const tilted = isTilted(bins.length, names, width);
  const characters = tilted ? 12 : Math.max(3, Math.floor(room / 5.8));
  const format = (at: number) => (names ? shortText(names[Math.floor(at)]!, characters) : `${Math.floor(at)}`);
  return Plot.axisX(ticks, { tickFormat: format, tickSize: 0, fontSize: names ? 9.5 : 11, label: names ? null : "bin", labelAnchor: "right", labelArrow: "none", tickRotate: tilted ? -40 : 0, textAnchor: tilted ? "end" : undefined });
}

// Whether names of bins have so little room that they are turned.
function isTilted(n: number, names: readonly string[] | undefined, width: number): boolean {
  return names !== undefined && (width - LEFT) / n < 64;
}

// Room above the highest point; on a logarithmic scale also below the lowest.
function yDomain(bins: readonly BinSummary[], log: boolean): [number, number] {
  const tops = bins.flatMap((bin) => [bin.total + (bin.uncertainty ?? 0), bin.errors?.upper ?? 0]).filter(Number.isFinite);
  const top = Math.max(...tops, 0) || 1;
  if (!log) return [Math.min(0, ...bins.map((bin) => bin.total).filter(Number.isFinite)), top * 1.12];
  const positive = bins.flatMap((bin) => [bin.total, bin.data ?? 0]).filter((value) => value > 0);
  const least = Math.min(...positive, top);
  return [Math.max(least / 50, top / 1e7), top * 3];
}

function tick(value: number, log: boolean): string {
  if (!log) return significant(value, 4);
  const power = Math.log10(value);
  if (Math.abs(power - Math.round(power)) > 1e-9) return "";
  return value >= 0.01 && value < 1e4 ? significant(value, 3) : significant(value, 1);
}

function readOut(channel: ChannelYields, bin: BinSummary, options: PredictionOptions): string {
  const name = options.names ? shortText(options.names[bin.bin]!, 40) : `bin ${bin.bin}`;
  const data = bin.data === null ? "hidden" : `${significant(bin.data, 6)} (−${fixed(bin.data - bin.errors!.lower, 1)} +${fixed(bin.errors!.upper - bin.data, 1)})`;
  const rows = channel[options.phase].samples.map((sample) => ({ name: sample.sample, value: sample.yields[bin.bin] }));
  const largest = rows.filter((row) => row.value).sort((a, b) => Math.abs(b.value ?? 0) - Math.abs(a.value ?? 0)).slice(0, 8);
  const lines = largest.map((row) => `${shortText(row.name, 28)}: ${significant(row.value, 4)}`);
  return [name, `data: ${data}`, `prediction: ${precise(bin.total, bin.uncertainty)}`, ...lines].join("\n");
}
