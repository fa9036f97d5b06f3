// Figures of data and prediction, region by region.

import { useMemo } from "preact/hooks";

import { Unfold } from "../../components/chart";
import { Legend } from "../../components/legend";
import { Name } from "../../components/name";
import { PREDICTION_HEIGHT, type PredictionOptions, predictionChart, ratioRange } from "../../components/prediction";
import { hiddenBins, regionSums, stackOrder, summaryOf } from "../../components/stack";
import { coloursOf } from "../../components/style";
import { type Column, DataTable } from "../../components/table";
import { ZoomChart } from "../../components/zoom";
import type { ChannelYields, ReportData } from "../../documents";
import { escapeText } from "../../numbers/escape";
import { type Maybe, isNumber, measured, significant } from "../../numbers/format";
import { PhaseSwitch, usePhase } from "../controls";
import { Section } from "../section";
import { useView } from "../view";

// Names of more regions do not fit under one figure.
const MAX_SUMMARY = 40;

export function Regions({ data }: { data: ReportData }) {
  const { log } = useView();
  const phase = usePhase(data);
  const { converged } = data.report.fit;
  const channels = data.report.yields.channels;
  const shared = useMemo(() => {
    const order = stackOrder(channels);
    const colours = coloursOf(channels.flatMap((channel) => channel.prefit.samples.map((sample) => sample.sample)));
    return { order, colours, ratio: ratioRange(channels), sums: regionSums(channels, order), names: channels.map((channel) => channel.channel) };
  }, [channels]);
  const options = { phase, log, order: shared.order, colours: shared.colours, ratio: shared.ratio };
  return (
    <Section id="regions" title="Regions">
      {!converged && <p class="caution" role="note">The fit did not converge: these are pre-fit predictions, and there are no others.</p>}
      <div class="local"><PhaseSwitch data={data} /></div>
      <Legend order={shared.order} colours={shared.colours} />
      {channels.length > 1 && channels.length <= MAX_SUMMARY && <div style={{ maxWidth: `${Math.max(420, 110 * channels.length)}px` }}><Region title="All regions" channel={shared.sums} options={{ ...options, names: shared.names }} /></div>}
      <div class="grid">
        {channels.map((channel, i) => <Region key={i} title={channel.channel} channel={channel} options={options} />)}
      </div>
    </Section>
  );
}

interface RegionProps {
  title: string;
  channel: ChannelYields;
  options: PredictionOptions;
}

function Region({ title, channel, options }: RegionProps) {
  const { phase, log, colours, ratio } = options;
  const hidden = hiddenBins(channel.data);
  const words = phase === "prefit" ? "pre-fit" : "post-fit";
  return (
    <figure class="region">
      <h3><Name text={title} /></h3>
      <ZoomChart range={[0, Math.max(channel.data.length, 1)]} step={1} snaps label={`Data and ${words} prediction of ${escapeText(title)}; the numbers are in the table below`} draw={(width, range) => predictionChart(channel, options, width, range)} inputs={[channel, phase, log, colours, ratio]} height={PREDICTION_HEIGHT} />
      {hidden && <figcaption>Data hidden: {options.names ? "regions marked grey" : allHidden(channel) ? "all bins" : `bins ${hidden}`}.</figcaption>}
      <Unfold summary="Table">{() => <BinTable channel={channel} options={options} />}</Unfold>
    </figure>
  );
}

function allHidden(channel: ChannelYields): boolean {
  return !channel.data.some(isNumber);
}

interface Row {
  bin: number;
  data: Maybe;
  errors: string;
  prediction: [Maybe, Maybe];
  ratio: Maybe;
}

function BinTable({ channel, options }: { channel: ChannelYields; options: PredictionOptions }) {
  const rows = summaryOf(channel, options.phase).map((bin): Row => ({
    bin: bin.bin,
    data: bin.data,
    errors: bin.errors && bin.data !== null ? `−${significant(bin.data - bin.errors.lower, 3)} +${significant(bin.errors.upper - bin.data, 3)}` : "",
    prediction: [bin.total, bin.uncertainty],
    ratio: bin.data === null || !(bin.total > 0) ? null : bin.data / bin.total,
  }));
  const place: Column<Row> = options.names ? { head: "Region", value: (row) => options.names![row.bin] ?? "", cell: (row) => <Name text={options.names![row.bin] ?? ""} /> } : { head: "Bin", value: (row) => row.bin, numeric: true };
  return <DataTable label="Data and prediction" columns={[place, ...BINS]} rows={rows} />;
}

const BINS: Column<Row>[] = [
  { head: "Data", value: (row) => row.data, cell: (row) => (isNumber(row.data) ? significant(row.data, 9) : "hidden"), numeric: true },
  { head: "Error of data", hint: "Garwood interval of one standard deviation", value: (row) => row.errors, numeric: true },
  { head: "Prediction", value: (row) => row.prediction[0], cell: (row) => measured(...row.prediction), numeric: true },
  { head: "Data / prediction", value: (row) => row.ratio, cell: (row) => (isNumber(row.ratio) ? row.ratio.toFixed(2) : "–"), numeric: true },
];
