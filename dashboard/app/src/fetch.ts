// Data of a component that comes from one question to the server.

import { useCallback, useEffect, useState } from "preact/hooks";
import { get, type ApiError } from "./api";

export interface Fetched<T> {
  data: T | null;
  error: ApiError | null;
  again: () => void;
}

/** The answer to a question; while the next one is under way, the last one stays. */
export function useFetch<T>(path: string | null, ask: (path: string) => Promise<T> = get): Fetched<T> {
  const [data, setData] = useState<T | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    if (path === null) return;
    let over = false;
    ask(path).then(
      (answer) => {
        if (over) return;
        setData(() => answer);
        setError(null);
      },
      (failure: ApiError) => {
        if (!over && failure.name !== "AbortError") setError(failure);
      },
    );
    return () => {
      over = true;
    };
  }, [path, turn]);
  const again = useCallback(() => setTurn((count) => count + 1), []);
  return { data, error, again };
}
