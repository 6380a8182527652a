// How a run's media are shown, from the server.

import { get } from "../api";
import type { MediaInfo } from "./values";

const infos = new Map<string, Promise<MediaInfo>>();

/** Asked once for all panels of a run, until it has logged more. */
export function infoOf(run: number, turn: number): Promise<MediaInfo> {
  const known = infos.get(`${run} ${turn}`);
  if (known) return known;
  const answer = get<MediaInfo>(`api/runs/${run}/media`);
  answer.catch(() => infos.delete(`${run} ${turn}`));
  infos.set(`${run} ${turn}`, answer);
  return answer;
}
