// A run beside another one: what differs in config, summary, packages and code.

import { useEffect, useMemo, useState } from "preact/hooks";
import { getText } from "../api";
import { useFetch } from "../fetch";
import { Empty, Loading } from "../components/States";
import { Differences } from "../project/Compare";
import { filePath } from "../media/files";
import { pathOf } from "../root";
import { useQuery } from "../router";
import { condensed, differences, type DiffLine } from "./difference";
import type { RunDetail } from "./detail";

interface Listed {
  columns: { id: string[]; name: string[] };
}

// What says how a run was made; its own records differ anyway.
const IS_CODE = /^(code\/|requirements\.txt$|conda-environment\.yaml$|diff\.patch$|diff_[0-9a-f]+\.patch$)/;

export function Versus({ run }: { run: RunDetail }) {
  const [other, setOther] = useQuery("versus");
  const list = useFetch<Listed>(`api/projects/${pathOf(run.entity, run.project)}/runs`).data;
  const choices = useMemo(() => (list?.columns.id ?? []).map((id, place) => ({ id, name: list!.columns.name[place]! })).filter((choice) => choice.id !== run.id), [list, run.id]);
  const chosen = other || choices[0]?.id;
  const detail = useFetch<RunDetail>(chosen ? `api/run?${new URLSearchParams({ name: `${run.entity}/${run.project}/${chosen}` })}` : null).data;
  if (!list) return <Loading />;
  if (!choices.length) return <Empty what="There is no other run in this project to compare with." />;
  return (
    <div class="versus">
      <label class="row">
        <span class="soft">Beside</span>
        <select value={chosen} onChange={(event) => setOther(event.currentTarget.value)} aria-label="The other run">
          {choices.slice(0, 1000).map((choice) => (
            <option value={choice.id}>
              {choice.name} ({choice.id})
            </option>
          ))}
        </select>
      </label>
      {detail && detail.id === chosen ? (
        <>
          <Differences runs={[run, detail]} entity={run.entity} project={run.project} />
          <CodeDifference first={run} second={detail} />
        </>
      ) : (
        <Loading />
      )}
    </div>
  );
}

interface FileDifference {
  name: string;
  lines: DiffLine[];
  /** The one that has it, where the other has not. */
  only: string | null;
}

function CodeDifference({ first, second }: { first: RunDetail; second: RunDetail }) {
  const [differences, setDifferences] = useState<FileDifference[] | null>(null);
  useEffect(() => {
    let over = false;
    const names = [...new Set([...first.files, ...second.files])].filter((name) => IS_CODE.test(name)).slice(0, 50);
    void Promise.all(names.map((name) => compareFile(first, second, name))).then((all) => !over && setDifferences(all.filter((file) => file.lines.some((line) => line.kind !== "same"))));
    return () => {
      over = true;
    };
  }, [first.key, second.key]);
  if (!differences) return <Loading />;
  return (
    <section class="card block" aria-label="Code">
      <h2>Code and packages</h2>
      {!differences.length && <p class="faint">No difference in what the client uploaded (requirements.txt, saved code, patches).</p>}
      {differences.map((file) => (
        <>
          <h3>{file.name}</h3>
          {file.only ? <p class="faint">Only {file.only} has it.</p> : <Difference file={file} />}
        </>
      ))}
    </section>
  );
}

function Difference({ file }: { file: FileDifference }) {
  return (
    <pre class="diff" tabIndex={0} aria-label={`Difference in ${file.name}`}>
      {condensed(file.lines).map((line) => (
        <div class={`diff-${line.kind}`}>
          {line.kind === "in" ? "+ " : line.kind === "out" ? "- " : "  "}
          {line.text}
        </div>
      ))}
    </pre>
  );
}

async function compareFile(first: RunDetail, second: RunDetail, name: string): Promise<FileDifference> {
  const read = async (run: RunDetail) => (run.files.includes(name) ? await getText(filePath(run, name)).catch(() => "") : "");
  const [before, after] = await Promise.all([read(first), read(second)]);
  const holders = [first, second].filter((run) => run.files.includes(name));
  return { name, lines: differences(before, after), only: holders.length === 1 ? holders[0]!.name : null };
}
