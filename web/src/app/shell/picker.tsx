// Lets the reader pick one of several models or patch sets that were dropped together.

import { useEffect, useRef, useState } from "preact/hooks";

import { Message, Name } from "../../components/name";
import { shortText } from "../../numbers/escape";
import { FailureNote } from "../parts/card";
import { useApp, useSelected } from "../parts/context";
import type { FileEntry } from "../engine/protocol";
import { kindName, modelsOf, patchsetsOf } from "../state/loading";

export function Picker() {
  const candidates = useSelected((state) => state.candidates);
  return candidates && <Dialog entries={candidates.model.entries} />;
}

function Dialog({ entries }: { entries: FileEntry[] }) {
  const app = useApp();
  const dialog = useRef<HTMLDialogElement>(null);
  const busy = useSelected((state) => state.busy);
  const problem = useSelected((state) => state.problem);
  const [models, patchsets] = [modelsOf(entries), patchsetsOf(entries)];
  const [patchset, setPatchset] = useState(patchsets.length === 1 ? 0 : -1);
  useEffect(() => dialog.current!.showModal(), []);
  const close = () => app.store.set({ candidates: null });
  return (
    <dialog ref={dialog} aria-labelledby="picker-title" onClose={close}>
      <h2 id="picker-title">Which model?</h2>
      {patchsets.length > 0 && (
        <label>Patch set{" "}
          <select value={String(patchset)} onChange={(event) => setPatchset(Number(event.currentTarget.value))}>
            <option value="-1">none</option>
            {patchsets.map((entry, i) => <option key={i} value={String(i)}>{shortText(entry.path, 70)}</option>)}
          </select>
        </label>
      )}
      <ul class="choices-list">
        {models.map((entry, i) => (
          <li key={i}>
            <button type="button" onClick={() => void app.pick(entry.path, patchsets[patchset]?.path ?? null)}>
              <Name text={entry.path} /> <span class="note">{kindName(entry.kind)}, {size(entry.bytes)}</span>
            </button>
          </li>
        ))}
      </ul>
      {busy !== null && <p class="busy" role="status"><span class="spinner" aria-hidden="true" /> <Message text={`Opening \`${busy}\` …`} /></p>}
      {problem && <FailureNote failure={problem.failure} what={`\`${problem.what}\` could not be opened.`} />}
      <p class="actions"><button type="button" onClick={close}>Cancel</button></p>
    </dialog>
  );
}

function size(bytes: number): string {
  return bytes < 1e6 ? `${Math.max(1, Math.round(bytes / 1e3))} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
