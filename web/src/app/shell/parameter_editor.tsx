// Changes one parameter: its value, whether it is fixed, its bounds, and whether it is of interest.

import { useState } from "preact/hooks";

import { Name } from "../../components/name";
import { type Maybe, isNumber, significant } from "../../numbers/format";
import type { Parameter } from "../engine/documents";
import { useApp, useSelected } from "../parts/context";
import { bound, boundsOf, fix, fixedAt, withPoi } from "../state/settings";
import { shownData } from "../state/state";

export function ParameterEditor({ parameter, close }: { parameter: Parameter; close: () => void }) {
  const app = useApp();
  const { name } = parameter;
  return (
    <div class="editor" role="group" aria-label="Parameter">
      <p class="editor-name"><Name text={name} /> <button type="button" class="link" onClick={close}>Close</button></p>
      <p class="note">{(parameter.constraint ?? "no constraint").replaceAll("_", " ")}; begins at {significant(parameter.init, 4)}</p>
      <FixedValue name={name} />
      <BoundFields parameter={parameter} />
      <p class="actions">
        {!parameter.is_poi && <button type="button" onClick={() => app.editSettings((settings) => withPoi(settings, name))}>Make it the parameter of interest</button>}
      </p>
    </div>
  );
}

function FixedValue({ name }: { name: string }) {
  const app = useApp();
  const at = useSelected((state) => fixedAt(state.history!.present.settings, name));
  const fit = useSelected((state) => shownData(state)?.report.fit);
  const index = fit?.par_names.indexOf(name) ?? -1;
  const best = fit?.bestfit[index];
  const set = (value: number | null) => app.editSettings((settings) => fix(settings, name, value));
  return (
    <div class="editor-line">
      <label class="check"><input type="checkbox" checked={at !== null} onChange={(event) => set(event.currentTarget.checked ? rounded(best) : null)} />Fixed at</label>
      <NumberField label="Value" value={at ?? rounded(best)} disabled={at === null} set={set} />
    </div>
  );
}

function BoundFields({ parameter: { name, bounds } }: { parameter: Parameter }) {
  const app = useApp();
  const chosen = useSelected((state) => boundsOf(state.history!.present.settings, name));
  const [low, high] = chosen ?? bounds ?? [null, null];
  const set = (change: { low?: number; high?: number }) => {
    const wanted: [Maybe, Maybe] = [change.low ?? low, change.high ?? high];
    const [from, to] = wanted;
    if (isNumber(from) && isNumber(to) && from < to) app.editSettings((settings) => bound(settings, name, [from, to]));
  };
  return (
    <div class="editor-line">
      <span>Bounds</span>
      <NumberField label="Lower bound" value={low} set={(value) => set({ low: value })} />
      <NumberField label="Upper bound" value={high} set={(value) => set({ high: value })} />
      {chosen && <button type="button" class="link" onClick={() => app.editSettings((settings) => bound(settings, name, null))}>Undo</button>}
    </div>
  );
}

interface FieldProps {
  label: string;
  value: Maybe;
  disabled?: boolean;
  set: (value: number) => void;
}

function NumberField({ label, value, disabled, set }: FieldProps) {
  const [text, setText] = useState<string | null>(null);
  const commit = () => {
    const number = Number(text);
    if (text !== null && text.trim() !== "" && Number.isFinite(number) && number !== value) set(number);
    setText(null);
  };
  return <input type="text" inputMode="decimal" aria-label={label} disabled={disabled} value={text ?? (isNumber(value) ? String(value) : "")} onInput={(event) => setText(event.currentTarget.value)} onBlur={commit} onKeyDown={(event) => event.key === "Enter" && commit()} />;
}

// A value that a person would type.
function rounded(value: Maybe): number {
  return isNumber(value) ? Number(value.toPrecision(6)) : 0;
}
