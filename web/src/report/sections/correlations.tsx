// Correlations of the fitted parameters above a threshold; parameters of interest are always shown.

import { useMemo } from "preact/hooks";

import { Unfold } from "../../components/chart";
import { CorrelationMatrix, type Pair, choose, countPairs, strongPairs } from "../../components/correlation";
import { Name } from "../../components/name";
import { type Column, DataTable } from "../../components/table";
import type { Correlation, ReportData } from "../../documents";
import { fixed, signed } from "../../numbers/format";
import { matcher } from "../../numbers/pattern";
import { Absent, Section } from "../section";
import { useView } from "../view";

// The table has at most so many pairs.
const MAX_PAIRS = 500;
// The first threshold leaves at most so many parameters.
const FEW = 24;

export function Correlations({ data }: { data: ReportData }) {
  return (
    <Section id="correlations" title="Correlations">
      {data.correlation ? <Matrix data={data} correlation={data.correlation} /> : <Absent data={data} part="correlation" />}
    </Section>
  );
}

function Matrix({ data, correlation }: { data: ReportData; correlation: Correlation }) {
  const { filter, threshold: wanted, update } = useView();
  const pois = useMemo(() => poiIndices(data, correlation), [data, correlation]);
  const usual = useMemo(() => firstThreshold(correlation, pois), [correlation, pois]);
  const threshold = wanted ?? usual;
  const chosen = useMemo(() => {
    const matches = matcher(filter);
    const among = correlation.par_names.flatMap((name, i) => (matches(name) ? [i] : []));
    return choose(correlation, among, pois, threshold);
  }, [correlation, pois, filter, threshold]);
  const least = Math.max(threshold, 0.001);
  const nPairs = useMemo(() => countPairs(correlation, chosen, least), [correlation, chosen, least]);
  return (
    <figure>
      <div class="local">
        <label class="slider">
          |ρ| of at least
          <input type="range" min="0" max="1" step="0.01" value={threshold} onInput={(event) => update({ threshold: Number(event.currentTarget.value) })} />
          <output>{fixed(threshold, 2)}</output>
        </label>
        <span>{chosen.length} of {correlation.par_names.length} parameters</span>
      </div>
      {chosen.length > 0 ? <CorrelationMatrix correlation={correlation} chosen={chosen} /> : <p class="note">No correlation is as large.</p>}
      <figcaption>Red: positive, blue: negative. A parameter is shown if one of its correlations reaches the threshold; parameters of interest always are.</figcaption>
      <Unfold summary={`Table of ${nPairs} pairs`}>
        {() => <PairTable correlation={correlation} chosen={chosen} least={least} n={nPairs} />}
      </Unfold>
    </figure>
  );
}

interface PairProps {
  correlation: Correlation;
  chosen: readonly number[];
  least: number;
  n: number;
}

function PairTable({ correlation, chosen, least, n }: PairProps) {
  const pairs = useMemo(() => strongPairs(correlation, chosen, least, MAX_PAIRS), [correlation, chosen, least]);
  const name = (index: number) => correlation.par_names[index] ?? "";
  const columns: Column<Pair>[] = [
    { head: "Parameter", value: (row) => name(row.first), cell: (row) => <Name text={name(row.first)} /> },
    { head: "Other parameter", value: (row) => name(row.second), cell: (row) => <Name text={name(row.second)} /> },
    { head: "Correlation", value: (row) => row.value, cell: (row) => signed(row.value, 3), numeric: true },
  ];
  return (
    <>
      {n > MAX_PAIRS && <p class="note">The {MAX_PAIRS} largest of {n}.</p>}
      <DataTable label="Correlations" columns={columns} rows={pairs} />
    </>
  );
}

function poiIndices(data: ReportData, correlation: Correlation): Set<number> {
  const fit = data.report.fit;
  const names = new Set((fit.pois ?? (fit.poi ? [fit.poi] : [])).map((poi) => poi.name));
  return new Set(correlation.par_names.flatMap((name, i) => (names.has(name) ? [i] : [])));
}

// The smallest tenth that leaves few parameters.
function firstThreshold(correlation: Correlation, pois: ReadonlySet<number>): number {
  const all = correlation.par_names.map((_, i) => i);
  for (let tenths = 1; tenths < 10; tenths += 1) {
    if (choose(correlation, all, pois, tenths / 10).length <= FEW) return tenths / 10;
  }
  return 0.95;
}
