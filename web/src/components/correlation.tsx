// The matrix of correlations: cells with numbers when they are few, a raster when they are many.

import { useContext, useLayoutEffect, useRef, useState } from "preact/hooks";

import type { Correlation } from "../documents";
import { escapeText, shortText } from "../numbers/escape";
import { fixed } from "../numbers/format";
import { DrawingContext } from "./chart";

// Up to this many parameters have cells with numbers.
const MAX_CELLS = 26;

// Returns the correlation of two parameters; `null` where it is not defined.
export function correlationOf({ millionths }: Correlation, i: number, j: number): number | null {
  if (i === j) return 1;
  const value = i > j ? millionths[i]?.[j] : millionths[j]?.[i];
  return value === null || value === undefined ? null : value / 1e6;
}

export interface Pair {
  first: number;
  second: number;
  value: number;
}

// Returns the pairs among `chosen` parameters whose correlation is at least `threshold` in size,
// the largest first, and `most` of them at most: of 600 parameters there are 180,000.
export function strongPairs(correlation: Correlation, chosen: readonly number[], threshold: number, most = Infinity): Pair[] {
  const least = Math.max(threshold, cutOf(pairCounts(correlation, chosen), most));
  const pairs: Pair[] = [];
  chosen.forEach((first, i) => {
    for (let j = 0; j < i; j += 1) {
      const value = correlationOf(correlation, first, chosen[j]!);
      if (value !== null && Math.abs(value) >= least) pairs.push({ first: chosen[j]!, second: first, value });
    }
  });
  return pairs.sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, most);
}

// Returns how many pairs among `chosen` reach `threshold`.
export function countPairs(correlation: Correlation, chosen: readonly number[], threshold: number): number {
  let n = 0;
  chosen.forEach((first, i) => {
    for (let j = 0; j < i; j += 1) {
      const value = correlationOf(correlation, first, chosen[j]!);
      if (value !== null && Math.abs(value) >= threshold) n += 1;
    }
  });
  return n;
}

// Pairs by their size in thousandths.
function pairCounts(correlation: Correlation, chosen: readonly number[]): Uint32Array {
  const counts = new Uint32Array(1001);
  chosen.forEach((first, i) => {
    for (let j = 0; j < i; j += 1) {
      const value = correlationOf(correlation, first, chosen[j]!);
      if (value !== null) counts[Math.min(1000, Math.floor(1000 * Math.abs(value)))]! += 1;
    }
  });
  return counts;
}

// The largest number of thousandths that at least `most` pairs reach; 0 if there are fewer.
function cutOf(counts: Uint32Array, most: number): number {
  let n = 0;
  for (let thousandths = 1000; thousandths > 0; thousandths -= 1) {
    n += counts[thousandths]!;
    if (n >= most) return thousandths / 1000;
  }
  return 0;
}

// Returns the parameters of `among` with a correlation of at least `threshold` with another of
// them, and those of `kept` in any case.
export function choose(correlation: Correlation, among: readonly number[], kept: ReadonlySet<number>, threshold: number): number[] {
  const candidates = [...new Set([...kept, ...among])].sort((a, b) => a - b);
  const least = Math.round(1e6 * threshold);
  const strong = new Set<number>(kept);
  candidates.forEach((i, position) => {
    const row = correlation.millionths[i] ?? [];
    for (const j of candidates.slice(0, position)) {
      const value = row[j];
      if (value === null || value === undefined || Math.abs(value) < least) continue;
      strong.add(i);
      strong.add(j);
    }
  });
  return candidates.filter((i) => strong.has(i));
}

interface MatrixProps {
  correlation: Correlation;
  chosen: readonly number[];
}

// Shows the correlations of the `chosen` parameters.
export function CorrelationMatrix({ correlation, chosen }: MatrixProps) {
  const [at, setAt] = useState<[number, number] | null>(null);
  const drawing = useRef<HTMLDivElement>(null);
  const { Tools } = useContext(DrawingContext);
  const props = { correlation, chosen, point: setAt };
  return (
    <div class="matrix" onPointerLeave={() => setAt(null)}>
      {Tools && <Tools host={drawing} label={description(chosen.length)} />}
      <div ref={drawing}>
      {chosen.length <= MAX_CELLS ? <div class="scroller" role="region" aria-label="Matrix of correlations" tabIndex={0}><Cells {...props} /></div> : <Raster {...props} />}
      </div>
      <p class="readout" aria-hidden="true">{at ? pairText(correlation, chosen[at[0]]!, chosen[at[1]]!) : "A pointer on a cell reads both parameters."}</p>
    </div>
  );
}

