import type { Decision } from "#core/input/decision.ts";
import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { Input } from "#core/input/input.ts";
import type { Micros } from "#core/base/units.ts";

/** A prompt of which no endpoint holds so much of it begins a conversation: nothing cached draws it anywhere. */
const FIRST_TURN_HIT_SHARE = 0.1;

/** What one endpoint got, of what all got. */
export interface Share {
  readonly requests: number;
  readonly of: number;
  /** NaN where nobody got any. */
  readonly share: number;
}

/** A request, as it was sent last. */
interface Sent {
  readonly arrivedAt: Micros;
  readonly at: Micros;
  readonly endpoint: EndpointId;
  readonly isFirstTurn: boolean;
  readonly newTokens: number;
  firstTokenAt: Micros | undefined;
}

/** Where requests went, over time. */
export class TrafficShares {
  readonly #sent: Sent[] = [];
  readonly #waiting = new Map<string, Sent>();

  observe(input: Input, decision: Decision | undefined): void {
    if (input.kind === "first-token") {
      const one = this.#waiting.get(input.requestId);
      if (one !== undefined) one.firstTokenAt = input.at;
      this.#waiting.delete(input.requestId);
    }
    if (input.kind !== "request-arrived" || decision?.kind !== "routed") return;
    const { promptTokens } = input.request;
    const held = Math.max(...decision.breakdown.candidates.map(({ hitTokens }) => hitTokens));
    const isFirstTurn = held < FIRST_TURN_HIT_SHARE * promptTokens;
    const newTokens = promptTokens - decision.hitTokens;
    const { at, endpoint } = decision;
    const sent: Sent = { arrivedAt: input.at, at, endpoint, isFirstTurn, newTokens, firstTokenAt: undefined };
    this.#sent.push(sent);
    this.#waiting.set(decision.requestId, sent);
  }

  /** Mean time to first token of first turns that came within [from, to), to an endpoint or to the others; NaN of none. */
  firstTurnMicros(from: Micros, to: Micros, endpoint: EndpointId, isThere: boolean): Micros {
    const times = this.#sent.flatMap((one) => {
      if (one.arrivedAt < from || one.arrivedAt >= to || one.firstTokenAt === undefined || !one.isFirstTurn) return [];
      return (one.endpoint === endpoint) === isThere ? [one.firstTokenAt - one.arrivedAt] : [];
    });
    return times.reduce((sum, time) => sum + time, 0) / times.length;
  }

  /** Requests within [from, to), all of them or first turns alone. */
  share(endpoint: EndpointId, from: Micros, to: Micros, firstTurns: boolean): Share {
    const all = this.#sent.filter((one) => one.at >= from && one.at < to && (!firstTurns || one.isFirstTurn));
    const requests = all.filter((one) => one.endpoint === endpoint).length;
    return { requests, of: all.length, share: requests / all.length };
  }

  /** The same of tokens to compute. */
  tokenShare(endpoint: EndpointId, from: Micros, to: Micros): number {
    let [own, all] = [0, 0];
    for (const one of this.#sent) {
      if (one.at < from || one.at >= to) continue;
      all += one.newTokens;
      if (one.endpoint === endpoint) own += one.newTokens;
    }
    return own / all;
  }

  /** The largest share of first turns in any window of that length that begins within [from, to) and has `requestsMin`. */
  mostFirstTurns(endpoint: EndpointId, from: Micros, to: Micros, window: Micros, requestsMin: number): Share {
    const first = this.#sent.filter((one) => one.isFirstTurn && one.at >= from);
    let most: Share = { requests: 0, of: 0, share: 0 };
    for (const { at } of first) {
      if (at >= to) break;
      const one = this.share(endpoint, at, at + window, true);
      if (one.of >= requestsMin && one.share > most.share) most = one;
    }
    return most;
  }
}
