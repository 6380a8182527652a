// What stands where nothing can be shown, and what to do about it.

import type { ComponentChildren } from "preact";
import type { ApiError } from "../api";
import { Copied } from "./Copied";
import { Link } from "./Link";

export function Loading() {
  return (
    <div class="state" role="status" aria-label="Loading">
      <span class="spinner" />
    </div>
  );
}

/** Nothing here yet, and the command that changes that. */
export function Empty(props: { what: string; children?: ComponentChildren; command?: string }) {
  return (
    <div class="state">
      <h2>{props.what}</h2>
      {props.children && <p>{props.children}</p>}
      {props.command && <Copied text={props.command} />}
    </div>
  );
}

export function NothingHere({ what }: { what: string }) {
  return (
    <div class="state">
      <h2>{what}</h2>
      <p>
        It may have been deleted, or belong to somebody else. <Link to="">All projects</Link>
      </p>
    </div>
  );
}

export function Failure(props: { what: string; next?: string; again?: () => void }) {
  return (
    <div class="state" role="alert">
      <h2>{props.what}</h2>
      {props.next && <p>{props.next}</p>}
      {props.again && <button onClick={props.again}>Try again</button>}
    </div>
  );
}

/** What a failed question means to the reader. */
export function Trouble({ error, again }: { error: ApiError; again: () => void }) {
  if (error.status === 404) return <NothingHere what={sentence(error.message)} />;
  if (error.status === 0) {
    return <Failure what="The server does not answer." next="`runyard server status` says whether it runs, and any command starts it. Through a tunnel: is the ssh still open?" again={again} />;
  }
  return <Failure what={sentence(error.message)} again={again} />;
}

function sentence(text: string): string {
  const whole = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}
