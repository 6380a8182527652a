// What all viewers share: a frame says that it is ready, gets what it is to draw, and says how that went.
// The page's side of this is media/Viewer.tsx.

/** The page's colours, so that a drawing looks like a part of it. */
export interface Look {
  isDark: boolean;
  text: string;
  soft: string;
  line: string;
  accent: string;
  colours: string[];
}

export type Message = { ready: true } | { drawn: true } | { failed: string };

/** Draw each content that the page sends; another one replaces it. */
export function serve<Content>(draw: (box: HTMLElement, content: Content, look: Look) => Promise<void> | void): void {
  const box = document.getElementById("view")!;
  const say = (message: Message) => parent.postMessage(message, "*");
  addEventListener("message", (event: MessageEvent<{ content: Content; look: Look }>) => {
    if (event.source !== parent) return;
    const { content, look } = event.data;
    Promise.resolve()
      .then(() => draw(box, content, look))
      .then(
        () => say({ drawn: true }),
        (error: Error) => say({ failed: String(error.message ?? error) }),
      );
  });
  say({ ready: true });
}
