// The bar at the top: where one is, and what works everywhere.

import { logOut } from "../api";
import { me } from "../App";
import { liveState } from "../live";
import { useObserved } from "../observe";
import { pathOf } from "../root";
import { navigate, usePlace } from "../router";
import { switchTheme, theme } from "../theme";
import { Icon } from "./Icon";
import { Link } from "./Link";
import { Menu } from "./Menu";

const LIVE = {
  live: "Live: changes appear by themselves.",
  asking: "The way to the server lets no stream through: asked every 2 seconds.",
  cut: "The server does not answer. What is shown may be old; it is tried again.",
};

const VIEWS = [
  ["", "Runs"],
  ["sweeps", "Sweeps"],
  ["reports", "Reports"],
] as const;

export function Bar({ help }: { help: () => void }) {
  const { parts } = usePlace();
  const live = useObserved(liveState);
  const dark = useObserved(theme) === "dark";
  const user = useObserved(me);
  const [entity, project, view, id] = parts;
  const inProject = entity !== undefined && project !== undefined;
  const shownView = view === "workspace" || view === "table" || view === "runs" ? "" : (view ?? "");
  return (
    <header class="bar">
      <Link to="" class="brand" aria-label="runyard: all projects">
        <Logo />
        <span class="brand-name">runyard</span>
      </Link>
      <nav class="trail" aria-label="Where you are">
        {inProject && (
          <>
            <Link to={pathOf(entity, project)} title={`${entity}/${project}`}>
              {user && user.name !== entity ? `${entity}/` : ""}
              {project}
            </Link>
            {id && view && (
              <>
                <Icon name="right" size={12} />
                <span class="trail-end" title={id}>
                  {id}
                </span>
              </>
            )}
          </>
        )}
      </nav>
      <nav class="views" aria-label="Views">
        {inProject &&
          VIEWS.map(([name, label]) => (
            <Link
              to={name ? `${pathOf(entity, project)}/${name}` : pathOf(entity, project)}
              class="view"
              aria-current={shownView === name ? "page" : undefined}
            >
              {label}
            </Link>
          ))}
        <Link to="jobs" class="view" aria-current={parts[0] === "jobs" && parts.length === 1 ? "page" : undefined}>
          Jobs
        </Link>
      </nav>
      <span class={`live live-${live}`} title={LIVE[live]} role="status" aria-label={LIVE[live]}>
        {live === "cut" ? "no answer" : ""}
      </span>
      <button class="quiet wide-only" onClick={switchTheme} aria-label={dark ? "Light colours" : "Dark colours"} title="Light or dark (t)">
        <Icon name={dark ? "sun" : "moon"} />
      </button>
      <button class="quiet wide-only" onClick={help} aria-label="Help" title="Keys (?)">
        <Icon name="help" />
      </button>
      {user && (
        <Menu
          label={`Logged in as ${user.name}`}
          button={<span class="face">{user.name.slice(0, 1).toUpperCase()}</span>}
          items={[
            { says: `Logged in as ${user.name}`, act: null },
            { says: "Keys and sessions", act: () => navigate("settings") },
            { says: dark ? "Light colours" : "Dark colours", act: switchTheme },
            { says: "Log out of this browser", act: () => void logOut().then(() => location.reload()) },
          ]}
        />
      )}
    </header>
  );
}

function Logo() {
  return (
    <svg width="22" height="22" viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="7" class="logo-ground" />
      <path d="M6 22c4 0 4-13 8-13s3 9 6 9 3-4 6-4" fill="none" stroke="#fff" stroke-width="2.6" stroke-linecap="round" />
      <circle cx="26" cy="14" r="2.4" fill="#ffc24d" />
    </svg>
  );
}
