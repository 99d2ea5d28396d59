import type { Decision } from "#core/input/decision.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Input } from "#core/input/input.ts";
import { seenTpotMicros } from "#core/latency/latency-model.ts";
import type { Forecast } from "#core/latency/forecast.ts";
import { RecentRequests, RequestTable } from "#core/base/request-table.ts";
import type { Micros } from "#core/base/units.ts";
import type { IntakeListener } from "../base/intake.ts";
import type { PrefixSource } from "#core/endpoint/knowledge.ts";

/** Requests in flight whose forecast, or expectation, is remembered; beyond that an expectation is not counted. */
const REQUESTS_MAX = 65_536;

export const FORECAST_FIGURES = ["ttft", "tpot"] as const;
export type ForecastFigure = (typeof FORECAST_FIGURES)[number];

/** Of requests of which the forecast and the time that it took are known; sums. */
export interface ForecastCounts {
  requests: number;
  forecastMicros: number;
  measuredMicros: number;
  /** |forecast - measured|. */
  errorMicros: number;
  /** |forecast - measured| / measured. */
  errorShares: number;
}

interface Awaited {
  readonly endpoint: EndpointId;
  readonly forecast: Forecast;
  /** Answers that come side by side. */
  readonly sequences: number;
  readonly sentAt: Micros;
  firstTokenAt: Micros | undefined;
}

/** How right forecasts of TTFT and TPOT are, by endpoint. A request that went on elsewhere is judged by where it ended. */
export class ForecastAccuracy implements IntakeListener {
  readonly #endpointsMax: number;
  readonly #awaited = new RecentRequests<Awaited>(REQUESTS_MAX);
  readonly #counts = new Map<EndpointId, Record<ForecastFigure, ForecastCounts>>();

  constructor(endpointsMax: number) {
    this.#endpointsMax = endpointsMax;
  }

  accepted(input: Input, decision: Decision | undefined): void {
    if (decision?.kind === "routed") this.#routed(decision, input);
    else if (input.kind === "first-token") this.#firstToken(input.at, input.requestId);
    else if (input.kind === "request-finished") this.#finished(input);
    else if (input.kind === "endpoint-left") this.#counts.delete(input.endpoint);
  }

  rows(): {
    readonly endpoint: EndpointId;
    readonly figure: ForecastFigure;
    readonly counts: Readonly<ForecastCounts>;
  }[] {
    return [...this.#counts].flatMap(([endpoint, counts]) =>
      FORECAST_FIGURES.map((figure) => ({ endpoint, figure, counts: counts[figure] })),
    );
  }

  #routed({ at, requestId, endpoint, forecast }: Extract<Decision, { kind: "routed" }>, input: Input): void {
    if (forecast !== undefined) {
      const sequences = input.kind === "request-arrived" ? input.request.sequences : this.#sequencesOf(requestId);
      this.#awaited.set(requestId, { endpoint, forecast, sequences, sentAt: at, firstTokenAt: undefined });
    }
    // Another profile decided this time, as when a rollout's arm changes between two attempts.
    else if (this.#awaited.size > 0) this.#awaited.delete(requestId);
  }

  /** As of an attempt before. */
  #sequencesOf(requestId: string): number {
    return this.#awaited.get(requestId)?.sequences ?? 1;
  }

  #firstToken(at: Micros, requestId: string): void {
    const one = this.#awaited.get(requestId);
    if (one === undefined || one.firstTokenAt !== undefined) return;
    one.firstTokenAt = at;
    this.#add(one.endpoint, "ttft", one.forecast.ttftMicros, at - one.sentAt);
  }

  #finished({ at, requestId, outcome, outputTokens }: Extract<Input, { kind: "request-finished" }>): void {
    const one = this.#awaited.get(requestId);
    if (one === undefined) return;
    this.#awaited.delete(requestId);
    if (outcome !== "ok") return;
    const tpotMicros = seenTpotMicros(one.firstTokenAt, at, outputTokens, one.sequences);
    if (tpotMicros !== undefined) this.#add(one.endpoint, "tpot", one.forecast.tpotMicros, tpotMicros);
  }

  #add(endpoint: EndpointId, figure: ForecastFigure, forecast: Micros, measured: Micros): void {
    let counts = this.#counts.get(endpoint);
    if (counts === undefined) {
      if (this.#counts.size >= this.#endpointsMax) return;
      counts = { ttft: none(), tpot: none() };
      this.#counts.set(endpoint, counts);
    }
    if (measured <= 0) return;
    const of = counts[figure];
    const error = Math.abs(forecast - measured);
    of.requests++;
    of.forecastMicros += forecast;
    of.measuredMicros += measured;
    of.errorMicros += error;
    of.errorShares += error / measured;
  }
}

function none(): ForecastCounts {
  return { requests: 0, forecastMicros: 0, measuredMicros: 0, errorMicros: 0, errorShares: 0 };
}

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
export class HitAccuracy implements IntakeListener {
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
      counts = { precise: noHits(), approximate: noHits() };
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

function noHits(): HitCounts {
  return { requests: 0, exact: 0, expectedTokens: 0, reportedTokens: 0, overTokens: 0, underTokens: 0 };
}
