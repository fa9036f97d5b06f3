import assert from "node:assert/strict";
import { test } from "node:test";

import { choose, correlationOf, countPairs, strongPairs } from "../../src/components/correlation";
import { hiddenBins, layersOf, regionSums, stackOrder, summaryOf } from "../../src/components/stack";
import { coloursOf } from "../../src/components/style";
import type { ChannelYields, Prediction } from "../../src/documents";

function prediction(samples: [string, number[]][]): Prediction {
  const n = samples[0]![1].length;
  const total = Array.from({ length: n }, (_, bin) => samples.reduce((sum, [, yields]) => sum + yields[bin]!, 0));
  const of = (yields: number[]) => ({ yields, uncertainties: yields.map(() => 1), sum: yields.reduce((a, b) => a + b), sum_uncertainty: 2 });
  return { samples: samples.map(([sample, yields]) => ({ sample, ...of(yields) })), total: of(total) };
}

function channel(name: string, data: (number | null)[], samples: [string, number[]][]): ChannelYields {
  return { channel: name, data, prefit: prediction(samples), postfit: prediction(samples) };
}

const FIRST = channel("SR", [5, 9], [["a", [1, 2]], ["b", [4, -3]], ["c", [2, 8]]]);
const SECOND = channel("CR", [null, 100], [["b", [50, 40]], ["__proto__", [1, 1]]]);

test("samples are stacked without gaps, negative ones downwards", () => {
  const layers = layersOf(FIRST.prefit, ["b", "a", "c"]).map(({ bin, sample, low, high }) => [bin, sample, low, high]);
  assert.deepEqual(layers.filter(([bin]) => bin === 0), [[0, "b", 0, 4], [0, "a", 4, 5], [0, "c", 5, 7]]);
  assert.deepEqual(layers.filter(([bin]) => bin === 1), [[1, "b", -3, 0], [1, "a", 0, 2], [1, "c", 2, 10]]);
});

test("the order of a stack is that of the sums over all regions", () => {
  assert.deepEqual(stackOrder([FIRST, SECOND]), ["__proto__", "a", "c", "b"]);
});

test("sums of regions keep the total, and hide data with a hidden bin", () => {
  const sums = regionSums([FIRST, SECOND], stackOrder([FIRST, SECOND]));
  assert.deepEqual(sums.data, [14, null]);
  assert.deepEqual(sums.prefit.total.yields, [14, 92]);
  assert.deepEqual(sums.prefit.samples.map((sample) => sample.yields), [[0, 2], [3, 0], [10, 0], [1, 90]]);
});

test("hidden bins have no data and no errors", () => {
  assert.deepEqual(summaryOf(SECOND, "postfit")[0], { bin: 0, total: 51, uncertainty: 1, data: null, errors: null });
  assert.equal(hiddenBins([null, null, 3, null, 0, null, null, null]), "0–1, 3, 5–7");
  assert.equal(hiddenBins([1, 0]), "");
});

test("colours do not depend on how often a name appears, and forty names have forty colours", () => {
  assert.deepEqual(coloursOf(["a", "b", "a", "c"]), coloursOf(["a", "b", "c"]));
  const colours = coloursOf(Array.from({ length: 40 }, (_, i) => `sample ${i}`));
  assert.equal(new Set(colours.values()).size, 40);
});

// A parameter of interest without strong correlations, two groups, and one that is not defined.
const CORRELATION = {
  par_names: ["mu", "a", "b", "c", "d"],
  millionths: [[], [50e3], [-20e3, 700e3], [10e3, 100e3, -300e3], [null, null, null, null]],
};

test("correlations are read from the triangle", () => {
  assert.equal(correlationOf(CORRELATION, 1, 2), 0.7);
  assert.equal(correlationOf(CORRELATION, 2, 1), 0.7);
  assert.equal(correlationOf(CORRELATION, 3, 3), 1);
  assert.equal(correlationOf(CORRELATION, 4, 0), null);
});

test("a threshold keeps who reaches it, at it too, and the parameters of interest", () => {
  const all = [0, 1, 2, 3, 4];
  assert.deepEqual(choose(CORRELATION, all, new Set([0]), 0.3), [0, 1, 2, 3]);
  assert.deepEqual(choose(CORRELATION, all, new Set([0]), 0.301), [0, 1, 2]);
  assert.deepEqual(choose(CORRELATION, all, new Set(), 0.8), []);
  // Correlations with parameters that a filter leaves out do not count.
  assert.deepEqual(choose(CORRELATION, [2, 3], new Set([0]), 0.5), [0]);
});

test("the largest pairs are found without the others", () => {
  const all = strongPairs(CORRELATION, [0, 1, 2, 3, 4], 0);
  assert.deepEqual(strongPairs(CORRELATION, [0, 1, 2, 3, 4], 0, 2), all.slice(0, 2));
  assert.deepEqual([0, 0.2, 0.9].map((threshold) => countPairs(CORRELATION, [0, 1, 2, 3, 4], threshold)), [0, 0.2, 0.9].map((threshold) => strongPairs(CORRELATION, [0, 1, 2, 3, 4], threshold).length));
});

test("pairs are in the order of their size", () => {
  const pairs = strongPairs(CORRELATION, [0, 1, 2, 3, 4], 0.05);
  assert.deepEqual(pairs.map((pair) => pair.value), [0.7, -0.3, 0.1, 0.05]);
  assert.deepEqual([pairs[0]!.first, pairs[0]!.second], [1, 2]);
});
