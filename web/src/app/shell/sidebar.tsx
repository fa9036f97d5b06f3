// What the fit is of: its data, the channels that take part, and its parameters.

import { useMemo, useState } from "preact/hooks";

import { Name } from "../../components/name";
import { escapeText } from "../../numbers/escape";
import { useView } from "../../report/view";
import { matcher } from "../../numbers/pattern";
import { measured, significant } from "../../numbers/format";
import type { Parameter } from "../engine/documents";
import { useApp, useSelected } from "../parts/context";
import { VirtualList } from "../parts/virtual";
import { countChanges, fix, fixedAt, isMasked, mask, withAsimov } from "../state/settings";
import { shownData } from "../state/state";
import { ParameterEditor } from "./parameter_editor";

export function Sidebar() {
  return (
    <aside class="sidebar" aria-label="Settings of the fit">
      <DataChoice />
      <Channels />
      <Parameters />
      <Reset />
    </aside>
  );
}

const DATA: [string, number | null][] = [["Observed data", null], ["Asimov data, μ = 0", 0], ["Asimov data, μ = 1", 1]];

function DataChoice() {
  const app = useApp();
  const asimov = useSelected((state) => state.history!.present.settings.asimov ?? null);
  const hasPoi = useSelected((state) => state.overview.value?.report.fit.poi != null);
  const choices = useMemo(() => {
    const isKnown = DATA.some(([, mu]) => mu === asimov);
    return isKnown ? DATA : [...DATA, [`Asimov data, μ = ${significant(asimov, 4)}`, asimov] as [string, number | null]];
  }, [asimov]);
  if (!hasPoi) return null;
  return (
    <label class="data-choice">Fit{" "}
      <select value={String(choices.findIndex(([, mu]) => mu === asimov))} onChange={(event) => app.editSettings((settings) => withAsimov(settings, choices[Number(event.currentTarget.value)]![1]))}>
        {choices.map(([text], i) => <option key={i} value={String(i)}>{text}</option>)}
      </select>
    </label>
  );
}

function Channels() {
  const app = useApp();
  const settings = useSelected((state) => state.history!.present.settings);
  const tree = useSelected((state) => state.tree);
  const inspected = useSelected((state) => state.overview.value?.inspect?.channels);
  const rows = useMemo((): [string, number][] => tree?.channels.map((channel) => [channel.name, channel.n_bins]) ?? inspected ?? [], [tree, inspected]);
  return (
    <section class="panel" aria-labelledby="channels-title">
      <h2 id="channels-title">Channels <small>{rows.length}</small></h2>
      <VirtualList label="Channels of the fit" rows={rows} row={26} most={8} render={([name, nBins]) => (
        <label class="row-label">
          <input type="checkbox" checked={!isMasked(settings, name)} onChange={(event) => app.editSettings((old) => mask(old, name, !event.currentTarget.checked))} />
          <Name text={name} /> <small>{nBins}</small>
        </label>
      )} />
    </section>
  );
}

function Parameters() {
  const { filter, update } = useView();
  const parameters = useSelected((state) => state.parameters);
  const [chosen, setChosen] = useState<string | null>(null);
  const rows = useMemo(() => {
    const matches = matcher(filter);
    return parameters.filter((parameter) => matches(parameter.name)).sort((a, b) => Number(b.is_poi) - Number(a.is_poi));
  }, [parameters, filter]);
  const selected = parameters.find((parameter) => parameter.name === chosen) ?? null;
  return (
    <section class="panel parameters" aria-labelledby="parameters-title">
      <h2 id="parameters-title">Parameters <small>{filter ? `${rows.length} of ${parameters.length}` : parameters.length}</small></h2>
      <input type="search" aria-label="Filter of parameters" value={filter} placeholder="Filter: JES_* !*_stat" autocomplete="off" spellcheck={false} title="Patterns separated by spaces; ! excludes. For pulls, ranking and correlations, too." onInput={(event) => update({ filter: event.currentTarget.value })} />
      <ParameterList rows={rows} chosen={chosen} choose={setChosen} />
      {selected && <ParameterEditor key={selected.name} parameter={selected} close={() => setChosen(null)} />}
    </section>
  );
}

interface ListProps {
  rows: readonly Parameter[];
  chosen: string | null;
  choose: (name: string | null) => void;
}

function ParameterList({ rows, chosen, choose }: ListProps) {
  const app = useApp();
  const settings = useSelected((state) => state.history!.present.settings);
  const fit = useSelected((state) => shownData(state)?.report.fit);
  const values = useMemo(() => new Map(fit?.par_names.map((name, i) => [name, [fit.bestfit[i], fit.uncertainties[i]] as const]) ?? []), [fit]);
  return (
    <VirtualList label="Parameters of the fit" rows={rows} row={26} render={({ name, is_poi: isPoi }) => {
      const at = fixedAt(settings, name);
      const [value, sigma] = values.get(name) ?? [];
      return (
        <div class={chosen === name ? "parameter chosen" : "parameter"}>
          <button type="button" class="lock" aria-pressed={at !== null} title={at === null ? "Fix at its best fit" : "Leave free"} aria-label={`Fix ${escapeText(name)}`} onClick={() => app.editSettings((old) => fix(old, name, at === null ? (value ?? 0) : null))}>{at === null ? "○" : "●"}</button>
          <button type="button" class="pick" aria-expanded={chosen === name} onClick={() => choose(chosen === name ? null : name)}>
            <span class={isPoi ? "poi-name" : undefined}><Name text={name} /></span>
            <span class="value">{at === null ? measured(value, sigma) : significant(at, 4)}</span>
          </button>
        </div>
      );
    }} />
  );
}

function Reset() {
  const app = useApp();
  const n = useSelected((state) => countChanges(state.history!.present.settings));
  return n > 0 ? <button type="button" class="reset" onClick={() => app.editSettings(() => ({}))}>Back to the settings of the model ({n})</button> : null;
}
