// A table that is sorted by its columns and shows its first rows until it is asked for all.

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";

import { type Maybe, full, isNumber } from "../numbers/format";
import { usePrinting } from "./printing";

type Key = string | Maybe;

export interface Column<Row> {
  head: string;
  // What a pointer on the head reads.
  hint?: string;
  // What rows are sorted by; a number is also right-aligned and the tooltip of its cell.
  value: (row: Row) => Key;
  cell?: (row: Row) => ComponentChildren;
  numeric?: boolean;
  // A column of sentences, which keeps some width.
  wide?: boolean;
}

interface Order {
  column: number;
  descending: boolean;
}

interface Props<Row> {
  label: string;
  columns: Column<Row>[];
  rows: readonly Row[];
  // Rows that are shown before `Show all`.
  limit?: number;
}

export function DataTable<Row>({ label, columns, rows, limit = 50 }: Props<Row>) {
  const [order, setOrder] = useState<Order | null>(null);
  const [all, setAll] = useState(false);
  const printing = usePrinting();
  const sorted = useMemo(() => sortRows(rows, columns, order), [rows, columns, order]);
  const shown = all || printing ? sorted : sorted.slice(0, limit);
  const sortBy = (column: number) => setOrder((old) => nextOrder(old, column, columns[column]!.numeric === true));
  return (
    <div class="table">
      <div class="scroller" role="region" aria-label={label} tabIndex={0}>
        <table>
          <Heads columns={columns} order={order} sortBy={sortBy} />
          <tbody>{shown.map((row, i) => <Cells key={i} row={row} columns={columns} />)}</tbody>
        </table>
      </div>
      {rows.length === 0 && <p class="note">No rows.</p>}
      {shown.length < sorted.length && <button type="button" class="all" onClick={() => setAll(true)}>Show all {sorted.length} rows</button>}
    </div>
  );
}

interface HeadsProps<Row> {
  columns: Column<Row>[];
  order: Order | null;
  sortBy: (column: number) => void;
}

function Heads<Row>({ columns, order, sortBy }: HeadsProps<Row>) {
  return (
    <thead>
      <tr>
        {columns.map((column, i) => (
          <th key={i} scope="col" class={classOf(column)} aria-sort={ariaSort(order, i)}>
            <button type="button" title={column.hint ?? "Sort"} onClick={() => sortBy(i)}>
              {column.head}
              <span class="arrow" aria-hidden="true">{arrow(order, i)}</span>
            </button>
          </th>
        ))}
      </tr>
    </thead>
  );
}

function Cells<Row>({ row, columns }: { row: Row; columns: Column<Row>[] }) {
  return (
    <tr>
      {columns.map((column, i) => {
        const value = column.value(row);
        const title = typeof value === "number" ? full(value) : undefined;
        return <td key={i} class={classOf(column)} title={title}>{column.cell ? column.cell(row) : value}</td>;
      })}
    </tr>
  );
}

function classOf<Row>(column: Column<Row>): string | undefined {
  if (column.numeric) return "number";
  return column.wide ? "wide" : undefined;
}

function ariaSort(order: Order | null, column: number): "none" | "ascending" | "descending" {
  if (order?.column !== column) return "none";
  return order.descending ? "descending" : "ascending";
}

function arrow(order: Order | null, column: number): string {
  if (order?.column !== column) return "";
  return order.descending ? "▾" : "▴";
}

// Numbers begin with the largest, text with the first; a third click restores the given order.
function nextOrder(old: Order | null, column: number, numeric: boolean): Order | null {
  if (old?.column !== column) return { column, descending: numeric };
  return old.descending === numeric ? { column, descending: !numeric } : null;
}

function sortRows<Row>(rows: readonly Row[], columns: Column<Row>[], order: Order | null): readonly Row[] {
  const column = order && columns[order.column];
  if (!column) return rows;
  const sign = order.descending ? -1 : 1;
  const keyed = rows.map((row) => ({ row, key: column.value(row) }));
  return keyed.sort((a, b) => compareKeys(a.key, b.key, sign)).map(({ row }) => row);
}

// Rows without a value come last in both directions.
function compareKeys(a: Key, b: Key, sign: number): number {
  const [hasA, hasB] = [isPresent(a), isPresent(b)];
  if (!hasA || !hasB) return Number(hasB) - Number(hasA);
  if (typeof a === "number" && typeof b === "number") return sign * (a - b);
  return sign * (String(a) < String(b) ? -1 : Number(String(a) > String(b)));
}

function isPresent(key: Key): boolean {
  return typeof key === "string" || isNumber(key);
}
