// Where the files of a logged value are: with its run, or, for what is in a table, in an artifact.

import { get } from "../api";
import { pathOf } from "../root";
import { fileAddress } from "../session";
import type { Labels } from "./values";

export interface Files {
  url: (path: string) => string;
  /** Names of the classes in a layer of masks or boxes. */
  labels: (kind: "masks" | "boxes", layer: string) => Labels;
}

/** The path of a run's file. */
export function filePath(run: { entity: string; project: string; id: string }, name: string): string {
  return `files/${pathOf(run.entity, run.project, run.id)}/${pathOf(...name.split("/"))}`;
}

export interface ArtifactFiles {
  paths: string[];
  url: (path: string) => string;
}

/** `wandb-client-artifact://ID/PATH`, or `ID:latest`: the artifact's files, and the path in it. */
export async function openArtifact(address: string): Promise<{ path: string; files: ArtifactFiles }> {
  const [, id, path] = /^wandb-client-artifact:\/\/([^/:]+)(?::latest)?\/(.*)$/.exec(address) ?? [];
  if (!id || path === undefined) throw new Error(`The page cannot read the address ${address.slice(0, 60)}.`);
  const { key, entity } = await get<{ key: number; entity: string }>("api/artifacts/of-client", { query: { id } });
  const { contents } = await get<{ contents: Record<string, { digest: string; ref?: string }> }>(`api/artifacts/${key}/manifest`);
  const url = (name: string) => {
    const entry = contents[name];
    return entry ? blobAddress(entity, entry.digest, name) : "";
  };
  return { path, files: { paths: Object.keys(contents), url } };
}

export function blobAddress(entity: string, digest: string, name: string): string {
  return fileAddress(`artifacts/${pathOf(entity, hexOf(digest), name.split("/").at(-1)!)}`);
}

/** Digests are MD5 in base 64; addresses have them in hexadecimal. */
function hexOf(digest: string): string {
  return [...atob(digest)].map((letter) => letter.charCodeAt(0).toString(16).padStart(2, "0")).join("");
}
