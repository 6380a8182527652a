// A table of any length: only what is seen is in the document. Rows have one height, so where each
// one stands is arithmetic.

import type { ComponentChildren, RefObject } from "preact";
import { memo } from "preact/compat";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Flight, type Brief } from "./flight";
import { Icon } from "./Icon";

export interface Column<Row> {
  name: string;
  label: string;
  width: number;
  /** Right-aligned, as numbers are. */
  number?: boolean;
  /** Stays in sight when the table is moved sideways; the first column only. */
  held?: boolean;
  sortable?: boolean;
  /** The first click sorts upwards: the smallest number is the best. */
  isLowBest?: boolean;
  title?: string;
  cell: (row: Row) => ComponentChildren;
  /** What stands there while rows fly past, if it is the held column or the sorted one. */
  brief?: (row: Row) => string;
  head?: () => ComponentChildren;
}

export interface Sort {
  name: string;
  descending: boolean;
}

interface Props<Row> {
  label: string;
  columns: Column<Row>[];
  rows: Row[];
  rowKey: (row: Row) => string | number;
  sort?: Sort | null;
  onSort?: (sort: Sort) => void;
  onOpen?: (row: Row) => void;
  /** Space on the row under the cursor. */
  onToggle?: (row: Row) => void;
  /** Any other key on the row under the cursor; whether it meant something. */
  onKey?: (row: Row, key: string) => boolean;
  rowClass?: (row: Row) => string;
  onHover?: (row: Row | null) => void;
  onWidth?: (name: string, width: number) => void;
  empty?: ComponentChildren;
}

const ROW = 28;
const HEAD = 30;
// Drawn beyond the edges, so that a quick turn of the wheel meets no white.
const BEYOND = 12;
// Who goes further than this in a frame flies, until nothing has moved for a while.
const FLYING = 1.4 * ROW;
const SETTLED = 120;

/** As high as so many rows need, with room for a bar to move sideways. */
export function tableHeight(rows: number): number {
  return HEAD + rows * ROW + 16;
}

export function Table<Row>(props: Props<Row>) {
  const { rows, columns, rowKey } = props;
  const box = useRef<HTMLDivElement>(null);
  const [span, setSpan] = useState({ first: 0, last: 60 });
  const [at, setAt] = useState<string | number | null>(null);

  const look = useCallback(() => {
    const element = box.current;
    if (!element) return;
    // A cell that sticks costs a layer of its own: only while the table is moved sideways.
    element.classList.toggle("sideways", element.scrollLeft > 0);
    const next = spanOf(element);
    setSpan((old) => (old.first === next.first && old.last === next.last ? old : next));
  }, []);
  const { layer, whole, scroll } = useFlight(box, look, span, props);

  useLayoutEffect(() => {
    look();
    const watch = new ResizeObserver(look);
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, [look, rows.length]);

  const total = useMemo(() => columns.reduce((sum, column) => sum + column.width, 0), [columns]);
  const shown = rows.slice(span.first, span.last);

  const moveTo = (place: number) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, place))];
    if (!row) return;
    setAt(rowKey(row));
    const top = rows.indexOf(row) * ROW;
    const element = box.current!;
    if (top < element.scrollTop) element.scrollTop = top;
    else if (top + ROW + HEAD > element.scrollTop + element.clientHeight) element.scrollTop = top + ROW + HEAD - element.clientHeight;
  };

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== box.current) return;
    const place = rows.findIndex((row) => rowKey(row) === at);
    const page = Math.floor(box.current!.clientHeight / ROW) - 2;
    const steps: Record<string, number> = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -rows.length, End: rows.length };
    const row = rows[place];
    if (event.key in steps) moveTo(place < 0 ? 0 : place + steps[event.key]!);
    else if (event.key === "Enter" && row) props.onOpen?.(row);
    else if (event.key === " " && row) props.onToggle?.(row);
    else if (!row || !props.onKey?.(row, event.key)) return;
    event.preventDefault();
    event.stopPropagation();
  };

  const { onHover } = props;
  const hover = useCallback(
    (event: PointerEvent) => {
      const element = (event.target as Element).closest?.("[data-place]") as HTMLElement | null;
      onHover?.(element ? (rows[Number(element.dataset.place)] ?? null) : null);
    },
    [onHover, rows],
  );

  return (
    <div
      class="table"
      ref={box}
      role="grid"
      aria-label={props.label}
      aria-rowcount={rows.length + 1}
      tabIndex={0}
      onScroll={scroll}
      onKeyDown={onKeyDown}
      onPointerOver={onHover && hover}
      onPointerLeave={onHover && (() => onHover(null))}
    >
      <div class="table-inner" style={{ height: `${HEAD + rows.length * ROW}px`, width: `${total}px` }}>
        <div class="table-head" role="row" aria-rowindex={1}>
          {columns.map((column) => (
            <Head key={column.name} column={column} sort={props.sort ?? null} onSort={props.onSort} onWidth={props.onWidth} />
          ))}
        </div>
        <div class="table-rows" ref={layer} aria-hidden="true" />
        <div class="table-rows" ref={whole}>
          {shown.map((row, place) => (
            <TableRow
              key={rowKey(row)}
              row={row}
              place={span.first + place}
              columns={columns as Column<unknown>[]}
              look={`${props.rowClass?.(row) ?? ""}${rowKey(row) === at ? " at" : ""}`}
            />
          ))}
        </div>
      </div>
      {rows.length === 0 && props.empty}
    </div>
  );
}

