// A test by toys, with its progress.

import { useState } from "preact/hooks";

import { Warnings } from "../../components/name";
import { type Column, DataTable } from "../../components/table";
import type { ReportData } from "../../documents";
import { type Maybe, measured, significant } from "../../numbers/format";
import type { HypotestToys } from "../engine/documents";
import { FailureNote } from "../parts/card";
import { useApp, useSelected } from "../parts/context";
import { NoPoi } from "../parts/no_poi";

export function Toys({ data }: { data: ReportData }) {
  const part = useSelected((state) => state.parts.toys);
  const { poi } = data.report.fit;
  if (!poi) return <NoPoi what="a test by toys" />;
  return (
    <section aria-labelledby="toys-title">
      <h2 id="toys-title">Test by toys</h2>
      <p class="note">Pseudo-experiments with and without the signal give CLs without asymptotic formulas.</p>
      <ToyForm running={part.running} />
      {part.running && <ToyProgress progress={part.progress} />}
      {part.failure && <FailureNote failure={part.failure} />}
      {part.value && <div class={part.stale ? "stale" : undefined}><Result found={part.value} /></div>}
    </section>
  );
}

function ToyForm({ running }: { running: boolean }) {
  const { background } = useApp();
  const [mu, setMu] = useState("1");
  const [nToys, setNToys] = useState("1000");
  const [seed, setSeed] = useState("0");
  const request = { mu: Number(mu), n_toys: Math.round(Number(nToys)), seed: Math.round(Number(seed)) };
  const isValid = mu.trim() !== "" && Number.isFinite(request.mu) && request.n_toys >= 1 && request.n_toys <= 1e7 && request.seed >= 0;
  const submit = (event: Event) => {
    event.preventDefault();
    if (isValid) background.toys(request);
  };
  const fields: [string, string, (text: string) => void][] = [["Tested value", mu, setMu], ["Toys of each hypothesis", nToys, setNToys], ["Seed", seed, setSeed]];
  return (
    <form class="local" onSubmit={submit}>
      {fields.map(([name, text, set]) => <label key={name}>{name} <input type="text" inputMode="decimal" size={7} value={text} onInput={(event) => set(event.currentTarget.value)} /></label>)}
      <button type="submit" class="primary" disabled={running || !isValid}>Throw toys</button>
    </form>
  );
}

function ToyProgress({ progress }: { progress: [number, number] | null }) {
  const { background } = useApp();
  const [done, total] = progress ?? [0, 0];
  return (
    <div class="status" role="status">
      <progress aria-label="Throwing toys" {...(total > 0 ? { value: done, max: total } : {})} />
      <span>{total > 0 ? `${done} of ${total} toys` : "Starting …"}</span>
      <button type="button" onClick={() => background.cancel("toys")}>Cancel</button>
    </div>
  );
}

interface Row {
  name: string;
  value: Maybe;
  error: Maybe;
}

function Result({ found }: { found: HypotestToys }) {
  const expected = ["−2σ", "−1σ", "median", "+1σ", "+2σ"].map((name, i): Row => ({ name: `CLs expected, ${name}`, value: found.CLs_exp?.[i], error: found.CLs_exp_errors?.[i] }));
  const rows: Row[] = [
    { name: "CLs observed", value: found.CLs_obs, error: found.CLs_obs_error },
    ...expected,
    { name: "p-value of signal and background", value: found.CLsb_obs, error: found.CLsb_obs_error },
    { name: "p-value of the background", value: found.CLb_obs, error: found.CLb_obs_error },
  ];
  const failed = (found.n_failed ?? []).reduce((sum, n) => sum + n, 0);
  return (
    <>
      <p>Tested value {significant(found.mu, 5)}, {found.n_toys.join(" and ")} toys{failed > 0 && `, ${failed} of them without a result`}, seed {found.seed ?? "–"}.</p>
      <Warnings texts={found.warnings} />
      <DataTable label="Result of the toys" columns={COLUMNS} rows={rows} />
    </>
  );
}

const COLUMNS: Column<Row>[] = [
  { head: "Quantity", value: (row) => row.name },
  { head: "Value", hint: "with its Monte Carlo error", value: (row) => row.value, cell: (row) => measured(row.value, row.error), numeric: true },
];
