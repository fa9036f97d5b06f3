// The distributions of the overview: all regions at once, and the first ones on their own.

import { useMemo } from "preact/hooks";

import { Legend } from "../../components/legend";
import { Name } from "../../components/name";
import { PREDICTION_HEIGHT, type PredictionOptions, predictionChart, ratioRange } from "../../components/prediction";
import { regionSums, stackOrder } from "../../components/stack";
import { coloursOf } from "../../components/style";
import { Chart } from "../../components/chart";
import type { ChannelYields, ReportData } from "../../documents";
import { escapeText } from "../../numbers/escape";
import { PhaseSwitch, usePhase } from "../../report/controls";
import { useView } from "../../report/view";
import { useSelected } from "./context";
import { Card } from "./card";

// More regions are only in the view of all regions.
const MAX_ALONE = 4;
const MAX_SUMMARY = 40;

export function RegionFigures({ data }: { data: ReportData }) {
  const { log } = useView();
  const phase = usePhase(data);
  const channels = data.report.yields.channels;
  const shared = useShared(channels);
  const options: PredictionOptions = { phase, log, ...shared };
  const isSummary = channels.length > MAX_ALONE && channels.length <= MAX_SUMMARY;
  const sums = useMemo(() => (isSummary ? regionSums(channels, shared.order) : null), [isSummary, channels, shared.order]);
  const names = useMemo(() => channels.map((channel) => channel.channel), [channels]);
  const alone = channels.slice(0, MAX_ALONE);
  return (
    <Card title={<>Data and prediction <small>{channels.length} regions</small></>} more="regions" wide>
      <div class="local"><PhaseSwitch data={data} /></div>
      <Legend order={shared.order} colours={shared.colours} />
      {sums && <Figure channel={sums} title="All regions" options={{ ...options, names }} />}
      {!isSummary && <div class="grid">{alone.map((channel, i) => <Figure key={i} channel={channel} title={channel.channel} options={options} />)}</div>}
    </Card>
  );
}

// Order, colours and the axis of ratios are those of the free fit, so that they stay while the
// slider moves.
function useShared(channels: readonly ChannelYields[]) {
  const free = useSelected((state) => state.overview.value?.report.yields.channels) ?? channels;
  return useMemo(() => {
    const colours = coloursOf(free.flatMap((channel) => channel.prefit.samples.map((sample) => sample.sample)));
    return { order: stackOrder(free), colours, ratio: ratioRange(free) };
  }, [free]);
}

function Figure({ channel, title, options }: { channel: ChannelYields; title: string; options: PredictionOptions }) {
  const { phase, log, colours, ratio } = options;
  return (
    <figure class="region">
      <h4><Name text={title} /></h4>
      <Chart label={`Data and ${phase === "prefit" ? "pre-fit" : "post-fit"} prediction of ${escapeText(title)}; the view Regions has the numbers`} draw={(width) => predictionChart(channel, options, width, [0, Math.max(channel.data.length, 1)])} inputs={[channel, phase, log, colours, ratio]} height={PREDICTION_HEIGHT} />
    </figure>
  );
}

