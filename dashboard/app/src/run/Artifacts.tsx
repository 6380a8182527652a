// What a run used and what it made, and from where to where that goes.

import { useState } from "preact/hooks";
import { useFetch } from "../fetch";
import { Copied } from "../components/Copied";
import { Icon } from "../components/Icon";
import { Link } from "../components/Link";
import { Empty, Loading, Trouble } from "../components/States";
import { formatSize, formatValue } from "../format";
import { blobAddress } from "../media/files";
import { pathOf } from "../root";
import type { RunDetail } from "./detail";
import type { ArtifactRecord as Artifact } from "../shapes";

export function Artifacts({ run }: { run: RunDetail }) {
  const { data, error, again } = useFetch<{ logged: Artifact[]; used: Artifact[] }>(`api/runs/${run.key}/artifacts`);
  if (error) return <Trouble error={error} again={again} />;
  if (!data) return <Loading />;
  if (!data.logged.length && !data.used.length) {
    return (
      <Empty what="No artifacts" command="run.log_artifact('model.pt', type='model')">
        Models and data sets that a run logs or uses are kept in versions.
      </Empty>
    );
  }
  return (
    <div class="lineage">
      <Column title="Used" artifacts={data.used} run={run} empty="It used no artifact." />
      <div class="lineage-run">
        <Icon name="right" />
        <span class="card">{run.name}</span>
        <Icon name="right" />
      </div>
      <Column title="Logged" artifacts={data.logged} run={run} empty="It logged no artifact." />
    </div>
  );
}

function Column({ title, artifacts, run, empty }: { title: string; artifacts: Artifact[]; run: RunDetail; empty: string }) {
  return (
    <section class="lineage-column" aria-label={title}>
      <h2>
        {title} <span class="faint">{artifacts.length}</span>
      </h2>
      {!artifacts.length && <p class="faint">{empty}</p>}
      {artifacts.map((artifact) => (
        <One key={artifact.key} artifact={artifact} run={run} />
      ))}
    </section>
  );
}

function One({ artifact, run }: { artifact: Artifact; run: RunDetail }) {
  const [isOpen, setOpen] = useState(false);
  const name = `${artifact.collection}:v${artifact.version}`;
  const isOther = artifact.made_by !== null && artifact.made_by !== run.id;
  return (
    <div class="card block artifact">
      <button class="section-head" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Icon name={isOpen ? "down" : "right"} size={14} />
        <span class="words">{name}</span>
        <span class="right faint">{formatSize(artifact.size)}</span>
      </button>
      <div class="row wrap">
        <span class="soft">{artifact.type}</span>
        {artifact.aliases.map((alias) => (
          <span class="tag">{alias}</span>
        ))}
        {isOther && (
          <span class="faint">
            made by <Link to={pathOf(artifact.entity, artifact.project, "runs", artifact.made_by!)}>{artifact.made_by}</Link>
          </span>
        )}
      </div>
      <UsedBy artifact={artifact} run={run} />
      {isOpen && <Contents artifact={artifact} name={name} />}
    </div>
  );
}

const MOST_USERS = 5;

/** Where it went on to. */
function UsedBy({ artifact, run }: { artifact: Artifact; run: RunDetail }) {
  const [isWhole, setWhole] = useState(false);
  const others = artifact.used_by.filter((user) => user.key !== run.key);
  if (!others.length) return null;
  const shown = isWhole ? others : others.slice(0, MOST_USERS);
  return (
    <div class="row wrap used-by">
      <span class="faint">used by</span>
      {shown.map((user) => (
        <Link key={user.key} to={pathOf(user.entity, user.project, "runs", user.id)}>
          {user.name}
        </Link>
      ))}
      {shown.length < others.length && (
        <button class="link" onClick={() => setWhole(true)}>
          and {others.length - shown.length} more
        </button>
      )}
    </div>
  );
}

function Contents({ artifact, name }: { artifact: Artifact; name: string }) {
  const { data } = useFetch<{ contents: Record<string, { size?: number; ref?: string; digest: string }> }>(`api/artifacts/${artifact.key}/manifest`);
  const metadata = artifact.metadata ? Object.entries(JSON.parse(artifact.metadata) as Record<string, unknown>) : [];
  return (
    <>
      {artifact.description && <p>{artifact.description}</p>}
      <table class="values files">
        <tbody>
          {metadata.map(([key, value]) => (
            <tr>
              <th scope="row">{key}</th>
              <td>{formatValue(value)}</td>
            </tr>
          ))}
          {Object.entries(data?.contents ?? {})
            .slice(0, 500)
            .map(([path, entry]) => (
              <tr>
                <th scope="row" class="mono">
                  {path}
                </th>
                <td class="number">{entry.ref ?? formatSize(entry.size)}</td>
                <td class="number">
                  {!entry.ref && (
                    <a href={blobAddress(artifact.entity, entry.digest, path)} download>
                      Download
                    </a>
                  )}
                </td>
              </tr>
            ))}
        </tbody>
      </table>
      <Copied text={`wandb artifact get ${artifact.entity}/${artifact.project}/${name}`} />
    </>
  );
}
