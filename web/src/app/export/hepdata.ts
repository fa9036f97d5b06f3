// Tables for HEPData: yields of every region before and after the fit, and upper limits.
//
// The format is that of https://hepdata-submission.readthedocs.io: `submission.yaml` names a file
// for each table. A number that does not exist, and data that are hidden, are `-`.

import type { ChannelYields, Limit, Prediction, ReportData } from "../../documents";
import { type Maybe, isNumber } from "../../numbers/format";
import type { Settings } from "../engine/protocol";
import { fileName } from "./save";
import { type Yaml, toYaml } from "./yaml";

interface Table {
  name: string;
  description: string;
  independent: Yaml[];
  dependent: Yaml[];
}

// Returns the files of a submission by name.
export function submissionFiles(data: ReportData, limit: Limit | null, settings: Settings): Map<string, string> {
  const tables = [
    ...data.report.yields.channels.map((channel) => yieldsTable(channel, data, settings)),
    ...(limit ? [limitTable(limit, data, settings)] : []),
  ];
  const names = uniqueNames(tables.map((table) => table.name));
  const head = { comment: `Made with nextstat ${data.report.nextstat_version ?? ""}`.trim() };
  const entries = tables.map((table, i) => ({ name: table.name, description: table.description, keywords: [], data_file: names[i]! }));
  const files = new Map([["submission.yaml", [head, ...entries].map((entry) => `---\n${toYaml(entry)}`).join("")]]);
  tables.forEach(({ independent, dependent }, i) => files.set(names[i]!, toYaml({ independent_variables: independent, dependent_variables: dependent })));
  return files;
}

function yieldsTable(channel: ChannelYields, data: ReportData, settings: Settings): Table {
  const counts = settings.asimov === undefined ? "Data" : "Asimov data";
  const bins = channel.data.map((_, bin) => ({ value: bin }));
  const phases: [string, Prediction][] = [["pre-fit", channel.prefit], ...(data.report.fit.converged ? [["post-fit", channel.postfit] as [string, Prediction]] : [])];
  const predictions = phases.flatMap(([phase, { total, samples }]) => [
    column(`Total ${phase}`, total.yields, total.uncertainties),
    ...samples.map((sample) => column(`${sample.sample} ${phase}`, sample.yields, sample.uncertainties)),
  ]);
  return {
    name: `Yields in ${channel.channel}`,
    description: `${counts} and expected yields in the region ${channel.channel}, before and after the fit${of(data)}.${inWords(settings, data)}`,
    independent: [{ header: { name: "Bin" }, values: bins }],
    dependent: [{ header: { name: counts }, values: channel.data.map((value) => ({ value: number(value) })) }, ...predictions],
  };
}

function limitTable(limit: Limit, data: ReportData, settings: Settings): Table {
  const cl = Number((100 * (1 - limit.level)).toPrecision(6));
  const [low2, low1, median, high1, high2] = limit.expected;
  const errors = [band("1 s.d.", median, low1, high1), band("2 s.d.", median, low2, high2)].flat();
  return {
    name: "Upper limits",
    description: `Upper limits on ${limit.poi.name} at ${cl} % CL, observed and expected without a signal${of(data)}.${inWords(settings, data)}`,
    independent: [{ header: { name: "Parameter of interest" }, values: [{ value: limit.poi.name }] }],
    dependent: [
      { header: { name: settings.asimov === undefined ? "Observed limit" : "Limit of the Asimov data" }, values: [{ value: number(limit.observed) }] },
      { header: { name: "Expected limit" }, values: [{ value: number(median), ...(errors.length > 0 ? { errors } : {}) }] },
    ],
  };
}

function band(label: string, median: Maybe, low: Maybe, high: Maybe): Yaml[] {
  if (!isNumber(median) || !isNumber(low) || !isNumber(high)) return [];
  return [{ label, asymerror: { minus: low - median, plus: high - median } }];
}

// Values with symmetric errors; HEPData refuses those of 0.
function column(name: string, values: readonly Maybe[], errors: readonly Maybe[]): Yaml {
  const rows = values.map((value, i): Yaml => {
    const error = errors[i];
    return { value: number(value), ...(isNumber(value) && isNumber(error) && error > 0 ? { errors: [{ symerror: error }] } : {}) };
  });
  return { header: { name }, values: rows };
}

function number(value: Maybe): number | string {
  return isNumber(value) ? value : "-";
}

function of(data: ReportData): string {
  return data.report.measurement ? ` of the measurement ${data.report.measurement}` : "";
}

// Says what differs from the model and its data as they were opened.
function inWords({ poi, asimov, fixed, bounds, mask }: Settings, data: ReportData): string {
  const signal = data.report.fit.poi?.name ?? "the parameter of interest";
  const parts = [
    ...(asimov === undefined ? [] : [`fitted to Asimov data with ${signal} = ${asimov}, not to observed data`]),
    ...(poi === undefined ? [] : [`parameter of interest ${poi}`]),
    ...Object.entries(fixed ?? {}).map(([name, value]) => `${name} fixed at ${value}`),
    ...Object.entries(bounds ?? {}).map(([name, [low, high]]) => `${name} from ${low} to ${high}`),
    ...(mask?.length ? [`the fit leaves out ${mask.join(", ")}`] : []),
  ];
  return parts.length > 0 ? ` Settings: ${parts.join("; ")}.` : "";
}

// Names of files from names of tables, which may be alike once they are plain.
function uniqueNames(names: readonly string[]): string[] {
  const used = new Set<string>();
  return names.map((name) => {
    const base = fileName(name.toLowerCase());
    let chosen = `${base}.yaml`;
    for (let n = 2; used.has(chosen); n += 1) chosen = `${base}_${n}.yaml`;
    used.add(chosen);
    return chosen;
  });
}
