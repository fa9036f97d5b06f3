// Data and expected yields of every region, before and after the fit.

import { useMemo } from "preact/hooks";

import { Unfold } from "../../components/chart";
import { Name } from "../../components/name";
import { hiddenBins } from "../../components/stack";
import { type Column, DataTable } from "../../components/table";
import type { ChannelYields, ReportData } from "../../documents";
import { type Maybe, isNumber, measured, significant } from "../../numbers/format";
import { Section } from "../section";

interface Row {
  channel: string;
  sample: string | null;
  data: Maybe;
  prefit: [Maybe, Maybe];
  postfit: [Maybe, Maybe];
}

export function YieldsTable({ data }: { data: ReportData }) {
  const channels = data.report.yields.channels;
  const { converged } = data.report.fit;
  const totals = useMemo(() => channels.map(totalRow), [channels]);
  const samples = useMemo(() => channels.flatMap(sampleRows), [channels]);
  return (
    <Section id="yields" title="Yields">
      {!converged && <p class="caution" role="note">The fit did not converge, so there are no post-fit yields.</p>}
      <DataTable label="Yields by region" columns={converged ? [...TOTALS, POSTFIT] : TOTALS} rows={totals} />
      <Unfold summary={`Yields by region and sample (${samples.length})`}>
        {() => <DataTable label="Yields by region and sample" columns={converged ? [...SAMPLES, POSTFIT] : SAMPLES} rows={samples} limit={100} />}
      </Unfold>
    </Section>
  );
}

function totalRow(channel: ChannelYields): Row {
  const hidden = hiddenBins(channel.data) !== "";
  const data = hidden ? null : channel.data.reduce((sum: number, n) => sum + (n ?? 0), 0);
  const of = (phase: "prefit" | "postfit"): [Maybe, Maybe] => [channel[phase].total.sum, channel[phase].total.sum_uncertainty];
  return { channel: channel.channel, sample: null, data, prefit: of("prefit"), postfit: of("postfit") };
}

function sampleRows(channel: ChannelYields): Row[] {
  const after = new Map(channel.postfit.samples.map((sample) => [sample.sample, sample]));
  return channel.prefit.samples.map((sample) => ({
    channel: channel.channel,
    sample: sample.sample,
    data: null,
    prefit: [sample.sum, sample.sum_uncertainty],
    postfit: [after.get(sample.sample)?.sum, after.get(sample.sample)?.sum_uncertainty],
  }));
}

const REGION: Column<Row> = { head: "Region", value: (row) => row.channel, cell: (row) => <Name text={row.channel} /> };
const PREFIT: Column<Row> = { head: "Pre-fit", value: (row) => row.prefit[0], cell: (row) => measured(...row.prefit), numeric: true };
const POSTFIT: Column<Row> = { head: "Post-fit", value: (row) => row.postfit[0], cell: (row) => measured(...row.postfit), numeric: true };

const TOTALS: Column<Row>[] = [
  REGION,
  { head: "Data", value: (row) => row.data, cell: (row) => (isNumber(row.data) ? significant(row.data, 9) : "hidden"), numeric: true },
  PREFIT,
];

const SAMPLES: Column<Row>[] = [REGION, { head: "Sample", value: (row) => row.sample, cell: (row) => <Name text={row.sample ?? ""} /> }, PREFIT];
