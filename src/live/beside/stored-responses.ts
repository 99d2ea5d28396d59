import { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { EndpointDirectory, EndpointEntry } from "../endpoints/endpoint-directory.ts";
import { type Refusal, refusal } from "../http/errors.ts";
import { UNSERVED, UNSERVED_BYTES_MAX, unservedRefusal } from "../http/unserved-refusal.ts";
import { clientHeaders, headerOf } from "../http/headers.ts";
import { countUp, type GatewayCounters } from "../base/gateway-counters.ts";
import type { BesideRequest } from "./beside-request.ts";
import { type EngineCall, type EngineCaller, readyServers } from "./engine-caller.ts";
import { hash } from "node:crypto";
import { LRUCache } from "lru-cache";

interface Found {
  readonly entry: EndpointEntry;
  readonly answer: Dispatcher.ResponseData;
}

/** Servers asked at once for an answer of which nobody knows where it is. */
const ASKED_AT_ONCE = 32;
/** Searches under way for what requests follow; beyond that they go where any request may. */
const SEARCHES_MAX = 64;
const SEARCH_MILLIS_MAX = 2_000;
const BODY_BYTES_MAX = 65_536;
const OK = 200;
const NOT_FOUND = 404;
/** What may stand in a path. */
const STORED_ID = /^[\w-]{1,256}$/;

interface StoredShared {
  readonly directory: EndpointDirectory;
  readonly caller: EngineCaller;
  readonly counters: GatewayCounters;
}

/** Where a stored answer is: endpoints that have it; "gone" with its engine; or nobody has it, as far as is known. */
export type ResponsePlace = readonly EndpointId[] | "gone" | "unknown";

/**
 * Answers that an engine stored: /v1/responses/{id} and its cancel, and requests that follow one by `previous_response_id`.
 * Only the engine that made one has it. Where it is is noted as it passes, and otherwise asked of all ready engines, which
 * works for a gateway that has just started and for several of them.
 */
export class StoredResponses {
  readonly #shared: StoredShared;
  readonly #places: ResponsePlaces;
  #searches = 0;

  constructor(shared: StoredShared) {
    this.#shared = shared;
    this.#places = new ResponsePlaces(shared.counters);
  }

  /** An endpoint answered with it, or with the beginning of it. */
  made(id: string, endpoint: EndpointId): void {
    const entry = this.#shared.directory.get(endpoint);
    if (entry !== undefined) this.#places.note(id, entry.url);
  }

  /** Where a request has to go that follows this answer; at once where that was noted. */
  placeOf(
    id: string,
    call: Pick<EngineCall, "headers" | "dropAuthorization" | "withheld" | "requestId">,
  ): ResponsePlace | Promise<ResponsePlace> {
    const { counters } = this.#shared;
    const url = this.#places.of(id);
    if (url !== undefined) {
      const endpoints = this.#endpointsOf(url);
      countUp(counters.responsesFollowed, endpoints.length > 0 ? "noted" : "gone");
      return endpoints.length > 0 ? endpoints : "gone";
    }
    if (this.#searches === SEARCHES_MAX || !STORED_ID.test(id)) {
      countUp(counters.responsesFollowed, "unknown");
      return "unknown";
    }
    return this.#search(id, call);
  }

  async #search(
    id: string,
    call: Pick<EngineCall, "headers" | "dropAuthorization" | "withheld" | "requestId">,
  ): Promise<ResponsePlace> {
    this.#searches++;
    try {
      const given = { ...call, method: "GET", path: `/v1/responses/${id}`, body: undefined } as const;
      const found = await this.#find(id, AbortSignal.timeout(SEARCH_MILLIS_MAX), (entry, signal) =>
        this.#shared.caller.call(entry, { ...given, signal }).then((answer) => ({ entry, answer })),
      );
      discard(found);
      const isThere = found?.answer.statusCode === OK;
      countUp(this.#shared.counters.responsesFollowed, isThere ? "found" : "unknown");
      if (!isThere) return "unknown";
      this.#places.note(id, found.entry.url);
      return this.#endpointsOf(found.entry.url);
    } finally {
      this.#searches--;
    }
  }

  #endpointsOf(url: string): EndpointId[] {
    return this.#shared.directory
      .all()
      .filter((entry) => entry.url === url)
      .map((entry) => entry.id);
  }

  async serve(request: BesideRequest, id: string, path: string, sendsOwn: boolean): Promise<Response | Refusal> {
    const method = request.incoming.method === "POST" ? "POST" : "GET";
    const body = method === "POST" ? await request.body(BODY_BYTES_MAX) : undefined;
    if (body !== undefined && !Buffer.isBuffer(body)) return body;
    const ask = (entry: EndpointEntry, signal: AbortSignal): Promise<Found> =>
      this.#shared.caller
        .call(entry, { ...request.call, method, path, body, signal })
        .then((answer) => ({ entry, answer }));
    const found = await this.#find(id, request.signal, ask);
    if (found === undefined) return refusal("no-endpoint", "No engine is ready for this request.");
    if (found.answer.statusCode !== NOT_FOUND) this.#places.note(id, found.entry.url);
    request.endpoint = found.entry.id;
    const { statusCode, body: whole } = found.answer;
    if (!isShortRefusal(found.answer))
      return this.#pass(request, found, sendsOwn, Readable.toWeb(whole) as ReadableStream<Uint8Array>);
    const given = await whole.arrayBuffer().then(
      (bytes) => Buffer.from(bytes),
      () => undefined,
    );
    if (given === undefined) return refusal("upstream-broke", "The engine's answer broke off.");
    return unservedRefusal(statusCode, given) ?? this.#pass(request, found, sendsOwn, given);
  }

  /** The first answer that is not "not found"; such a one where all are. Undefined where nobody answers. */
  async #find(
    id: string,
    signal: AbortSignal,
    ask: (entry: EndpointEntry, signal: AbortSignal) => Promise<Found>,
  ): Promise<Found | undefined> {
    const servers = readyServers(this.#shared.directory);
    const place = this.#places.of(id);
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

  #pass(
    { requestId }: BesideRequest,
    { entry, answer }: Found,
    sendsOwn: boolean,
    body: ReadableStream<Uint8Array> | Buffer<ArrayBuffer>,
  ): Response {
    const own = {
      requestId,
      endpoint: entry.id,
      reason: "stored",
      profile: "",
      hitTokens: 0,
      sendsOwn,
      cors: undefined,
    };
    const flat = clientHeaders(answer.headers, own, true);
    const headers = new Headers();
    for (let i = 0; i < flat.length; i += 2) headers.append(flat[i]!, flat[i + 1]!);
    return new Response(body, { status: answer.statusCode, headers });
  }
}

