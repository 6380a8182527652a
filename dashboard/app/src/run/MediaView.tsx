// Images, sounds, films, tables and histograms that a run logged, with a slider over the steps.

import { useEffect, useMemo, useState } from "preact/hooks";
import { getText } from "../api";
import { useAsked } from "../ask";
import { Empty, Loading } from "../components/States";
import { Table, tableHeight, type Column } from "../components/Table";
import { formatNumber, formatValue, plural } from "../format";
import { isMedia, type Media, type RunDetail } from "./detail";
import { Histogram, HistogramsOverSteps } from "./HistogramView";

export interface Logged {
  step: number;
  value: Media;
}

/** Every logged value of a metric that is no number, in the order of its logging. */
async function readLogged(path: string): Promise<Logged[]> {
  const text = await getText(path);
  const name = new URLSearchParams(path.split("?")[1]).get("metric")!;
  return text
    .split("\n")
    .filter(Boolean)
    .flatMap((line) => {
      const row = parsed(line);
      const value = row?.[name];
      return isMedia(value) ? [{ step: stepOf(value) ?? (row!._row as number), value }] : [];
    });
}

/** Rows come in Python's dialect. */
function parsed(line: string): Record<string, unknown> | null {
  try {
    return JSON.parse(line.replace(/(?<=[:,[]\s*)(NaN|-?Infinity)(?=\s*[,\]}])/g, "null")) as Record<string, unknown>;
  } catch {
    return null;
  }
}

/** The client writes the step into the names of its files. */
function stepOf(value: Media): number | null {
  const file = value.path ?? value.filenames?.[0] ?? "";
  const found = /_(\d+)_[0-9a-f]{6,}\.[\w.]+$/.exec(file);
  return found ? Number(found[1]) : null;
}

/** Pictures first; tables, which take the whole width, last. */
function rank(value: Media): number {
  return /image|video|audio/.test(value._type) ? 0 : /table/.test(value._type) ? 2 : 1;
}

export function mediaNames(run: RunDetail): string[] {
  return Object.entries(run.summary)
    .filter(([, value]) => isMedia(value))
    .sort(([one, a], [other, b]) => rank(a as Media) - rank(b as Media) || one.localeCompare(other))
    .map(([name]) => name);
}

export function MediaView({ run, fileUrl, turn }: { run: RunDetail; fileUrl: (name: string) => string; turn: number }) {
  const names = mediaNames(run);
  if (!names.length) {
    return (
      <Empty what="No media" command="wandb.log({'samples': wandb.Image(array)})">
        Images, sounds, films, tables and histograms that a run logs are shown here.
      </Empty>
    );
  }
  return (
    <div class="media">
      {names.map((name) => (
        <MediaPanel key={name} name={name} run={run} fileUrl={fileUrl} turn={turn} />
      ))}
    </div>
  );
}

function MediaPanel({ name, run, fileUrl, turn }: { name: string; run: RunDetail; fileUrl: (name: string) => string; turn: number }) {
  const asked = useAsked(`api/runs/${run.key}/rows?${new URLSearchParams({ metric: name })}`, readLogged);
  useEffect(() => {
    if (turn) asked.again();
  }, [turn]);
  const logged = asked.data ?? [];
  const [chosen, setChosen] = useState<number | null>(null);
  const place = chosen ?? logged.length - 1;
  const shown = logged[place];
  const isWide = shown && /table/.test(shown.value._type);
  return (
    <section class={`card block media-panel${isWide ? " wide" : ""}`} aria-label={name}>
      <h2>
        {name} <span class="faint">{shown ? `step ${shown.step.toLocaleString("en")}` : ""}</span>
      </h2>
      {!asked.data && <Loading />}
      {logged.length > 1 && (
        <input type="range" aria-label={`Step of ${name}`} min={0} max={logged.length - 1} value={place} onInput={(event) => setChosen(Number(event.currentTarget.value))} />
      )}
      {shown && <Shown value={shown.value} name={name} fileUrl={fileUrl} />}
      {shown?.value._type === "histogram" && logged.length > 1 && <HistogramsOverSteps name={name} logged={logged} place={place} choose={setChosen} />}
    </section>
  );
}

