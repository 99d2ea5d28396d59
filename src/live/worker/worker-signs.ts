import type { EndpointId } from "#core/endpoint/endpoint.ts";
import type { WaitKind } from "#core/endpoint/hang-judge.ts";
import type { Micros } from "#core/units.ts";
import type { AttemptWatch } from "../upstream/attempt-watch.ts";
import type { MessageReader } from "./message-reader.ts";
import { KINDS } from "./ring-hangs.ts";

/** Requests of one worker that wait for a byte from an endpoint. */
interface Waits {
  readonly endpoint: EndpointId;
  readonly kind: WaitKind;
  readonly since: Micros;
  readonly count: number;
}

/**
 * What attempts find, of this thread's requests and of all workers': the judge gets the signs of all of them in every
 * sweep, whoever sweeps.
 */
export class WorkerSigns implements AttemptWatch {
  readonly #judge: AttemptWatch;
  /** By worker, as its last sweep found them. */
  readonly #waits = new Map<number, readonly Waits[]>();

  constructor(judge: AttemptWatch) {
    this.#judge = judge;
  }

  isHung(endpoint: EndpointId): boolean {
    return this.#judge.isHung(endpoint);
  }

  answered(endpoint: EndpointId, at: Micros): void {
    this.#judge.answered(endpoint, at);
  }

  took(endpoint: EndpointId, kind: WaitKind, micros: Micros): void {
    this.#judge.took(endpoint, kind, micros);
  }

  waits(endpoint: EndpointId, kind: WaitKind, since: Micros): void {
    this.#judge.waits(endpoint, kind, since);
  }

  sweepBegins(): void {
    this.#judge.sweepBegins();
    for (const waits of this.#waits.values()) {
      for (const { endpoint, kind, since, count } of waits) {
        for (let i = 0; i < count; i++) this.#judge.waits(endpoint, kind, since);
      }
    }
  }

  sweepEnds(): void {
    this.#judge.sweepEnds();
  }

  /** A worker's sweep, which ends one over all. */
  swept(worker: number, from: MessageReader): void {
    const waits: Waits[] = [];
    for (let left = from.number(); left > 0; left--) {
      const endpoint = from.name();
      const answeredAt = from.number();
      if (answeredAt >= 0) this.#judge.answered(endpoint, answeredAt);
      for (const kind of KINDS) {
        const [since, count] = [from.number(), from.number()];
        if (count > 0) waits.push({ endpoint, kind, since, count });
        for (let times = from.number(); times > 0; times--) this.#judge.took(endpoint, kind, from.number());
      }
    }
    this.#waits.set(worker, waits);
    this.sweepBegins();
    this.sweepEnds();
  }

  /** It is gone, with all that it waited for. */
  left(worker: number): void {
    this.#waits.delete(worker);
  }
}
