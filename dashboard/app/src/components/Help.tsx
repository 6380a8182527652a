import { shownShortcuts } from "../keyboard";
import { useObserved } from "../observe";
import { Dialog } from "./Dialog";

const NAMES: Record<string, string> = { ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→", Enter: "↵", Escape: "Esc", " ": "Space" };

/** The keys that work here, which each page adds to. */
export function Help({ close }: { close: () => void }) {
  const shortcuts = useObserved(shownShortcuts);
  return (
    <Dialog title="Keys" close={close}>
      <dl class="keys">
        {shortcuts.map((shortcut) => (
          <>
            <dt>
              {shortcut.keys.split(" ").map((key) => (
                <kbd>{NAMES[key] ?? key}</kbd>
              ))}
            </dt>
            <dd>{shortcut.says}</dd>
          </>
        ))}
        <dt>
          <kbd>drag</kbd>
        </dt>
        <dd>on a chart: zoom all charts; double click: back</dd>
      </dl>
    </Dialog>
  );
}
