// A key or a session in a list: what it is, what is known of it, and a button that ends it.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Dialog } from "../components/Dialog";
import { formatAgo, formatTime } from "../format";

export function Entry(props: { name: string; tags?: ComponentChildren; facts: [string, ComponentChildren][]; action?: ComponentChildren }) {
  return (
    <li class="entry">
      <div class="entry-head">
        <strong class="words">{props.name}</strong>
        {props.tags}
      </div>
      <dl class="entry-facts">
        {props.facts.map(([label, value]) => (
          <div>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      <div class="entry-action">{props.action}</div>
    </li>
  );
}

export function Time({ at, otherwise = "never" }: { at: number | null | undefined; otherwise?: string }) {
  return at ? <span title={formatTime(at)}>{formatAgo(at)}</span> : <>{otherwise}</>;
}

/** A button for what cannot be undone: it says what follows, and asks. */
export function Sure(props: { label: string; title: string; children: ComponentChildren; act: () => void }) {
  const [isAsked, setAsked] = useState(false);
  return (
    <>
      <button onClick={() => setAsked(true)} aria-label={props.title}>
        {props.label}
      </button>
      {isAsked && (
        <Dialog title={`${props.title}?`} close={() => setAsked(false)}>
          <p>{props.children}</p>
          <div class="row">
            <button
              class="primary right"
              onClick={() => {
                setAsked(false);
                props.act();
              }}
            >
              {props.label}
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}
