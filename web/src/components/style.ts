// What all drawings share: colours, room for labels, and options of the plotting library.

import { shortText } from "../numbers/escape";

// M. Petroff, arXiv:2107.02270: ten colours that stay distinct with any colour vision deficiency.
const COLOURS = ["#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6", "#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd"];

// Returns a colour for each name, in the order of first appearance: the same in every region. After
// ten, lighter and then darker shades follow.
export function coloursOf(names: Iterable<string>): Map<string, string> {
  const colours = new Map<string, string>();
  for (const name of names) {
    if (!colours.has(name)) colours.set(name, colour(colours.size));
  }
  return colours;
}

function colour(index: number): string {
  const base = COLOURS[index % COLOURS.length]!;
  const round = Math.floor(index / COLOURS.length);
  if (round === 0) return base;
  const share = 55 - 15 * (Math.floor((round - 1) / 2) % 3);
  return mix(base, round % 2 === 1 ? 255 : 0, share / 100);
}

// Returns `hex` with a share of a grey.
function mix(hex: string, grey: number, share: number): string {
  const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  return `#${parts.map((part) => Math.round(part + (grey - part) * share).toString(16).padStart(2, "0")).join("")}`;
}

// Colours that the style sheet gives for light and dark pages.
export const INK = "var(--ink)";
export const MUTED = "var(--muted)";
export const GRID = "var(--line)";
export const UP = "var(--up)";
export const DOWN = "var(--down)";
export const ACCENT = "var(--accent)";
// The hatching that the page defines once.
export const HATCH = "url(#hatch)";

export const FONT = { fontFamily: "inherit", fontSize: "11px", color: "currentColor", background: "none" };

// Options of a box beside the pointer.
export const TIP = { fill: "var(--raised)", stroke: "var(--line-strong)", fontSize: 11, lineWidth: 34, textPadding: 7, pathFilter: "none" } as const;

// Room for names at the left of a drawing: pixels, and how many characters fit.
export function labelRoom(width: number): { margin: number; characters: number } {
  const margin = Math.round(Math.min(Math.max(width * 0.3, 96), 236));
  return { margin, characters: Math.floor((margin - 14) / 6.9) };
}

// Returns a function from the indices of `names` to labels that fit.
export function labels(names: readonly string[], characters: number): (index: number) => string {
  return (index) => shortText(names[index] ?? "", characters);
}
