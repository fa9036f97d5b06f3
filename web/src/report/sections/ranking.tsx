// Nuisance parameters by their impact on each parameter of interest.

import { useMemo, useState } from "preact/hooks";

import { Chart, Unfold } from "../../components/chart";
import { Name } from "../../components/name";
import { rankingChart, rankingHeight } from "../../components/ranking";
import { type Column, DataTable } from "../../components/table";
import type { Impacts, RankedParameter, Ranking, ReportData } from "../../documents";
import { type Maybe, decimalsOf, fixed, isNumber, measured, signed, significant } from "../../numbers/format";
import { matcher } from "../../numbers/pattern";
import { Absent, Caution, Section } from "../section";
import { TopControl } from "../top";
import { useView } from "../view";

export function Rankings({ data }: { data: ReportData }) {
  const rankings = data.ranking ?? [];
  return (
    <Section id="ranking" title="Ranking">
      {rankings.length === 0 && <Absent data={data} part="ranking" />}
      {rankings.map((ranking, i) => <OneRanking key={i} ranking={ranking} />)}
    </Section>
  );
}

function OneRanking({ ranking }: { ranking: Ranking }) {
  const { filter } = useView();
  const [top, setTop] = useState(20);
  const rows = useMemo(() => {
    const matches = matcher(filter);
    return ranking.ranking.filter((row) => matches(row.parameter));
  }, [ranking, filter]);
  const shown = useMemo(() => rows.slice(0, top), [rows, top]);
  const columns = useMemo(() => rankingColumns(ranking.poi.uncertainty), [ranking]);
  const { poi } = ranking;
  return (
    <figure class="ranking">
      <h3>Impact on <Name text={poi.name} /></h3>
      <Caution document={ranking} what="A fit of the ranking" />
      <div class="local"><TopControl top={top} n={rows.length} setTop={setTop} /></div>
      {shown.length > 0 ? <Chart label={`Impacts of ${shown.length} parameters; their numbers are in the table below`} draw={(width) => rankingChart(shown, poi.name, width)} inputs={[shown]} height={rankingHeight(shown.length)} /> : <p class="note">No parameter matches the filter.</p>}
      <figcaption>
        <span class="key up" aria-hidden="true" /> +1σ, <span class="key down" aria-hidden="true" /> −1σ; filled: post-fit, outlined: pre-fit impact.{" "}
        <Name text={poi.name} /> = {measured(poi.bestfit, poi.uncertainty)}.
      </figcaption>
      <Unfold summary={`Table of ${rows.length} impacts`}>{() => <DataTable label="Impacts" columns={columns} rows={rows} />}</Unfold>
      <Groups ranking={ranking} />
    </figure>
  );
}

function rankingColumns(total: Maybe): Column<RankedParameter>[] {
  const decimals = isNumber(total) && total > 0 ? decimalsOf(total) + 1 : 4;
  const impact = (head: string, of: (row: RankedParameter) => Impacts | null, side: "up" | "down"): Column<RankedParameter> => ({
    head,
    value: (row) => of(row)?.[side].impact,
    cell: (row) => impactText(of(row), side, decimals),
    numeric: true,
  });
  return [
    { head: "Parameter", value: (row) => row.parameter, cell: (row) => <Name text={row.parameter} /> },
    impact("Post-fit +1σ", (row) => row.postfit, "up"),
    impact("Post-fit −1σ", (row) => row.postfit, "down"),
    impact("Pre-fit +1σ", (row) => row.prefit, "up"),
    impact("Pre-fit −1σ", (row) => row.prefit, "down"),
    { head: "Best fit", value: (row) => row.bestfit, cell: (row) => measured(row.bestfit, row.uncertainty), numeric: true },
    { head: "Pull", value: (row) => row.pull, cell: (row) => signed(row.pull, 2), numeric: true },
    { head: "Constraint", value: (row) => row.constraint, cell: (row) => fixed(row.constraint, 2), numeric: true },
  ];
}

function impactText(impacts: Impacts | null, side: "up" | "down", decimals: number): string {
  if (!impacts) return "–";
  const { impact, clipped } = impacts[side];
  if (!isNumber(impact)) return "fit failed";
  const text = decimals >= 0 && decimals <= 8 ? signed(impact, decimals) : significant(impact, 2);
  return clipped ? `${text} (at bound)` : text;
}

function Groups({ ranking }: { ranking: Ranking }) {
  const parts = Object.entries(ranking.breakdown ?? {});
  const groups = ranking.groups ?? [];
  return (
    <>
      {parts.length > 0 && (
        <Unfold summary="Uncertainty in parts">
          {() => <DataTable label="Uncertainty in parts" columns={PARTS} rows={parts} />}
        </Unfold>
      )}
      {groups.length > 0 && <DataTable label="Groups" columns={GROUPS} rows={groups} />}
    </>
  );
}

const PARTS: Column<[string, Maybe]>[] = [
  { head: "Part", value: (row) => row[0], cell: (row) => row[0].replaceAll("_", " ") },
  { head: "Standard deviation", value: (row) => row[1], cell: (row) => significant(row[1], 3), numeric: true },
];

const GROUPS: Column<NonNullable<Ranking["groups"]>[number]>[] = [
  { head: "Group", value: (row) => row.group, cell: (row) => <Name text={row.group} /> },
  { head: "Parameters", value: (row) => row.members.length, numeric: true },
  { head: "Impact (frozen)", value: (row) => row.frozen, cell: (row) => significant(row.frozen, 3), numeric: true },
  { head: "Impact (global)", value: (row) => row.global, cell: (row) => significant(row.global, 3), numeric: true },
];
