// Under which names a project's runs have anything. This alone says which charts and columns there are.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get, type ApiError } from "../api";
import { pathOf } from "../root";
import { AGAIN_AFTER, type ChartState } from "./curves";
import type { Keys } from "./runs";

export interface Names {
  keys: Keys | null;
  /** What there is instead of `keys`. */
  state: ChartState;
  /** Asks; while nobody answers, it asks again and again. Answers null then. */
  ask: () => Promise<Keys | null>;
}

export function useNames(entity: string, project: string): Names {
  const path = `api/projects/${pathOf(entity, project)}/keys`;
  const [keys, setKeys] = useState<Keys | null>(null);
  const [hasFailed, setFailed] = useState(false);
  const timer = useRef(0);
  const turn = useRef(0);
  const ask = useCallback(async (): Promise<Keys | null> => {
    const own = turn.current;
    clearTimeout(timer.current);
    try {
      const fresh = await get<Keys>(path);
      if (own !== turn.current) return null;
      setFailed(false);
      setKeys((old) => (JSON.stringify(old) === JSON.stringify(fresh) ? old : fresh));
      return fresh;
    } catch (error) {
      if (own !== turn.current) return null;
      setFailed(true);
      if ((error as ApiError).passes) timer.current = window.setTimeout(() => void ask(), AGAIN_AFTER);
      return null;
    }
  }, [path]);
  useEffect(
    () => () => {
      turn.current += 1;
      clearTimeout(timer.current);
    },
    [path],
  );
  return { keys, state: keys ? "shown" : hasFailed ? "failed" : "loading", ask };
}
