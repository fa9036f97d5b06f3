// What the reader must know now: files that cannot be read, a link of other files, work in
// progress.

import { useState } from "preact/hooks";

import { Message } from "../../components/name";
import { FailureNote } from "../parts/card";
import { useApp, useSelected } from "../parts/context";

export function Notices() {
  const app = useApp();
  const problem = useSelected((state) => state.problem);
  const notice = useSelected((state) => state.notice);
  const busy = useSelected((state) => state.busy);
  const hasModel = useSelected((state) => state.model !== null);
  return (
    <div class="notices">
      {busy !== null && <p class="busy" role="status"><span class="spinner" aria-hidden="true" /> <Message text={`Opening \`${busy}\` …`} /> <button type="button" onClick={() => app.cancelOpening()}>Cancel</button></p>}
      {problem && (
        <div class="problem">
          <FailureNote failure={problem.failure} what={`\`${problem.what}\` could not be opened.`} />
          {problem.needsMass && <MassForm />}
          <p class="actions">
            {problem.download && <a href={problem.download} target="_blank" rel="noopener noreferrer">Download it</a>}
            {hasModel && <span class="note">The former model is still open.</span>}
            <button type="button" onClick={() => app.store.set({ problem: null })}>Dismiss</button>
          </p>
        </div>
      )}
      {notice && <p class="caution" role="alert"><Message text={notice} /> <button type="button" onClick={() => app.store.set({ notice: null })}>Dismiss</button></p>}
    </div>
  );
}

// Asks for what `$MASS` stands for in a data card.
function MassForm() {
  const app = useApp();
  const [text, setText] = useState("");
  const mass = text.trim() === "" ? NaN : Number(text);
  const submit = (event: Event) => {
    event.preventDefault();
    if (Number.isFinite(mass)) void app.openWithMass(mass);
  };
  return (
    <form class="field mass" onSubmit={submit}>
      <label for="mass">Mass for <code>$MASS</code></label>
      <input id="mass" type="number" step="any" required value={text} autocomplete="off" onInput={(event) => setText(event.currentTarget.value)} />
      <button type="submit" class="primary">Open</button>
    </form>
  );
}
