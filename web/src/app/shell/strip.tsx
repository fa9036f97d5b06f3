// The result in one line, and the parameter of interest as a slider that refits.

import type { ComponentChildren } from "preact";

import { Name } from "../../components/name";
import type { PoiOfFit, ReportData } from "../../documents";
import { type Maybe, fixed, full, isNumber, measured, partOf, probability, significant } from "../../numbers/format";
import { FailureNote } from "../parts/card";
import { useApp, useSelected } from "../parts/context";
import { boundsOf } from "../state/settings";
import { poiRange, riseOf } from "../state/slider";

export function Strip() {
  const overview = useSelected((state) => state.overview);
  const data = overview.value;
  if (!data) return null;
  const { fit } = data.report;
  return (
    <section class={overview.stale ? "strip stale" : "strip"} aria-label="Result" aria-busy={overview.running}>
      <Result data={data} />
      {fit.poi && <Slider key={fit.poi.name} poi={fit.poi} data={data} />}
      <Metrics data={data} />
      {overview.failure && <FailureNote failure={overview.failure} what="The fit with these settings failed; the numbers are those of the last one." />}
    </section>
  );
}

function Result({ data }: { data: ReportData }) {
  const { fit } = data.report;
  if (!fit.converged) return <p class="result bad" role="status">The fit did not converge.</p>;
  if (!fit.poi) return <p class="result" role="status">No parameter of interest</p>;
  const { poi } = fit;
  const hasParts = isNumber(poi.statistical) && isNumber(poi.systematic);
  return (
    <div class="result" role="status">
      <span class="result-name"><Name text={poi.name} /></span>
      <strong title={`${full(poi.bestfit)} ± ${full(poi.uncertainty)}`}>{measured(poi.bestfit, poi.uncertainty)}</strong>
      <small>{hasParts ? `stat. ${partOf(poi.uncertainty, poi.statistical)}, syst. ${partOf(poi.uncertainty, poi.systematic)}` : isNumber(poi.uncertainty) ? "" : "no uncertainty"}</small>
    </div>
  );
}

function Slider({ poi, data }: { poi: PoiOfFit; data: ReportData }) {
  const app = useApp();
  const slider = useSelected((state) => state.slider);
  const stays = useSelected((state) => state.stays);
  const conditional = useSelected((state) => state.conditional);
  const bounds = useSelected((state) => boundsOf(state.history!.present.settings, poi.name) ?? state.parameters.find((one) => one.name === poi.name)?.bounds ?? null);
  const { low, high, step } = poiRange(poi, bounds);
  const shown = slider?.at ?? poi.bestfit ?? low;
  // A reader on the way to `Keep` has not left.
  const leave = (event: FocusEvent) => (event.relatedTarget as Element | null)?.closest(".slider-box") == null && app.release();
  const keys = (event: KeyboardEvent) => event.key === "Escape" && app.release(true);
  return (
    <div class="slider-box">
      <label class="slider">
        <span class="hidden-text">Fix <Name text={poi.name} /> at</span>
        <input type="range" class="poi" min={low} max={high} step={step} value={shown} aria-valuetext={significant(shown, 4)}
          onInput={(event) => app.slide(Number(event.currentTarget.value))} onPointerUp={() => app.release()} onPointerCancel={() => app.release()}
          onKeyDown={keys} onBlur={leave} />
      </label>
      <div class="slider-scale" aria-hidden="true"><span>{significant(low, 3)}</span><span>{significant(high, 3)}</span></div>
      <p class="slider-text" aria-live="polite">
        {slider ? <>Fixed at <b>{significant(slider.at, 4)}</b>: −2 Δ ln L = <b>{fixed(conditional ? riseOf(conditional.report, data.report) : null, 3)}</b></> : <>Move to fix <Name text={poi.name} /> and fit the rest</>}
      </p>
      <label class="check stays"><input type="checkbox" checked={stays} onChange={(event) => app.keep(event.currentTarget.checked)} />Keep</label>
    </div>
  );
}

function Metrics({ data }: { data: ReportData }) {
  const significance = useSelected((state) => state.parts.significance);
  const limit = useSelected((state) => state.parts.limit);
  const goodness = data.gof ?? data.report.goodness_of_fit;
  const { fit } = data.report;
  return (
    <dl class="metrics">
      <Metric head="Goodness of fit" dim={false} note={goodness && isNumber(goodness.statistic) ? `${fixed(goodness.statistic, 1)} / ${significant(goodness.n_dof, 4)}` : ""}>p = {probability(goodness?.p_value)}</Metric>
      {fit.poi && <Metric head="Significance" dim={significance.stale} note={`expected ${sigmas(significance.value?.Z_exp)}`}>{sigmas(significance.value?.Z_obs)}</Metric>}
      {fit.poi && <Metric head="95 % CL limit" dim={limit.stale} note={`expected ${significant(limit.value?.expected[2], 3)}`}>{significant(limit.value?.observed, 4)}</Metric>}
      <Metric head="Parameters" dim={false} note={`${fit.n_free ?? "–"} free`}>{fit.par_names.length}</Metric>
    </dl>
  );
}

function sigmas(value: Maybe): string {
  return isNumber(value) ? `${fixed(value, 2)} σ` : "–";
}

function Metric({ head, note, dim, children }: { head: string; note: string; dim: boolean; children: ComponentChildren }) {
  return <div class={dim ? "dim" : undefined}><dt>{head}</dt><dd>{children}<small>{note}</small></dd></div>;
}
