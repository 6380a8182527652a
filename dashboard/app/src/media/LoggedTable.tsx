// A table that was logged, with the images and other media in its cells.

import { useEffect, useMemo, useState } from "preact/hooks";
import { getText } from "../api";
import { Dialog } from "../components/Dialog";
import { Loading } from "../components/States";
import { Table, tableHeight, type Column } from "../components/Table";
import { formatValue, plural } from "../format";
import { openArtifact, type ArtifactFiles, type Files } from "./files";
import { Item } from "./Item";
import { isMedia, parsed, type Labels, type Media } from "./values";

interface TypeInfo {
  wb_type: string;
  params?: { class_map?: Const; mask_class_maps?: Const; box_class_maps?: Const };
}
type Const = { params?: { val?: unknown } };

export interface TableFile {
  columns: (string | number)[];
  data: unknown[][];
  column_types?: { params?: { type_map?: Record<string, TypeInfo> } };
}

export interface OpenTable {
  table: TableFile;
  /** Where the media in its cells are. */
  files: ArtifactFiles | null;
  url: string;
}

// A table that grows is a file for each time that it was logged.
const MOST_PARTS = 500;

/** The table as its artifact has it, with media in its cells; as the run's file has it where that is gone. */
export async function openTable(value: Media, runFiles: Pick<Files, "url">): Promise<OpenTable> {
  if (value.artifact_path) {
    try {
      const { path, files } = await openArtifact(value.artifact_path);
      const parts = value._type === "incremental-table-file" ? partsOf(path, files.paths) : [path];
      const read = await Promise.all(parts.map((part) => readTable(files.url(part))));
      return { table: { ...read.at(-1)!, data: read.flatMap((part) => part.data) }, files, url: files.url(path) };
    } catch (error) {
      if (!value.path) throw error;
    }
  }
  const url = runFiles.url(value.path ?? "");
  return { table: await readTable(url), files: null, url };
}

async function readTable(url: string): Promise<TableFile> {
  const table = parsed<TableFile>(await getText(url));
  if (!Array.isArray(table?.columns) || !Array.isArray(table.data)) throw new Error("The file holds no table.");
  return table;
}

/** `3-1700000000000.NAME.table.json` is the fourth part; the first one is called None or 0. */
function partsOf(path: string, all: string[]): string[] {
  const ending = path.slice(path.indexOf("."));
  const order = (part: string) => part.split("-").map((word) => Number.parseInt(word) || 0) as [number, number];
  return all
    .filter((part) => /^(\d+|None)-\d+\./.test(part) && part.endsWith(ending))
    .sort((a, b) => order(a)[0] - order(b)[0] || order(a)[1] - order(b)[1])
    .slice(-MOST_PARTS);
}

export function LoggedTable({ value, name, files }: { value: Media; name: string; files: Files }) {
  const [open, setOpen] = useState<OpenTable | { error: string } | null>(null);
  useEffect(() => {
    let over = false;
    openTable(value, files).then(
      (table) => !over && setOpen(table),
      (error: Error) => !over && setOpen({ error: error.message }),
    );
    return () => {
      over = true;
    };
  }, [value.artifact_path, value.path]);
  if (!open) return <Loading />;
  if ("error" in open) return <p class="faint">{open.error}</p>;
  const hasMedia = open.files !== null && open.table.data.slice(0, 100).some((row) => row.some(isMedia));
  return (
    <>
      {hasMedia ? <WithMedia open={open} name={name} /> : <Plain table={open.table} />}
      <p class="faint">
        {plural(open.table.data.length, "row")}{" "}
        <a href={open.url} download>
          Download
        </a>
      </p>
    </>
  );
}

interface Row {
  cells: unknown[];
  number: number;
}

