// A list of rows of one height, of which only those in view are made.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface Props<Row> {
  label: string;
  rows: readonly Row[];
  // Height of a row in pixels.
  row: number;
  // How many rows are seen at most; as many as there is room for if it is not given.
  most?: number;
  render: (row: Row, index: number) => ComponentChildren;
}

// Rows above and below the view that are made, too.
const MARGIN = 6;

export function VirtualList<Row>({ label, rows, row, most, render }: Props<Row>) {
  const host = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(row * (most ?? 20));
  useEffect(() => {
    host.current!.scrollTop = 0;
    setTop(0);
  }, [rows.length]);
  useEffect(() => {
    const sizes = new ResizeObserver(() => setHeight(host.current?.clientHeight ?? 0));
    sizes.observe(host.current!);
    return () => sizes.disconnect();
  }, []);
  const first = Math.max(0, Math.floor(top / row) - MARGIN);
  const shown = rows.slice(first, Math.ceil((top + height) / row) + MARGIN);
  return (
    <div class="virtual" ref={host} role="region" tabIndex={0} aria-label={label} style={most === undefined ? undefined : { maxHeight: `${most * row + 2}px` }} onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
      <ul style={{ height: `${rows.length * row}px` }}>
        {shown.map((one, i) => (
          <li key={first + i} style={{ top: `${(first + i) * row}px`, height: `${row}px` }} aria-setsize={rows.length} aria-posinset={first + i + 1}>
            {render(one, first + i)}
          </li>
        ))}
      </ul>
    </div>
  );
}
