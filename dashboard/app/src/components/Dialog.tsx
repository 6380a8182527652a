// A window over the page. The browser's own element keeps the focus inside and closes with Escape.

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Icon } from "./Icon";

interface Props {
  title: string;
  close: () => void;
  large?: boolean;
  children: ComponentChildren;
}

export function Dialog({ title, close, large, children }: Props) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => box.current?.showModal(), []);
  return (
    <dialog
      ref={box}
      class={large ? "large" : ""}
      aria-label={title}
      onClose={close}
      onClick={(event) => event.target === box.current && close()}
    >
      <header>
        <h2>{title}</h2>
        <button class="quiet" aria-label="Close" onClick={close}>
          <Icon name="close" />
        </button>
      </header>
      <div class="dialog-body">{children}</div>
    </dialog>
  );
}
