// A run's files: looked into where they are text, downloaded otherwise.

import { useMemo, useState } from "preact/hooks";
import { getText } from "../api";
import { useFetch } from "../fetch";
import { Dialog } from "../components/Dialog";
import { Empty, Loading, Trouble } from "../components/States";
import { formatSize, plural } from "../format";
import type { RunDetail } from "./detail";
import type { RunFile } from "../shapes";

const LARGEST_SHOWN = 2 << 20;
const TEXTS = /\.(txt|log|json|ya?ml|toml|py|sh|md|csv|tsv|cfg|ini|patch|diff|r|jl|c|cc|cpp|h|cu|js|ts|html|xml|lock)$/i;

export function Files({ run, fileUrl }: { run: RunDetail; fileUrl: (name: string) => string }) {
  const { data, error, again } = useFetch<{ files: RunFile[] }>(`api/runs/${run.key}/record`);
  const [words, setWords] = useState("");
  const [shown, setShown] = useState<RunFile | null>(null);
  const matches = useMemo(() => (data?.files ?? []).filter((file) => file.name.toLowerCase().includes(words.toLowerCase())), [data, words]);
  if (error) return <Trouble error={error} again={again} />;
  if (!data) return <Loading />;
  if (!data.files.length) return <Empty what="No files" command="wandb.save('notes.txt')" />;
  return (
    <section class="card block" aria-label="Files">
      <div class="row">
        <h2>
          {plural(data.files.length, "file")} <span class="faint">{formatSize(data.files.reduce((sum, file) => sum + file.size, 0))}</span>
        </h2>
        <input type="search" class="right" placeholder="Find a file" aria-label="Find a file" value={words} onInput={(event) => setWords(event.currentTarget.value)} />
      </div>
      <table class="values files">
        <tbody>
          {matches.slice(0, 2000).map((file) => (
            <tr>
              <th scope="row">
                {TEXTS.test(file.name) && file.size <= LARGEST_SHOWN ? (
                  <button class="link" onClick={() => setShown(file)}>
                    {file.name}
                  </button>
                ) : (
                  file.name
                )}
              </th>
              <td class="number">{formatSize(file.size)}</td>
              <td class="number">
                <a href={fileUrl(file.name)} download>
                  Download
                </a>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {shown && (
        <Dialog title={shown.name} large close={() => setShown(null)}>
          <Text url={fileUrl(shown.name)} />
        </Dialog>
      )}
    </section>
  );
}

function Text({ url }: { url: string }) {
  const { data, error, again } = useFetch(url, getText);
  if (error) return <Trouble error={error} again={again} />;
  return data === null ? <Loading /> : <pre class="file-text" tabIndex={0}>{data}</pre>;
}
