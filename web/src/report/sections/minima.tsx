// Minima of the likelihood other than the lowest one.

import { Name } from "../../components/name";
import { type Column, DataTable } from "../../components/table";
import type { Fit, Minimum, ReportData } from "../../documents";
import { escapeText } from "../../numbers/escape";
import { fixed, isNumber, measured, significant } from "../../numbers/format";
import { Absent, Section } from "../section";

// How many parameters a row names.
const N_MOVED = 3;

export function Minima({ data }: { data: ReportData }) {
  const minima = data.minima ?? data.report.fit.minima;
  const fit = data.report.fit;
  return (
    <Section id="minima" title="Other minima">
      {!minima && <Absent data={data} part="minima" />}
      {minima && minima.length < 2 && <p>The search found one minimum{minima[0] ? <>, from {minima[0].n_starts} starting points</> : null}.</p>}
      {minima && minima.length >= 2 && <DataTable label="Minima" columns={columnsFor(fit, minima)} rows={minima} />}
    </Section>
  );
}

function columnsFor(fit: Fit, minima: readonly Minimum[]): Column<Minimum>[] {
  return [
    { head: "Above the lowest", hint: "−2 ln L above the lowest minimum", value: (row) => row.depth, cell: (row) => significant(row.depth, 4), numeric: true },
    { head: "−2 ln L", value: (row) => row.twice_nll, cell: (row) => fixed(row.twice_nll, 4), numeric: true },
    { head: "Parameter of interest", value: (row) => row.poi?.bestfit, cell: (row) => significant(row.poi?.bestfit, 4), numeric: true },
    { head: "Starts", value: (row) => row.n_starts, numeric: true },
    { head: "Found by", value: (row) => row.found_by, cell: (row) => escapeText(row.found_by) },
    { head: "What differs most", value: (row) => moved(fit, row, minima[0]!).length, cell: (row) => <Moved fit={fit} rows={moved(fit, row, minima[0]!)} />, wide: true },
  ];
}

interface Move {
  index: number;
  value: number;
  size: number;
}

// The parameters that differ most from the lowest minimum, in units of their uncertainties.
function moved(fit: Fit, minimum: Minimum, lowest: Minimum): Move[] {
  const moves = minimum.bestfit.flatMap((value, index) => {
    const [from, sigma] = [lowest.bestfit[index], fit.uncertainties[index]];
    return isNumber(value) && isNumber(from) && isNumber(sigma) && sigma > 0 ? [{ index, value, size: Math.abs(value - from) / sigma }] : [];
  });
  return moves.filter((move) => move.size > 0.1).sort((a, b) => b.size - a.size).slice(0, N_MOVED);
}

function Moved({ fit, rows }: { fit: Fit; rows: Move[] }) {
  if (rows.length === 0) return <>–</>;
  return <>{rows.map((row, i) => <span key={i}>{i > 0 && ", "}<Name text={fit.par_names[row.index] ?? ""} /> = {measured(row.value, fit.uncertainties[row.index]).split(" ")[0]}</span>)}</>;
}
