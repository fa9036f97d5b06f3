// Keeps the address in step with the state, so that it is always a link to what is shown.

import type { Controller } from "./controller";
import { type Shared, decode, encode } from "./fragment";
import { type AppState, VIEWS } from "./state";
import { digestOf } from "./digest";
import { modelsOf, patchesOf, patchsetsOf } from "./loading";

// Browsers refuse to change an address too often.
const PACE = 250;

// Tells addresses that the page wrote from those that were pasted.
const OWN = { isOwn: true };

// Returns what a link to the present state says.
export function sharedState(state: AppState, embedded = false): Shared {
  const { model, history, overview, view, display } = state;
  const open = history?.present.open;
  return {
    view, urls: model?.urls ?? [], workspace: open && isAmbiguous(state) ? open.workspace : null,
    patchset: patchsetOf(state), ...patchesOfState(state), measurement: open?.measurement ?? null, mass: open?.mass ?? null,
    settings: history?.present.settings ?? {}, digest: overview.value && !overview.stale ? digestOf(overview.value) : null, theme: display.theme, embedded,
  };
}

// The patch set, unless it is the only one; a link says also that there is none.
function patchsetOf(state: AppState): string | null {
  const { model } = state;
  if (!model || patchsetsOf(model.entries).length === 0) return null;
  if (!model.patchset) return "";
  return isAmbiguous(state) ? model.patchset.file : null;
}

// Which patches are applied; a link says also that there is none, where there could be one.
function patchesOfState({ model, history }: AppState): Pick<Shared, "patch" | "patches"> {
  const open = history?.present.open;
  const files = open?.patches ?? [];
  if (model?.patchset) return { patch: open?.patchset?.patch ?? "", patches: files };
  const canHave = model !== null && patchesOf(model.entries).length > 0;
  return { patch: files[0] ?? (canHave ? "" : null), patches: files.slice(1) };
}

// Whether the files have more than one model or patch set, so that a link names them.
function isAmbiguous({ model }: AppState): boolean {
  return model !== null && (modelsOf(model.entries).length > 1 || patchsetsOf(model.entries).length > 1);
}

export function isEmbedded(): boolean {
  return decode(location.hash).embedded;
}

export function followAddress(app: Controller): void {
  const embedded = isEmbedded();
  let timer = 0;
  restore(app, decode(location.hash), false);
  window.addEventListener("hashchange", () => restore(app, decode(location.hash), history.state !== null || location.hash === ""));
  app.store.follow(() => {
    applyTheme(app.store.get().display.theme);
    clearTimeout(timer);
    timer = setTimeout(() => write(app.store.get(), embedded), PACE);
  });
}

// Files that the reader opens with the installed app.
export function followFiles(app: Controller): void {
  const queue = (window as unknown as { launchQueue?: { setConsumer(consumer: (launch: { files: readonly FileSystemFileHandle[] }) => void): void } }).launchQueue;
  queue?.setConsumer(async ({ files }) => {
    const opened = await Promise.all(files.map((file) => file.getFile()));
    await app.openFiles(opened.map((file) => ({ name: file.name, blob: file })));
  });
}

// Shows what an address says. One that this page wrote, to which Back and Forward lead, is for its
// view: settings are taken back by Undo, and may be of files that are not open any more.
function restore(app: Controller, shared: Shared, isOwn: boolean): void {
  const { display } = app.store.get();
  app.store.set({ view: shared.view, display: { ...display, theme: shared.theme } });
  applyTheme(shared.theme);
  const { model } = app.store.get();
  const isOpen = model !== null && sameList(model.urls, shared.urls);
  if (isOwn && (isOpen || shared.urls.length === 0)) return;
  // A link to the open address changes what is shown of it.
  if (shared.urls.length > 0 && !isOpen) void app.openUrls(shared.urls, shared);
  else if (model) void app.applyLink(shared);
  else if (shared.digest) app.store.set({ awaited: { digest: shared.digest, wish: shared } });
}

function write(state: AppState, embedded: boolean): void {
  // Before a model is open, the address has what is to be opened.
  if (!state.model || state.busy !== null || state.overview.running || state.awaited) return;
  const fragment = encode(sharedState(state, embedded));
  if (fragment === location.hash) return;
  const address = fragment || location.pathname + location.search;
  // Back leads to the view before; in another page, it is for that page.
  if (decode(location.hash).view !== state.view && !embedded) history.pushState(OWN, "", address);
  else history.replaceState(OWN, "", address);
}

function sameList(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((one, i) => one === b[i]);
}

function applyTheme(theme: AppState["display"]["theme"]): void {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
}

// Returns the view that a key of a list of tabs leads to.
export function neighbour(views: readonly (typeof VIEWS)[number][], view: (typeof VIEWS)[number], step: number): (typeof VIEWS)[number] {
  const at = views.indexOf(view);
  return views[(at + step + views.length) % views.length] ?? view;
}
