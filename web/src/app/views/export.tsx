// Takes the numbers out of the page: documents, tables for HEPData, commands, and a page to embed.

import { useEffect, useState } from "preact/hooks";

import { copyText } from "../../components/clipboard";
import type { ReportData } from "../../documents";
import type { Verb } from "../engine/protocol";
import { submissionFiles } from "../export/hepdata";
import { saveJson, saveZip } from "../export/save";
import { FailureNote } from "../parts/card";
import { useApp, useSelected } from "../parts/context";
import { encode } from "../state/fragment";
import { failureOf } from "../state/failure";
import { sharedState } from "../state/address";
import type { Parts } from "../state/state";
import type { Failure, Reproduction } from "../engine/protocol";

// Everything here is of the free fit, also while the slider fixes the parameter of interest.
export function Export() {
  const data = useSelected((state) => state.overview.value!);
  return (
    <>
      <Reproduce />
      <Documents data={data} />
      <LinkSection />
      <EmbedSection />
    </>
  );
}

// Returns what can be reproduced: the scan and the toys that the page shows, if there are any, and
// without a parameter of interest the fit alone.
function verbsOf(parts: Parts, hasPoi: boolean): [string, Verb][] {
  if (!hasPoi) return [["Fit", { verb: "fit" }]];
  return [
    ["Fit", { verb: "fit" }], ["Ranking", { verb: "ranking" }], ["Scan", parts.scan.verb ?? { verb: "scan" }], ["Limit", { verb: "limit" }],
    ["Significance", { verb: "significance" }], ["Test", { verb: "hypotest" }],
    ["Test by toys", parts.toys.verb ?? { verb: "hypotest-toys", mu: 1, n_toys: 1000, seed: 0 }],
  ];
}

function Reproduce() {
  const app = useApp();
  const [chosen, setChosen] = useState(0);
  const [lines, setLines] = useState<Reproduction | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const history = useSelected((state) => state.history);
  const parts = useSelected((state) => state.parts);
  const hasPoi = useSelected((state) => state.overview.value?.report.fit.poi != null);
  const verbs = verbsOf(parts, hasPoi);
  const [, verb] = verbs[chosen] ?? verbs[0]!;
  useEffect(() => {
    let isCurrent = true;
    app.reproduce(verb).then(
      (found) => { if (isCurrent) { setLines(found); setFailure(null); } },
      (error: unknown) => { if (isCurrent) { setLines(null); setFailure(failureOf(error)); } },
    );
    return () => { isCurrent = false; };
  }, [JSON.stringify(verb), history]);
  return (
    <section aria-labelledby="reproduce-title">
      <h2 id="reproduce-title">Reproduce these numbers</h2>
      <label>Result{" "}
        <select value={String(chosen)} onChange={(event) => setChosen(Number(event.currentTarget.value))}>{verbs.map(([name], i) => <option key={i} value={String(i)}>{name}</option>)}</select>
      </label>
      {failure && <FailureNote failure={failure} />}
      {lines && <><h3>Command line</h3><Copyable label="Command line" text={lines.command} /><h3>Python</h3><Copyable label="Python" text={lines.python} /></>}
    </section>
  );
}

export function Copyable({ label, text }: { label: string; text: string }) {
  const [state, setState] = useState("");
  const copy = () => copyText(text).then(() => setState("Copied."), () => setState("The browser does not allow it."));
  return (
    <div class="command">
      <pre tabIndex={0} aria-label={label}><code>{text}</code></pre>
      <button type="button" aria-label={`Copy ${label.toLowerCase()}`} onClick={() => void copy()}>Copy</button>
      <span role="status">{state}</span>
    </div>
  );
}

function Documents({ data }: { data: ReportData }) {
  const app = useApp();
  const parts = useSelected((state) => state.parts);
  const settings = useSelected((state) => state.history!.present.settings);
  const [failure, setFailure] = useState<Failure | null>(null);
  const saveDocument = (verb: "fit" | "report") => app.document({ verb }).then(
    (found) => { saveJson(`${verb}.json`, found); setFailure(null); },
    (error: unknown) => setFailure(failureOf(error)),
  );
  const stale = useSelected((state) => state.overview.stale);
  const documents = Object.entries(parts).filter(([, part]) => part.value !== null && !part.stale);
  const limit = parts.limit.stale ? null : parts.limit.value;
  return (
    <section aria-labelledby="documents-title">
      <h2 id="documents-title">Files</h2>
      <p class="note">Documents in JSON, as the command writes them. Every figure has its own buttons for SVG and PNG.</p>
      <p class="actions">
        <button type="button" onClick={() => void saveDocument("report")}>report.json</button>
        <button type="button" onClick={() => void saveDocument("fit")}>fit.json</button>
        {documents.map(([name, part]) => <button key={name} type="button" onClick={() => saveJson(`${name}.json`, part.value)}>{name}.json</button>)}
      </p>
      {failure && <FailureNote failure={failure} />}
      <p class="note">Tables for HEPData in YAML: yields of every region{limit ? ", and the limit" : "; the limit, once it is computed"}.</p>
      <p class="actions"><button type="button" class="primary" disabled={stale || !data.report.fit.converged} onClick={() => saveZip("hepdata.zip", submissionFiles(data, limit, settings))}>hepdata.zip</button></p>
    </section>
  );
}

function LinkSection() {
  const state = useSelected((all) => all);
  const link = new URL(location.pathname + encode(sharedState(state)), location.href).href;
  return (
    <section aria-labelledby="link-title">
      <h2 id="link-title">Link</h2>
      <Copyable label="Link" text={link} />
      <p class="note">{state.model?.urls.length ? "The link leads to the file and these settings." : "The file came from your disk, so it is not in the link: the page asks for it by its digest."}</p>
    </section>
  );
}

function EmbedSection() {
  const urls = useSelected((state) => state.model?.urls ?? []);
  const view = useSelected((state) => state.view);
  const patch = useSelected((state) => state.history?.present.open.patchset?.patch);
  const source = urls.length > 0 ? urls.map((url) => new URL(url, document.baseURI).href).join(" ") : "https://example.org/workspace.json";
  const attributes = { src: source, ...(view === "export" ? {} : { view }), ...(patch === undefined ? {} : { patch }) };
  const text = Object.entries(attributes).map(([name, value]) => ` ${name}="${attribute(value)}"`).join("");
  const script = new URL("embed.js", document.baseURI).href;
  return (
    <section aria-labelledby="embed-title">
      <h2 id="embed-title">Embed</h2>
      <Copyable label="HTML" text={`<script src="${attribute(script)}"></script>\n<nextstat-view${text}></nextstat-view>`} />
    </section>
  );
}

function attribute(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
}
