// A run beside another one: what differs in config, summary, packages and code.

import { useEffect, useMemo, useState } from "preact/hooks";
import { getText } from "../api";
import { useAsked } from "../ask";
import { Empty, Loading } from "../components/States";
import { Differences } from "../project/Compare";
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
  const list = useAsked<Listed>(`api/projects/${pathOf(run.entity, run.project)}/runs`).data;
  const choices = useMemo(() => (list?.columns.id ?? []).map((id, place) => ({ id, name: list!.columns.name[place]! })).filter((one) => one.id !== run.id), [list, run.id]);
  const chosen = other || choices[0]?.id;
  const detail = useAsked<RunDetail>(chosen ? `api/run?${new URLSearchParams({ name: `${run.entity}/${run.project}/${chosen}` })}` : null).data;
  if (!list) return <Loading />;
  if (!choices.length) return <Empty what="There is no other run in this project to compare with." />;
  return (
    <div class="versus">
      <label class="row">
        <span class="soft">Beside</span>
        <select value={chosen} onChange={(event) => setOther(event.currentTarget.value)} aria-label="The other run">
          {choices.slice(0, 1000).map((one) => (
            <option value={one.id}>
              {one.name} ({one.id})
            </option>
          ))}
        </select>
      </label>
      {detail && detail.id === chosen ? (
        <>
          <Differences runs={[run, detail]} entity={run.entity} project={run.project} />
          <CodeDifference one={run} other={detail} />
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

function CodeDifference({ one, other }: { one: RunDetail; other: RunDetail }) {
  const [found, setFound] = useState<FileDifference[] | null>(null);
  useEffect(() => {
    let over = false;
    const names = [...new Set([...one.files, ...other.files])].filter((name) => IS_CODE.test(name)).slice(0, 50);
    void Promise.all(names.map((name) => compareFile(one, other, name))).then((all) => !over && setFound(all.filter((file) => file.lines.some((line) => line.kind !== "same"))));
    return () => {
      over = true;
    };
  }, [one.key, other.key]);
  if (!found) return <Loading />;
  return (
    <section class="card block" aria-label="Code">
      <h2>Code and packages</h2>
      {!found.length && <p class="faint">No difference in what the client uploaded (requirements.txt, saved code, patches).</p>}
      {found.map((file) => (
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

async function compareFile(one: RunDetail, other: RunDetail, name: string): Promise<FileDifference> {
  const read = async (run: RunDetail) => (run.files.includes(name) ? await getText(filePath(run, name)).catch(() => "") : "");
  const [before, after] = await Promise.all([read(one), read(other)]);
  const holders = [one, other].filter((run) => run.files.includes(name));
  return { name, lines: differences(before, after), only: holders.length === 1 ? holders[0]!.name : null };
}

export function filePath(run: RunDetail, name: string): string {
  return `files/${pathOf(run.entity, run.project, run.id)}/${name.split("/").map(encodeURIComponent).join("/")}`;
}
