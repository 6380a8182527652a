// The frame around every page: who is logged in, the bar at the top, the page, toasts and help.

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { followLink, get, loggedOut } from "./api";
import { Bar } from "./components/Bar";
import { Confirm } from "./components/Confirm";
import { Help } from "./components/Help";
import { Invitations } from "./components/Invitations";
import { Failure, Loading, NothingHere } from "./components/States";
import { Toasts } from "./components/Toasts";
import { useShortcuts } from "./keyboard";
import { Observed } from "./observe";
import { Login, OtherUser, type OtherUserProps } from "./pages/Login";
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

async function comeIn(): Promise<Standing> {
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
  const [otherUser, setOtherUser] = useState<OtherUserProps | null>(null);
  const [helps, setHelps] = useState(false);
  useEffect(() => {
    const agreed = (says: string) => new Promise<boolean>((settle) => setOtherUser({ says, settle }));
    const login = code ? followLink(code, agreed).catch((error: Error) => setWhy(error.message)) : Promise.resolve();
    void login.then(comeIn).then(setStanding);
    const leave = () => setStanding("out");
    loggedOut.add(leave);
    // A link that is pasted into the address of this very page changes what is behind the # alone.
    const takeLink = () => location.hash.startsWith("#code=") && location.reload();
    addEventListener("hashchange", takeLink);
    const timer = setInterval(() => void get("api/me").catch(() => {}), STAY_IN);
    return () => {
      loggedOut.delete(leave);
      removeEventListener("hashchange", takeLink);
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
  if (standing === "asking") return otherUser ? <OtherUser {...otherUser} /> : <Loading />;
  if (standing === "out") return <Login why={why} done={() => void comeIn().then(setStanding)} />;
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
