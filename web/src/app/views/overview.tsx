// The first view: distributions, pulls, impacts, the profile and the limit at a glance.

import { useMemo } from "preact/hooks";

import { Chart, Unfold } from "../../components/chart";
import { BAR_HEIGHT, CLS_HEIGHT, clsChart, limitBar, testedRange } from "../../components/limit";
import { Message, Name, Warnings } from "../../components/name";
import { pullsChart, pullsHeight } from "../../components/pulls";
import { rankingChart, rankingHeight } from "../../components/ranking";
import type { Check, Finding, Pull, ReportData } from "../../documents";
import { matcher } from "../../numbers/pattern";
import { escapeText } from "../../numbers/escape";
import { findingCounts } from "../../numbers/words";
import { useView } from "../../report/view";
import { Card, PartFrame } from "../parts/card";
import { useApp, useSelected } from "../parts/context";
import { LiveScan } from "../parts/live_scan";
import { RegionFigures } from "../parts/region_figures";

const N_ROWS = 20;
const N_ALERTS = 3;

export function Overview({ data }: { data: ReportData }) {
  const hasPoi = data.report.fit.poi != null;
  return (
    <div class="cards">
      <Alerts data={data} />
      <RegionFigures data={data} />
      <PullsCard pulls={data.report.pulls} />
      {hasPoi && <RankingCard />}
      {hasPoi && <ScanCard />}
      {hasPoi && <LimitCard />}
      {data.check && <FindingsCard check={data.check} />}
    </div>
  );
}

// What to know before the numbers are used.
function Alerts({ data }: { data: ReportData }) {
  const ofModel = useSelected((state) => state.overview.value?.model_warnings) ?? [];
  const texts = [...ofModel, ...(data.report.warnings ?? [])];
  if (texts.length === 0) return null;
  return (
    <div class="alerts">
      <Warnings texts={texts.slice(0, N_ALERTS)} />
      {texts.length > N_ALERTS && <Unfold summary={`${texts.length - N_ALERTS} more`}>{() => <Warnings texts={texts.slice(N_ALERTS)} />}</Unfold>}
    </div>
  );
}

function PullsCard({ pulls }: { pulls: readonly Pull[] }) {
  const { filter } = useView();
  const free = useSelected((state) => state.overview.value?.report.pulls) ?? pulls;
  // The order is that of the free fit, so that rows stay in their places while the slider moves.
  const order = useMemo(() => {
    const matches = matcher(filter);
    const size = (row: Pull) => Math.abs(row.pull ?? 0);
    return free.filter((row) => matches(row.parameter)).sort((a, b) => size(b) - size(a)).slice(0, N_ROWS).map((row) => row.index);
  }, [free, filter]);
  const rows = useMemo(() => {
    const byIndex = new Map(pulls.map((row) => [row.index, row]));
    return order.flatMap((index) => byIndex.get(index) ?? []);
  }, [order, pulls]);
  return (
    <Card title={<>Largest pulls <small>{rows.length} of {pulls.length}</small></>} more="pulls">
      {rows.length > 0 ? <Chart label={`The ${rows.length} largest pulls; the view Pulls has their numbers`} draw={(width) => pullsChart(rows, width)} inputs={[rows]} height={pullsHeight(rows.length)} /> : <p class="note">No constrained parameter matches.</p>}
    </Card>
  );
}

function RankingCard() {
  const { background } = useApp();
  const { filter } = useView();
  const part = useSelected((state) => state.parts.ranking);
  const rows = useMemo(() => part.value?.ranking.filter((row) => matcher(filter)(row.parameter)).slice(0, N_ROWS) ?? [], [part.value, filter]);
  return (
    <Card title="Largest impacts" more="ranking">
      <PartFrame part={part} what="the ranking" run={() => background.run("ranking")} cancel={() => background.cancel("ranking")}>
        {({ poi }) => rows.length > 0 ? <Chart label={`The ${rows.length} largest impacts on ${escapeText(poi.name)}; the view Ranking has their numbers`} draw={(width) => rankingChart(rows, poi.name, width)} inputs={[rows]} height={rankingHeight(rows.length)} /> : <p class="note">No parameter has an impact.</p>}
      </PartFrame>
    </Card>
  );
}

function ScanCard() {
  const { background } = useApp();
  const part = useSelected((state) => state.parts.scan);
  return (
    <Card title="Profile likelihood" more="scan">
      <PartFrame part={part} what="the scan" run={() => background.run("scan")} cancel={() => background.cancel("scan")}>
        {(scan) => <LiveScan scan={scan} />}
      </PartFrame>
    </Card>
  );
}

function LimitCard() {
  const { background } = useApp();
  const part = useSelected((state) => state.parts.limit);
  return (
    <Card title="Upper limit" more="limit">
      <PartFrame part={part} what="the limit" run={() => background.run("limit")} cancel={() => background.cancel("limit")}>
        {(limit) => (
          <>
            <Chart label={`Observed and expected limits on ${escapeText(limit.poi.name)}; the view Limit has their numbers`} draw={(width) => limitBar(limit, width)} inputs={[limit]} height={BAR_HEIGHT} />
            <Chart label={`CLs of the tested values of ${escapeText(limit.poi.name)}; the view Limit has its table`} draw={(width) => clsChart(limit, width, testedRange(limit).range)} inputs={[limit]} height={CLS_HEIGHT} />
            <p class="note">Dot and line: observed; dashed: expected; <span class="key band-1" aria-hidden="true" /> ±1σ, <span class="key band-2" aria-hidden="true" /> ±2σ of the background.</p>
          </>
        )}
      </PartFrame>
    </Card>
  );
}

function FindingsCard({ check }: { check: Check }) {
  const serious = check.findings.filter((finding) => finding.severity !== "note");
  const shown = (serious.length > 0 ? serious : check.findings).slice(0, 8);
  return (
    <Card title={<>Findings of the check <small>{findingCounts(check)}</small></>} more="model" wide>
      {shown.length === 0 && <p class="note">The check of the model found nothing.</p>}
      <ul class="findings">
        {shown.map((finding, i) => <li key={i}><span class={`severity ${finding.severity}`}>{finding.severity}</span> <Message text={finding.message} /> <Place finding={finding} /></li>)}
      </ul>
    </Card>
  );
}

// Where a finding is, from the smallest part to the largest.
function Place({ finding: { modifier, parameter, sample, channel } }: { finding: Finding }) {
  const parts = [modifier ?? parameter, sample, channel].filter((part) => part !== undefined);
  return <span class="place">{parts.map((part, i) => <span key={i}>{i > 0 && " · "}<Name text={part} /></span>)}</span>;
}
