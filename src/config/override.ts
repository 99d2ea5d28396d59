import { parseYamlFile } from "./yaml-file.ts";
import { nodeAt, type Path, type SchemaNode } from "./schema-node.ts";
import { pathText, unknownWord, type Problem } from "./problem.ts";

/** A value given outside the file, which it replaces. */
export interface Override {
  readonly path: Path;
  readonly value: unknown;
  /** For error messages: the flag or the environment variable. */
  readonly from: string;
  /** It stands only where the file leaves the key open. */
  readonly yields?: true;
}

const PREFIX = "GNOMON_";

/** A Kubernetes service named gnomon puts these into every pod; they are not ours. */
const SERVICE_LINK =
  /^GNOMON(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP)(_(PROTO|PORT|ADDR))?)?)$/;

/** `listen.port` is GNOMON_LISTEN_PORT, `scrape.intervalMillis` is GNOMON_SCRAPE_INTERVAL_MILLIS. */
export function environmentNameOf(path: Path): string {
  const words = path.map((key) => String(key).replaceAll(/([a-z0-9])([A-Z])/g, "$1_$2"));
  return PREFIX + words.join("_").toUpperCase();
}

/** Every key that one variable or one flag can set: leaves, lists and free mappings, but not what is inside a list. */
function settablePaths(root: SchemaNode): Path[] {
  const paths: Path[] = [];
  const walk = (node: SchemaNode, path: Path): void => {
    if (node.properties === undefined) paths.push(path);
    else for (const [key, child] of Object.entries(node.properties)) walk(child, [...path, key]);
  };
  walk(root, []);
  return paths;
}

/** Overrides from GNOMON_* variables. One that names no key is a problem, unless `isSecret` knows it. */
export function overridesFromEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  root: SchemaNode,
  isSecret: (name: string) => boolean,
): { overrides: Override[]; problems: Problem[] } {
  const given = Object.entries(environment).filter(([name]) => name.startsWith(PREFIX) && !isSecret(name));
  const overrides: Override[] = [];
  const problems: Problem[] = [];
  for (const [name, text] of given) {
    if (text === undefined) continue;
    const path = pathNamed(name, root);
    if (path !== undefined) overrides.push({ path, value: valueOf(text, nodeAt(root, path)), from: name });
    else if (!SERVICE_LINK.test(name)) {
      const names = settablePaths(root).map(environmentNameOf);
      problems.push({ path: [name], message: unknownWord("variable", name, names) });
    }
  }
  return { overrides, problems };
}

/** The settable path of a variable's name. Of sections, only those that it begins with are looked at, and so written. */
function pathNamed(name: string, { properties }: SchemaNode, at: Path = []): Path | undefined {
  if (properties === undefined) return environmentNameOf(at) === name ? at : undefined;
  for (const key of Object.keys(properties)) {
    const path = [...at, key];
    if (!`${name}_`.startsWith(`${environmentNameOf(path)}_`)) continue;
    const found = pathNamed(name, properties[key]!, path);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Override from `--set path=value`. */
export function overrideFromText(text: string, root: SchemaNode): Override | Problem {
  const cut = text.indexOf("=");
  const dotted = cut < 0 ? text : text.slice(0, cut);
  if (cut <= 0) return { path: ["--set"], message: `expected key=value, got ${JSON.stringify(text)}` };
  const path = dotted.split(".");
  const node = nodeAt(root, path);
  if (node === undefined) {
    return { path: ["--set"], message: unknownWord("key", dotted, settablePaths(root).map(pathText)) };
  }
  return { path, value: valueOf(text.slice(cut + 1), node), from: "--set" };
}

/** Text stays text where the schema wants a string; a list may be written a,b,c; anything else is read as YAML. */
export function valueOf(text: string, node: SchemaNode | undefined): unknown {
  if (node === undefined || node.type === "string" || node.enum !== undefined) return text;
  const parsed = parseYamlFile("", text);
  const value = parsed.ok ? parsed.value.value : text;
  if (node.type !== "array" || Array.isArray(value)) return text.trim() === "" ? text : value;
  const parts = text.split(",").map((part) => part.trim());
  return parts.map((part) => (node.items?.type === "object" ? { url: part } : part));
}

/** A copy of `base` with the overrides in it, later ones winning. */
export function applyOverrides(base: unknown, overrides: readonly Override[]): unknown {
  const root: unknown = structuredClone(base);
  if (!isMapping(root)) return root;
  for (const override of overrides) {
    let at: Record<string, unknown> = root;
    for (const key of override.path.slice(0, -1)) {
      const next = at[key];
      at = isMapping(next) ? next : (at[key] = {});
    }
    const last = override.path.at(-1);
    if (last !== undefined && !(override.yields === true && last in at)) at[last] = override.value;
  }
  return root;
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
