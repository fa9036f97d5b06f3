import assert from "node:assert/strict";
import { test } from "node:test";

import { garwood, logGamma, lowerGamma } from "../../src/numbers/garwood";
import numbers from "./numbers.json";

// Relative difference, of numbers around 1 or less the absolute one.
function difference(a: number, b: number): number {
  return Math.abs(a - b) / Math.max(1, Math.abs(b));
}

test("intervals agree with quantiles of the χ² distribution by SciPy to 1e-10", () => {
  for (const { count, lower, upper } of numbers.garwood) {
    const found = garwood(count);
    assert.ok(difference(found.lower, lower) < 1e-10, `lower end of ${count}: ${found.lower}, not ${lower}`);
    assert.ok(difference(found.upper, upper) < 1e-10, `upper end of ${count}: ${found.upper}, not ${upper}`);
  }
});

test("the interval of no events begins at zero and ends at 1.841", () => {
  assert.equal(garwood(0).lower, 0);
  assert.ok(Math.abs(garwood(0).upper - 1.8410216) < 1e-7);
});

test("the interval contains the count, for counts of any size", () => {
  for (let count = 1e-3; count < 1e13; count *= 3.7) {
    const { lower, upper } = garwood(count);
    assert.ok(lower >= 0 && lower < count && count < upper, `${count}: ${lower} to ${upper}`);
  }
});

// ln Γ(9000) has 5 digits before the point, so its exponential has 11 left.
test("the incomplete gamma function agrees with SciPy's to 1e-10", () => {
  for (const { a, x, p, log_gamma } of numbers.gamma) {
    assert.ok(difference(lowerGamma(a, x), p) < 1e-10, `P(${a}, ${x}) = ${lowerGamma(a, x)}, not ${p}`);
    assert.ok(difference(logGamma(a), log_gamma) < 1e-14, `ln Γ(${a}) = ${logGamma(a)}, not ${log_gamma}`);
  }
});
