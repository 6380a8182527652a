// Keys: which there are, what each may do, when it was used, and from where.

import { del } from "../api";
import { useFetch } from "../fetch";
import { Loading, Trouble } from "../components/States";
import { attempt } from "../components/Toasts";
import { formatDuration, plural } from "../format";
import { pathOf } from "../root";
import { Entry, Sure, Time } from "./Entry";
import type { Key } from "../shapes";

// In the order in which they are shown.
const KINDS: Record<string, [name: string, says: string]> = {
  folder: ["State folder", "The key in server.json, by which commands on the server's machine come in. It stays."],
  person: ["People", "Made by runyard users keys add and runyard users add."],
  shell: ["Shells", "Handed out by runyard env, for wandb programs that are started there."],
  run: ["Runs", "One for each program that runyard run started."],
  job: ["Jobs", "One for each job that was submitted."],
};
/** People's own are revoked one by one. */
function isHandedOut(kind: string): boolean {
  return kind !== "folder" && kind !== "person";
}

const SCOPES: Record<string, string> = { all: "everything that its owner may", runs: "log and read its owner's runs" };

export function Keys({ user }: { user: string }) {
  const { data, error, again } = useFetch<Key[]>("api/keys");
  if (error && !data) return <Trouble error={error} again={again} />;
  if (!data) return <Loading />;
  const kinds = [...new Set([...Object.keys(KINDS), ...data.map((key) => key.kind)])];
  const end = (path: string, done: string) => void attempt(del(`api/users/${path}`), done).then(again);
  return (
    <>
      {kinds.map((kind) => {
        const keys = data.filter((key) => key.kind === kind);
        if (!keys.length) return null;
        const [name, says] = KINDS[kind] ?? [kind, ""];
        const own = keys.filter((key) => key.user === user);
        return (
          <section class="card" aria-label={`Keys: ${name}`} key={kind}>
            <header class="card-head">
              <h2>Keys: {name}</h2>
              <span class="faint">{plural(keys.length, "key")}</span>
              {isHandedOut(kind) && own.length > 1 && (
                <span class="right">
                  <Sure label={`Revoke all ${own.length}`} title={`Revoke all ${own.length} of your keys: ${name}`} act={() => end(`${pathOf(user, "keys")}?kind=${kind}`, `${plural(own.length, "key")} revoked.`)}>
                    They are refused at once. Programs that log with them log no more.
                  </Sure>
                </span>
              )}
            </header>
            <p class="card-note">{says}</p>
            <ul class="entries">
              {keys.map((key) => (
                <One key={key.id} item={key} user={user} revoke={() => end(pathOf(key.user, "keys", key.id), "The key is revoked.")} />
              ))}
            </ul>
          </section>
        );
      })}
    </>
  );
}

function One({ item, user, revoke }: { item: Key; user: string; revoke: () => void }) {
  const name = item.label || item.id;
  return (
    <Entry
      name={name}
      tags={
        <>
          <span class="faint mono">{item.id}</span>
          {item.user !== user && <span class="tag">{item.user}</span>}
        </>
      }
      facts={[
        ["May", SCOPES[item.scope] ?? item.scope],
        ["Made", <Time at={item.created_at} />],
        ["Used", <Time at={item.used_at} />],
        ["From", item.used_from || "–"],
        ["Ends", item.expires_at ? expiry(item.expires_at) : "when it is revoked"],
      ]}
      action={
        item.kind !== "folder" && (
          <Sure label="Revoke" title={`Revoke the key ${name}`} act={revoke}>
            It is refused at once. Programs that log with it log no more, and browsers that it logged in are logged out.
          </Sure>
        )
      }
    />
  );
}

function expiry(at: number): string {
  const left = at - Date.now() / 1000;
  return left > 0 ? `in ${formatDuration(left)}` : "ended";
}
