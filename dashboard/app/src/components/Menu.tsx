// A button that opens something below itself: a list of actions, or any content.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Icon, type IconName } from "./Icon";

export interface Action {
  says: string;
  /** null: a word that is not an action. */
  act: (() => void) | null;
  icon?: IconName;
  checked?: boolean;
  dangerous?: boolean;
}

interface PopoverProps {
  button: ComponentChildren;
  label: string;
  class?: string;
  /** Whether it is open from the first. */
  open?: boolean;
  /** What stands in it; called while it is open. */
  children: (close: () => void) => ComponentChildren;
}

export function Popover({ button, label, class: look = "quiet", open: isFirst = false, children }: PopoverProps) {
  const [open, setOpen] = useState(isFirst);
  const box = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLButtonElement>(null);
  const close = () => {
    setOpen(false);
    opener.current?.focus();
  };
  useEffect(() => {
    if (!open) return;
    const outside = (event: Event) => {
      if (!box.current?.parentElement?.contains(event.target as Node)) setOpen(false);
    };
    const key = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      close();
    };
    keepInside(box.current!);
    box.current!.querySelector<HTMLElement>("input, button, a, select")?.focus();
    document.addEventListener("pointerdown", outside, true);
    document.addEventListener("keydown", key, true);
    return () => {
      document.removeEventListener("pointerdown", outside, true);
      document.removeEventListener("keydown", key, true);
    };
  }, [open]);
  return (
    <span class="popover-place">
      <button ref={opener} class={look} aria-label={label} title={label} aria-expanded={open} onClick={() => setOpen(!open)}>
        {button}
      </button>
      {open && (
        <div class="popover" ref={box}>
          {children(close)}
        </div>
      )}
    </span>
  );
}

/** Moved to the left as far as the window's edge asks. */
function keepInside(box: HTMLElement): void {
  const place = box.getBoundingClientRect();
  const over = place.right - (document.documentElement.clientWidth - 8);
  if (over > 0) box.style.marginLeft = `${-Math.min(over, place.left - 8)}px`;
  const below = place.bottom - (innerHeight - 8);
  if (below > 0) box.style.maxHeight = `${Math.max(120, place.height - below)}px`;
}

export function Menu(props: { label: string; button: ComponentChildren; class?: string; open?: boolean; items: Action[] }) {
  return (
    <Popover label={props.label} button={props.button} class={props.class} open={props.open}>
      {(close) => (
        <div role="menu" class="menu" onKeyDown={moveByArrows}>
          {props.items.map((item) =>
            item.act ? (
              <button
                role={item.checked === undefined ? "menuitem" : "menuitemcheckbox"}
                aria-checked={item.checked}
                class={item.dangerous ? "dangerous" : ""}
                onClick={() => {
                  close();
                  item.act!();
                }}
              >
                {item.icon && <Icon name={item.icon} />}
                {item.checked !== undefined && <span class="tick">{item.checked && <Icon name="check" size={13} />}</span>}
                {item.says}
              </button>
            ) : (
              <div class="menu-word">{item.says}</div>
            ),
          )}
        </div>
      )}
    </Popover>
  );
}

function moveByArrows(event: KeyboardEvent): void {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (!step) return;
  event.preventDefault();
  const buttons = [...(event.currentTarget as HTMLElement).querySelectorAll("button")];
  const place = buttons.indexOf(document.activeElement as HTMLButtonElement);
  buttons[(place + step + buttons.length) % buttons.length]?.focus();
}