function pairText(correlation: Correlation, i: number, j: number): string {
  const value = correlationOf(correlation, i, j);
  const [first, second] = [i, j].map((index) => shortText(correlation.par_names[index] ?? "", 80));
  return `${first} and ${second}: ${value === null ? "not defined" : fixed(value, 3)}`;
}

interface DrawingProps extends MatrixProps {
  point: (cell: [number, number] | null) => void;
}

function description(n: number): string {
  return `Correlations of ${n} parameters; the table below names the largest`;
}

function Cells({ correlation, chosen, point }: DrawingProps) {
  const [n, side, left, top] = [chosen.length, 34, 190, 96];
  const names = chosen.map((i) => shortText(correlation.par_names[i] ?? "", 28));
  return (
    <svg class="cells" role="img" aria-label={description(n)} viewBox={`0 0 ${left + n * side + 92} ${top + n * side + 4}`} style={{ width: `${left + n * side + 92}px` }}>
      {names.map((name, i) => (
        <g key={i}>
          <text x={left - 6} y={top + (i + 0.5) * side} dy="0.35em" text-anchor="end">{name}</text>
          <text transform={`translate(${left + (i + 0.55) * side} ${top - 6}) rotate(-40)`}>{shortText(name, 18)}</text>
        </g>
      ))}
      {chosen.flatMap((first, i) => chosen.map((second, j) => (
        <g key={i * n + j} transform={`translate(${left + j * side} ${top + i * side})`} onPointerEnter={() => point([i, j])}>
          <Cell value={correlationOf(correlation, first, second)} side={side} />
        </g>
      )))}
    </svg>
  );
}

function Cell({ value, side }: { value: number | null; side: number }) {
  const size = Math.abs(value ?? 0);
  const text = value === null ? "–" : size === 1 ? fixed(value, 0) : fixed(value, 2).replace("0.", ".");
  return (
    <>
      <rect class={(value ?? 0) < 0 ? "negative" : "positive"} width={side - 1} height={side - 1} fill-opacity={size} />
      <text class={size > 0.5 ? "strong" : undefined} x={side / 2} y={side / 2} dy="0.35em" text-anchor="middle">{text}</text>
    </>
  );
}

// One pixel for each pair, red or blue, whose opacity is the root of its size: it suits light and
// dark pages, and small correlations are seen.
function Raster({ correlation, chosen, point }: DrawingProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const n = chosen.length;
  useLayoutEffect(() => paint(canvas.current!, correlation, chosen), [correlation, chosen]);
  const cellAt = (event: PointerEvent): [number, number] => {
    const box = canvas.current!.getBoundingClientRect();
    const index = (offset: number, size: number) => Math.min(n - 1, Math.max(0, Math.floor((offset / size) * n)));
    return [index(event.clientY - box.top, box.height), index(event.clientX - box.left, box.width)];
  };
  return (
    <>
      <canvas ref={canvas} role="img" aria-label={description(n)} onPointerMove={(event) => point(cellAt(event))} />
      <p class="note">{n} parameters, from the first (top left) {escapeText(correlation.par_names[chosen[0]!] ?? "")} on, in the order of the model. Opacity: the root of the size.</p>
    </>
  );
}

// Red, green and blue.
const NEGATIVE = [42, 120, 192];
const POSITIVE = [200, 56, 46];

function paint(canvas: HTMLCanvasElement, correlation: Correlation, chosen: readonly number[]): void {
  const n = chosen.length;
  const pixels = new ImageData(n, n);
  chosen.forEach((first, i) => chosen.forEach((second, j) => {
    const value = correlationOf(correlation, first, second) ?? 0;
    const at = 4 * (i * n + j);
    const colour = value < 0 ? NEGATIVE : POSITIVE;
    for (let part = 0; part < 3; part += 1) pixels.data[at + part] = colour[part]!;
    pixels.data[at + 3] = Math.round(255 * Math.sqrt(Math.abs(value)));
  }));
  canvas.width = n;
  canvas.height = n;
  canvas.getContext("2d")!.putImageData(pixels, 0, 0);
}
