import type { Decision, Routed } from "#core/input/decision.ts";
import type { Load } from "#core/endpoint/endpoint.ts";
import type { Input } from "#core/input/input.ts";
import type { Micros } from "#core/base/units.ts";
import type { Features, Sample } from "./sample.ts";

interface Open {
  readonly sample: Sample;
  readonly endpoint: string;
  readonly promptTokens: number;
  readonly newTokens: number;
  firstTokenAt: Micros | undefined;
}

interface InFlight {
  prefillTokens: number;
  decodeTokens: number;
}

/** Follows a router's inputs and decisions, and keeps a sample of every decision that has a forecast. */
export class SampleBook {
  readonly samples: Sample[] = [];
  readonly #asked = new Map<string, number>();
  readonly #loads = new Map<string, Load>();
  readonly #inFlight = new Map<string, InFlight>();
  readonly #open = new Map<string, Open>();

  readonly take = (input: Input, decision: Decision | undefined): void => {
    if (input.kind === "request-arrived") this.#asked.set(input.request.id, input.request.promptTokens);
    if (decision?.kind === "routed") return this.#routed(decision);
    switch (input.kind) {
      case "load-observed":
        this.#loads.set(input.endpoint, input.load);
        return;
      case "first-token":
        return this.#firstToken(input.at, input.requestId);
      case "request-finished":
        this.#finished(input);
        return;
      case "attempt-failed":
      case "request-moved":
        // Who answers is another one than the forecast was about.
        this.#close(input.requestId);
        break;
      default:
    }
  };

  #routed({ at, requestId, endpoint, hitTokens, forecast, breakdown }: Routed): void {
    const promptTokens = this.#asked.get(requestId) ?? 0;
    const row = breakdown.candidates.find((one) => one.endpoint === endpoint);
    const there = this.#at(endpoint);
    const load = this.#loads.get(endpoint);
    const features: Features = {
      kvUtilization: load?.kvUtilization ?? row?.kvUtilization ?? 0,
      inputTokens: promptTokens,
      waiting: load?.waiting ?? 0,
      running: load?.running ?? 0,
      prefillTokensInFlight: there.prefillTokens,
      decodeTokensInFlight: there.decodeTokens,
      prefixScore: promptTokens === 0 ? 0 : hitTokens / promptTokens,
    };
    const sample: Sample = {
      at,
      endpoint,
      features,
      forecast: { ttft: forecast?.ttftMicros ?? NaN, tpot: forecast?.tpotMicros ?? NaN },
      measured: { ttft: undefined, tpot: undefined },
      knownAt: { ttft: Infinity, tpot: Infinity },
    };
    if (forecast !== undefined) this.samples.push(sample);
    const newTokens = Math.max(1, promptTokens - hitTokens);
    there.prefillTokens += newTokens;
    this.#open.set(requestId, { sample, endpoint, promptTokens, newTokens, firstTokenAt: undefined });
  }

  #firstToken(at: Micros, requestId: string): void {
    const one = this.#open.get(requestId);
    if (one === undefined || one.firstTokenAt !== undefined) return;
    one.firstTokenAt = at;
    one.sample.measured.ttft = at - one.sample.at;
    one.sample.knownAt.ttft = at;
    const there = this.#at(one.endpoint);
    there.prefillTokens -= one.newTokens;
    there.decodeTokens += one.promptTokens;
  }

  #finished({ at, requestId, outcome, outputTokens }: Extract<Input, { kind: "request-finished" }>): void {
    const one = this.#close(requestId);
    if (one?.firstTokenAt === undefined || outcome !== "ok" || outputTokens === undefined || outputTokens < 2) return;
    one.sample.measured.tpot = (at - one.firstTokenAt) / (outputTokens - 1);
    one.sample.knownAt.tpot = at;
  }

  #close(requestId: string): Open | undefined {
    const one = this.#open.get(requestId);
    if (one === undefined) return undefined;
    this.#open.delete(requestId);
    const there = this.#at(one.endpoint);
    if (one.firstTokenAt === undefined) there.prefillTokens -= one.newTokens;
    else there.decodeTokens -= one.promptTokens;
    return one;
  }

  #at(endpoint: string): InFlight {
    let there = this.#inFlight.get(endpoint);
    if (there === undefined) this.#inFlight.set(endpoint, (there = { prefillTokens: 0, decodeTokens: 0 }));
    return there;
  }
}
