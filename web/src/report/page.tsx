// The page of a report: its head with the controls, and its sections.

import { useEffect, useMemo } from "preact/hooks";

import { escapeText } from "../numbers/escape";
import { Hatching } from "../components/hatching";
import { Printing, usePrintEvents } from "../components/printing";
import type { ReportData } from "../documents";
import { Controls } from "./controls";
import { Correlations } from "./sections/correlations";
import { GoodnessOfFit } from "./sections/goodness";
import { Limits } from "./sections/limits";
import { Minima } from "./sections/minima";
import { Model } from "./sections/model";
import { Parameters } from "./sections/parameters";
import { Provenance } from "./sections/provenance";
import { Rankings } from "./sections/ranking";
import { Regions } from "./sections/regions";
import { Scans } from "./sections/scans";
import { Verdict } from "./sections/verdict";
import { YieldsTable } from "./sections/yields";
import { ViewContext, goTo, section, useView, useViewState } from "./view";

const SECTIONS = [
  ["result", "Result", Verdict],
  ["provenance", "Provenance", Provenance],
  ["model", "Model", Model],
  ["parameters", "Parameters", Parameters],
  ["ranking", "Ranking", Rankings],
  ["correlations", "Correlations", Correlations],
  ["yields", "Yields", YieldsTable],
  ["regions", "Regions", Regions],
  ["goodness", "Goodness of fit", GoodnessOfFit],
  ["scans", "Likelihood scans", Scans],
  ["limits", "Upper limits", Limits],
  ["minima", "Other minima", Minima],
] as const;

export function Page({ data }: { data: ReportData }) {
  const view = useViewState();
  const printing = usePrintEvents();
  useEffect(() => {
    document.getElementById(section(location.hash))?.scrollIntoView();
  }, []);
  // The data do not change: sections are rendered again only where their own state does.
  const sections = useMemo(() => SECTIONS.map(([id, , Part]) => <Part key={id} data={data} />), [data]);
  return (
    <ViewContext.Provider value={view}>
      <Printing.Provider value={printing}>
        <Hatching />
        <header class="top"><h1>{escapeText(data.title) || "Report"}</h1></header>
        <Controls data={data} />
        <div class="body">
          <Contents />
          <main>{sections}</main>
        </div>
        <footer>nextstat {escapeText(data.report.nextstat_version ?? "")}. This page loads nothing from elsewhere.</footer>
      </Printing.Provider>
    </ViewContext.Provider>
  );
}

function Contents() {
  const view = useView();
  return (
    <nav aria-label="Sections">
      <ul>
        {SECTIONS.map(([id, title]) => (
          <li key={id}>
            <a href={`#${id}`} onClick={(event) => { event.preventDefault(); goTo(id, view); }}>{title}</a>
          </li>
        ))}
      </ul>
    </nav>
  );
}
