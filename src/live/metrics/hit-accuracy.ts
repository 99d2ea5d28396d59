import type { Decision } from "#core/input/decision.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { PrefixSource } from "#core/endpoint/knowledge.ts";
import type { Input } from "#core/input/input.ts";
import { RequestTable } from "#core/base/request-table.ts";
import type { TapListener } from "../base/router-tap.ts";

/** Requests in flight whose expectation is remembered; beyond that one is not counted. */
const REQUESTS_MAX = 65_536;

/** What was expected to be cached, and what engines reported, of requests of which both are known. */
export interface HitCounts {
  requests: number;
  /** Requests of which both are equal. */
  exact: number;
  expectedTokens: number;
  reportedTokens: number;
  /** Sums of what was expected too much, and too little. */
  overTokens: number;
  underTokens: number;
}

interface Expected {
  readonly endpoint: EndpointId;
  readonly source: PrefixSource;
  readonly tokens: number;
}

/** How right the prefix index is, by endpoint and by where its belief came from. */
export class HitAccuracy implements TapListener {
  readonly #endpointsMax: number;
  readonly #expected = new RequestTable<Expected>();
  readonly #counts = new Map<EndpointId, Record<PrefixSource, HitCounts>>();

  constructor(endpointsMax: number) {
    this.#endpointsMax = endpointsMax;
  }

  accepted(input: Input, decision: Decision | undefined): void {
    if (decision?.kind === "routed") {
      const { endpoint, prefixSource, hitTokens, heldTokens = hitTokens } = decision.prefill ?? decision;
      if (this.#expected.size < REQUESTS_MAX)
        this.#expected.set(decision.requestId, { endpoint, source: prefixSource, tokens: heldTokens });
    } else if (input.kind === "request-finished") {
      const expected = this.#expected.get(input.requestId);
      if (expected === undefined) return;
      this.#expected.delete(input.requestId);
      if (input.outcome === "ok" && input.cachedTokens !== undefined) this.#add(expected, input.cachedTokens);
    } else if (input.kind === "endpoint-left") this.#counts.delete(input.endpoint);
  }

  rows(): { readonly endpoint: EndpointId; readonly source: PrefixSource; readonly counts: Readonly<HitCounts> }[] {
    return [...this.#counts].flatMap(([endpoint, { precise, approximate }]) => [
      { endpoint, source: "precise" as const, counts: precise },
      { endpoint, source: "approximate" as const, counts: approximate },
    ]);
  }

  #add({ endpoint, source, tokens }: Expected, reported: number): void {
    let counts = this.#counts.get(endpoint);
    if (counts === undefined) {
      if (this.#counts.size >= this.#endpointsMax) return;
      counts = { precise: none(), approximate: none() };
      this.#counts.set(endpoint, counts);
    }
    const of = counts[source];
    of.requests++;
    if (tokens === reported) of.exact++;
    of.expectedTokens += tokens;
    of.reportedTokens += reported;
    of.overTokens += Math.max(0, tokens - reported);
    of.underTokens += Math.max(0, reported - tokens);
  }
}

function none(): HitCounts {
  return { requests: 0, exact: 0, expectedTokens: 0, reportedTokens: 0, overTokens: 0, underTokens: 0 };
}
