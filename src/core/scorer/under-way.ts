import type { CandidateRow, Routed } from "../decision.ts";
import type { EndpointId } from "../endpoint/endpoint.ts";
import type { Input } from "../input.ts";
import { RecentMap } from "../recent-map.ts";
import type { RouteRequest } from "../request.ts";
import type { Micros } from "../units.ts";
import type { LatencyModel, Situation } from "../latency/latency-model.ts";

/** Requests followed at once; beyond that the oldest are not learned from. */
const REQUESTS_MAX = 100_000;

interface Followed {
  readonly endpoint: EndpointId;
  readonly promptTokens: number;
  readonly situation: Situation;
  readonly sentAt: Micros;
  firstTokenAt: Micros | undefined;
  requestsAtFirst: number;
  contextAtFirst: number;
}

interface Aboard {
  requests: number;
  promptTokens: number;
}

/** Requests from their decision to their end, so that a LatencyModel, each endpoint's own, learns from the times that they took. */
export class UnderWay {
  readonly #modelOf: (endpoint: EndpointId) => LatencyModel;
  readonly #followed = new RecentMap<string, Followed>(REQUESTS_MAX);
  readonly #aboard = new Map<EndpointId, Aboard>();

  constructor(modelOf: (endpoint: EndpointId) => LatencyModel) {
    this.#modelOf = modelOf;
  }

  /** The request was routed; `row` is what the decision saw of the endpoint. */
  began(
    { at, endpoint, requestId }: Routed,
    { promptTokens }: RouteRequest,
    row: CandidateRow,
    newTokens: number,
    prefillPerMicro: number,
  ): void {
    this.#ended(requestId);
    const aboard = this.#aboardOf(endpoint);
    const situation: Situation = {
      requests: row.effectiveLoad,
      contextTokens: aboard.promptTokens,
      queuedTokens: row.prefillTokensQueued,
      newTokens,
      prefillPerMicro,
    };
    aboard.requests++;
    aboard.promptTokens += promptTokens;
    this.#followed.set(requestId, {
      endpoint,
      promptTokens,
      situation,
      sentAt: at,
      firstTokenAt: undefined,
      requestsAtFirst: 0,
      contextAtFirst: 0,
    });
  }

  observe(input: Input): void {
    switch (input.kind) {
      case "first-token":
        return this.#firstToken(input.at, input.requestId);
      case "request-finished":
        if (input.outcome === "ok") this.#answered(input.at, input.requestId, input.outputTokens ?? 0);
        return this.#ended(input.requestId);
      case "attempt-failed":
      // It is answered by an endpoint that nobody chose.
      case "request-moved":
        this.#ended(input.requestId);
        break;
      case "hedge-settled":
        if (input.winner === "second") this.#ended(input.requestId);
        break;
      default:
    }
  }

  #firstToken(at: Micros, requestId: string): void {
    const one = this.#followed.get(requestId);
    if (one === undefined || one.firstTokenAt !== undefined) return;
    one.firstTokenAt = at;
    const { requests, promptTokens } = this.#aboardOf(one.endpoint);
    one.requestsAtFirst = requests;
    one.contextAtFirst = promptTokens;
    this.#modelOf(one.endpoint).learnTtft(one.endpoint, at, one.situation, at - one.sentAt);
  }

  #answered(at: Micros, requestId: string, outputTokens: number): void {
    const one = this.#followed.get(requestId);
    if (one?.firstTokenAt === undefined || outputTokens < OUTPUT_TOKENS_MIN) return;
    const { requests, promptTokens } = this.#aboardOf(one.endpoint);
    const mean = {
      requests: (one.requestsAtFirst + requests) / 2,
      contextTokens: (one.contextAtFirst + promptTokens + requests * outputTokens) / 2,
      prefillPerMicro: one.situation.prefillPerMicro,
    };
    this.#modelOf(one.endpoint).learnTpot(one.endpoint, at, mean, (at - one.firstTokenAt) / (outputTokens - 1));
  }

  #ended(requestId: string): void {
    const one = this.#followed.get(requestId);
    if (one === undefined) return;
    this.#followed.delete(requestId);
    const aboard = this.#aboard.get(one.endpoint);
    if (aboard === undefined) return;
    aboard.requests--;
    aboard.promptTokens -= one.promptTokens;
    if (aboard.requests === 0) this.#aboard.delete(one.endpoint);
  }

  #aboardOf(endpoint: EndpointId): Aboard {
    let aboard = this.#aboard.get(endpoint);
    if (aboard === undefined) this.#aboard.set(endpoint, (aboard = { requests: 0, promptTokens: 0 }));
    return aboard;
  }
}

/** A pace over fewer tokens is mostly chance. */
const OUTPUT_TOKENS_MIN = 8;
