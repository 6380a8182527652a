// Notes in Markdown as elements. What is written there is never taken as HTML, so nothing in it runs.

import type { ComponentChildren, VNode } from "preact";
import "../style/markdown.css";

type Block =
  | { kind: "heading"; level: number; text: string }
  | { kind: "paragraph" | "quote"; text: string }
  | { kind: "code"; text: string }
  | { kind: "rule" }
  | { kind: "list"; ordered: boolean; items: string[] }
  | { kind: "table"; head: string[]; rows: string[][] };

export function Markdown({ text }: { text: string }) {
  return <div class="markdown">{blocksOf(text).map(drawn)}</div>;
}

/** The blocks of a text: paragraphs, lists, code, tables. */
function blocksOf(text: string): Block[] {
  const lines = text.replaceAll("\r\n", "\n").split("\n");
  const blocks: Block[] = [];
  let at = 0;
  const take = (isIn: (line: string) => boolean): string[] => {
    const first = at;
    while (at < lines.length && isIn(lines[at]!)) at++;
    return lines.slice(first, at);
  };
  while (at < lines.length) {
    const line = lines[at]!;
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    if (!line.trim()) at++;
    else if (line.startsWith("```")) {
      at++;
      const code = take((text) => !text.startsWith("```"));
      at++;
      blocks.push({ kind: "code", text: code.join("\n") });
    } else if (heading) {
      at++;
      blocks.push({ kind: "heading", level: heading[1]!.length, text: heading[2]! });
    } else if (/^\s*(-{3,}|\*{3,})\s*$/.test(line)) {
      at++;
      blocks.push({ kind: "rule" });
    } else if (/^>\s?/.test(line)) {
      const quoted = take((text) => /^>\s?/.test(text));
      blocks.push({ kind: "quote", text: quoted.map((text) => text.replace(/^>\s?/, "")).join("\n") });
    } else if (isItem(line)) {
      const ordered = /^\s*\d+[.)]\s/.test(line);
      const items: string[] = [];
      for (const text of take((each) => isItem(each) || (/^\s+\S/.test(each) && !!each.trim()))) {
        if (isItem(text)) items.push(text.replace(/^\s*([-*+]|\d+[.)])\s+/, ""));
        else items[items.length - 1] += ` ${text.trim()}`;
      }
      blocks.push({ kind: "list", ordered, items });
    } else if (line.includes("|") && /^\s*\|?\s*:?-{2,}/.test(lines[at + 1] ?? "")) {
      at += 2;
      const rows = take((text) => text.includes("|"));
      blocks.push({ kind: "table", head: cells(line), rows: rows.map(cells) });
    } else {
      const part = take((text) => !!text.trim() && !/^(#{1,6}\s|```|>\s?)/.test(text) && !isItem(text));
      blocks.push({ kind: "paragraph", text: part.join("\n") });
    }
  }
  return blocks;
}

function isItem(line: string): boolean {
  return /^\s*([-*+]|\d+[.)])\s+\S/.test(line);
}

function cells(line: string): string[] {
  return line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
}

function drawn(block: Block): VNode {
  switch (block.kind) {
    case "heading": {
      // The page's own title is the first heading.
      const Heading = `h${Math.min(6, block.level + 1)}` as "h2";
      return <Heading>{words(block.text)}</Heading>;
    }
    case "code":
      return (
        <pre>
          <code>{block.text}</code>
        </pre>
      );
    case "rule":
      return <hr />;
    case "quote":
      return <blockquote>{words(block.text)}</blockquote>;
    case "list": {
      const List = block.ordered ? "ol" : "ul";
      return <List>{block.items.map((item) => <li>{words(item)}</li>)}</List>;
    }
    case "table":
      return (
        <table>
          <thead>
            <tr>{block.head.map((cell) => <th>{words(cell)}</th>)}</tr>
          </thead>
          <tbody>
            {block.rows.map((row) => (
              <tr>{row.map((cell) => <td>{words(cell)}</td>)}</tr>
            ))}
          </tbody>
        </table>
      );
    default:
      return <p>{words(block.text)}</p>;
  }
}

const INLINE = /(`[^`]+`)|(\*\*[^*]+\*\*)|(\*[^*\s][^*]*\*)|(\b_[^_]+_\b)|(\[[^\]]+\]\([^)\s]+\))|(https?:\/\/[^\s)]+)/;

/** Words with their emphasis, code and links. */
function words(text: string): ComponentChildren {
  const pieces: ComponentChildren[] = [];
  let rest = text;
  while (rest) {
    const match = INLINE.exec(rest);
    if (!match) {
      pieces.push(rest);
      break;
    }
    if (match.index) pieces.push(rest.slice(0, match.index));
    pieces.push(piece(match[0]));
    rest = rest.slice(match.index + match[0].length);
  }
  return pieces;
}

function piece(text: string): ComponentChildren {
  if (text.startsWith("`")) return <code>{text.slice(1, -1)}</code>;
  if (text.startsWith("**")) return <strong>{words(text.slice(2, -2))}</strong>;
  if (text.startsWith("*") || text.startsWith("_")) return <em>{words(text.slice(1, -1))}</em>;
  const link = /^\[([^\]]+)\]\(([^)\s]+)\)$/.exec(text);
  if (link) return isSafe(link[2]!) ? <a href={link[2]} rel="noreferrer noopener">{link[1]}</a> : link[1];
  return (
    <a href={text} rel="noreferrer noopener">
      {text}
    </a>
  );
}

/** Not `javascript:` and the like. */
function isSafe(target: string): boolean {
  return /^(https?:|mailto:|#|\.{0,2}\/|[\w-]+(\/|$))/i.test(target);
}
