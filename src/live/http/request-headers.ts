import { ANYBODY, type Client } from "./client.ts";

/**
 * The headers of one request, over the flat list that Node keeps. Building Node's own object of them costs more than all
 * the look-ups that a request makes.
 */
export class RequestHeaders {
  /** Names and values by turns, as they came. */
  readonly raw: readonly string[];
  /** Names in lower case. */
  readonly names: readonly string[];
  /** Who sends them, as far as the key names it. */
  client: Client = ANYBODY;
  /** They come from a proxy that is trusted to name the tenants of its requests. */
  trusted = false;

  constructor(raw: readonly string[]) {
    this.raw = raw;
    this.names = lowerNames(raw);
  }

  /** The first value; "" where there is none. `name` is in lower case. */
  get(name: string): string {
    const at = this.names.indexOf(name);
    return at < 0 ? "" : this.raw[2 * at + 1]!;
  }
}

/** Requests of one client have the same names, so those of the request before are used again where they fit. */
let lastRaw: readonly string[] = [];
let lastNames: readonly string[] = [];

function lowerNames(raw: readonly string[]): readonly string[] {
  if (!sameNames(raw, lastRaw)) {
    const names: string[] = [];
    for (let i = 0; i < raw.length; i += 2) names.push(raw[i]!.toLowerCase());
    lastNames = names;
    lastRaw = raw.map((text, i) => (i % 2 === 0 ? text : ""));
  }
  return lastNames;
}

function sameNames(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i += 2) if (a[i] !== b[i]) return false;
  return true;
}
