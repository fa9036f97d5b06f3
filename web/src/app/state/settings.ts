// Changes of the settings of a fit. Each returns new settings, without parts that are empty, so
// that equal settings are equal as text.
//
// Names are untrusted: they are read and written as entries, and `__proto__` is a name as any
// other.

import type { Settings } from "../engine/protocol";

export type Bounds = [number, number];

// Returns the value that a parameter is fixed at.
export function fixedAt(settings: Settings, name: string): number | null {
  return entry(settings.fixed, name);
}

export function boundsOf(settings: Settings, name: string): Bounds | null {
  return entry(settings.bounds, name);
}

export function isMasked(settings: Settings, channel: string): boolean {
  return settings.mask?.includes(channel) ?? false;
}

// Fixes a parameter, or leaves it free again for `null`.
export function fix(settings: Settings, name: string, value: number | null): Settings {
  return tidy({ ...settings, fixed: withEntry(settings.fixed, name, value) });
}

// Changes the bounds of a parameter; `null` gives back those of the model.
export function bound(settings: Settings, name: string, value: Bounds | null): Settings {
  return tidy({ ...settings, bounds: withEntry(settings.bounds, name, value) });
}

// Leaves a channel out of the fit, or takes it in again.
export function mask(settings: Settings, channel: string, isOut: boolean): Settings {
  const others = (settings.mask ?? []).filter((name) => name !== channel);
  return tidy({ ...settings, mask: isOut ? [...others, channel].sort() : others });
}

export function withPoi(settings: Settings, poi: string | null): Settings {
  return tidy({ ...settings, poi: poi ?? undefined });
}

export function withAsimov(settings: Settings, mu: number | null): Settings {
  return tidy({ ...settings, asimov: mu ?? undefined });
}

// Returns how many choices differ from those of the model.
export function countChanges({ poi, asimov, fixed, bounds, mask: masked }: Settings): number {
  const single = [poi, asimov].filter((value) => value !== undefined).length;
  return single + Object.keys(fixed ?? {}).length + Object.keys(bounds ?? {}).length + (masked?.length ?? 0);
}

function entry<T>(record: Record<string, T> | undefined, name: string): T | null {
  return Object.entries(record ?? {}).find(([key]) => key === name)?.[1] ?? null;
}

function withEntry<T>(record: Record<string, T> | undefined, name: string, value: T | null): Record<string, T> {
  const others = Object.entries(record ?? {}).filter(([key]) => key !== name);
  const all = value === null ? others : [...others, [name, value] as [string, T]];
  return Object.fromEntries(all.sort(([a], [b]) => (a < b ? -1 : 1)));
}

function tidy(settings: Settings): Settings {
  const kept = Object.entries(settings).filter(([, value]) => {
    if (value === undefined) return false;
    return typeof value !== "object" || Object.keys(value).length > 0;
  });
  return Object.fromEntries(kept.sort(([a], [b]) => (a < b ? -1 : 1))) as Settings;
}
