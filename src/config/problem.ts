import type * as z from "zod";
import { expectation, nodeAt, schemaNode, type Path, type SchemaNode } from "./schema-node.ts";

/** One thing that is wrong with what a person wrote. */
export interface Problem {
  readonly path: Path;
  /** "expected …, got …". Never holds the value of a secret. */
  readonly message: string;
}

export type Checked<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly problems: readonly Problem[] };

const SHOWN_CHARS_MAX = 60;
const WORDS_SHOWN_MAX = 64;

/** Checks `value` against a schema and reports all that is wrong with it at once. */
export function checkShape<S extends z.ZodType>(schema: S, value: unknown): Checked<z.output<S>> {
  // Zod would compile a function for each mapping first, which pays for schemas that check thousands of values.
  const result = schema.safeParse(value, { jitless: true });
  if (result.success) return { ok: true, value: result.data };
  const root = schemaNode(schema);
  return { ok: false, problems: result.error.issues.flatMap((issue) => problemsOf(issue, root, value)) };
}

/** `listen.port: expected an integer in [0, 65535], got "x"`, with the place it was read from where known. */
export function problemLine(problem: Problem, from = ""): string {
  const path = pathText(problem.path);
  return `${path === "" ? "" : `${path}: `}${problem.message}${from === "" ? "" : ` (${from})`}`;
}

/** `endpoints[2].url`; a key that is no plain word is quoted. */
export function pathText(path: Path): string {
  let text = "";
  for (const key of path) {
    if (typeof key === "number") text += `[${key}]`;
    else if (/^[A-Za-z_][\w-]*$/.test(key)) text += text === "" ? key : `.${key}`;
    else text += `[${JSON.stringify(key)}]`;
  }
  return text;
}

/** What stands before the @ of a URL may be a password. */
function shown(value: unknown): string {
  if (value === undefined) return "nothing";
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (value !== null && typeof value === "object") return "a mapping";
  const quoted = typeof value === "number" ? String(value) : (JSON.stringify(value) ?? typeof value);
  const text = quoted.replace(/^"(\w+:\/\/)?.*@/, '"$1…@');
  return text.length > SHOWN_CHARS_MAX ? `${text.slice(0, SHOWN_CHARS_MAX)}…` : text;
}

/** The accepted word nearest to what was written, if one is near enough to be meant. */
function nearest(written: string, accepted: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestDistance = Math.max(2, Math.floor(written.length / 2));
  for (const word of accepted) {
    const contained = word.toLowerCase().startsWith(written.toLowerCase()) && written.length > 2;
    const distance = contained ? 0 : editDistance(written.toLowerCase(), word.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [word, distance];
  }
  return best;
}

function problemsOf(issue: z.core.$ZodIssue, root: SchemaNode, value: unknown): Problem[] {
  const path = issue.path.filter((key) => typeof key !== "symbol");
  if (issue.code === "unrecognized_keys") {
    const { properties = {}, secret = false } = nodeAt(root, path) ?? {};
    const accepted = Object.keys(properties);
    return issue.keys.map((key) => {
      // What is near to no word that is accepted may be a secret, written as a key.
      if (secret && nearest(key, accepted) === undefined)
        return { path, message: `expected one of ${accepted.join(", ")}, got a key that is not shown` };
      return { path: [...path, key], message: unknownWord("key", key, accepted) };
    });
  }
  const branches = issue.code === "invalid_union" ? branchNames(nodeAt(root, path.slice(0, -1)), path.at(-1)) : [];
  if (branches.length > 0) {
    const written = valueAt(value, path);
    if (typeof written === "string") return [{ path, message: unknownWord(String(path.at(-1)), written, branches) }];
    return [{ path, message: `expected one of ${branches.join(", ")}, got ${shown(written)}` }];
  }
  const node = nodeAt(root, path, value);
  const expected =
    node?.expected ?? (issue.code === "custom" || node === undefined ? issue.message : expectation(node));
  const written = valueAt(value, path);
  const isHidden = node?.secret === true && written !== undefined && (written === null || typeof written !== "object");
  const got = isHidden ? "a value that is not shown" : shown(written);
  return [{ path, message: `expected ${expected}, got ${got}` }];
}

/** What a key may be that chooses among several forms of a mapping. */
function branchNames(node: SchemaNode | undefined, key: string | number | undefined): string[] {
  return (node?.oneOf ?? node?.anyOf ?? []).flatMap(({ properties }) => {
    const name = key === undefined ? undefined : properties?.[key]?.const;
    return name === undefined ? [] : [String(name)];
  });
}

/** Message for a word outside a closed set, with the set and the likeliest meaning. */
export function unknownWord(what: string, written: string, accepted: readonly string[]): string {
  const meant = nearest(written, accepted);
  const hint = meant === undefined ? "" : `; did you mean ${meant}?`;
  const set = accepted.length > WORDS_SHOWN_MAX ? `a ${what} that exists` : `one of ${accepted.join(", ")}`;
  return `expected ${set}, got the unknown ${what} ${shown(written)}${hint}`;
}

function valueAt(value: unknown, path: Path): unknown {
  let at: unknown = value;
  for (const key of path) {
    if (at === null || typeof at !== "object") return undefined;
    at = Reflect.get(at, key);
  }
  return at;
}

/** Levenshtein distance, one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const substituted = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, substituted));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
