// The result in the first screen: whether the fit converged, what it found, and what to know first.

import type { ComponentChildren } from "preact";

import { Name, Warnings } from "../../components/name";
import type { Json, PoiOfFit, ReportData } from "../../documents";
import { fixed, full, isNumber, measured, partOf, probability, significant } from "../../numbers/format";
import { Section } from "../section";

const OUTCOMES = new Map([
  ["iteration_limit", "it stopped after too many steps"],
  ["stalled", "it stopped without progress"],
  ["saddle", "it stopped at a saddle point"],
  ["not_finite", "the likelihood is not finite"],
]);

export function Verdict({ data }: { data: ReportData }) {
  const { fit, warnings } = data.report;
  const pois = fit.pois ?? (fit.poi ? [fit.poi] : []);
  return (
    <Section id="result" title="Result">
      <p class={fit.converged ? "verdict good" : "verdict bad"} role="status">
        {fit.converged ? "The fit converged." : `The fit did not converge: ${OUTCOMES.get(fit.outcome) ?? fit.outcome}. Its numbers are not results.`}
      </p>
      <DataSource provenance={data.report.provenance ?? {}} />
      {pois.length === 0 && <p>The measurement has no parameter of interest.</p>}
      {fit.converged && pois.map((poi) => <Measured key={poi.name} poi={poi} />)}
      <Numbers data={data} />
      {warnings?.length ? <><h3>Warnings</h3><Warnings texts={warnings} /></> : <p class="note">There are no warnings.</p>}
    </Section>
  );
}

function Measured({ poi }: { poi: PoiOfFit }) {
  const parts = isNumber(poi.statistical) && isNumber(poi.systematic);
  return (
    <p class="measured" title={`${full(poi.bestfit)} ± ${full(poi.uncertainty)}`}>
      <Name text={poi.name} /> = <strong>{measured(poi.bestfit, poi.uncertainty)}</strong>
      {!isNumber(poi.uncertainty) && <small> (no uncertainty)</small>}
      {parts && <small> (stat. {partOf(poi.uncertainty, poi.statistical)}, syst. {partOf(poi.uncertainty, poi.systematic)})</small>}
    </p>
  );
}

// Which data the numbers are of: Asimov data must not pass for observed ones.
function DataSource({ provenance }: { provenance: { [key: string]: Json } }) {
  const data = provenance.data as { source?: string; parameters?: { [name: string]: Json } } | undefined;
  const settings = provenance.settings as { blinded?: { [channel: string]: Json }; masked?: { [channel: string]: Json } } | undefined;
  return (
    <>
      {provenance.stored_fit && <p class="notice" role="note">The values are those of a stored fit, not of one to these data.</p>}
      {data?.source === "asimov" && <p class="notice" role="note">Asimov data, not observed ones: <Assignments values={data.parameters ?? {}} />.</p>}
      {data?.source === "given" && <p class="notice" role="note">The data are those of the caller, not those of the workspace.</p>}
      {settings?.blinded && <p class="notice" role="note">Hidden data: <Bins bins={settings.blinded} />.</p>}
      {settings?.masked && <p class="notice" role="note">Left out of the fit: <Bins bins={settings.masked} />.</p>}
    </>
  );
}

function Assignments({ values }: { values: { [name: string]: Json } }) {
  return <>{Object.entries(values).map(([name, value], i) => <span key={i}>{i > 0 && ", "}<Name text={name} /> = {String(value)}</span>)}</>;
}

function Bins({ bins }: { bins: { [channel: string]: Json } }) {
  return (
    <>
      {Object.entries(bins).map(([channel, value], i) => (
        <span key={i}>{i > 0 && ", "}<Name text={channel} /> ({Array.isArray(value) ? `bins ${value.join(", ")}` : "all bins"})</span>
      ))}
    </>
  );
}

function Numbers({ data }: { data: ReportData }) {
  const { fit, goodness_of_fit: goodness, yields, pulls } = data.report;
  const bins = yields.channels.reduce((sum, channel) => sum + channel.data.length, 0);
  const gof = goodness && isNumber(goodness.statistic) ? `${fixed(goodness.statistic, 1)} / ${significant(goodness.n_dof, 5)}, p = ${probability(goodness.p_value)}` : null;
  return (
    <dl class="numbers">
      <Entry head="Goodness of fit">{gof ?? "–"}</Entry>
      <Entry head="Regions, bins">{yields.channels.length}, {bins}</Entry>
      <Entry head="Parameters (free, constrained)">{fit.par_names.length} ({fit.n_free ?? "–"}, {pulls.length})</Entry>
      <Entry head="−2 ln L">{significant(fit.twice_nll, 8)}</Entry>
      <Entry head="Distance to the minimum">{significant(fit.edm, 2)}</Entry>
      <Entry head="At a bound">{fit.at_bounds?.length ?? 0}</Entry>
      <Entry head="Flat directions">{fit.flat_directions?.length ?? 0}</Entry>
    </dl>
  );
}

function Entry({ head, children }: { head: string; children: ComponentChildren }) {
  return <div><dt>{head}</dt><dd>{children}</dd></div>;
}
