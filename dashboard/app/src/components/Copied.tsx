// A command to type, with a button that copies it.

import { useState } from "preact/hooks";
import { Icon } from "./Icon";

export function Copied({ text }: { text: string }) {
  const [done, setDone] = useState(false);
  return (
    <div class="command">
      <code>{text}</code>
      <button
        class="quiet"
        aria-label={done ? "Copied" : "Copy"}
        title="Copy"
        onClick={() => {
          void copyText(text).then(() => setDone(true));
          setTimeout(() => setDone(false), 1500);
        }}
      >
        <Icon name={done ? "check" : "copy"} size={14} />
      </button>
    </div>
  );
}

/** Over plain HTTP from another host a browser has no clipboard: an old way works there. */
export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}
