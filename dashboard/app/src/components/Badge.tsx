// A run's, sweep's or job's state: a dot in its colour and the word.

export function StateBadge({ state, short }: { state: string; short?: boolean }) {
  return (
    <span class={`badge state-${state.toLowerCase()}`} title={state}>
      <span class="dot" />
      {!short && state}
    </span>
  );
}

export function Tag({ text, remove }: { text: string; remove?: () => void }) {
  return (
    <span class="tag">
      {text}
      {remove && (
        <button class="quiet" aria-label={`Remove the tag ${text}`} onClick={remove}>
          ×
        </button>
      )}
    </span>
  );
}
