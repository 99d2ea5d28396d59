import { ConfigError } from "./config-error.ts";

type Plain = Readonly<Record<string, unknown>>;

/** RFC 7396: mappings are merged key by key, null takes a key away, everything else replaces what was there. */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isPlain(patch)) return patch;
  const merged = new Map(isPlain(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, mergePatch(merged.get(key), value));
  }
  return Object.fromEntries(merged);
}

/** The merge patch that makes `after` of `before`; neither has a null. */
export function patchBetween(before: unknown, after: unknown): unknown {
  if (!isPlain(before) || !isPlain(after)) return after;
  const patch: [string, unknown][] = Object.keys(before)
    .filter((key) => after[key] === undefined)
    .map((key) => [key, null]);
  for (const [key, value] of Object.entries(after)) {
    if (value === undefined || JSON.stringify(value) === JSON.stringify(before[key])) continue;
    patch.push([key, patchBetween(before[key], value)]);
  }
  return Object.fromEntries(patch);
}

/** A document from outside, which must be a mapping; throws ConfigError. */
export function expectedPlain(document: unknown): Plain {
  if (isPlain(document)) return document;
  const got = Array.isArray(document) ? "a list" : (JSON.stringify(document) ?? "nothing").slice(0, SHOWN_CHARS_MAX);
  throw new ConfigError([`policy: expected a mapping with routing, profiles or limits, got ${got}`]);
}

const SHOWN_CHARS_MAX = 60;

/** Whether a value is a mapping. */
export function isPlain(value: unknown): value is Plain {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
