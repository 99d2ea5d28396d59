import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { WaitKind } from "#core/endpoint/hang-judge.ts";
import type { Micros } from "#core/units.ts";
import type { AttemptWatch } from "../upstream/attempt-watch.ts";
import { MAIL } from "./mail.ts";
import type { Outbox } from "./outbox.ts";

/** Times to a first byte between two sweeps that are passed on; a judge keeps no more. */
const TIMES_MAX = 64;

/** What the attempts of a worker found at one endpoint since the last sweep. */
interface Found {
  answeredAt: Micros;
  readonly waiting: Record<WaitKind, { since: Micros; count: number }>;
  readonly times: Record<WaitKind, number[]>;
}

/**
 * Passes on what a worker's attempts find, once a sweep, to the thread where endpoints are judged; it reports which
 * hang.
 */
export class RingHangs implements AttemptWatch {
  readonly #outbox: Outbox;
  readonly #found = new Map<EndpointId, Found>();
  #hung: ReadonlySet<EndpointId> = new Set();

  constructor(outbox: Outbox) {
    this.#outbox = outbox;
  }

  /** Those that hang, by the thread that judges. */
  judged(hung: readonly EndpointId[]): void {
    this.#hung = new Set(hung);
  }

  isHung(endpoint: EndpointId): boolean {
    return this.#hung.has(endpoint);
  }

  answered(endpoint: EndpointId, at: Micros): void {
    this.#of(endpoint).answeredAt = at;
  }

  took(endpoint: EndpointId, kind: WaitKind, micros: Micros): void {
    const times = this.#of(endpoint).times[kind];
    if (times.length < TIMES_MAX) times.push(micros);
  }

  sweepBegins(): void {
    for (const { waiting } of this.#found.values()) {
      for (const kind of KINDS) waiting[kind] = { since: Infinity, count: 0 };
    }
  }

  waits(endpoint: EndpointId, kind: WaitKind, since: Micros): void {
    const waiting = this.#of(endpoint).waiting[kind];
    waiting.since = Math.min(waiting.since, since);
    waiting.count++;
  }

  sweepEnds(): void {
    const { writer } = this.#outbox;
    writer.begin(MAIL.sweep);
    writer.number(this.#found.size);
    for (const [endpoint, { answeredAt, waiting, times }] of this.#found) {
      writer.name(endpoint);
      writer.number(answeredAt);
      for (const kind of KINDS) {
        writer.number(waiting[kind].since);
        writer.number(waiting[kind].count);
        writer.number(times[kind].length);
        for (const micros of times[kind]) writer.number(micros);
      }
    }
    this.#outbox.send(false);
    this.#found.clear();
  }

  #of(endpoint: EndpointId): Found {
    let found = this.#found.get(endpoint);
    if (found === undefined) {
      const none = () => ({ since: Infinity, count: 0 });
      found = { answeredAt: -1, waiting: { stream: none(), whole: none() }, times: { stream: [], whole: [] } };
      this.#found.set(endpoint, found);
    }
    return found;
  }
}

export const KINDS: readonly WaitKind[] = ["stream", "whole"];