function Shown({ value, name, fileUrl }: { value: Media; name: string; fileUrl: (name: string) => string }) {
  const files = value.filenames ?? (value.path ? [value.path] : []);
  const captions = Array.isArray(value.captions) ? value.captions : value.caption ? [value.caption] : [];
  if (/image/.test(value._type)) {
    return (
      <div class="images">
        {files.map((file, place) => (
          <figure key={file}>
            <img src={fileUrl(file)} alt={captions[place] ?? `${name}, image ${place + 1}`} loading="lazy" />
            {captions[place] && <figcaption>{captions[place]}</figcaption>}
          </figure>
        ))}
      </div>
    );
  }
  if (/audio/.test(value._type)) return <>{files.map((file) => <audio controls src={fileUrl(file)} />)}</>;
  if (/video/.test(value._type)) return <>{files.map((file) => <video controls src={fileUrl(file)} />)}</>;
  if (value._type === "histogram" && value.values && value.bins) return <Histogram values={value.values} bins={value.bins} />;
  if (/table/.test(value._type) && value.path) return <LoggedTable url={fileUrl(value.path)} />;
  if (/html/.test(value._type) && value.path) return <Sandboxed url={fileUrl(value.path)} />;
  return (
    <p>
      {value._type}:{" "}
      {files.map((file) => (
        <a href={fileUrl(file)} download>
          {file.split("/").at(-1)}
        </a>
      ))}
      {!files.length && <code>{formatValue(value).slice(0, 300)}</code>}
    </p>
  );
}

interface TableFile {
  columns: (string | number)[];
  data: unknown[][];
}

export function LoggedTable({ url }: { url: string }) {
  const { data, error } = useAsked(url, async (path) => parsed((await getText(path)).replaceAll("\n", " ")) as unknown as TableFile | null);
  const [sort, setSort] = useState<{ name: string; descending: boolean } | null>(null);
  const rows = useMemo(() => {
    const all = (data?.data ?? []).map((cells, number) => ({ cells, number }));
    if (!sort) return all;
    const place = Number(sort.name);
    const turn = sort.descending ? -1 : 1;
    return all.sort((one, other) => {
      const [a, b] = [one.cells[place], other.cells[place]];
      return turn * (typeof a === "number" && typeof b === "number" ? a - b : formatValue(a).localeCompare(formatValue(b)));
    });
  }, [data, sort]);
  const columns = useMemo(
    () =>
      (data?.columns ?? []).map((label, place): Column<{ cells: unknown[]; number: number }> => {
        const isNumber = typeof data!.data[0]?.[place] === "number";
        return {
          name: String(place),
          label: String(label),
          width: isNumber ? 110 : 180,
          number: isNumber,
          sortable: true,
          cell: (row) => (
            <span class="words" title={formatValue(row.cells[place])}>
              {isMedia(row.cells[place]) ? (row.cells[place] as Media)._type : formatValue(row.cells[place])}
            </span>
          ),
        };
      }),
    [data],
  );
  if (error) return <p class="faint">{error.message}</p>;
  if (!data) return <Loading />;
  return (
    <>
      <div class="table-box" style={{ height: `${tableHeight(rows.length) + 2}px` }}>
        <Table label="Logged table" columns={columns} rows={rows} rowKey={(row) => row.number} sort={sort} onSort={setSort} />
      </div>
      <p class="faint">
        {plural(rows.length, "row")}{" "}
        <a href={url} download>
          Download
        </a>
      </p>
    </>
  );
}

/** A page that a program made: shown, but nothing in it runs. */
function Sandboxed({ url }: { url: string }) {
  const { data } = useAsked(url, getText);
  return data === null ? <Loading /> : <iframe class="sandboxed" sandbox="" srcdoc={data} title="HTML that was logged" />;
}
