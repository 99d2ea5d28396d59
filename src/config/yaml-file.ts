import { LineCounter, type Document, isAlias, isNode, parseDocument, visit } from "yaml";
import { readFileSync, statSync } from "node:fs";
import type { Checked, Problem } from "./problem.ts";
import type { Path } from "./schema-node.ts";

/** A YAML file as plain data, and where in the file each part of it was written. */
export interface YamlFile {
  readonly name: string;
  readonly value: unknown;
  /** 1-based line of the value at `path`, or of the nearest part above it that was written. */
  readonly lineOf: (path: Path) => number;
}

/** Larger files than this are no configuration. */
const FILE_BYTES_MAX = 4_194_304;
/** What aliases of one anchor may stand for, so that a small file does not become an endless one. */
const ALIASES_MAX = 100;

export function readYamlFile(name: string): Checked<YamlFile> {
  let text: string;
  try {
    if (statSync(name).size > FILE_BYTES_MAX)
      return refused(`expected a file of at most ${FILE_BYTES_MAX} bytes, got ${name}`);
    text = readFileSync(name, "utf8");
  } catch (error) {
    return refused(`expected a readable file, got ${name}: ${reasonOf(error)}`);
  }
  return parseYamlFile(name, text);
}

/**
 * Duplicate keys, unknown tags, aliases of nothing or of too much and broken syntax are problems; an empty file is an empty
 * mapping. Never throws.
 */
export function parseYamlFile(name: string, text: string): Checked<YamlFile> {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: true, prettyErrors: false });
  const faults = [...document.errors, ...document.warnings];
  if (faults.length > 0) {
    const problems = faults.map((fault): Problem => {
      const line = lines.linePos(fault.pos[0]).line;
      return { path: [], message: `expected YAML, got ${fault.message.toLowerCase()} (${name} line ${line})` };
    });
    return { ok: false, problems };
  }
  try {
    const value: unknown = document.toJS({ maxAliasCount: ALIASES_MAX }) ?? {};
    return { ok: true, value: { name, value, lineOf } };
  } catch (error) {
    const at = danglingAlias(document);
    const place = at === undefined ? name : `${name} line ${lines.linePos(at).line}`;
    return refused(`expected YAML, got ${error instanceof Error ? error.message.toLowerCase() : ""} (${place})`);
  }

  function lineOf(path: Path): number {
    for (let depth = path.length; depth > 0; depth--) {
      const node = document.getIn(path.slice(0, depth), true);
      if (isNode(node) && node.range) return lines.linePos(node.range[0]).line;
    }
    return 1;
  }
}

/** Where the first alias stands whose anchor does not come before it, in characters; undefined where all have theirs. */
function danglingAlias(document: Document): number | undefined {
  const anchors = new Set<string>();
  let found: number | undefined;
  visit(document, {
    Node: (_key, node) => {
      if (!isAlias(node)) {
        if (node.anchor !== undefined) anchors.add(node.anchor);
      } else if (!anchors.has(node.source)) {
        found = node.range?.[0];
        return visit.BREAK;
      }
      return undefined;
    },
  });
  return found;
}

function refused(message: string): Checked<never> {
  return { ok: false, problems: [{ path: [], message }] };
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  switch (code) {
    case "ENOENT":
      return "no such file";
    case "EACCES":
      return "permission denied";
    case "EISDIR":
      return "it is a folder";
    default:
      return error instanceof Error ? error.message : String(error);
  }
}
