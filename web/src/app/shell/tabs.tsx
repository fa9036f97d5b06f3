// The views of a model as tabs: arrow keys move between them.

import { useApp, useSelected } from "../parts/context";
import { neighbour } from "../state/address";
import { type AppState, type ViewName, shownView, viewsOf } from "../state/state";

const TITLES: Record<ViewName, string> = {
  overview: "Overview", regions: "Regions", pulls: "Pulls", correlations: "Correlations", ranking: "Ranking", scan: "Scan",
  limit: "Limit", patches: "Signals", toys: "Toys", model: "Model", export: "Export",
};

export function Tabs() {
  const app = useApp();
  const view = useSelected(shownView);
  const model = useSelected((state) => state.model);
  const views = viewsOf({ model });
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const next = neighbour(views, view, step);
    app.store.set({ view: next });
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label="Views" onKeyDown={move}>
      {views.map((one) => (
        <button key={one} type="button" role="tab" id={`tab-${one}`} aria-selected={one === view} aria-controls="view" tabIndex={one === view ? 0 : -1} onClick={() => app.store.set({ view: one } satisfies Partial<AppState>)}>
          {TITLES[one]}
        </button>
      ))}
    </div>
  );
}
