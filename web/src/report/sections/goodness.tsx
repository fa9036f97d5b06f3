// How well the fit describes the data, in total and by channel.

import { Name, Warnings } from "../../components/name";
import { type Column, DataTable } from "../../components/table";
import type { ChannelGoodness, ReportData } from "../../documents";
import { fixed, isNumber, probability, significant } from "../../numbers/format";
import { Absent, Section } from "../section";

export function GoodnessOfFit({ data }: { data: ReportData }) {
  const goodness = data.gof ?? data.report.goodness_of_fit;
  if (!goodness) return <Section id="goodness" title="Goodness of fit"><Absent data={data} part="gof" /></Section>;
  return (
    <Section id="goodness" title="Goodness of fit">
      <p>
        {isNumber(goodness.statistic) ? <>Statistic {fixed(goodness.statistic, 2)} with {significant(goodness.n_dof, 6)} degrees of freedom: p = <strong>{probability(goodness.p_value)}</strong>.</> : "There is no statistic."}
        {isNumber(goodness.constraint_deviance) && <> The constraint terms contribute {fixed(goodness.constraint_deviance, 2)}.</>}
      </p>
      <Warnings texts={goodness.warnings} />
      <DataTable label="Goodness of fit by channel" columns={COLUMNS} rows={goodness.channels} />
    </Section>
  );
}

function statistic(row: ChannelGoodness) {
  return row.deviance === undefined ? row.statistic : row.deviance;
}

const COLUMNS: Column<ChannelGoodness>[] = [
  { head: "Channel", value: (row) => row.channel, cell: (row) => <Name text={row.channel} /> },
  { head: "Bins", value: (row) => row.n_bins, numeric: true },
  { head: "Statistic", hint: "deviance, or χ² of a prediction that did not use the data", value: statistic, cell: (row) => fixed(statistic(row), 2), numeric: true },
  { head: "Degrees of freedom", hint: "effective: bins minus what the fit adapted", value: (row) => row.n_dof, cell: (row) => fixed(row.n_dof, 1), numeric: true },
  { head: "p-value", value: (row) => row.p_value, cell: (row) => <PValue value={row.p_value} />, numeric: true },
];

// A p-value with a bar of its length.
function PValue({ value }: { value: ChannelGoodness["p_value"] }) {
  if (!isNumber(value)) return <>–</>;
  return <><span class="bar" aria-hidden="true"><span style={{ width: `${100 * Math.min(value, 1)}%` }} /></span>{probability(value)}</>;
}
