// The frame around every page: who is logged in, the bar at the top, the page, toasts and help.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { get, logIn, loggedOut } from "./api";
import { Bar } from "./components/Bar";
import { Confirm } from "./components/Confirm";
import { Help } from "./components/Help";
import { Invitations } from "./components/Invitations";
import { Failure, Loading, NothingHere } from "./components/States";
import { Toasts } from "./components/Toasts";
import { useShortcuts } from "./keyboard";
import { Observed } from "./observe";
import { Login } from "./pages/Login";
import { navigate, usePlace } from "./router";
import { findRoute, type PageProps } from "./routes";
import type { Me } from "./shapes";
import { switchTheme } from "./theme";

export const me = new Observed<Me | null>(null);
type Standing = "asking" | "in" | "out";
// A session ends hours after it was last used: a page that is open keeps it.
const STAY_IN = 10 * 60_000;

/** A one-time code stands behind the #: that part of an address is sent to nobody. */
function takeCode(): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) history.replaceState(null, "", location.pathname + location.search);
  return code;
}

async function comeIn(code: string | null, refused: (why: string) => void): Promise<Standing> {
  if (code) await logIn(code).catch((error: Error) => refused(error.message));
  try {
    me.set(await get<Me>("api/me"));
    return "in";
  } catch {
    return "out";
  }
}

export function App() {
  const [code] = useState(takeCode);
  // Most visitors have their cookie: the page asks for its data at once, and hears if it is refused.
  const [standing, setStanding] = useState<Standing>(code ? "asking" : "in");
  const [why, setWhy] = useState("");
  const [helps, setHelps] = useState(false);
  useEffect(() => {
    void comeIn(code, setWhy).then(setStanding);
    const leave = () => setStanding("out");
    loggedOut.add(leave);
    // A link that is pasted into the address of this very page changes what is behind the # alone.
    const followLink = () => location.hash.startsWith("#code=") && location.reload();
    addEventListener("hashchange", followLink);
    const timer = setInterval(() => void get("api/me").catch(() => {}), STAY_IN);
    return () => {
      loggedOut.delete(leave);
      removeEventListener("hashchange", followLink);
      clearInterval(timer);
    };
  }, []);
  useShortcuts(
    [
      { keys: "?", says: "show this help", act: () => setHelps(true) },
      { keys: "/", says: "search", act: focusSearch },
      { keys: "t", says: "light or dark", act: switchTheme },
      { keys: "g", says: "all projects", act: () => navigate("") },
    ],
    [],
  );
  if (standing === "asking") return <Loading />;
  if (standing === "out") return <Login why={why} done={() => void comeIn(null, setWhy).then(setStanding)} />;
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <Bar help={() => setHelps(true)} />
      <main id="main">
        <Invitations />
        <Page />
      </main>
      <Toasts />
      <Confirm />
      {helps && <Help close={() => setHelps(false)} />}
    </>
  );
}

function focusSearch(): void {
  const search = document.querySelector<HTMLInputElement>("input[type=search]");
  search?.focus();
  search?.select();
}

function Page() {
  const place = usePlace();
  const route = findRoute(place.parts);
  const [shown, setShown] = useState<{ load: unknown; page: ComponentType<PageProps> } | null>(null);
  const [failed, setFailed] = useState(false);
  const load = route?.load;
  useEffect(() => {
    if (!load) return;
    let over = false;
    setFailed(false);
    load().then(
      (module) => !over && setShown({ load, page: module.default }),
      () => !over && setFailed(true),
    );
    return () => {
      over = true;
    };
  }, [load]);
  useEffect(() => {
    document.title = [...place.parts.filter((part) => part !== "runs").slice(1).reverse(), "runyard"].join(" · ");
  }, [place.parts.join("/")]);
  if (!route) return <NothingHere what="There is no such page." />;
  if (failed) return <Failure what="This part of the page could not be loaded." next="The server may have been updated: load the page anew." />;
  if (!shown || shown.load !== load) return <Loading />;
  const Shown = shown.page;
  return <Shown key={place.parts.join("/")} {...route.props} />;
}
