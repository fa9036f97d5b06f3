// Which component shows which view.

import type { ComponentType } from "preact";

import type { ReportData } from "../../documents";
import { Correlations } from "../../report/sections/correlations";
import { Parameters } from "../../report/sections/parameters";
import { useSelected } from "../parts/context";
import { type ViewName, shownData } from "../state/state";
import { Export } from "./export";
import { LimitView } from "./limit";
import { ModelView } from "./model";
import { Overview } from "./overview";
import { Patches } from "./patches";
import { RankingView } from "./ranking";
import { RegionsView } from "./regions";
import { ScanView } from "./scan";
import { Toys } from "./toys";

const VIEW_COMPONENTS: Record<ViewName, ComponentType<{ data: ReportData }>> = {
  overview: Overview, regions: RegionsView, pulls: Parameters, correlations: Correlations, ranking: RankingView, scan: ScanView,
  limit: LimitView, patches: Patches, toys: Toys, model: ModelView, export: Export,
};

export function ViewOf({ view }: { view: ViewName }) {
  const data = useSelected(shownData);
  const stale = useSelected((state) => state.overview.stale);
  const Component = VIEW_COMPONENTS[view];
  return data && <div class={stale ? "stale" : undefined}><Component data={data} /></div>;
}
