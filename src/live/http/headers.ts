import type { EndpointEntry } from "../endpoints/endpoint-directory.ts";
import { type CorsAnswer, pushCors } from "./cors.ts";
import { ANYBODY, type Client } from "./client.ts";

/** Names of one connection alone (RFC 9110 §7.6.1); never passed on, either way. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/**
 * What a client may not hand to an engine: what the gateway sets itself, `expect` (answered here), and
 * `accept-encoding`, since a compressed answer could not be inspected.
 */
const NOT_FOR_ENGINES: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  "host",
  "content-length",
  "expect",
  "accept-encoding",
  "x-request-id",
]);

/** vLLM lets it go before the body's. */
export const PRIORITY = "x-vllm-priority";
const RANK = "x-data-parallel-rank";

const CORS_PREFIX = "access-control-";

/** Headers of this gateway, in both directions. */
const OWN_PREFIX = "x-gnomon-";

export interface UpstreamHeaderOptions {
  readonly requestId: string;
  /** The client's Authorization or x-api-key was meant for the gateway and stays here. */
  readonly dropAuthorization: boolean;
  /** What else no client may send to an engine, in lower case. */
  readonly withheld: ReadonlySet<string>;
  /** vLLM's priority in place of the client's; undefined leaves that. */
  readonly priority?: number | undefined;
}

/** Flat list of the client's headers as an endpoint gets them. */
export function upstreamHeaders(
  given: RequestHeaders,
  entry: EndpointEntry,
  { requestId, dropAuthorization, withheld, priority }: UpstreamHeaderOptions,
): string[] {
  const { names, raw } = given;
  const named = namedByConnection(given.get("connection"));
  const headers: string[] = ["x-request-id", requestId];
  const dropAuth = dropAuthorization || entry.apiKey !== undefined;
  for (let i = 0; i < names.length; i++) {
    const name = names[i]!;
    if (NOT_FOR_ENGINES.has(name) || name.startsWith(OWN_PREFIX) || withheld.has(name)) continue;
    if (dropAuth && (name === "authorization" || name === "x-api-key")) continue;
    if (named?.has(name) === true || (priority !== undefined && name === PRIORITY)) continue;
    if (entry.dataParallelRank !== undefined && name === RANK) continue;
    headers.push(name, raw[2 * i + 1]!);
  }
  if (priority !== undefined) headers.push(PRIORITY, String(priority));
  if (entry.apiKey !== undefined) headers.push("authorization", `Bearer ${entry.apiKey}`);
  if (entry.dataParallelRank !== undefined) headers.push(RANK, String(entry.dataParallelRank));
  return headers;
}

/** Headers that the message's own Connection field declares to be of this hop. */
function namedByConnection(connection: string): Set<string> | undefined {
  if (connection === "" || connection === "keep-alive" || connection === "close") return undefined;
  return new Set(connection.split(",").map((name) => name.trim().toLowerCase()));
}

/** Headers of an answer as undici gives them. */
export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>>;

export function headerOf(headers: AnswerHeaders, name: string): string {
  const value = headers[name];
  return typeof value === "string" ? value : (value?.[0] ?? "");
}

/** What the gateway adds to every answer. */
export interface OwnHeaders {
  readonly requestId: string;
  /** "" where none served. */
  readonly endpoint: string;
  /** Where the prompt was computed, if that was another one. */
  readonly prefill?: string | undefined;
  /** Reason of the decision, or of the error. */
  readonly reason: string;
  /** Profile and policy version that decided; "" where nothing was decided. */
  readonly profile: string;
  /** Prompt tokens that the endpoint was believed to hold; sent where an endpoint is. */
  readonly hitTokens: number;
  /** Names of this gateway's own, x-gnomon-*, are for the client too. */
  readonly sendsOwn: boolean;
  /** Values of access-control headers in place of the engine's; undefined passes those. */
  readonly cors: CorsAnswer | undefined;
}

/** Flat list for the client: the engine's headers but for hop-by-hop and ours, then ours. */
export function clientHeaders(from: AnswerHeaders, own: OwnHeaders, keepLength: boolean): string[] {
  const headers: string[] = [];
  const connection = headerOf(from, "connection").toLowerCase();
  const named = connection === "" || connection === "close" || connection === "keep-alive" ? "" : connection;
  for (const name in from) {
    if (HOP_BY_HOP.has(name) || name === "x-request-id" || name.startsWith(OWN_PREFIX)) continue;
    if (name === "content-length" && !keepLength) continue;
    if (own.cors !== undefined && name.startsWith(CORS_PREFIX)) continue;
    if (named !== "" && named.split(",").some((part) => part.trim() === name)) continue;
    const value = from[name]!;
    if (typeof value === "string") headers.push(name, value);
    else for (const one of value) headers.push(name, one);
  }
  pushOwn(headers, own);
  return headers;
}

/** Adds the gateway's own headers, as [name, value, ...]. */
export function pushOwn(headers: string[], own: OwnHeaders): void {
  headers.push("x-request-id", own.requestId);
  if (own.sendsOwn) {
    if (own.endpoint !== "") {
      headers.push("x-gnomon-endpoint", own.endpoint, "x-gnomon-hit-tokens", String(own.hitTokens));
      if (own.prefill !== undefined) headers.push("x-gnomon-prefill-endpoint", own.prefill);
    }
    if (own.profile !== "") headers.push("x-gnomon-profile", own.profile);
    if (own.reason !== "") headers.push("x-gnomon-reason", own.reason);
  }
  if (own.cors !== undefined) pushCors(headers, own.cors);
}

/**
 * Whether a Content-Type begins with this media type, which is in lower case: its letters may be of either case, and
 * parameters may follow it (RFC 9110, 8.3.1).
 */
export function isMediaType(contentType: string, type: string): boolean {
  // As nearly all engines write it.
  return contentType.startsWith(type) || contentType.slice(0, type.length).toLowerCase() === type;
}

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
