// The state of the page as the fragment of its address, so that a link leads to the same numbers.
//
// `#view=pulls&url=…&workspace=…&patch=…&settings={…}&sha256=…`: without `url`, the page asks for
// the file with the digest. The fragment never leaves the browser. It may come from anyone, so that
// whatever is not of the expected form is left out.

import type { OpenRequest, Settings } from "../engine/protocol";
import { VIEWS, type ViewName } from "./state";

export interface Shared {
  view: ViewName;
  urls: string[];
  // Path of the workspace among the files.
  workspace: string | null;
  // Path of the patch set; empty for none, `null` for the only one.
  patchset: string | null;
  // Name of a patch of the set, or path of a JSON patch; empty for none, `null` for the first.
  patch: string | null;
  // Paths of JSON patches that are applied after that.
  patches: string[];
  measurement: string | null;
  // What `$MASS` stands for in a data card.
  mass: number | null;
  settings: Settings;
  // Digest of the workspace with its patch, as `nextstat digest` prints it.
  digest: string | null;
  theme: "auto" | "light" | "dark";
  embedded: boolean;
}

// What an address without a fragment says.
export const NOTHING_SHARED: Shared = {
  view: "overview", urls: [], workspace: null, patchset: null, patch: null, patches: [], measurement: null, mass: null, settings: {}, digest: null, theme: "auto", embedded: false,
};

export function encode(shared: Shared): string {
  const values = new URLSearchParams();
  if (shared.view !== "overview") values.set("view", shared.view);
  for (const url of shared.urls) values.append("url", url);
  for (const key of ["workspace", "patchset", "patch", "measurement"] as const) {
    const value = shared[key];
    if (value !== null) values.set(key, value);
  }
  for (const path of shared.patches) values.append("json-patch", path);
  if (shared.mass !== null) values.set("mass", String(shared.mass));
  if (Object.keys(shared.settings).length > 0) values.set("settings", JSON.stringify(shared.settings));
  if (shared.digest !== null) values.set("sha256", shared.digest);
  if (shared.theme !== "auto") values.set("theme", shared.theme);
  if (shared.embedded) values.set("embed", "1");
  const text = values.toString();
  return text && `#${text}`;
}

export function decode(fragment: string): Shared {
  const values = new URLSearchParams(fragment.replace(/^#/, ""));
  const view = values.get("view");
  const theme = values.get("theme");
  const digest = values.get("sha256");
  return {
    view: VIEWS.find((one) => one === view) ?? "overview",
    urls: values.getAll("url"),
    workspace: values.get("workspace"),
    patchset: values.get("patchset"),
    patch: values.get("patch"),
    patches: values.getAll("json-patch"),
    measurement: values.get("measurement"),
    mass: massOf(values.get("mass")),
    settings: settingsOf(values.get("settings")),
    digest: digest && /^[0-9a-f]{64}$/.test(digest) ? digest : null,
    theme: theme === "light" || theme === "dark" ? theme : "auto",
    embedded: values.get("embed") === "1",
  };
}

// Returns the request to open what a link describes.
export function openRequest(shared: Shared, workspace: string, patchset: string | null): OpenRequest {
  const file = (shared.patchset ?? patchset) || null;
  const { patch } = shared;
  const isPatched = patch !== null && patch !== "";
  const patches = [...(isPatched && file === null ? [patch] : []), ...shared.patches];
  return {
    workspace: shared.workspace ?? workspace,
    ...(isPatched && file !== null ? { patchset: { file, patch } } : {}),
    ...(patches.length > 0 ? { patches } : {}),
    ...(shared.measurement !== null ? { measurement: shared.measurement } : {}),
    ...(shared.mass !== null ? { mass: shared.mass } : {}),
  };
}

function massOf(text: string | null): number | null {
  const mass = text ? Number(text) : NaN;
  return Number.isFinite(mass) ? mass : null;
}

function settingsOf(text: string | null): Settings {
  const value = parse(text);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
  const given = new Map(Object.entries(value));
  const [poi, asimov, masked] = ["poi", "asimov", "mask"].map((key) => given.get(key));
  return {
    ...(isNumber(asimov) ? { asimov } : {}),
    ...part("bounds", given.get("bounds"), isPair),
    ...part("fixed", given.get("fixed"), isNumber),
    ...(Array.isArray(masked) && masked.length > 0 && masked.every((one) => typeof one === "string") ? { mask: masked as string[] } : {}),
    ...(typeof poi === "string" ? { poi } : {}),
  };
}

function part(key: "bounds" | "fixed", value: unknown, isValid: (one: unknown) => boolean): Settings {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return {};
  const entries = Object.entries(value).filter(([, one]) => isValid(one));
  return entries.length > 0 ? { [key]: Object.fromEntries(entries) } : {};
}

function parse(text: string | null): unknown {
  try {
    return text === null ? null : (JSON.parse(text) as unknown);
  } catch {
    return null;
  }
}

function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

function isPair(value: unknown): value is [number, number] {
  return Array.isArray(value) && value.length === 2 && value.every(isNumber);
}
