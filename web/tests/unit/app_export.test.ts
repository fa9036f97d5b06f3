import assert from "node:assert/strict";
import { test } from "node:test";
import { strFromU8, unzipSync } from "fflate";

import { submissionFiles } from "../../src/app/export/hepdata";
import { fileName, zipped } from "../../src/app/export/save";
import { toYaml } from "../../src/app/export/yaml";
import type { Limit, ReportData } from "../../src/documents";

test("lists and objects are blocks, and text is quoted", () => {
  const value = { name: "a: b", list: [{ value: 1, errors: [{ symerror: 0.5 }] }, { value: "-" }], none: [], "odd key": null };
  assert.equal(toYaml(value), ['name: "a: b"', "list:", "  - value: 1", "    errors:", "      - symerror: 0.5", '  - value: "-"', "none: []", '"odd key": null', ""].join("\n"));
});

test("numbers with a power are numbers in YAML 1.1, and what is not finite is a dash", () => {
  assert.equal(toYaml([1e-7, -2.5e21, 0.25, Number.NaN]), '- 1.0e-7\n- -2.5e+21\n- 0.25\n- "-"\n');
});

test("invisible characters are escaped", () => {
  assert.equal(toYaml("a\n\u0085\u2028\u007f\ufeff"), '"a\\n\\u0085\\u2028\\u007f\\ufeff"\n');
});

function report(channels: string[]): ReportData {
  const total = { yields: [10, 20], uncertainties: [1, 0], sum: 30, sum_uncertainty: 1 };
  const prediction = { samples: [{ sample: "signal", ...total }], total };
  const yields = { channels: channels.map((channel) => ({ channel, data: [9, null], prefit: prediction, postfit: prediction })) };
  return { title: "", report: { nextstat_version: "1", measurement: "m", fit: { converged: true }, yields } } as unknown as ReportData;
}

const LIMIT: Limit = { poi: { name: "mu", index: 0, bestfit: 1 }, observed: 2.5, expected: [0.8, 1.1, 1.6, 2.3, 3.2], level: 0.05, test_stat: "qtilde", tested: [] };

test("a submission has a table for each region and one for the limit", () => {
  const files = submissionFiles(report(["SR", "CR"]), LIMIT, {});
  assert.deepEqual([...files.keys()], ["submission.yaml", "yields_in_sr.yaml", "yields_in_cr.yaml", "upper_limits.yaml"]);
  assert.equal(files.get("submission.yaml")!.split("---\n").length - 1, 4);
  assert.match(files.get("submission.yaml")!, /data_file: "yields_in_sr\.yaml"/);
});

test("hidden data are a dash, and errors of zero are left out", () => {
  const table = submissionFiles(report(["SR"]), null, {}).get("yields_in_sr.yaml")!;
  assert.match(table, /name: "Data"\n    values:\n      - value: 9\n      - value: "-"\n/);
  assert.match(table, /name: "Total pre-fit"\n    values:\n      - value: 10\n        errors:\n          - symerror: 1\n      - value: 20\n/);
});

test("the bands of a limit are errors of its median", () => {
  const table = submissionFiles(report([]), LIMIT, {}).get("upper_limits.yaml")!;
  assert.match(table, /- value: 1\.6\n        errors:\n          - label: "1 s\.d\."\n            asymerror:\n              minus: -0\.5/);
});

test("Asimov data are not called data, and every table has the settings", () => {
  const settings = { asimov: 1.5, fixed: { scale: 0.25 }, bounds: { norm: [0, 2] as [number, number] }, mask: ["CR"] };
  const files = submissionFiles(report(["SR"]), LIMIT, settings);
  const table = files.get("yields_in_sr.yaml")!;
  assert.match(table, /name: "Asimov data"/);
  assert.doesNotMatch(table, /name: "Data"/);
  assert.match(files.get("upper_limits.yaml")!, /name: "Limit of the Asimov data"/);
  const descriptions = files.get("submission.yaml")!.split("\n").filter((line) => line.startsWith("description:"));
  assert.equal(descriptions.length, 2);
  for (const text of descriptions) for (const words of [/Asimov data with .* = 1\.5/, /scale fixed at 0\.25/, /norm from 0 to 2/, /leaves out CR/]) assert.match(text, words);
  assert.doesNotMatch(submissionFiles(report(["SR"]), LIMIT, {}).get("submission.yaml")!, /Settings/);
});

test("regions whose names are alike have files of their own", () => {
  assert.deepEqual([...submissionFiles(report(["a b", "a/b", "../a", ""]), null, {}).keys()].slice(1), ["yields_in_a_b.yaml", "yields_in_a_b_2.yaml", "yields_in_.._a.yaml", "yields_in.yaml"]);
});

test("names of files are plain", () => {
  assert.equal(fileName("../../etc/passwd"), "etc_passwd");
  assert.equal(fileName("Pulls of 30 parameters"), "Pulls_of_30_parameters");
  assert.equal(fileName("μ"), "figure");
});

test("an archive has its files, and the same bytes each time", () => {
  const files = new Map([["a.yaml", "x: 1\n"], ["b.yaml", "y"]]);
  const archive = zipped(files);
  assert.deepEqual(Object.entries(unzipSync(archive)).map(([name, bytes]) => [name, strFromU8(bytes)]), [...files]);
  assert.deepEqual(zipped(files), archive);
});
