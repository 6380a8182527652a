// Which page an address shows. A page is loaded when it is first shown.

import type { ComponentType } from "preact";

export interface PageProps {
  entity: string;
  project: string;
  /** The id of the run, sweep or report. */
  id: string;
}

type Load = () => Promise<{ default: ComponentType<PageProps> }>;

interface Route {
  pattern: string[];
  load: Load;
}

// ":name" stands for any part; "*" for any rest.
const ROUTES: Route[] = [
  { pattern: [], load: () => import("./pages/Projects") },
  { pattern: ["jobs"], load: () => import("./pages/Jobs") },
  { pattern: ["settings"], load: () => import("./pages/Settings") },
  { pattern: [":entity", ":project"], load: () => import("./pages/Project") },
  { pattern: [":entity", ":project", "workspace"], load: () => import("./pages/Project") },
  { pattern: [":entity", ":project", "table"], load: () => import("./pages/Project") },
  { pattern: [":entity", ":project", "sweeps"], load: () => import("./pages/Sweeps") },
  { pattern: [":entity", ":project", "sweeps", ":id"], load: () => import("./pages/Sweep") },
  { pattern: [":entity", ":project", "reports"], load: () => import("./pages/Reports") },
  { pattern: [":entity", ":project", "reports", ":id"], load: () => import("./pages/Report") },
  { pattern: [":entity", ":project", "runs", ":id", "*"], load: () => import("./pages/Run") },
];

export interface Found {
  load: Load;
  props: PageProps;
}

export function findRoute(parts: string[]): Found | null {
  for (const route of ROUTES) {
    const names = matched(route.pattern, parts);
    if (names) return { load: route.load, props: { entity: "", project: "", id: "", ...names } };
  }
  return null;
}

function matched(pattern: string[], parts: string[]): Record<string, string> | null {
  const isOpen = pattern.at(-1) === "*";
  const fixed = isOpen ? pattern.slice(0, -1) : pattern;
  if (isOpen ? parts.length < fixed.length : parts.length !== fixed.length) return null;
  const names: Record<string, string> = {};
  for (const [place, word] of fixed.entries()) {
    const part = parts[place]!;
    if (word.startsWith(":")) names[word.slice(1)] = part;
    else if (word !== part) return null;
  }
  return names;
}
