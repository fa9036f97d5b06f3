// Profile-likelihood scans with their intervals.

import { Unfold } from "../../components/chart";
import { Name } from "../../components/name";
import { SCAN_HEIGHT, type ScanMark, scanChart, scanRange } from "../../components/scan";
import { type Column, DataTable } from "../../components/table";
import { ZoomChart } from "../../components/zoom";
import type { Interval, ReportData, Scan } from "../../documents";
import { escapeText } from "../../numbers/escape";
import { type Maybe, decimalsOf, fixed, isNumber, signed, significant } from "../../numbers/format";
import { Absent, Caution, Section } from "../section";

export function Scans({ data }: { data: ReportData }) {
  const given = data.scans ?? [];
  const scans = given.filter((scan) => scan.parameter !== undefined);
  return (
    <Section id="scans" title="Likelihood scans">
      {given.length === 0 && <Absent data={data} part="scans" />}
      {scans.length < given.length && <p class="note">Scans of two parameters are not shown.</p>}
      <div class="grid">{scans.map((scan, i) => <OneScan key={i} scan={scan} />)}</div>
    </Section>
  );
}

// One scan; a conditional fit may be marked in it.
export function OneScan({ scan, mark = null }: { scan: Scan; mark?: ScanMark | null }) {
  const rows = scan.values.map((value, i) => ({ value, rise: scan.twice_delta_nll[i], outcome: scan.outcomes?.[i] ?? "" }));
  const failed = rows.filter((row) => !isNumber(row.rise)).length;
  return (
    <figure>
      <h3><Name text={scan.parameter ?? ""} /></h3>
      <Caution document={scan} what="A fit of the scan" />
      <ZoomChart {...scanRange(scan)} label={`Profile likelihood of ${escapeText(scan.parameter ?? "")}; its points are in the table below`} draw={(width, range) => scanChart(scan, width, range, mark)} inputs={[scan, mark?.at, mark?.rise]} height={SCAN_HEIGHT} />
      <figcaption>{failed > 0 && `${failed} of ${rows.length} points did not converge and are left out. `}Dashed: where −2 Δ ln L is 1 and 4.</figcaption>
      {scan.intervals && scan.intervals.length > 0 && <ul class="plain">{scan.intervals.map((interval, i) => <li key={i}><IntervalText interval={interval} /></li>)}</ul>}
      <Unfold summary={`Table of ${rows.length} points`}>{() => <DataTable label="Points of the scan" columns={POINTS} rows={rows} limit={100} />}</Unfold>
    </figure>
  );
}

function IntervalText({ interval: { cl, bestfit, down, up } }: { interval: Interval }) {
  const size = Math.min(...[down, up].filter(isNumber).map(Math.abs).filter((distance) => distance > 0));
  const decimals = Number.isFinite(size) ? decimalsOf(size) : 3;
  const end = (value: Maybe, missing: string) => (isNumber(value) ? signed(value, decimals) : missing);
  return <>{fixed(100 * cl, 2)} % CL: {fixed(bestfit, decimals)} {end(down, "(the range ends before)")} {end(up, "(the range ends before)")}</>;
}

interface Point {
  value: Maybe;
  rise: Maybe;
  outcome: string;
}

const POINTS: Column<Point>[] = [
  { head: "Value", value: (row) => row.value, cell: (row) => significant(row.value, 5), numeric: true },
  { head: "−2 Δ ln L", value: (row) => row.rise, cell: (row) => fixed(row.rise, 3), numeric: true },
  { head: "Outcome", value: (row) => row.outcome.replaceAll("_", " ") },
];
