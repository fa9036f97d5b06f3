// The invitation: drop files, give an address, or open an example.

import { useState } from "preact/hooks";

import { useApp, useSelected } from "../parts/context";
import { OpenFiles } from "./open_files";

const EXAMPLES: [string, string, string[]][] = [
  ["Shapes", "two channels with shape systematics", ["examples/shapes.json"]],
  ["Signals at three masses", "a background and a patch set", ["examples/background.json", "examples/signals.json"]],
  ["A plane of two masses", "an exclusion that fills in", ["examples/background.json", "examples/plane.json"]],
  ["Counting", "one channel of two bins", ["examples/simple.json"]],
];

export function Start() {
  const app = useApp();
  const awaited = useSelected((state) => state.awaited);
  const busy = useSelected((state) => state.busy);
  return (
    <main class="start">
      <h2>{awaited ? "Drop the file of this link" : "Drop a workspace, see the physics"}</h2>
      {awaited?.digest && <p class="lead">The link has settings for the workspace with the digest <code title={awaited.digest}>{awaited.digest.slice(0, 12)}…</code>, and the file is not in it. Drop that file here. <button type="button" class="link" onClick={() => app.forgetLink()}>Forget the link</button></p>}
      {!awaited && <p class="lead">Fits, pulls, correlations, rankings and limits of HistFactory and HS3 models, computed here in your browser.</p>}
      <div class="target" aria-busy={busy !== null}>
        <p><OpenFiles primary>Choose files</OpenFiles> <span>or drop them anywhere on this page</span></p>
        <p class="note">Workspaces of pyhf and HS3, patch sets, HistFactory XML and data cards with their ROOT files; also <code>.gz</code>, <code>.zst</code>, <code>.tar.gz</code> and <code>.zip</code>.</p>
        <p class="private"><Lock /> Your files stay on this machine: nothing is uploaded, and nothing is counted.</p>
      </div>
      <div class="ways">
        <AddressForm />
        <Examples />
      </div>
    </main>
  );
}

function AddressForm() {
  const app = useApp();
  const [url, setUrl] = useState("");
  const submit = (event: Event) => {
    event.preventDefault();
    if (url.trim()) void app.openUrls([url.trim()]);
  };
  return (
    <form class="way" onSubmit={submit}>
      <h3><label for="address">From an address</label></h3>
      <div class="field">
        <input id="address" type="url" value={url} placeholder="https://…" autocomplete="off" spellcheck={false} onInput={(event) => setUrl(event.currentTarget.value)} />
        <button type="submit">Open</button>
      </div>
      <p class="note">Your browser fetches the file itself, so its server has to allow other pages to read it. Where it does not, download the file and drop it here.</p>
    </form>
  );
}

function Examples() {
  const app = useApp();
  return (
    <div class="way">
      <h3>Examples</h3>
      <ul class="examples">
        {EXAMPLES.map(([name, what, urls]) => (
          <li key={name}><button type="button" class="link" onClick={() => void app.openUrls(urls)}>{name}</button> <span class="note">{what}</span></li>
        ))}
      </ul>
    </div>
  );
}

function Lock() {
  return <svg width="13" height="14" viewBox="0 0 13 14" aria-hidden="true"><path d="M3.5 6V4a3 3 0 0 1 6 0v2M2 6h9v7H2z" fill="none" stroke="currentColor" stroke-width="1.4" stroke-linejoin="round" /></svg>;
}
