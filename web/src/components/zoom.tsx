// Zooms drawings along their x axis: by dragging over a range, and by buttons for the keyboard.

import type { Plot } from "@observablehq/plot";
import { useMemo, useRef, useState } from "preact/hooks";

import { significant } from "../numbers/format";
import { Chart, type ChartProps } from "./chart";

export type Range = readonly [number, number];

interface ZoomProps extends Omit<ChartProps, "draw"> {
  // Returns the drawing of a range of the x axis, with its scale.
  draw: (width: number, range: Range) => Element & Scaled;
  // The whole range.
  range: Range;
  // The shortest range; a range begins and ends at multiples of it if `snaps`.
  step: number;
  snaps?: boolean;
}

// What a drawing of Observable Plot has.
export type Scaled = Pick<Plot, "scale">;

// The least distance in pixels that is a range and not a click.
const MIN_DRAG = 6;

export function ZoomChart({ draw, range, step, snaps, ...chart }: ZoomProps) {
  const [zoomed, setZoomed] = useState<Range | null>(null);
  const drawing = useRef<(Element & Scaled) | null>(null);
  const shown = zoomed ?? range;
  const set = (wanted: Range) => setZoomed(limited(wanted, range, step, snaps === true));
  const { selection, handlers } = useDrag(drawing, set, () => setZoomed(null));
  const keep = (width: number) => {
    drawing.current = draw(width, shown);
    return drawing.current;
  };
  return (
    <div class="zoom" {...handlers}>
      <Buttons shown={shown} isZoomed={zoomed !== null} set={set} reset={() => setZoomed(null)} />
      <Chart {...chart} draw={keep} inputs={[...chart.inputs, shown[0], shown[1]]} />
      {selection && <div class="selection" aria-hidden="true" style={{ left: `${selection[0]}px`, width: `${selection[1] - selection[0]}px` }} />}
    </div>
  );
}

interface ButtonProps {
  shown: Range;
  isZoomed: boolean;
  set: (range: Range) => void;
  reset: () => void;
}

function Buttons({ shown: [low, high], isZoomed, set, reset }: ButtonProps) {
  const size = high - low;
  const steps: [string, string, Range, boolean][] = [
    ["+", "Zoom in", [low + size / 4, high - size / 4], false],
    ["−", "Zoom out", [low - size / 2, high + size / 2], !isZoomed],
    ["◂", "Move left", [low - size / 4, high - size / 4], !isZoomed],
    ["▸", "Move right", [low + size / 4, high + size / 4], !isZoomed],
  ];
  return (
    <div class="zoom-buttons" role="group" aria-label="Zoom">
      {steps.map(([text, label, range, disabled]) => (
        <button key={label} type="button" title={`${label}; or drag over the figure`} aria-label={label} disabled={disabled} onClick={() => set(range)}>{text}</button>
      ))}
      <button type="button" title="Whole range; or double-click" disabled={!isZoomed} onClick={reset}>Reset</button>
      <output class="hidden-text" aria-live="polite">{isZoomed ? `From ${significant(low, 4)} to ${significant(high, 4)}` : ""}</output>
    </div>
  );
}

// Follows a mouse or a pen; a finger scrolls the page.
function useDrag(drawing: { current: (Element & Scaled) | null }, set: (range: Range) => void, reset: () => void) {
  const [ends, setEnds] = useState<Range | null>(null);
  const selection: Range | null = ends && [Math.min(...ends), Math.max(...ends)];
  const handlers = useMemo(() => {
    let start: number | null = null;
    const offset = (event: PointerEvent) => event.clientX - (event.currentTarget as Element).getBoundingClientRect().left;
    const isOnButton = (event: PointerEvent) => (event.target as Element).closest(".zoom-buttons") !== null;
    return {
      // Observable Plot keeps the event from handlers further up.
      onPointerDownCapture: (event: PointerEvent) => {
        if (event.button !== 0 || event.pointerType === "touch" || isOnButton(event)) return;
        start = offset(event);
      },
      onPointerMove: (event: PointerEvent) => {
        if (start === null) return;
        const end = offset(event);
        if (Math.abs(end - start) >= MIN_DRAG) setEnds([start, end]);
      },
      onPointerUp: (event: PointerEvent) => {
        const [from, to] = [start, offset(event)];
        start = null;
        setEnds(null);
        const invert = drawing.current?.scale("x")?.invert;
        if (from === null || !invert || Math.abs(to - from) < MIN_DRAG) return;
        set([invert(Math.min(from, to)), invert(Math.max(from, to))]);
      },
      onPointerLeave: () => {
        start = null;
        setEnds(null);
      },
      onDblClick: reset,
    };
    // The range of a drawing does not change, and setters of a state are the same for ever.
  }, []);
  return { selection, handlers };
}

// Returns the part of `wanted` that is inside the whole range, moved in where it reaches out, and
// not shorter than a step; `null` for the whole.
export function limited(wanted: Range, whole: Range, step: number, snaps: boolean): Range | null {
  let [low, high] = wanted;
  if (snaps) [low, high] = [Math.floor(low / step) * step, Math.ceil(high / step) * step];
  const size = Math.min(Math.max(high - low, step), whole[1] - whole[0]);
  low = Math.min(Math.max(low, whole[0]), whole[1] - size);
  high = low + size;
  return low <= whole[0] && high >= whole[1] ? null : [low, high];
}
