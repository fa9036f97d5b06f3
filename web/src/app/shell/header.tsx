// The head: which model is open, undo and redo, the link to it, and the theme.

import { useEffect, useMemo, useState } from "preact/hooks";

import { copyText } from "../../components/clipboard";
import { Name } from "../../components/name";
import { shortText } from "../../numbers/escape";
import type { Theme } from "../../report/view";
import { useApp, useSelected } from "../parts/context";
import { encode } from "../state/fragment";
import { patchesOf } from "../state/loading";
import { sharedState } from "../state/address";
import { OpenFiles } from "./open_files";

export function Header({ embedded }: { embedded: boolean }) {
  const isOpen = useSelected((state) => state.model !== null);
  return (
    <header class="masthead">
      <h1><Mark /> <span class="brand">nextstat</span></h1>
      {isOpen && <ModelName />}
      <div class="masthead-end">
        {isOpen && <UndoButtons />}
        {isOpen && <ShareButton />}
        {isOpen && !embedded && <OpenFiles>Open…</OpenFiles>}
        {embedded ? <a href={location.href.replace("embed=1", "")} target="_blank" rel="noopener">Open in nextstat</a> : <ThemeSelect />}
      </div>
    </header>
  );
}

function Mark() {
  return (
    <svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true">
      <path d="M1 12.5h16M1 5.5h16" stroke="var(--line-strong)" stroke-width="1" stroke-dasharray="2 2" />
      <path d="M4 3v12M9 6v8M14 1.5v9" stroke="var(--accent)" stroke-width="1.6" />
      <circle cx="4" cy="9" r="2" fill="var(--accent)" /><circle cx="9" cy="10" r="2" fill="var(--accent)" /><circle cx="14" cy="6" r="2" fill="var(--accent)" />
    </svg>
  );
}

function ModelName() {
  const app = useApp();
  const open = useSelected((state) => state.history!.present.open);
  const patchset = useSelected((state) => state.model!.patchset);
  const measurements = useSelected((state) => state.overview.value?.inspect?.measurements);
  const measurement = useSelected((state) => state.overview.value?.report.measurement ?? "");
  const entries = useSelected((state) => state.model!.entries);
  const files = useMemo(() => patchesOf(entries), [entries]);
  const patches = patchset?.document.patches ?? [];
  useEffect(() => {
    document.title = `${shortText(open.workspace, 60)} – nextstat`;
  }, [open.workspace]);
  const at = patches.findIndex((patch) => patch.name === open.patchset?.patch);
  return (
    <div class="model-name">
      <strong><Name text={open.workspace} /></strong>
      {patchset && (
        <label>Signal{" "}
          <select value={String(at)} onChange={(event) => app.openPatch(patches[Number(event.currentTarget.value)]?.name ?? null)}>
            <option value="-1">none</option>
            {patches.map((patch, i) => <option key={i} value={String(i)}>{shortText(patch.name, 48)}</option>)}
          </select>
        </label>
      )}
      {files.length > 0 && <PatchFiles files={files.map((entry) => entry.path)} />}
      {measurements && measurements.length > 1 && (
        <label>Measurement{" "}
          <select value={String(measurements.findIndex(([name]) => name === measurement))} onChange={(event) => app.edit({ open: { ...open, measurement: measurements[Number(event.currentTarget.value)]![0] } })}>
            {measurements.map(([name], i) => <option key={i} value={String(i)}>{shortText(name, 40)}</option>)}
          </select>
        </label>
      )}
    </div>
  );
}

// JSON patches that were dropped with their workspace: a choice of one. A link may apply several.
function PatchFiles({ files }: { files: string[] }) {
  const app = useApp();
  const applied = useSelected((state) => state.history!.present.open.patches) ?? [];
  const at = files.indexOf(applied[0] ?? "");
  return (
    <label>Patch{" "}
      <select value={String(at)} onChange={(event) => app.openPatchFile(files[Number(event.currentTarget.value)] ?? null)}>
        <option value="-1">none</option>
        {files.map((path, i) => <option key={i} value={String(i)}>{shortText(path, 48)}</option>)}
      </select>
      {applied.slice(1).map((path, i) => <span key={i} class="note">, then <Name text={path} /></span>)}
    </label>
  );
}

function UndoButtons() {
  const app = useApp();
  const n = useSelected((state) => state.history!.past.length);
  const m = useSelected((state) => state.history!.future.length);
  return (
    <div class="choices" role="group" aria-label="Changes">
      <button type="button" title="Undo (Ctrl+Z)" aria-label="Undo" disabled={n === 0} onClick={() => app.undo()}>↶</button>
      <button type="button" title="Redo (Ctrl+Shift+Z)" aria-label="Redo" disabled={m === 0} onClick={() => app.redo()}>↷</button>
    </div>
  );
}

function ShareButton() {
  const app = useApp();
  const [state, setState] = useState("");
  const share = async () => {
    const link = new URL(location.pathname + encode(sharedState(app.store.get())), location.href).href;
    const isCopied = await copyText(link).then(() => true, () => false);
    setState(isCopied ? (app.store.get().model?.urls.length ? "Link copied" : "Link copied; it asks for the file") : "The browser does not allow it");
    setTimeout(() => setState(""), 4000);
  };
  return (
    <>
      <button type="button" onClick={() => void share()}>Copy link</button>
      <span class="hint-line" role="status">{state}</span>
    </>
  );
}

function ThemeSelect() {
  const app = useApp();
  const theme = useSelected((state) => state.display.theme);
  const set = (value: string) => app.store.set({ display: { ...app.store.get().display, theme: value as Theme } });
  return (
    <select aria-label="Theme" value={theme} onChange={(event) => set(event.currentTarget.value)}>
      <option value="auto">Auto</option>
      <option value="light">Light</option>
      <option value="dark">Dark</option>
    </select>
  );
}
