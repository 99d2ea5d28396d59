import { Readable } from "node:stream";

import type { Dispatcher } from "undici";
import { LRUCache } from "lru-cache";

import type { GatewayParts } from "../gateway-parts.ts";
import type { EndpointEntry } from "../discovery/endpoint-directory.ts";
import { type Refusal, refusal } from "../answer/errors.ts";
import { clientHeaders } from "../request/headers.ts";
import type { BesideRequest } from "./beside-request.ts";
import { type EngineCaller, readyServers } from "./engine-caller.ts";

interface Found {
  readonly entry: EndpointEntry;
  readonly answer: Dispatcher.ResponseData;
}

/** Servers asked at once for an answer of which nobody knows where it is. */
const ASKED_AT_ONCE = 32;
const PLACES_REMEMBERED = 10_000;
const BODY_BYTES_MAX = 65_536;
const NOT_FOUND = 404;

/**
 * Answers that an engine stored: /v1/responses/{id} and its cancel. Only the engine that made one has it. Where it is is
 * asked of all ready engines, which works for a gateway that has just started and for several of them, and remembered.
 */
export class StoredResponses {
  readonly #context: GatewayParts;
  readonly #caller: EngineCaller;
  readonly #places = new LRUCache<string, string>({ max: PLACES_REMEMBERED });

  constructor(context: GatewayParts, caller: EngineCaller) {
    this.#context = context;
    this.#caller = caller;
  }

  async serve(request: BesideRequest, id: string, path: string): Promise<Response | Refusal> {
    const method = request.incoming.method === "POST" ? "POST" : "GET";
    const body = method === "POST" ? await request.body(BODY_BYTES_MAX) : undefined;
    if (body !== undefined && !Buffer.isBuffer(body)) return body;
    const ask = (entry: EndpointEntry, signal: AbortSignal): Promise<Found> =>
      this.#caller.call(entry, { ...request.call, method, path, body, signal }).then((answer) => ({ entry, answer }));
    const found = await this.#find(id, request.signal, ask);
    if (found === undefined) return refusal("no-endpoint", "No engine is ready for this request.");
    if (found.answer.statusCode !== NOT_FOUND) this.#places.set(id, found.entry.url);
    return this.#pass(request, found);
  }

  /** The first answer that is not "not found"; such a one where all are. Undefined where nobody answers. */
  async #find(
    id: string,
    signal: AbortSignal,
    ask: (entry: EndpointEntry, signal: AbortSignal) => Promise<Found>,
  ): Promise<Found | undefined> {
    const servers = readyServers(this.#context.directory);
    const place = this.#places.get(id);
    const known = servers.find(({ url }) => url === place);
    const others = servers.filter((server) => server !== known);
    let missing: Found | undefined;
    for (const group of [...(known === undefined ? [] : [[known]]), ...groups(others)]) {
      const found = await firstFound(group, signal, ask);
      if (found !== undefined && found.answer.statusCode !== NOT_FOUND) {
        discard(missing);
        return found;
      }
      if (missing === undefined) missing = found;
      else discard(found);
    }
    return missing;
  }

  #pass({ requestId }: BesideRequest, { entry, answer }: Found): Response {
    const { phase, sendsOwnHeaders: sendsOwn } = this.#context;
    const own = {
      requestId,
      endpoint: entry.id,
      reason: "stored",
      profile: "",
      hitTokens: 0,
      close: phase !== "serving",
      sendsOwn,
      cors: undefined,
    };
    const flat = clientHeaders(answer.headers, own, true);
    const headers = new Headers();
    for (let i = 0; i < flat.length; i += 2) headers.append(flat[i]!, flat[i + 1]!);
    const body = Readable.toWeb(answer.body) as ReadableStream<Uint8Array>;
    return new Response(body, { status: answer.statusCode, headers });
  }
}

function discard(found: Found | undefined): void {
  found?.answer.body.on("error", () => {}).destroy();
}

function groups(servers: readonly EndpointEntry[]): EndpointEntry[][] {
  const count = Math.ceil(servers.length / ASKED_AT_ONCE);
  return Array.from({ length: count }, (_, i) => servers.slice(i * ASKED_AT_ONCE, (i + 1) * ASKED_AT_ONCE));
}

/** Asks all at once; as soon as one has it the others are no longer wanted. */
async function firstFound(
  servers: readonly EndpointEntry[],
  signal: AbortSignal,
  ask: (entry: EndpointEntry, signal: AbortSignal) => Promise<Found>,
): Promise<Found | undefined> {
  const calls = servers.map((entry) => new Call(entry, signal, ask));
  const had = calls.map(async ({ found }) => {
    const one = await found;
    if (one.answer.statusCode === NOT_FOUND) throw new Error("not there");
    return one;
  });
  const first = await Promise.any(had).catch(() => undefined);
  const chosen = first ?? calls.find(({ result }) => result !== undefined)?.result;
  for (const call of calls) if (call.result !== chosen || chosen === undefined) call.drop();
  return chosen;
}

class Call {
  readonly #stop = new AbortController();
  readonly found: Promise<Found>;
  /** Once it is there. */
  result: Found | undefined;

  constructor(
    entry: EndpointEntry,
    signal: AbortSignal,
    ask: (entry: EndpointEntry, signal: AbortSignal) => Promise<Found>,
  ) {
    this.found = ask(entry, AbortSignal.any([signal, this.#stop.signal])).then((found) => (this.result = found));
  }

  drop(): void {
    this.result?.answer.body.on("error", () => {});
    this.found.catch(() => {});
    this.#stop.abort();
  }
}
