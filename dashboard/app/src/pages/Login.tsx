// Where nobody is logged in: how to come in.

import { useState } from "preact/hooks";
import { logIn } from "../api";
import { Copied } from "../components/Copied";

export function Login({ why, done }: { why: string; done: () => void }) {
  const [refused, setRefused] = useState(why);
  const enter = (event: SubmitEvent) => {
    event.preventDefault();
    const given = String(new FormData(event.currentTarget as HTMLFormElement).get("code") ?? "").trim();
    // People paste the whole link as well.
    const code = given.includes("code=") ? given.slice(given.indexOf("code=") + 5) : given;
    logIn(code).then(done, (error: Error) => setRefused(error.message));
  };
  return (
    <main class="login">
      <h1>runyard</h1>
      <p>This page shows nothing until you log in. On the machine where you use runyard, type:</p>
      <Copied text="runyard ui" />
      <p>It prints a link that logs this browser in, once. Open it here, or paste it:</p>
      <form onSubmit={enter}>
        <input name="code" autocomplete="off" aria-label="Link or code" placeholder="link or code" required autofocus />
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