function Plain({ table }: { table: TableFile }) {
  const [sort, setSort] = useState<{ name: string; descending: boolean } | null>(null);
  const rows = useMemo(() => {
    const all = table.data.map((cells, number): Row => ({ cells, number }));
    if (!sort) return all;
    const place = Number(sort.name);
    const turn = sort.descending ? -1 : 1;
    return all.sort((left, right) => {
      const [a, b] = [left.cells[place], right.cells[place]];
      return turn * (typeof a === "number" && typeof b === "number" ? a - b : formatValue(a).localeCompare(formatValue(b)));
    });
  }, [table, sort]);
  const columns = useMemo(
    () =>
      table.columns.map((label, place): Column<Row> => {
        const isNumber = typeof table.data[0]?.[place] === "number";
        return {
          name: String(place),
          label: String(label),
          width: isNumber ? 110 : 180,
          number: isNumber,
          sortable: true,
          cell: (row) => (
            <span class="words" title={textOf(row.cells[place], table, place)}>
              {textOf(row.cells[place], table, place)}
            </span>
          ),
        };
      }),
    [table],
  );
  return (
    <div class="table-box" style={{ height: `${tableHeight(rows.length) + 2}px` }}>
      <Table label="Logged table" columns={columns} rows={rows} rowKey={(row) => row.number} sort={sort} onSort={setSort} />
    </div>
  );
}

const ROWS_AT_ONCE = 20;

/** Rows are as high as what is in them, so there are a few at a time. */
function WithMedia({ open, name }: { open: OpenTable; name: string }) {
  const { table, files } = open;
  const [shown, setShown] = useState(ROWS_AT_ONCE);
  const [large, setLarge] = useState<{ value: Media; column: string } | null>(null);
  const filesOf = (column: string): Files => ({ url: files!.url, labels: (kind, layer) => labelsOf(typeOf(table, column), kind, layer) });
  return (
    <div class="media-table" tabIndex={0} role="region" aria-label={`Table ${name}`}>
      <table class="values">
        <thead>
          <tr>
            {table.columns.map((column) => (
              <th scope="col">{column}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {table.data.slice(0, shown).map((cells) => (
            <tr>
              {cells.map((cell, place) => {
                const column = String(table.columns[place]);
                return (
                  <td class={typeof cell === "number" ? "number" : ""}>
                    {isMedia(cell) ? (
                      <>
                        <Item value={cell} name={column} files={filesOf(column)} isSmall enlarge={() => setLarge({ value: cell, column })} />
                        {!/image|audio|video/.test(cell._type) && (
                          <button class="link" onClick={() => setLarge({ value: cell, column })}>
                            Show
                          </button>
                        )}
                      </>
                    ) : (
                      textOf(cell, table, place)
                    )}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {shown < table.data.length && (
        <button class="link" onClick={() => setShown(shown + 5 * ROWS_AT_ONCE)}>
          More rows: {table.data.length - shown} are left
        </button>
      )}
      {large && (
        <Dialog title={large.value.caption ?? large.column} large close={() => setLarge(null)}>
          <div class="enlarged">
            <Item value={large.value} name={large.column} files={filesOf(large.column)} />
          </div>
        </Dialog>
      )}
    </div>
  );
}

function typeOf(table: TableFile, column: string): TypeInfo | undefined {
  return table.column_types?.params?.type_map?.[column];
}

function textOf(cell: unknown, table: TableFile, place: number): string {
  const isTime = typeof cell === "number" && typeOf(table, String(table.columns[place]))?.wb_type === "timestamp";
  return isTime ? new Date(cell).toISOString().replace("T", " ").replace(".000Z", "") : formatValue(cell);
}

/** The names of classes are a part of the column's type. */
function labelsOf(type: TypeInfo | undefined, kind: "masks" | "boxes", layer: string): Labels {
  const layers = (kind === "masks" ? type?.params?.mask_class_maps : type?.params?.box_class_maps)?.params?.val as Record<string, Labels> | undefined;
  return layers?.[layer] ?? (type?.params?.class_map?.params?.val as Labels | undefined) ?? {};
}
