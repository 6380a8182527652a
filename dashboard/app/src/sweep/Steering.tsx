// What one can do to a sweep: pause, resume, stop, cancel, retry, change its cap.

import { useState } from "preact/hooks";
import { post } from "../api";
import { Dialog } from "../components/Dialog";
import { Icon } from "../components/Icon";
import { Popover } from "../components/Menu";
import { attempt, sayWithUndo } from "../components/Toasts";
import { plural } from "../format";
import type { Sweep } from "./data";

type State = "running" | "paused" | "finished" | "canceled";

export function Steering({ sweep, done }: { sweep: Sweep; done: () => void }) {
  const [asks, setAsks] = useState<"stop" | "cancel" | null>(null);
  const [busy, setBusy] = useState(false);
  const isOpen = sweep.state === "running" || sweep.state === "paused";
  const running = sweep.counts.running ?? 0;
  const failed = sweep.counts.failed ?? 0;

  const ask = async (path: string, body: unknown, undo?: { says: string; path: string; body: unknown }) => {
    setBusy(true);
    const changed = await attempt(post(`api/sweeps/${sweep.key}/${path}`, body));
    setBusy(false);
    done();
    if (changed && undo) sayWithUndo(undo.says, () => void ask(undo.path, undo.body));
  };
  const setState = (state: State, says: string, back: State) => ask("state", { state }, { says, path: "state", body: { state: back } });

  return (
    <div class="row wrap steering" role="group" aria-label="Steer the sweep">
      {sweep.state === "running" && (
        <button disabled={busy} onClick={() => void setState("paused", "Paused: what runs goes on, nothing new begins.", "running")}>
          Pause
        </button>
      )}
      {sweep.state === "paused" && (
        <button class="primary" disabled={busy} onClick={() => void setState("running", "It goes on.", "paused")}>
          <Icon name="play" size={12} /> Resume
        </button>
      )}
      {isOpen && (
        <>
          <button disabled={busy} onClick={() => setAsks("stop")}>
            Stop
          </button>
          <button class="dangerous" disabled={busy} onClick={() => setAsks("cancel")}>
            Cancel
          </button>
        </>
      )}
      {!isOpen && (
        <button disabled={busy} onClick={() => void setState("running", "It runs again: trials that were left, or cancelled, are to be had.", sweep.state === "canceled" ? "canceled" : "finished")}>
          Resume
        </button>
      )}
      {failed > 0 && (
        <button disabled={busy} onClick={() => void ask("retry", {}, undefined)}>
          Retry {failed} failed
        </button>
      )}
      <Popover label={`Cap: ${sweep.run_cap ?? "none"}: change how many trials there may be`} button={<>Cap: {sweep.run_cap ?? "none"}</>} class="">
        {(close) => (
          <Cap
            sweep={sweep}
            change={(cap) => {
              close();
              void ask("cap", { run_cap: cap }, { says: cap === null ? "The cap is gone." : `At most ${plural(cap, "trial")}.`, path: "cap", body: { run_cap: sweep.run_cap } });
            }}
          />
        )}
      </Popover>
      {asks && (
        <Dialog title={asks === "stop" ? "Stop this sweep?" : "Cancel this sweep?"} close={() => setAsks(null)}>
          <p>
            {asks === "stop"
              ? `Nothing new begins. ${running ? `The ${plural(running, "trial")} at work ${running === 1 ? "goes" : "go"} on to the end.` : "Nothing is at work."}`
              : `Nothing new begins, and ${running ? `the ${plural(running, "trial")} at work ${running === 1 ? "is" : "are"} ended now.` : "nothing is at work."}`}{" "}
            What was logged stays. Resume brings the sweep back.
          </p>
          <div class="row dialog-end">
            <button onClick={() => setAsks(null)}>Leave it as it is</button>
            <button
              class={asks === "cancel" ? "dangerous" : "primary"}
              onClick={() => {
                setAsks(null);
                void setState(asks === "stop" ? "finished" : "canceled", asks === "stop" ? "Stopped." : "Cancelled.", "running");
              }}
            >
              {asks === "stop" ? "Stop the sweep" : "Cancel the sweep"}
            </button>
          </div>
        </Dialog>
      )}
    </div>
  );
}

function Cap({ sweep, change }: { sweep: Sweep; change: (cap: number | null) => void }) {
  const [text, setText] = useState(sweep.run_cap === null ? "" : String(sweep.run_cap));
  const cap = text.trim() === "" ? null : Number(text);
  const isGood = cap === null || (Number.isInteger(cap) && cap > 0);
  return (
    <form
      class="cap"
      onSubmit={(event) => {
        event.preventDefault();
        if (isGood) change(cap);
      }}
    >
      <label>
        At most this many trials
        <input inputMode="numeric" value={text} placeholder="no limit" aria-invalid={!isGood} onInput={(event) => setText(event.currentTarget.value)} />
      </label>
      <p class="faint">{`${sweep.trials} have begun so far. More than before lets a finished sweep go on.`}</p>
      <button class="primary" disabled={!isGood}>
        Change
      </button>
    </form>
  );
}
