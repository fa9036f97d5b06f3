// The frame of a section: its heading, what is absent, and the warnings of its documents.

import type { ComponentChildren } from "preact";

import { Message, Warnings } from "../components/name";
import type { Common, ReportData } from "../documents";

interface SectionProps {
  id: string;
  title: string;
  children: ComponentChildren;
}

export function Section({ id, title, children }: SectionProps) {
  return (
    <section id={id} aria-labelledby={`${id}-title`} tabIndex={-1}>
      <h2 id={`${id}-title`}>{title}</h2>
      {children}
    </section>
  );
}

// Says in a line why a part of the data is not there.
export function Absent({ data, part }: { data: ReportData; part: string }) {
  const reasons = new Map(Object.entries(data.absent ?? {}));
  return <p class="absent"><Message text={`Not in this report: ${reasons.get(part) ?? "it was not computed"}.`} /></p>;
}

// What to know before the numbers of a document are used.
export function Caution({ document, what }: { document: Common; what: string }) {
  return (
    <>
      {document.converged === false && <p class="caution" role="note">{what} did not converge: do not use these numbers.</p>}
      {document.complete === false && <p class="caution" role="note">This was interrupted; what is shown is not complete.</p>}
      <Warnings texts={document.warnings} />
    </>
  );
}
