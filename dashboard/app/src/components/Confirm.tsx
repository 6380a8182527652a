// Administration asks again: a code from the terminal shows that it is still the user who sits here.

import { useState } from "preact/hooks";
import { pastedCode, post } from "../api";
import { useObserved } from "../observe";
import { question } from "../session";
import { Copied } from "./Copied";
import { Dialog } from "./Dialog";

export function Confirm() {
  const pending = useObserved(question);
  const [refused, setRefused] = useState("");
  if (!pending) return null;
  const settle = (isConfirmed: boolean) => {
    setRefused("");
    pending.settle(isConfirmed);
  };
  const enter = (event: SubmitEvent) => {
    event.preventDefault();
    const code = new FormData(event.currentTarget as HTMLFormElement).get("code");
    post("api/login/confirm", { code: pastedCode(String(code)) }).then(
      () => settle(true),
      (error: Error) => setRefused(error.message),
    );
  };
  return (
    <Dialog title="Confirm that it is you" close={() => settle(false)}>
      <p>Keys, users, teams and sessions are changed only with a fresh code. On the machine where you use runyard, type:</p>
      <Copied text={pending.command} />
      <form class="confirm" onSubmit={enter}>
        <input name="code" autocomplete="off" aria-label="Code" placeholder="code" required autofocus />
        <button class="primary">Confirm</button>
      </form>
      {refused && (
        <p class="refused" role="alert">
          {refused}
        </p>
      )}
      <p class="faint">It holds for ten minutes, in this browser. Your key does as well.</p>
    </Dialog>
  );
}
