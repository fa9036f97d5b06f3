import assert from "node:assert/strict";
import { test } from "node:test";

import { limited } from "../../src/components/zoom";

test("a range stays inside the whole, with its size", () => {
  assert.deepEqual(limited([2, 4], [0, 10], 1, false), [2, 4]);
  assert.deepEqual(limited([-3, 1], [0, 10], 1, false), [0, 4]);
  assert.deepEqual(limited([8, 12], [0, 10], 1, false), [6, 10]);
});

test("a range is not shorter than a step, and the whole is no range", () => {
  assert.deepEqual(limited([5, 5.1], [0, 10], 1, false), [5, 6]);
  assert.equal(limited([-1, 11], [0, 10], 1, false), null);
  assert.equal(limited([0, 1], [0, 1], 1, true), null);
});

test("bins are whole", () => {
  assert.deepEqual(limited([2.3, 4.1], [0, 10], 1, true), [2, 5]);
});
