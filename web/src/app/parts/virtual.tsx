// A list of rows of one height, of which only those in view are made.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

interface Props<Row> {
  label: string;
  rows: readonly Row[];
  // Height of a row, and the most that the list takes, in pixels.
  row: number;
  height: number;
  render: (row: Row, index: number) => ComponentChildren;
}

// Rows above and below the view that are made, too.
const MARGIN = 6;

export function VirtualList<Row>({ label, rows, row, height, render }: Props<Row>) {
  const host = useRef<HTMLDivElement>(null);
  const [top, setTop] = useState(0);
  useEffect(() => {
    host.current!.scrollTop = 0;
    setTop(0);
  }, [rows]);
  const first = Math.max(0, Math.floor(top / row) - MARGIN);
  const last = Math.min(rows.length, Math.ceil((top + height) / row) + MARGIN);
  const shown = rows.slice(first, last);
  return (
    <div class="virtual" ref={host} role="group" tabIndex={0} aria-label={label} style={{ maxHeight: `${height}px` }} onScroll={(event) => setTop(event.currentTarget.scrollTop)}>
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
