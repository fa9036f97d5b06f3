// How the report was computed: everything in `provenance`, and the command line to copy.

import { useState } from "preact/hooks";

import { copyText } from "../../components/clipboard";
import { Name } from "../../components/name";
import type { Json, ReportData } from "../../documents";
import { shellQuote } from "../../numbers/escape";
import { Section } from "../section";

export function Provenance({ data }: { data: ReportData }) {
  const provenance = data.report.provenance ?? {};
  const { command, ...rest } = provenance;
  return (
    <Section id="provenance" title="Provenance">
      {Array.isArray(command) && <Command words={command.map(String)} />}
      <Entries value={rest} />
    </Section>
  );
}

function Command({ words }: { words: string[] }) {
  const [state, setState] = useState("");
  const text = words.map(shellQuote).join(" ");
  const copy = () => copyText(text).then(() => setState("Copied."), () => setState("The browser does not allow it."));
  return (
    <div class="command">
      <pre tabIndex={0} aria-label="Command line"><code>{text}</code></pre>
      <button type="button" onClick={copy}>Copy</button>
      <span role="status">{state}</span>
    </div>
  );
}

// An object as a list of its keys and values.
function Entries({ value }: { value: { [key: string]: Json } }) {
  const entries = Object.entries(value);
  if (entries.length === 0) return <>the defaults</>;
  return (
    <dl class="entries">
      {entries.map(([key, item], i) => <div key={i}><dt><Name text={key} /></dt><dd><Value value={item} /></dd></div>)}
    </dl>
  );
}

function Value({ value }: { value: Json }) {
  if (value === null) return <>none</>;
  if (Array.isArray(value)) {
    if (value.length === 0) return <>none</>;
    return <>{value.map((item, i) => <span key={i}>{i > 0 && ", "}<Value value={item} /></span>)}</>;
  }
  if (typeof value === "object") return <Entries value={value} />;
  return <Name text={String(value)} />;
}