interface Span {
  first: number;
  last: number;
}

/** The rows that are to be drawn. */
function spanOf(element: HTMLElement): Span {
  const first = Math.max(0, Math.floor(element.scrollTop / ROW) - BEYOND);
  const last = Math.ceil((element.scrollTop + element.clientHeight) / ROW) + BEYOND;
  // In steps of some rows: most frames of a scroll change nothing in the document.
  const step = BEYOND / 2;
  return { first: Math.floor(first / step) * step, last: Math.ceil(last / step) * step };
}

/** Scrolling: whole rows, or those of a flight, which the whole ones follow when it is over. */
function useFlight<Row>(box: RefObject<HTMLDivElement | null>, look: () => void, span: Span, { rows, columns, sort }: Props<Row>) {
  const layer = useRef<HTMLDivElement>(null);
  const whole = useRef<HTMLDivElement>(null);
  const flight = useRef<Flight<Row> | null>(null);
  const from = useRef(0);
  const timer = useRef(0);
  const frame = useRef(0);
  const briefs = useMemo(() => briefsOf(columns, sort?.name), [columns, sort?.name]);
  const stay = () => {
    clearTimeout(timer.current);
    cancelAnimationFrame(frame.current);
  };
  const end = () => {
    stay();
    timer.current = 0;
    look();
  };
  const scroll = () => {
    const element = box.current!;
    const moved = Math.abs(element.scrollTop - from.current);
    from.current = element.scrollTop;
    if (!briefs.length || moved < FLYING) return end();
    stay();
    // On a slow machine a frame may take longer than that: the next one tells of its scrolling first.
    timer.current = window.setTimeout(() => {
      frame.current = requestAnimationFrame(end);
    }, SETTLED);
    flight.current ??= new Flight(layer.current!, ROW);
    const { first, last } = spanOf(element);
    flight.current.show(rows, first, last, span, briefs);
    // Whole rows cost time in every frame, wherever they are.
    whole.current!.hidden = last <= span.first || first >= span.last;
  };
  // The whole rows are there.
  useLayoutEffect(() => {
    if (timer.current) return;
    flight.current?.clear();
    whole.current!.hidden = false;
  }, [span, rows, columns]);
  useEffect(() => stay, []);
  return { layer, whole, scroll };
}

function briefsOf<Row>(columns: Column<Row>[], sorted: string | undefined): Brief<Row>[] {
  let left = 0;
  const briefs: Brief<Row>[] = [];
  for (const { brief, held, name, number, width } of columns) {
    if (brief && (held || name === sorted)) briefs.push({ left, width, number, text: brief });
    left += width;
  }
  return briefs;
}

interface RowProps {
  row: unknown;
  place: number;
  columns: Column<unknown>[];
  look: string;
}

const TableRow = memo(function TableRow({ row, place, columns, look }: RowProps) {
  return (
    <div class={`table-row ${look}`} role="row" aria-rowindex={place + 2} data-place={place} style={{ top: place * ROW }}>
      {columns.map((column) => (
        <div
          key={column.name}
          role="gridcell"
          class={`cell${column.number ? " number" : ""}${column.held ? " held" : ""}`}
          style={{ width: `${column.width}px` }}
        >
          {column.cell(row)}
        </div>
      ))}
    </div>
  );
});

interface HeadProps<Row> {
  column: Column<Row>;
  sort: Sort | null;
  onSort?: (sort: Sort) => void;
  onWidth?: (name: string, width: number) => void;
}

function Head<Row>({ column, sort, onSort, onWidth }: HeadProps<Row>) {
  const sorted = sort?.name === column.name ? (sort.descending ? "descending" : "ascending") : undefined;
  const drag = (event: PointerEvent) => {
    event.preventDefault();
    const from = event.clientX;
    const grip = event.currentTarget as HTMLElement;
    grip.setPointerCapture(event.pointerId);
    grip.onpointermove = (move) => onWidth?.(column.name, Math.max(48, column.width + move.clientX - from));
    grip.onpointerup = () => {
      grip.onpointermove = null;
    };
  };
  return (
    <div
      role="columnheader"
      aria-sort={sorted ?? (column.sortable ? "none" : undefined)}
      class={`cell${column.number ? " number" : ""}${column.held ? " held" : ""}`}
      style={{ width: `${column.width}px` }}
      title={column.title ?? column.label}
    >
      {column.head?.()}
      {column.sortable && onSort ? (
        <button
          class="sortable"
          onClick={() => onSort({ name: column.name, descending: sorted ? sorted === "ascending" : !!column.number && !column.isLowBest })}
        >
          <span class="words">{column.label}</span>
          {sorted && (
            <span class={sorted === "ascending" ? "turned" : ""}>
              <Icon name="down" size={12} />
            </span>
          )}
        </button>
      ) : (
        <span class="words">{column.label}</span>
      )}
      {onWidth && <span class="resize" onPointerDown={drag} aria-hidden="true" />}
    </div>
  );
}

/** Whoever changes a column's contents needs a new list of columns: rows are remembered. */
export function useColumns<Row>(make: () => Column<Row>[], inputs: readonly unknown[]): Column<Row>[] {
  return useMemo(make, inputs as unknown[]);
}

export function useFocusOnArrows(): void {
  useEffect(() => {
    const key = (event: KeyboardEvent) => {
      if (event.key !== "ArrowDown" || document.activeElement !== document.body) return;
      document.querySelector<HTMLElement>(".table")?.focus();
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
}
