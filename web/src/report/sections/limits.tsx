// Upper limits, observed and expected, and the values that were tested.

import { Chart, Unfold } from "../../components/chart";
import { BAR_HEIGHT, CLS_HEIGHT, clsChart, limitBar, testedRange } from "../../components/limit";
import { Name } from "../../components/name";
import { type Column, DataTable } from "../../components/table";
import { ZoomChart } from "../../components/zoom";
import type { Limit, ReportData, TestedValue } from "../../documents";
import { escapeText } from "../../numbers/escape";
import { type Maybe, probability, significant } from "../../numbers/format";
import { Absent, Caution, Section } from "../section";

export function Limits({ data }: { data: ReportData }) {
  const limits = data.limits ?? [];
  return (
    <Section id="limits" title="Upper limits">
      {limits.length === 0 && <Absent data={data} part="limits" />}
      {limits.map((limit, i) => <OneLimit key={i} limit={limit} />)}
    </Section>
  );
}

function OneLimit({ limit }: { limit: Limit }) {
  const name = escapeText(limit.poi.name);
  return (
    <figure class="narrow">
      <h3>Upper limit on <Name text={limit.poi.name} /></h3>
      <Caution document={limit} what="A fit of the limit" />
      <DataTable label={`Limits on ${name}`} columns={VALUES} rows={[limit]} />
      <Chart label={`Observed and expected limits on ${name}`} draw={(width) => limitBar(limit, width)} inputs={[limit]} height={BAR_HEIGHT} />
      <ZoomChart {...testedRange(limit)} label={`CLs of the tested values of ${name}`} draw={(width, range) => clsChart(limit, width, range)} inputs={[limit]} height={CLS_HEIGHT} />
      <figcaption>
        Dot and line: observed; dashed: expected; <span class="key band-1" aria-hidden="true" /> ±1σ, <span class="key band-2" aria-hidden="true" /> ±2σ of the background.
        Red: CLs = {significant(limit.level, 3)}. Statistic: {escapeText(limit.test_stat)}.
      </figcaption>
      <Unfold summary={`Table of ${limit.tested.length} tested values`}>{() => <DataTable label="Tested values" columns={TESTED} rows={limit.tested} limit={100} />}</Unfold>
    </figure>
  );
}

function expected(i: number, head: string): Column<Limit> {
  return { head, value: (row) => row.expected[i], cell: (row) => significant(row.expected[i], 4), numeric: true };
}

const VALUES: Column<Limit>[] = [
  { head: "Observed", value: (row) => row.observed, cell: (row) => <strong>{significant(row.observed, 4)}</strong>, numeric: true },
  ...["−2σ", "−1σ", "Expected", "+1σ", "+2σ"].map((head, i) => expected(i, head)),
];

const tested = (head: string, value: (row: TestedValue) => Maybe): Column<TestedValue> => ({ head, value, cell: (row) => probability(value(row)), numeric: true });

const TESTED: Column<TestedValue>[] = [
  { head: "Tested value", value: (row) => row.mu, cell: (row) => significant(row.mu, 5), numeric: true },
  tested("CLs observed", (row) => row.CLs_obs),
  ...["−2σ", "−1σ", "Expected", "+1σ", "+2σ"].map((head, i) => tested(head, (row) => row.CLs_exp?.[i])),
];
