// The signals of a patch set: a plane of two of their labels that fills in, and a table of all.

import { useEffect, useMemo, useState } from "preact/hooks";

import { Message, Name } from "../../components/name";
import { type Column, DataTable } from "../../components/table";
import { type Maybe, probability, significant } from "../../numbers/format";
import { matcher } from "../../numbers/pattern";
import { shortText } from "../../numbers/escape";
import type { PatchSet } from "../engine/documents";
import { useApp, useSelected } from "../parts/context";
import { PlaneFigure } from "../parts/plane_figure";
import { numericLabels, pointsOf } from "../state/plane_points";
import type { Plane, PlaneResult } from "../state/state";

export function Patches() {
  const patchset = useSelected((state) => state.model?.patchset?.document ?? null);
  const plane = useSelected((state) => state.plane);
  if (!patchset) return null;
  return (
    <section aria-labelledby="signals-title">
      <h2 id="signals-title">Signals <small>{patchset.patches.length}</small></h2>
      {patchset.description && <p><Message text={patchset.description} /></p>}
      <PlaneControl plane={plane} n={patchset.patches.length} />
      <PlaneChoice patchset={patchset} plane={plane} />
      <SignalTable patchset={patchset} plane={plane} />
    </section>
  );
}

function PlaneControl({ plane, n }: { plane: Plane; n: number }) {
  const app = useApp();
  const done = plane.results.size;
  return (
    <div class="status" role="status">
      {plane.running ? <progress aria-label="Testing signals" value={done} max={n} /> : null}
      <span>{done} of {n} signals tested at μ = 1</span>
      {plane.running ? <button type="button" onClick={() => app.plane.cancel()}>Cancel</button> : done < n && <button type="button" class="primary" onClick={() => void app.plane.start()}>{done > 0 ? "Go on" : "Test all signals"}</button>}
    </div>
  );
}

function PlaneChoice({ patchset, plane }: { patchset: PatchSet; plane: Plane }) {
  const app = useApp();
  const open = useSelected((state) => state.history!.present.open.patchset?.patch ?? null);
  const labels = useMemo(() => numericLabels(patchset), [patchset]);
  const [axes, setAxes] = useState<[number, number]>([0, 1]);
  const [kind, setKind] = useState<"observed" | "expected">("observed");
  const [x, y] = [labels[axes[0]], labels[axes[1]] ?? labels[0]];
  const points = useMemo(() => (x && y ? pointsOf(patchset, x, y, plane.results) : []), [patchset, plane, x, y]);
  useEffect(() => {
    if (x && y && x !== y) app.plane.show([x.name, y.name]);
  }, [x, y]);
  if (!x || !y) return <p class="note">The signals have no numeric labels, so there is no plane.</p>;
  return (
    <figure class="narrow">
      <div class="local">
        {labels.length > 1 && ([0, 1] as const).map((axis) => (
          <label key={axis}>{axis === 0 ? "Horizontal" : "Vertical"}{" "}
            <select value={String(axes[axis])} onChange={(event) => setAxes(axis === 0 ? [Number(event.currentTarget.value), axes[1]] : [axes[0], Number(event.currentTarget.value)])}>
              {labels.map((label, i) => <option key={i} value={String(i)}>{shortText(label.name, 30)}</option>)}
            </select>
          </label>
        ))}
        <div class="choices" role="group" aria-label="CLs">
          {(["observed", "expected"] as const).map((one) => <button key={one} type="button" aria-pressed={kind === one} onClick={() => setKind(one)}>{one === "observed" ? "Observed" : "Expected"}</button>)}
        </div>
      </div>
      <PlaneFigure points={points} x={x.name} y={labels.length > 1 ? y.name : null} kind={kind} exclusion={plane.exclusion} open={open} pick={(patch) => app.openPatch(patch)} />
    </figure>
  );
}

interface Row {
  name: string;
  values: (number | string)[];
  result: PlaneResult | null;
}

function SignalTable({ patchset, plane }: { patchset: PatchSet; plane: Plane }) {
  const app = useApp();
  const open = useSelected((state) => state.history!.present.open.patchset?.patch ?? null);
  const [filter, setFilter] = useState("");
  const rows = useMemo(() => {
    const matches = matcher(filter);
    return patchset.patches.filter((patch) => matches(patch.name)).map(({ name, values }): Row => ({ name, values, result: plane.results.get(name) ?? null }));
  }, [patchset, plane, filter]);
  const columns: Column<Row>[] = [
    { head: "Signal", value: (row) => row.name, cell: (row) => <button type="button" class="link" aria-pressed={row.name === open} onClick={() => app.openPatch(row.name)}><Name text={row.name} /></button> },
    ...patchset.labels.map((label, i): Column<Row> => ({ head: shortText(label, 24), value: (row) => row.values[i] ?? null, numeric: patchset.patches.every((patch) => typeof patch.values[i] === "number") })),
    cls("CLs observed", (row) => row.CLs_obs),
    cls("CLs expected", (row) => row.CLs_exp?.[2]),
    { head: "", value: (row) => (row.result && "failure" in row.result ? row.result.failure.message : ""), cell: (row) => (row.result && "failure" in row.result ? <Message text={row.result.failure.message} /> : null), wide: true },
  ];
  return (
    <>
      <label class="filter">Filter <input type="search" value={filter} autocomplete="off" spellcheck={false} onInput={(event) => setFilter(event.currentTarget.value)} /></label>
      <DataTable label="Signals" columns={columns} rows={rows} limit={60} />
    </>
  );
}

function cls(head: string, of: (result: { CLs_obs: Maybe; CLs_exp: Maybe[] | null }) => Maybe): Column<Row> {
  const value = (row: Row) => (row.result && "result" in row.result ? of(row.result.result) : null);
  return { head, value, cell: (row) => <span title={significant(value(row), 6)}>{probability(value(row))}</span>, numeric: true };
}

