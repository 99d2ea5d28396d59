import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { Agent, type Dispatcher, request } from "undici";
import { BesideRequest } from "../beside/beside-request.ts";
import type { EndpointEntry } from "../endpoints/endpoint-directory.ts";
import type { RouteShared } from "../gateway/gateway-routes.ts";
import { errorBody, errorHeaders } from "../http/errors.ts";
import { clientHeaders, upstreamHeaders } from "../http/headers.ts";
import type { EngineConnections } from "../tls/connections.ts";
import { UNREACHABLE } from "./router-refusal.ts";

/** Requests beside inference that are under way at once; more wait. */
const CONNECTIONS_MAX = 64;

/** Carries to the other router whatever is no inference, and its answers back: models, health, metrics of its own. */
export class PassRoutes {
  readonly #router: EndpointEntry;
  readonly #agent: Agent;

  constructor(router: EndpointEntry, connections: EngineConnections, connectMillisMax: number) {
    this.#router = router;
    this.#agent = new Agent({ connections: CONNECTIONS_MAX, connect: connections.connector(connectMillisMax) });
  }

  readonly serve = (incoming: IncomingMessage, outgoing: ServerResponse, shared: RouteShared): void => {
    const asked = new BesideRequest(shared, incoming, shared.limits.totalMillisMax);
    void this.#pass(asked, outgoing).finally(() => asked.end());
  };

  destroy(): Promise<void> {
    return this.#agent.destroy();
  }

  async #pass({ incoming, call, signal, requestId }: BesideRequest, outgoing: ServerResponse): Promise<void> {
    const headers = upstreamHeaders(call.headers, this.#router, call);
    const { "transfer-encoding": encoding, "content-length": length } = incoming.headers;
    let answer: Dispatcher.ResponseData;
    try {
      answer = await request(this.#router.url + (incoming.url ?? "/"), {
        dispatcher: this.#agent,
        method: incoming.method as Dispatcher.HttpMethod,
        headers,
        signal,
        headersTimeout: 0,
        bodyTimeout: 0,
        ...((encoding !== undefined || Number(length) > 0) && { body: incoming }),
      });
    } catch {
      const body = errorBody(UNREACHABLE);
      outgoing.writeHead(502, errorHeaders(UNREACHABLE, Buffer.byteLength(body), false)).end(body);
      return;
    }
    outgoing.writeHead(answer.statusCode, clientHeaders(answer.headers, { ...OWN, requestId }, true));
    // A router that breaks off, or a client that leaves, ends both sides.
    await pipeline(answer.body, outgoing).catch(() => {});
  }
}

const OWN = { endpoint: "", reason: "", profile: "", hitTokens: 0, sendsOwn: false, cors: undefined };
