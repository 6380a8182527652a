// Where nobody is logged in: how to come in.

import { useState } from "preact/hooks";
import { logIn, pastedCode } from "../api";
import { Copied } from "../components/Copied";
import { Dialog } from "../components/Dialog";

export function Login({ why, done }: { why: string; done: () => void }) {
  const [refused, setRefused] = useState(why);
  const enter = (event: SubmitEvent) => {
    event.preventDefault();
    const code = new FormData(event.currentTarget as HTMLFormElement).get("code");
    logIn(pastedCode(String(code)), true).then(done, (error: Error) => setRefused(error.message));
  };
  return (
    <main class="login">
      <h1>runyard</h1>
      <p>This page shows nothing until you log in. On the machine where you use runyard, type:</p>
      <Copied text="runyard ui" />
      <p>It prints a link that logs this browser in, once. Open it here, or paste it. If you were given a key, paste that:</p>
      <form onSubmit={enter}>
        <input name="code" autocomplete="off" aria-label="Link, code or key" placeholder="link, code or key" required autofocus />
        <button class="primary">Log in</button>
      </form>
      {refused && (
        <p class="refused" role="alert">
          {refused}
        </p>
      )}
    </main>
  );
}

export interface OtherUserProps {
  /** Who is logged in, and whose link it is. */
  says: string;
  settle: (isAgreed: boolean) => void;
}

/** A link of another user was opened where somebody is logged in. */
export function OtherUser({ says, settle }: OtherUserProps) {
  return (
    <Dialog title="Log in as another user?" close={() => settle(false)}>
      <p>{says}</p>
      <p>Your session in this browser would end, and all that you write would belong to the other user. Stay if you did not ask for this link.</p>
      <div class="row dialog-end">
        <button autofocus onClick={() => settle(false)}>
          Stay
        </button>
        <button class="primary" onClick={() => settle(true)}>
          Log in
        </button>
      </div>
    </Dialog>
  );
}
