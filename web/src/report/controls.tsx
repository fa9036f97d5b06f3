// The controls that several sections have in common.

import { useMemo } from "preact/hooks";

import type { Phase } from "../components/stack";
import type { ReportData } from "../documents";
import { matcher } from "../numbers/pattern";
import { type Theme, useView } from "./view";

export function Controls({ data }: { data: ReportData }) {
  return (
    <div class="controls" role="group" aria-label="Controls">
      <Filter names={data.report.fit.par_names} />
      <PhaseSwitch data={data} />
      <ThemeSwitch />
    </div>
  );
}

function Filter({ names }: { names: string[] }) {
  const { filter, update } = useView();
  const count = useMemo(() => names.filter(matcher(filter)).length, [names, filter]);
  return (
    <label class="filter" title="Patterns such as JES_*, separated by spaces; ! excludes. For pulls, ranking and correlations.">
      Parameters
      <input type="search" value={filter} placeholder="JES_* !*_stat" autocomplete="off" spellcheck={false} onInput={(event) => update({ filter: event.currentTarget.value })} />
      <output aria-live="polite">{count} of {names.length}</output>
    </label>
  );
}

// Returns which predictions are shown; without a fit that converged, there are those before it
// only.
export function usePhase(data: ReportData): Phase {
  const { phase } = useView();
  return data.report.fit.converged ? phase : "prefit";
}

// Before or after the fit, linear or logarithmic, for the figures of all regions.
export function PhaseSwitch({ data }: { data: ReportData }) {
  const { log, update } = useView();
  const phase = usePhase(data);
  const phases: [Phase, string][] = [["prefit", "Pre-fit"], ["postfit", "Post-fit"]];
  return (
    <>
      <div class="choices" role="group" aria-label="Predictions">
        {phases.map(([value, text]) => (
          <button key={value} type="button" aria-pressed={phase === value} disabled={!data.report.fit.converged} onClick={() => update({ phase: value })}>{text}</button>
        ))}
      </div>
      <label class="check"><input type="checkbox" checked={log} onChange={(event) => update({ log: event.currentTarget.checked })} />Log scale</label>
    </>
  );
}

function ThemeSwitch() {
  const { theme, update } = useView();
  return (
    <label class="theme">
      Theme
      <select value={theme} onChange={(event) => update({ theme: event.currentTarget.value as Theme })}>
        <option value="auto">Auto</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  );
}
