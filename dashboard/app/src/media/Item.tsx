// One logged thing, shown as what it is.

import { useMemo } from "preact/hooks";
import { ask, getText } from "../api";
import { useFetch } from "../fetch";
import { Loading } from "../components/States";
import { formatValue } from "../format";
import type { Files } from "./files";
import { Histogram } from "./HistogramView";
import { LoggedTable } from "./LoggedTable";
import { Picture } from "./Picture";
import { kindOf, parsed, type Media } from "./values";
import { Viewer } from "./Viewer";

interface Props {
  value: Media;
  /** The name that it was logged under. */
  name: string;
  files: Files;
  /** In a cell of a table. */
  isSmall?: boolean;
  enlarge?: () => void;
}

export function Item(props: Props) {
  const { value, name, files, isSmall, enlarge } = props;
  const url = value.path ? files.url(value.path) : "";
  const title = value.caption ?? name;
  switch (kindOf(value)) {
    case "image":
      return <Picture value={value} files={files} alt={title} isSmall={isSmall} onClick={enlarge} />;
    case "histogram":
      return value.values && value.bins ? <Histogram values={value.values} bins={value.bins} /> : <Other {...props} />;
    case "table":
      return isSmall ? <Other {...props} /> : <LoggedTable value={value} name={name} files={files} />;
  }
  if (!url) return <Other {...props} />;
  if (isSmall && kindOf(value) !== "audio" && kindOf(value) !== "video") return <Other {...props} />;
  return (
    <figure class="item">
      <Body {...props} url={url} title={title} />
      {value.caption && <figcaption>{value.caption}</figcaption>}
    </figure>
  );
}

function Body({ value, url, title, enlarge, ...rest }: Props & { url: string; title: string }) {
  switch (kindOf(value)) {
    case "audio":
      return <audio controls src={url} aria-label={title} />;
    case "video":
      // wandb logs GIFs as videos; browsers show them as images alone.
      return /\.gif$/i.test(value.path!) ? (
        <Picture value={{ ...value, caption: undefined }} alt={title} onClick={enlarge} files={rest.files} isSmall={rest.isSmall} />
      ) : (
        <video controls loop muted src={url} aria-label={title} />
      );
    case "html":
      return <Sandboxed url={url} title={title} />;
    case "plotly":
      return <FromText viewer="plotly" url={url} title={title} read={(text) => parsed<object>(text)} />;
    case "molecule":
      return <FromText viewer="molecule" url={url} title={title} read={(text) => ({ text, format: value.path!.split(".").at(-1)!.toLowerCase() })} />;
    case "solid":
      return <Solid url={url} path={value.path!} title={title} />;
    default:
      return <Other value={value} {...rest} />;
  }
}

function FromText({ viewer, url, title, read }: { viewer: "plotly" | "molecule"; url: string; title: string; read: (text: string) => object | null }) {
  const { data, error } = useFetch(url, getText);
  const content = useMemo(() => (data === null ? null : read(data)), [data]);
  if (error) return <p class="faint">{error.message}</p>;
  if (data === null) return <Loading />;
  return content ? <Viewer viewer={viewer} content={content} title={title} /> : <p class="faint">The file cannot be read.</p>;
}

function Solid({ url, path, title }: { url: string; path: string; title: string }) {
  const { data, error } = useFetch(url, async (address) => (await ask("GET", address, undefined)).arrayBuffer());
  const format = /\.(pts\.json|[^.]+)$/.exec(path.toLowerCase())?.[1] ?? "";
  const content = useMemo(() => data && { bytes: data, format }, [data]);
  if (error) return <p class="faint">{error.message}</p>;
  return content ? <Viewer viewer="solid" content={content} title={title} /> : <Loading />;
}

// The client writes a link to a style sheet of W&B's into each page. It would be refused; it is not even asked for.
const STYLE_OF_WANDB = /<link[^>]*app\.wandb\.ai\/normalize\.css[^>]*>/g;

/** A page that a program made: shown, but nothing in it runs. */
function Sandboxed({ url, title }: { url: string; title: string }) {
  const { data } = useFetch(url, getText);
  return data === null ? <Loading /> : <iframe class="sandboxed" sandbox="" srcdoc={data.replace(STYLE_OF_WANDB, "")} title={title} />;
}

function Other({ value, files }: Pick<Props, "value" | "files">) {
  return value.path ? (
    <a href={files.url(value.path)} download>
      {value.path.split("/").at(-1)}
    </a>
  ) : (
    <code>{formatValue(value).slice(0, 300)}</code>
  );
}
