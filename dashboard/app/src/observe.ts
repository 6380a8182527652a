// A value that components look at and that anybody may change.

import { useEffect, useState } from "preact/hooks";

export class Observed<T> {
  private readonly listeners = new Set<() => void>();
  constructor(private current: T) {}
  get value(): T {
    return this.current;
  }
  set(next: T): void {
    if (Object.is(next, this.current)) return;
    this.current = next;
    [...this.listeners].forEach((listener) => listener());
  }
  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

export function useObserved<T>(observed: Observed<T>): T {
  const [value, setValue] = useState(observed.value);
  useEffect(() => {
    setValue(() => observed.value);
    return observed.listen(() => setValue(() => observed.value));
  }, [observed]);
  return value;
}
