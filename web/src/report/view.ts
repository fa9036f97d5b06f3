// What the reader has chosen: filter, switches and theme, kept in the fragment of the address.
//
// The fragment is `#section?filter=JES_*&phase=prefit`, so that an address leads to the same view.

import { createContext } from "preact";
import { useContext, useEffect, useMemo, useState } from "preact/hooks";

import type { Phase } from "../components/stack";

export type Theme = "auto" | "light" | "dark";

export interface View {
  // Patterns of parameters for pulls, ranking and correlations.
  filter: string;
  phase: Phase;
  log: boolean;
  // The least correlation that is shown; `null` until the reader chooses.
  threshold: number | null;
  theme: Theme;
}

export interface ViewState extends View {
  update: (change: Partial<View>) => void;
}

const DEFAULTS: View = { filter: "", phase: "postfit", log: false, threshold: null, theme: "auto" };

export const ViewContext = createContext<ViewState>({ ...DEFAULTS, update: () => undefined });

export function useView(): ViewState {
  return useContext(ViewContext);
}

// Returns the state of the page, and keeps the address in step with it.
export function useViewState(): ViewState {
  const [view, setView] = useState(() => parseFragment(location.hash));
  useEffect(() => {
    writeFragment(section(location.hash), view);
    if (view.theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = view.theme;
  }, [view]);
  useEffect(() => {
    // The reader changed the address; what the page writes there itself is no event.
    const follow = () => setView(parseFragment(location.hash));
    window.addEventListener("hashchange", follow);
    return () => window.removeEventListener("hashchange", follow);
  }, []);
  return useMemo(() => ({ ...view, update: (change) => setView((old) => ({ ...old, ...change })) }), [view]);
}

// Scrolls to a section and writes it to the address.
export function goTo(id: string, view: View): void {
  document.getElementById(id)?.scrollIntoView();
  document.getElementById(id)?.focus({ preventScroll: true });
  writeFragment(id, view);
}

// Returns the section that a fragment names, or an empty text.
export function section(fragment: string): string {
  return fragment.slice(1).split("?")[0] ?? "";
}

export function parseFragment(fragment: string): View {
  const values = new URLSearchParams(fragment.split("?").slice(1).join("?"));
  const threshold = Number(values.get("rho") ?? Number.NaN);
  const theme = values.get("theme");
  return {
    filter: values.get("filter") ?? DEFAULTS.filter,
    phase: values.get("phase") === "prefit" ? "prefit" : DEFAULTS.phase,
    log: values.get("log") === "1",
    threshold: threshold >= 0 && threshold <= 1 ? threshold : null,
    theme: theme === "light" || theme === "dark" ? theme : "auto",
  };
}

function writeFragment(id: string, view: View): void {
  const values = new URLSearchParams();
  if (view.filter !== DEFAULTS.filter) values.set("filter", view.filter);
  if (view.phase !== DEFAULTS.phase) values.set("phase", view.phase);
  if (view.log) values.set("log", "1");
  if (view.threshold !== null) values.set("rho", String(view.threshold));
  if (view.theme !== DEFAULTS.theme) values.set("theme", view.theme);
  const query = values.toString();
  const fragment = `#${id}${query && `?${query}`}`;
  // An empty fragment in the address would be a change of every page that is opened.
  if (fragment === "#" && location.hash === "") return;
  try {
    history.replaceState(null, "", fragment);
  } catch {
    // Some browsers refuse it for local files; the page works without.
  }
}
