// Fitted parameters: pulls and constraints as a figure, and all of them in tables, those without a
// constraint apart.

import { useMemo, useState } from "preact/hooks";

import { Chart, Unfold } from "../../components/chart";
import { Name } from "../../components/name";
import { pullsChart, pullsHeight } from "../../components/pulls";
import { type Column, DataTable } from "../../components/table";
import type { Fit, Interval, Pull, ReportData } from "../../documents";
import { type Maybe, fixed, isNumber, measured, signed, significant } from "../../numbers/format";
import { matcher } from "../../numbers/pattern";
import { Section } from "../section";
import { TopControl } from "../top";
import { useView } from "../view";

interface FreeParameter {
  parameter: string;
  bestfit: Maybe;
  uncertainty: Maybe;
  state: string;
}

export function Parameters({ data }: { data: ReportData }) {
  const { filter } = useView();
  const { fit, pulls } = data.report;
  const free = useMemo(() => freeParameters(fit, pulls), [fit, pulls]);
  const [shownFree, shownPulls] = useMemo(() => {
    const matches = matcher(filter);
    return [free.filter((row) => matches(row.parameter)), pulls.filter((row) => matches(row.parameter))];
  }, [filter, free, pulls]);
  return (
    <Section id="parameters" title="Parameters">
      {!fit.converged && <Stopped fit={fit} />}
      {fit.converged && free.length > 0 && <><h3>Normalisations and other parameters without a constraint</h3><DataTable label="Parameters without a constraint" columns={FREE} rows={shownFree} /></>}
      {fit.converged && pulls.length > 0 && <><h3>Pulls and constraints</h3><Pulls rows={shownPulls} n={pulls.length} /></>}
      {fit.minos && fit.minos.length > 0 && <><h3>MINOS intervals</h3><DataTable label="MINOS intervals" columns={MINOS} rows={fit.minos} /></>}
    </Section>
  );
}

// Where a fit stopped that did not converge: of use to find out why, and no result.
function Stopped({ fit }: { fit: Fit }) {
  const rows = fit.par_names.map((parameter, i) => ({ parameter, bestfit: fit.bestfit[i], uncertainty: null, state: "" }));
  return (
    <>
      <p class="caution" role="note">The fit did not converge, so there are no best-fit values.</p>
      <Unfold summary="Where the fit stopped">{() => <DataTable label="Where the fit stopped" columns={STOPPED} rows={rows} />}</Unfold>
    </>
  );
}

const ORDERS: [string, string, ((row: Pull) => number) | null][] = [
  ["pull", "largest pull", (row) => Math.abs(row.pull ?? 0)],
  ["constraint", "strongest constraint", (row) => -(row.constraint ?? 1)],
  ["model", "order of the model", null],
];

function Pulls({ rows, n }: { rows: Pull[]; n: number }) {
  const [order, setOrder] = useState("pull");
  const [top, setTop] = useState(30);
  const shown = useMemo(() => {
    const key = ORDERS.find(([name]) => name === order)?.[2];
    return (key ? [...rows].sort((a, b) => key(b) - key(a)) : rows).slice(0, top);
  }, [rows, order, top]);
  return (
    <figure>
      <div class="local">
        <label>Order <select value={order} onChange={(event) => setOrder(event.currentTarget.value)}>{ORDERS.map(([name, text]) => <option key={name} value={name}>{text}</option>)}</select></label>
        <TopControl top={top} n={rows.length} setTop={setTop} />
      </div>
      {shown.length > 0 ? <Chart label={`Pulls of ${shown.length} parameters; their numbers are in the table below`} draw={(width) => pullsChart(shown, width)} inputs={[shown]} height={pullsHeight(shown.length)} /> : <p class="note">No parameter matches the filter.</p>}
      <figcaption>{shown.length} of {n} constrained parameters. Bars: post-fit over pre-fit uncertainty. Bands: one and two pre-fit standard deviations.</figcaption>
      <Unfold summary={`Table of ${rows.length} constrained parameters`}>
        {() => <DataTable label="Constrained parameters" columns={PULLS} rows={rows} />}
      </Unfold>
    </figure>
  );
}

const PULLS: Column<Pull>[] = [
  { head: "Parameter", value: (row) => row.parameter, cell: (row) => <Name text={row.parameter} /> },
  { head: "Best fit", value: (row) => row.bestfit, cell: (row) => measured(row.bestfit, row.uncertainty), numeric: true },
  { head: "Pull", hint: "(best fit − pre-fit value) / pre-fit uncertainty", value: (row) => row.pull, cell: (row) => signed(row.pull, 2), numeric: true },
  { head: "Constraint", hint: "post-fit over pre-fit uncertainty", value: (row) => row.constraint, cell: (row) => fixed(row.constraint, 2), numeric: true },
  { head: "Pre-fit", value: (row) => row.prefit, cell: (row) => measured(row.prefit, row.prefit_uncertainty), numeric: true },
];

const FREE: Column<FreeParameter>[] = [
  { head: "Parameter", value: (row) => row.parameter, cell: (row) => <Name text={row.parameter} /> },
  { head: "Best fit", value: (row) => row.bestfit, cell: (row) => measured(row.bestfit, row.uncertainty), numeric: true },
  { head: "Uncertainty", value: (row) => row.uncertainty, cell: (row) => measured(row.uncertainty, row.uncertainty).split(" ")[0], numeric: true },
  { head: "State", value: (row) => row.state, wide: true },
];

const STOPPED: Column<FreeParameter>[] = [
  FREE[0]!,
  { head: "Last value", value: (row) => row.bestfit, cell: (row) => significant(row.bestfit, 5), numeric: true },
];

const MINOS: Column<Interval>[] = [
  { head: "Parameter", value: (row) => row.parameter, cell: (row) => <Name text={row.parameter} /> },
  { head: "CL", value: (row) => row.cl, cell: (row) => fixed(row.cl, 4), numeric: true },
  { head: "Best fit", value: (row) => row.bestfit, cell: (row) => fixed(row.bestfit, 4), numeric: true },
  { head: "Down", value: (row) => row.down, cell: (row) => (isNumber(row.down) ? fixed(row.down, 4) : "at the bound"), numeric: true },
  { head: "Up", value: (row) => row.up, cell: (row) => (isNumber(row.up) ? signed(row.up, 4) : "at the bound"), numeric: true },
];

function freeParameters(fit: Fit, pulls: readonly Pull[]): FreeParameter[] {
  const constrained = new Set(pulls.map((pull) => pull.index));
  const bounds = new Map((fit.at_bounds ?? []).map((bound) => [bound.parameter, bound.side]));
  const pois = new Set((fit.pois ?? []).map((poi) => poi.index));
  const rows = fit.par_names.map((parameter, i) => ({ i, parameter, bestfit: fit.bestfit[i], uncertainty: fit.uncertainties[i] }));
  const free = rows.filter(({ i }) => !constrained.has(i)).map((row) => ({ ...row, state: stateOf(row, bounds.get(row.parameter), pois.has(row.i)) }));
  return free.sort((a, b) => Number(pois.has(b.i)) - Number(pois.has(a.i)));
}

function stateOf(row: { uncertainty: Maybe }, side: string | undefined, isPoi: boolean): string {
  const bound = side ? `at its ${side} bound` : isNumber(row.uncertainty) ? "" : "no uncertainty (fixed or not determined)";
  return [isPoi ? "parameter of interest" : "", bound].filter(Boolean).join(", ");
}
