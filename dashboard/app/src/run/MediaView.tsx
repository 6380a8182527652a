// All that a run logged beside numbers.

import { useMemo } from "preact/hooks";
import { useFetch } from "../fetch";
import { Empty, Loading } from "../components/States";
import { MediaPanel } from "../media/MediaPanel";
import { mediaNames, type MediaInfo } from "../media/values";
import "../style/blocks.css";
import "../style/media.css";
import type { RunDetail } from "./detail";

export function MediaView({ run, fileUrl, turn }: { run: RunDetail; fileUrl: (name: string) => string; turn: number }) {
  const info = useFetch<MediaInfo>(`api/runs/${run.key}/media`);
  const names = useMemo(() => mediaNames(run.summary, info.data?.charts), [run.summary, info.data]);
  const runs = useMemo(() => [{ key: run.key, url: fileUrl }], [run.key]);
  if (!info.data && !info.error) return <Loading />;
  if (!names.length) {
    return (
      <Empty what="No media" command="wandb.log({'samples': wandb.Image(array)})">
        Images, sounds, videos, tables, charts and histograms that a run logs are shown here.
      </Empty>
    );
  }
  return (
    <div class="media">
      {names.map((name) => (
        <MediaPanel key={name} name={name} runs={runs} turn={turn} />
      ))}
    </div>
  );
}
