import type { Dispatcher } from "undici";

import type { GatewayCounters } from "../base/gateway-counters.ts";
import type { AdministrationDone } from "../endpoints/adapter-loads.ts";
import type { EndpointDirectory, EndpointEntry } from "../endpoints/endpoint-directory.ts";
import { type Refusal, refusal } from "../http/errors.ts";
import type { BesideRequest } from "./beside-request.ts";
import { type EngineCaller, readyServers } from "./engine-caller.ts";

/** What one engine answered. */
interface EngineAnswer {
  readonly url: string;
  /** Endpoints behind the URL. */
  readonly endpoints: readonly string[];
  /** 0: no answer. */
  readonly status: number;
  /** JSON where it is, else text; cut at 64 KiB. Without an answer, why. */
  readonly body: unknown;
}

const REQUEST_BYTES_MAX = 1_048_576;
const ANSWER_BYTES_MAX = 65_536;
const CALLS_MAX = 8;
const OK = 200;
const ALL_FAILED = 502;

export interface AdministrationShared {
  readonly directory: EndpointDirectory;
  readonly counters: GatewayCounters;
}

/**
 * Engines' administration, such as loading an adapter or clearing a cache: sent to every ready engine at once, since one
 * alone would leave the fleet uneven. The answer is 200 when all say so, the engines' own status when all say the same,
 * else 502, with what each answered.
 */
export class EngineAdministration {
  readonly #shared: AdministrationShared;
  readonly #caller: EngineCaller;
  readonly #done: ((done: AdministrationDone) => Promise<void>) | undefined;
  #calls = 0;

  /** `done` is awaited before the client gets the answer. */
  constructor(shared: AdministrationShared, caller: EngineCaller, done?: (done: AdministrationDone) => Promise<void>) {
    this.#shared = shared;
    this.#caller = caller;
    this.#done = done;
  }

  async serve(request: BesideRequest, path: string): Promise<Response | Refusal> {
    if (this.#calls >= CALLS_MAX) return refusal("full", `More than ${CALLS_MAX} such calls are under way.`);
    this.#calls++;
    try {
      const method = request.incoming.method === "POST" ? "POST" : "GET";
      const body = method === "POST" ? await request.body(REQUEST_BYTES_MAX) : undefined;
      if (body !== undefined && !Buffer.isBuffer(body)) return body;
      const servers = readyServers(this.#shared.directory);
      if (servers.length === 0) return refusal("no-endpoint", "No engine is ready for this call.");
      this.#shared.counters.administrationCalls++;
      const engines = await Promise.all(
        servers.map((entry) => this.#callOne(entry, { ...request.call, method, path, body, signal: request.signal })),
      );
      const did = engines.filter(({ status }) => isGood(status)).map(({ url }) => url);
      if (method === "POST" && did.length > 0) await this.#done?.({ path: path.split("?", 1)[0]!, body, servers: did });
      return this.#combined(path, engines);
    } finally {
      this.#calls--;
    }
  }

  #combined(path: string, engines: readonly EngineAnswer[]): Response {
    const missed = this.#shared.directory.all().filter(({ state }) => state !== "ready");
    const succeeded = engines.filter(({ status }) => isGood(status)).length;
    const first = engines[0]?.status ?? 0;
    const alike = engines.every(({ status }) => status === first) && first > 0;
    const status = succeeded === engines.length ? OK : alike ? first : ALL_FAILED;
    const failed = engines.length - succeeded;
    return Response.json({ path, succeeded, failed, engines, notReady: missed.map(({ id }) => id) }, { status });
  }

  async #callOne(entry: EndpointEntry, call: Parameters<EngineCaller["call"]>[1]): Promise<EngineAnswer> {
    const { url } = entry;
    const endpoints = this.#shared.directory
      .all()
      .filter((one) => one.url === url)
      .map(({ id }) => id);
    try {
      const answer = await this.#caller.call(entry, call);
      return { url, endpoints, status: answer.statusCode, body: await boundedBody(answer) };
    } catch (error) {
      const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
      return { url, endpoints, status: 0, body: `no answer${code}` };
    }
  }
}

function isGood(status: number): boolean {
  return status >= 200 && status < 300;
}

async function boundedBody({ body }: Dispatcher.ResponseData): Promise<unknown> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > ANSWER_BYTES_MAX) break;
  }
  const text = Buffer.concat(chunks).toString("utf8", 0, ANSWER_BYTES_MAX);
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
