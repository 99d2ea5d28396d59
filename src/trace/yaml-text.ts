import { type Document, type LineCounter, isScalar, parseDocument, visit } from "yaml";

export interface YamlFault {
  readonly message: string;
  readonly code: string;
  /** In characters. */
  readonly pos: readonly [number, number];
}

export interface ReadYaml {
  readonly document: Document;
  /** The first of them. */
  readonly faults: readonly YamlFault[];
}

/** Faults of one text that are reported. */
export const YAML_FAULTS_MAX = 100;
/** What aliases of one anchor may stand for, so that a small text does not become an endless one. */
const ALIASES_MAX = 100;

/**
 * A YAML text as a document, or why there is none. Costs what it is long: the parser's own search for keys that are equal
 * compares each of a mapping with each.
 */
export function readYaml(text: string, lineCounter?: LineCounter): ReadYaml | string {
  try {
    const lines = lineCounter && { lineCounter };
    const document = parseDocument(text, { ...lines, uniqueKeys: false, prettyErrors: false });
    return { document, faults: [...document.errors, ...equalKeys(document)].slice(0, YAML_FAULTS_MAX) };
  } catch (error) {
    // Of what is nested too deeply.
    return error instanceof RangeError ? "too many levels" : String(error);
  }
}

/** The document as plain data. Throws an Error where an alias stands for nothing, or aliases for too much. */
export function yamlData({ document }: ReadYaml): unknown {
  return document.toJS({ maxAliasCount: ALIASES_MAX });
}

export type YamlValue =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly message: string; readonly code: string };

/** A YAML text as plain data, or what is wrong in it first; with its line, but for what is found behind reading. */
export function yamlValueOf(text: string): YamlValue {
  const read = readYaml(text);
  if (typeof read === "string") return { ok: false, message: read, code: "" };
  const [fault] = read.faults;
  if (fault !== undefined) {
    const line = text.slice(0, fault.pos[0]).split("\n").length;
    return { ok: false, message: `${fault.message} at line ${line}`, code: fault.code };
  }
  try {
    return { ok: true, value: yamlData(read) };
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : String(error), code: "BAD_ALIAS" };
  }
}

/** Keys that stand twice in one mapping; the first few. */
function equalKeys(document: Document): YamlFault[] {
  const found: YamlFault[] = [];
  visit(document, {
    Map: (_key, { items }) => {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key)) continue;
        const at = key.range?.[0] ?? 0;
        if (seen.has(key.value))
          found.push({ message: "Map keys must be unique", code: "DUPLICATE_KEY", pos: [at, at] });
        seen.add(key.value);
        if (found.length >= YAML_FAULTS_MAX) return visit.BREAK;
      }
      return undefined;
    },
  });
  return found;
}
