// Changes one parameter: its value, whether it is fixed, its bounds, and whether it is of interest.

import { useEffect, useId, useState } from "preact/hooks";

import { Name } from "../../components/name";
import { shortText } from "../../numbers/escape";
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
  const accept = ([value]: number[]) => {
    set(value!);
    return null;
  };
  return (
    <div class="editor-line">
      <label class="check"><input type="checkbox" checked={at !== null} onChange={(event) => set(event.currentTarget.checked ? rounded(best) : null)} />Fixed at</label>
      <NumberFields labels={["Value"]} values={[at ?? rounded(best)]} disabled={at === null} accept={accept} />
    </div>
  );
}

function BoundFields({ parameter: { name, bounds } }: { parameter: Parameter }) {
  const app = useApp();
  const chosen = useSelected((state) => boundsOf(state.history!.present.settings, name));
  const [low, high] = chosen ?? bounds ?? [null, null];
  const accept = ([from, to]: number[]) => {
    if (from! >= to!) return "The lower bound must be below the upper one.";
    app.editSettings((settings) => bound(settings, name, [from!, to!]));
    return null;
  };
  return (
    <div class="editor-line">
      <span>Bounds</span>
      <NumberFields labels={["Lower bound", "Upper bound"]} values={[low, high]} accept={accept} />
      {chosen && <button type="button" class="link" onClick={() => app.editSettings((settings) => bound(settings, name, null))}>Undo</button>}
    </div>
  );
}

interface FieldsProps {
  labels: string[];
  values: Maybe[];
  disabled?: boolean;
  // Takes all numbers at once; returns what is wrong with them.
  accept: (numbers: number[]) => string | null;
}

// Fields for numbers that belong together: what is typed stays until it is valid, and the reader is
// told why it is not. Escape brings the former values back.
function NumberFields({ labels, values, disabled, accept }: FieldsProps) {
  const [typed, setTyped] = useState<readonly (string | null)[]>(labels.map(() => null));
  const [problem, setProblem] = useState<string | null>(null);
  const id = useId();
  const restore = () => {
    setTyped(labels.map(() => null));
    setProblem(null);
  };
  useEffect(restore, [...values, disabled]);
  const commit = () => {
    const texts = typed.map((text, i) => text ?? written(values[i]));
    if (texts.every((text, i) => text === written(values[i]))) return restore();
    const wrong = problemOf(labels, texts) ?? accept(texts.map(Number));
    if (wrong === null) restore();
    else setProblem(wrong);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "Enter") commit();
    if (event.key === "Escape") restore();
  };
  const input = (i: number, text: string) => {
    setTyped(typed.map((former, k) => (k === i ? text : former)));
    setProblem(null);
  };
  return (
    <>
      {labels.map((label, i) => <input key={i} type="text" inputMode="decimal" aria-label={label} aria-invalid={problem !== null && typed[i] !== null} aria-describedby={problem === null ? undefined : id} disabled={disabled} value={typed[i] ?? written(values[i])} onInput={(event) => input(i, event.currentTarget.value)} onBlur={commit} onKeyDown={onKey} />)}
      {problem !== null && <p class="field-problem" id={id} role="alert">{problem}</p>}
    </>
  );
}

function written(value: Maybe | undefined): string {
  return isNumber(value) ? String(value) : "";
}

function problemOf(labels: readonly string[], texts: readonly string[]): string | null {
  for (const [i, text] of texts.entries()) {
    if (text.trim() === "") return `${labels[i]}: a number is missing.`;
    if (Number.isNaN(Number(text))) return `${labels[i]}: “${shortText(text, 20)}” is not a number.`;
    if (!Number.isFinite(Number(text))) return `${labels[i]}: “${shortText(text, 20)}” is not a finite number.`;
  }
  return null;
}

// A value that a person would type.
function rounded(value: Maybe): number {
  return isNumber(value) ? Number(value.toPrecision(6)) : 0;
}
