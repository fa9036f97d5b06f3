import assert from "node:assert/strict";
import { test } from "node:test";

import { fixed, measured, partOf, probability, signed, significant } from "../../src/numbers/format";
import numbers from "./numbers.json";

test("values and uncertainties are rounded to two digits as the package uncertainties does", () => {
  for (const { value, uncertainty, text } of numbers.roundings) {
    assert.equal(measured(value, uncertainty).replaceAll("−", "-"), text, `${value} ± ${uncertainty}`);
  }
});

test("uncertainties of a hundred and more have no decimals, and extreme ones a power of ten", () => {
  assert.equal(measured(1234.7, 99.9), "1235 ± 100");
  assert.equal(measured(1234.7, 321), "1235 ± 321");
  assert.equal(measured(2e15, 3.21e12), "2e15 ± 3.2e12");
  assert.equal(measured(1e-9, 2.51e-10), "1e−9 ± 2.5e−10");
});

test("what is missing is a dash, and no uncertainty leaves the value alone", () => {
  assert.equal(measured(null, 1), "–");
  assert.equal(measured(1.2345678, null), "1.2346");
  assert.equal(significant(undefined, 3), "–");
  assert.equal(probability(null), "–");
});

test("what is rounded to zero has no sign", () => {
  assert.equal(fixed(-0.0001, 2), "0.00");
  assert.equal(signed(0.0001, 2), "0.00");
  assert.equal(measured(-1e-9, 0.25), "0.00 ± 0.25");
});

test("numbers have the digits that are asked for, and large and small ones an exponent", () => {
  assert.equal(significant(1234.5678, 6), "1234.57");
  assert.equal(significant(1.234e-7, 3), "1.23e−7");
  assert.equal(significant(-0.25, 3), "−0.25");
  assert.equal(significant(999.96, 4), "1000");
  assert.equal(significant(1e12, 6), "1e12");
  assert.equal(partOf(0.74, 0.66), "0.66");
});
