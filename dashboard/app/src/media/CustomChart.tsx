// A chart of `wandb.plot`, drawn from the table that was logged with it.

import { useEffect, useState } from "preact/hooks";
import { Loading } from "../components/States";
import type { Files } from "./files";
import { LoggedTable, openTable } from "./LoggedTable";
import { drawingOf, type Drawing } from "./presets";
import type { ChartInfo, Media } from "./values";
import { Viewer } from "./Viewer";

interface Props {
  chart: ChartInfo;
  value: Media;
  name: string;
  files: Files;
}

export function CustomChart({ chart, value, name, files }: Props) {
  const [drawing, setDrawing] = useState<Drawing | { error: string } | null>(null);
  const [isTable, setTable] = useState(false);
  useEffect(() => {
    let over = false;
    openTable(value, files).then(
      ({ table }) => !over && setDrawing(drawingOf(chart, table) ?? { error: `The chart “${chart.preset}” is defined on another server. This is its table.` }),
      (error: Error) => !over && setDrawing({ error: error.message }),
    );
    return () => {
      over = true;
    };
  }, [value.artifact_path, value.path, chart.preset, JSON.stringify(chart.spec)]);
  if (!drawing) return <Loading />;
  if ("error" in drawing) {
    return (
      <>
        <p class="faint">{drawing.error}</p>
        <LoggedTable value={value} name={name} files={files} />
      </>
    );
  }
  return (
    <>
      {isTable ? <LoggedTable value={value} name={name} files={files} /> : <Viewer viewer="vega" content={drawing} title={chart.strings.title ?? name} />}
      <button class="link" onClick={() => setTable(!isTable)}>
        {isTable ? "Show the chart" : "Show its table"}
      </button>
    </>
  );
}
