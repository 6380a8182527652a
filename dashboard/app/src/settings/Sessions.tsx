// Browsers that are logged in.

import { del } from "../api";
import { useFetch } from "../fetch";
import { Loading, Trouble } from "../components/States";
import { attempt } from "../components/Toasts";
import { formatDuration, plural } from "../format";
import { Entry, Sure, Time } from "./Entry";
import type { Session } from "../shapes";

export function Sessions({ user }: { user: string }) {
  const { data, error, again } = useFetch<Session[]>("api/sessions");
  if (error && !data) return <Trouble error={error} again={again} />;
  if (!data) return <Loading />;
  const end = (path: string, done: string) => void attempt(del(path), done).then(again);
  const others = data.filter((session) => session.user === user && !session.current).length;
  return (
    <section class="card" aria-label="Sessions">
      <header class="card-head">
        <h2>Sessions</h2>
        <span class="faint">{plural(data.length, "browser")}</span>
        {others > 0 && (
          <span class="right">
            <Sure label="End all others" title="End all others of your sessions" act={() => end("api/sessions", "Your other sessions are ended.")}>
              {plural(others, "browser")} will be logged out at once. This one stays.
            </Sure>
          </span>
        )}
      </header>
      <p class="card-note">A browser that was logged in by a link, a code or a key. A session ends when you log out, 12 hours after it was last used, after a week, or with the key that opened it.</p>
      <ul class="entries">
        {data.map((session) => (
          <Entry
            key={session.id}
            name={browserName(session.browser)}
            tags={
              <>
                {session.current && <span class="tag">this browser</span>}
                {session.user !== user && <span class="tag">{session.user}</span>}
              </>
            }
            facts={[
              ["Logged in", <Time at={session.created_at} />],
              ["Used", <Time at={session.used_at} />],
              ["From", session.used_from || "–"],
              ["Ends", `in ${formatDuration(session.ends_at - Date.now() / 1000)}`],
            ]}
            action={
              !session.current && (
                <Sure label="End" title={`End the session in ${browserName(session.browser)}`} act={() => end(`api/sessions/${session.id}`, "The session is ended.")}>
                  That browser is logged out at once.
                </Sure>
              )
            }
          />
        ))}
      </ul>
    </section>
  );
}

// The first that is in a browser's long name: most call themselves Safari and Chrome as well.
const BROWSERS = [
  ["Edg/", "Edge"],
  ["OPR/", "Opera"],
  ["Firefox/", "Firefox"],
  ["Chrome/", "Chrome"],
  ["Safari/", "Safari"],
] as const;
const SYSTEMS = [
  ["Android", "Android"],
  ["iPhone", "iPhone"],
  ["iPad", "iPad"],
  ["Mac OS X", "macOS"],
  ["Windows", "Windows"],
  ["Linux", "Linux"],
] as const;

function browserName(text: string): string {
  const find = (names: readonly (readonly [string, string])[]) => names.find(([word]) => text.includes(word))?.[1];
  const browser = find(BROWSERS);
  const system = find(SYSTEMS);
  if (!browser) return text.slice(0, 60) || "A browser without a name";
  return system ? `${browser} on ${system}` : browser;
}