/** It may be of an engine that does not serve stored answers at all. */
function isShortRefusal({ statusCode, headers }: Dispatcher.ResponseData): boolean {
  return UNSERVED.has(statusCode) && Number(headerOf(headers, "content-length") || Infinity) <= UNSERVED_BYTES_MAX;
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

type PlaceCounters = Pick<GatewayCounters, "responsePlacesForgotten">;

/** Of one more, the one that was asked for the longest time ago is forgotten, and searched for when it is asked for again. */
const PLACES_MAX = 10_000;

/** At which server each answer of /v1/responses is stored, by a digest of its id. Nobody else has it. */
class ResponsePlaces {
  /** Made with the first one: it has room for all. */
  #urls: LRUCache<string, string> | undefined;
  readonly #counters: PlaceCounters;

  constructor(counters: PlaceCounters) {
    this.#counters = counters;
  }

  note(id: string, url: string): void {
    const key = keyOf(id);
    const urls = (this.#urls ??= new LRUCache({ max: PLACES_MAX }));
    if (!urls.has(key) && urls.size === PLACES_MAX) this.#counters.responsePlacesForgotten++;
    urls.set(key, url);
  }

  of(id: string): string | undefined {
    return this.#urls?.get(keyOf(id));
  }
}

function keyOf(id: string): string {
  return hash("sha256", id, "base64url").slice(0, KEY_LENGTH);
}

/** Of six bits each. */
const KEY_LENGTH = 22;
