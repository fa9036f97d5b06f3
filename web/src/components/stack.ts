// Numbers of a figure of data and prediction: stacked samples, uncertainties, errors of the data.

import type { ChannelYields, Prediction } from "../documents";
import { type Interval, garwood } from "../numbers/garwood";
import { type Maybe, isNumber } from "../numbers/format";

export type Phase = "prefit" | "postfit";

export interface Layer {
  bin: number;
  sample: string;
  low: number;
  high: number;
}

export interface BinSummary {
  bin: number;
  total: number;
  uncertainty: number | null;
  // `null` where the data are hidden.
  data: number | null;
  errors: Interval | null;
}

// The samples of all regions in one order for every stack: the smallest over all of them at the
// bottom, so that it is seen on a logarithmic scale, too.
export function stackOrder(channels: readonly ChannelYields[]): string[] {
  const sums = new Map<string, number>();
  for (const channel of channels) {
    for (const { sample, sum } of channel.prefit.samples) sums.set(sample, (sums.get(sample) ?? 0) + Math.abs(sum ?? 0));
  }
  return [...sums].sort((a, b) => a[1] - b[1]).map(([sample]) => sample);
}

// Stacks the samples of each bin in the given order; what is negative is stacked downwards.
export function layersOf(prediction: Prediction, order: readonly string[]): Layer[] {
  const rank = new Map(order.map((sample, i) => [sample, i]));
  const samples = [...prediction.samples].sort((a, b) => (rank.get(a.sample) ?? 0) - (rank.get(b.sample) ?? 0));
  const tops: number[] = [];
  const bottoms: number[] = [];
  return samples.flatMap(({ sample, yields }) =>
    yields.map((value, bin) => {
      const side = (value ?? 0) < 0 ? bottoms : tops;
      const from = side[bin] ?? 0;
      const to = from + (value ?? 0);
      side[bin] = to;
      return { bin, sample, low: Math.min(from, to), high: Math.max(from, to) };
    }),
  );
}

// Totals and data of each bin.
export function summaryOf(channel: ChannelYields, phase: Phase): BinSummary[] {
  const { yields, uncertainties } = channel[phase].total;
  return yields.map((value, bin) => {
    const data = channel.data[bin] ?? null;
    const errors = data === null ? null : garwood(data);
    return { bin, total: value ?? Number.NaN, uncertainty: uncertainties[bin] ?? null, data, errors };
  });
}

// Regions as the bins of one: their sums. Data of a region with a hidden bin are hidden.
export function regionSums(channels: readonly ChannelYields[], order: readonly string[]): ChannelYields {
  const data = channels.map(({ data: bins }) => (bins.every(isNumber) ? bins.reduce((sum: number, n) => sum + (n ?? 0), 0) : null));
  return { channel: "", data, prefit: sumsOf(channels, "prefit", order), postfit: sumsOf(channels, "postfit", order) };
}

function sumsOf(channels: readonly ChannelYields[], phase: Phase, order: readonly string[]): Prediction {
  const totals = channels.map((channel) => channel[phase].total);
  const bySample = channels.map((channel) => new Map(channel[phase].samples.map((sample) => [sample.sample, sample])));
  const samples = order.map((sample) => {
    const rows = bySample.map((map) => map.get(sample));
    return { sample, ...columns(rows.map((row) => row?.sum ?? (row ? null : 0)), rows.map((row) => row?.sum_uncertainty ?? null)) };
  });
  return { samples, total: columns(totals.map((total) => total.sum), totals.map((total) => total.sum_uncertainty)) };
}

function columns(yields: Maybe[], uncertainties: Maybe[]) {
  return { yields, uncertainties, sum: null, sum_uncertainty: null };
}

// Returns the bins with hidden data as text, such as `0–2, 5`; empty if there are none.
export function hiddenBins(data: readonly Maybe[]): string {
  const runs: [number, number][] = [];
  data.forEach((value, bin) => {
    if (isNumber(value)) return;
    const last = runs.at(-1);
    if (last && last[1] === bin - 1) last[1] = bin;
    else runs.push([bin, bin]);
  });
  return runs.map(([first, last]) => (first === last ? `${first}` : `${first}–${last}`)).join(", ");
}
