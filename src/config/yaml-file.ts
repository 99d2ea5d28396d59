import { LineCounter, type Document, type YAMLMap, isAlias, isMap, isNode, isScalar, isSeq, visit } from "yaml";
import { readFileSync, statSync } from "node:fs";
import { readYaml, YAML_FAULTS_MAX, yamlData } from "#trace/yaml-text.ts";
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

export function readYamlFile(name: string): Checked<YamlFile> {
  let text: string;
  try {
    if (statSync(name).size > FILE_BYTES_MAX)
      return refused(`expected a file of at most ${FILE_BYTES_MAX} bytes, got ${name}`);
    text = readFileSync(name, "utf8");
  } catch (error) {
    return refused(`expected a readable file, got ${name}: ${unreadableReason(error)}`);
  }
  return parseYamlFile(name, text);
}

/**
 * Duplicate keys, unknown tags, aliases of nothing or of too much and broken syntax are problems; an empty file is an empty
 * mapping. Never throws.
 */
export function parseYamlFile(name: string, text: string): Checked<YamlFile> {
  const lines = new LineCounter();
  const read = readYaml(text, lines);
  if (typeof read === "string") return refused(`expected YAML, got ${read} (${name})`);
  const { document } = read;
  const faults = [...read.faults, ...document.warnings].slice(0, YAML_FAULTS_MAX);
  if (faults.length > 0) {
    const problems = faults.map((fault): Problem => {
      const line = lines.linePos(fault.pos[0]).line;
      return { path: [], message: `expected YAML, got ${fault.message.toLowerCase()} (${name} line ${line})` };
    });
    return { ok: false, problems };
  }
  const keys = new KeyIndex();
  const lineOf = (path: Path): number => lines.linePos(placeOf(document, path, keys)).line;
  try {
    const value = yamlData(read) ?? {};
    return { ok: true, value: { name, value, lineOf } };
  } catch (error) {
    const at = danglingAlias(document);
    const place = at === undefined ? name : `${name} line ${lines.linePos(at).line}`;
    return refused(`expected YAML, got ${error instanceof Error ? error.message.toLowerCase() : ""} (${place})`);
  }
}

/** Where the value at `path` was written, or the nearest part above it, in characters. */
function placeOf(document: Document, path: Path, keys: KeyIndex): number {
  let node: unknown = document.contents;
  let place = 0;
  for (const step of path) {
    if (isMap(node)) node = keys.of(node).get(String(step));
    else node = isSeq(node) ? node.items[Number(step)] : undefined;
    if (!isNode(node)) return place;
    place = node.range?.[0] ?? place;
  }
  return place;
}

/** The values of mappings by their keys: a file may have as many problems as keys, each of which is looked for. */
class KeyIndex {
  readonly #maps = new WeakMap<object, ReadonlyMap<string, unknown>>();

  of(map: YAMLMap): ReadonlyMap<string, unknown> {
    let index = this.#maps.get(map);
    if (index === undefined) {
      index = new Map(map.items.map(({ key, value }) => [String(isScalar(key) ? key.value : key), value]));
      this.#maps.set(map, index);
    }
    return index;
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

/** Why a file cannot be read, in words. */
export function unreadableReason(error: unknown): string {
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
