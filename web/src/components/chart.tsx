// Places a drawing on the page: draws it when it comes into view, and again when its width or what
// it shows changes.

import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { usePrinting } from "./printing";

export interface ChartProps {
  // What a screen reader says.
  label: string;
  // Returns the drawing for a width in pixels.
  draw: (width: number) => Element;
  // What `draw` depends on.
  inputs: readonly unknown[];
  // Height in pixels before it is drawn.
  height: number;
}

// What a page does around its drawings.
export interface Drawing {
  // Draws now or soon; returns what takes it back.
  schedule: (draw: () => void) => () => void;
  // Buttons beside a drawing.
  Tools: ((props: { host: { current: HTMLElement | null }; label: string }) => ComponentChildren) | null;
}

export const DrawingContext = createContext<Drawing>({ schedule: drawNow, Tools: null });

function drawNow(draw: () => void): () => void {
  draw();
  return () => undefined;
}

export function Chart({ label, draw, inputs, height }: ChartProps) {
  const host = useRef<HTMLDivElement>(null);
  const drawn = useRef<readonly unknown[]>([]);
  const { visible, width } = usePlace(host);
  const printing = usePrinting();
  const { schedule, Tools } = useContext(DrawingContext);
  const wanted = [visible || printing, width, label, ...inputs];
  useLayoutEffect(() => {
    if (!host.current || !wanted[0] || same(wanted, drawn.current)) return undefined;
    // A printer does not wait.
    return (printing ? drawNow : schedule)(() => {
      const drawing = asImage(draw(width || 640), label);
      host.current?.replaceChildren(drawing);
      drawn.current = wanted;
    });
  }, wanted);
  return (
    <>
      {Tools && <Tools host={host} label={label} />}
      <div class="chart" ref={host} style={{ minHeight: drawn.current.length > 0 ? undefined : `${height}px` }} />
    </>
  );
}

// Names a drawing as one image. Its parts lose their names, which assistive technology must not
// read.
function asImage(drawing: Element, label: string): Element {
  for (const part of drawing.querySelectorAll("[aria-label]")) {
    part.setAttribute("data-mark", part.getAttribute("aria-label")!);
    part.removeAttribute("aria-label");
  }
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", label);
  return drawing;
}

function same(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((value, i) => Object.is(value, b[i]));
}

// Follows the width of an element, in steps of a few pixels, and whether it is near the window.
function usePlace(host: { current: HTMLElement | null }) {
  const [visible, setVisible] = useState(false);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = host.current!;
    const sizes = new ResizeObserver(() => setWidth(4 * Math.floor(element.clientWidth / 4)));
    const views = new IntersectionObserver((entries) => setVisible(entries.at(-1)!.isIntersecting), { rootMargin: "300px" });
    sizes.observe(element);
    views.observe(element);
    return () => {
      sizes.disconnect();
      views.disconnect();
    };
  }, []);
  return { visible: visible && width > 0, width };
}

// Parts that are shown on demand; they are not made before.
export function Unfold({ summary, children }: { summary: ComponentChildren; children: () => ComponentChildren }) {
  const [open, setOpen] = useState(false);
  const printing = usePrinting();
  return (
    <details open={open || printing} onToggle={(event) => !printing && setOpen(event.currentTarget.open)}>
      <summary>{summary}</summary>
      {(open || printing) && children()}
    </details>
  );
}
