// A sweep and its trials as the page holds them: rows made of the server's columns, kept up to date
// by what changed.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { get, type ApiError } from "../api";
import { useLive } from "../live";
import type { Sweep, SweepColumns as Columns } from "../shapes";

export type { Metric, Parameter, Sweep, SweepAgent } from "../shapes";

export type Value = number | string | boolean | null;

export interface Trial {
  number: number;
  id: string;
  name: string;
  run: number | null;
  state: string;
  cause: string | null;
  attempts: number;
  host: string | null;
  started_at: number | null;
  ended_at: number | null;
  began_at: number | null;
  seconds: number;
  /** Its rank in the order of ending. */
  ended: number | null;
  values: Record<string, Value>;
  /** Where its values stand on their axes, from 0 to 1. */
  places: Record<string, number | null>;
  measured: Record<string, number | null>;
  /** Of the sweep's metrics, what the run's summary says. */
  last: Record<string, number | null>;
}

export interface SweepData extends Omit<Columns, "trials" | "values" | "places" | "measured" | "last"> {
  rows: Trial[];
  /** Every metric that a trial has, those of the search first. */
  measuredNames: string[];
}

const TOLD = ["id", "name", "run", "state", "cause", "attempts", "host", "started_at", "ended_at", "began_at", "seconds", "ended"] as const;

function rowsOf(columns: Columns): Trial[] {
  return columns.trials.number!.map((number, place) => {
    const row: Record<string, unknown> = { number };
    for (const name of TOLD) row[name] = columns.trials[name]?.[place] ?? null;
    row.values = at(columns.values, place);
    row.places = at(columns.places, place);
    row.measured = finite(at(columns.measured, place));
    row.last = finite(at(columns.last, place));
    return row as unknown as Trial;
  });
}

function at<T>(columns: Record<string, T[]>, place: number): Record<string, T> {
  return Object.fromEntries(Object.entries(columns).map(([name, column]) => [name, column[place] as T]));
}

/** NaN and the infinities come as texts, and are drawn nowhere. */
function finite(values: Record<string, number | string | null>): Record<string, number | null> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, typeof value === "number" ? value : null]));
}

function joined(old: SweepData | null, columns: Columns): SweepData {
  const { trials: _t, values: _v, places: _p, last: _l, measured, ...rest } = columns;
  const rows = new Map<number, Trial>(columns.whole || !old ? [] : old.rows.map((row) => [row.number, row]));
  for (const row of rowsOf(columns)) rows.set(row.number, row);
  const names = new Set([...(columns.whole ? [] : (old?.measuredNames ?? [])), ...Object.keys(measured)]);
  return { ...rest, rows: [...rows.values()].sort((a, b) => a.number - b.number), measuredNames: [...names] };
}

export interface LoadedSweep {
  data: SweepData | null;
  error: ApiError | null;
  again: () => void;
}

/** A sweep by its path, live. */
export function useSweep(entity: string, project: string, id: string): LoadedSweep {
  const [key, setKey] = useState<number | null>(null);
  const [data, setData] = useState<SweepData | null>(null);
  const [error, setError] = useState<ApiError | null>(null);
  const newest = useRef<SweepData | null>(null);

  const refresh = useCallback(
    async (whole: boolean) => {
      try {
        const sweepKey = key ?? (await get<Sweep>("api/sweep", { query: { name: `${entity}/${project}/${id}` } })).key;
        setKey(sweepKey);
        const since = whole ? null : newest.current?.revision;
        newest.current = joined(newest.current, await get<Columns>(`api/sweeps/${sweepKey}/columns`, { query: { since } }));
        setData(newest.current);
        setError(null);
      } catch (failure) {
        setError(failure as ApiError);
      }
    },
    [key, entity, project, id],
  );
  useEffect(() => void refresh(true), [entity, project, id]);
  useLive(key === null ? null : { sweep: String(key) }, data ? data.revision : null, (news) => {
    if (news.whole) void refresh(true);
    else if (news.sweeps.length || news.agents) void refresh(false);
  });
  return { data, error, again: () => void refresh(true) };
}

const EARLY = "stopped";

/** Whether the search stopped a trial before its end because others were better. */
export function isEarly(trial: Trial): boolean {
  return trial.state === EARLY;
}
