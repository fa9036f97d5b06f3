// The page: its head, the open model with its views, or the invitation to open one.

import { useEffect, useMemo, useRef } from "preact/hooks";

import { DrawingContext } from "../components/chart";
import { Hatching } from "../components/hatching";
import { Printing, usePrintEvents } from "../components/printing";
import { ViewContext } from "../report/view";
import { FigureTools } from "./parts/figure_tools";
import { useApp, useSelected } from "./parts/context";
import { schedule } from "./parts/schedule";
import { shownView } from "./state/state";
import { DropZone } from "./shell/drop_zone";
import { Header } from "./shell/header";
import { Picker } from "./shell/picker";
import { Sidebar } from "./shell/sidebar";
import { Start } from "./shell/start";
import { Strip } from "./shell/strip";
import { Tabs } from "./shell/tabs";
import { Notices } from "./shell/notices";
import { useEmbedding } from "./shell/embedding";
import { ViewOf } from "./views/view_of";

export function App() {
  const app = useApp();
  const isOpen = useSelected((state) => state.model !== null);
  const display = useSelected((state) => state.display);
  const printing = usePrintEvents();
  const embedded = useEmbedding();
  useShortcuts();
  const view = useMemo(() => ({ ...display, update: (change: Partial<typeof display>) => app.store.set({ display: { ...app.store.get().display, ...change } }) }), [display]);
  const drawing = useMemo(() => ({ schedule, Tools: FigureTools }), []);
  return (
    <ViewContext.Provider value={view}>
      <Printing.Provider value={printing}>
        <DrawingContext.Provider value={drawing}>
          <Hatching />
          <DropZone>
            <div class={embedded ? "app embedded" : "app"}>
              <Head embedded={embedded} />
              <Picker />
              {isOpen ? <Opened /> : <Start />}
              {!embedded && <footer class="foot"><a href="THIRD-PARTY.txt" target="_blank" rel="noopener">Licences</a></footer>}
            </div>
          </DropZone>
        </DrawingContext.Provider>
      </Printing.Provider>
    </ViewContext.Provider>
  );
}

// What stays in view; the page knows how high it is.
function Head({ embedded }: { embedded: boolean }) {
  const head = useRef<HTMLDivElement>(null);
  const isOpen = useSelected((state) => state.model !== null);
  useEffect(() => {
    const sizes = new ResizeObserver(() => document.documentElement.style.setProperty("--head", `${head.current?.offsetHeight ?? 0}px`));
    sizes.observe(head.current!);
    return () => sizes.disconnect();
  }, []);
  return (
    <div class="head" ref={head}>
      <Header embedded={embedded} />
      <Notices />
      {isOpen && <Strip />}
    </div>
  );
}

function Opened() {
  const view = useSelected(shownView);
  useEffect(() => window.scrollTo(0, 0), [view]);
  return (
    <div class="workbench">
      <main>
        <Tabs />
        <div class="view" role="tabpanel" id="view" aria-labelledby={`tab-${view}`} tabIndex={-1}>
          <ViewOf view={view} />
        </div>
      </main>
      <Sidebar />
    </div>
  );
}

// Undo and redo, as in other programs; a field that is edited has its own.
function useShortcuts(): void {
  const app = useApp();
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const isField = event.target instanceof HTMLInputElement && ["text", "search", "number", "url"].includes(event.target.type);
      if (isField || !(event.ctrlKey || event.metaKey) || event.altKey) return;
      const key = event.key.toLowerCase();
      if (key !== "z" && key !== "y") return;
      event.preventDefault();
      if (key === "y" || event.shiftKey) app.redo();
      else app.undo();
    };
    window.addEventListener("keydown", onKey);
    return () => window.removeEventListener("keydown", onKey);
  }, [app]);
}
