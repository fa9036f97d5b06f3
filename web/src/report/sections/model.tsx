// What the workspace contains, and what the check of the model found.

import { Unfold } from "../../components/chart";
import { Message, Name } from "../../components/name";
import { type Column, DataTable } from "../../components/table";
import type { Check, Finding, Inspect, ReportData } from "../../documents";
import { findingCounts } from "../../numbers/words";
import { Absent, Section } from "../section";

const SEVERITIES = ["error", "warning", "note"] as const;

export function Model({ data }: { data: ReportData }) {
  return (
    <Section id="model" title="Model">
      {data.inspect ? <Contents inspect={data.inspect} /> : <Absent data={data} part="inspect" />}
      <h3>Findings of the check</h3>
      {data.check ? <Findings check={data.check} /> : <Absent data={data} part="check" />}
    </Section>
  );
}

function Contents({ inspect }: { inspect: Inspect }) {
  const parameters = inspect.systematics ?? [];
  const summary = Object.entries(inspect.summary ?? {});
  return (
    <>
      <dl class="numbers">{summary.map(([name, count]) => <div key={name}><dt>{name === "parameters" ? "parameter sets" : name}</dt><dd>{count}</dd></div>)}</dl>
      <p>Samples: {inspect.samples.map((sample, i) => <span key={i}>{i > 0 && ", "}<Name text={sample} /></span>)}.</p>
      <Unfold summary={`Channels (${inspect.channels.length})`}>
        {() => <DataTable label="Channels" columns={CHANNELS} rows={inspect.channels} />}
      </Unfold>
      <Unfold summary={`Parameter sets (${parameters.length})`}>
        {() => <DataTable label="Parameter sets" columns={SYSTEMATICS} rows={parameters} />}
      </Unfold>
    </>
  );
}

const CHANNELS: Column<[string, number]>[] = [
  { head: "Channel", value: (row) => row[0], cell: (row) => <Name text={row[0]} /> },
  { head: "Bins", value: (row) => row[1], numeric: true },
];

const SYSTEMATICS: Column<[string, string, string[]]>[] = [
  { head: "Parameter set", value: (row) => row[0], cell: (row) => <Name text={row[0]} /> },
  { head: "Constraint", value: (row) => row[1].replaceAll("_", " ") },
  { head: "Modifiers", value: (row) => row[2].join(", ") },
];

function Findings({ check }: { check: Check }) {
  const rows = check.findings;
  if (rows.length === 0) return <p>Nothing was found.</p>;
  const serious = rows.filter((row) => row.severity !== "note");
  return (
    <>
      <p>{findingCounts(check)}.</p>
      {serious.length > 0 && <DataTable label="Errors and warnings" columns={FINDINGS} rows={serious} limit={12} />}
      {serious.length < rows.length && (
        <Unfold summary={`Notes (${rows.length - serious.length})`}>
          {() => <DataTable label="Notes" columns={FINDINGS} rows={rows.filter((row) => row.severity === "note")} />}
        </Unfold>
      )}
    </>
  );
}

const FINDINGS: Column<Finding>[] = [
  { head: "Severity", value: (row) => SEVERITIES.indexOf(row.severity), cell: (row) => <span class={`severity ${row.severity}`}>{row.severity}</span> },
  { head: "Channel", value: (row) => row.channel ?? null, cell: (row) => row.channel !== undefined && <Name text={row.channel} /> },
  { head: "Sample", value: (row) => row.sample ?? null, cell: (row) => row.sample !== undefined && <Name text={row.sample} /> },
  { head: "Parameter or modifier", value: (row) => subject(row) ?? null, cell: (row) => <Subject row={row} /> },
  { head: "Finding", value: (row) => row.message, cell: (row) => <Message text={row.message} />, wide: true },
];

function subject(row: Finding): string | undefined {
  return row.modifier ?? row.parameter;
}

function Subject({ row }: { row: Finding }) {
  const name = subject(row);
  return name === undefined ? null : <Name text={name} />;
}
