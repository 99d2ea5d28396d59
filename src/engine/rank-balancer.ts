import type { RankBalance } from "./config.ts";

/** What a rank's scheduler last reported. */
export interface RankLoad {
  readonly running: number;
  readonly waiting: number;
  /** Used over usable KV blocks, in [0, 1]. */
  readonly kvUtilization: number;
}

/** Weight of a waiting request over a running one, before vLLM looked at the KV cache. */
const WAITING_WEIGHT = 4;
/** A waiting request at a KV cache that is full counts so many more; at one that is half full, none. */
const KV_PRESSURE_WEIGHT = 6;
const KV_PRESSURE_FROM = 0.5;

/**
 * Chooses the rank that a request goes to as vLLM's API server does (DPLBAsyncMPClient.get_core_engine_for_request): the
 * lowest score, the first one from a starting rank on among equals. Ranks' counts are those of the last publication;
 * since then every request that was sent counts as waiting there.
 *
 *   in-flight:       max(own requests in flight, waiting + running) + 6 waiting * max(0, KV utilization - 0.5);
 *                    the start moves on by one with every request (vLLM 0.32)
 *   weighted-queue:  4 waiting + running; the start stays (earlier versions)
 *
 * With one API server. vLLM starts as many as there are ranks unless configured otherwise; each then knows its own
 * requests.
 */
export class RankBalancer {
  readonly #balance: RankBalance;
  readonly #waiting: Float64Array;
  readonly #running: Float64Array;
  readonly #kvUtilization: Float64Array;
  readonly #inFlight: Float64Array;
  #start = 0;

  constructor(ranks: number, balance: RankBalance) {
    this.#balance = balance;
    this.#waiting = new Float64Array(ranks);
    this.#running = new Float64Array(ranks);
    this.#kvUtilization = new Float64Array(ranks);
    this.#inFlight = new Float64Array(ranks);
  }

  publish(rank: number, { running, waiting, kvUtilization }: RankLoad): void {
    this.#running[rank] = running;
    this.#waiting[rank] = waiting;
    this.#kvUtilization[rank] = kvUtilization;
  }

  choose(): number {
    const ranks = this.#waiting.length;
    let best = this.#start;
    for (let i = 1; i < ranks; i++) {
      const rank = (this.#start + i) % ranks;
      if (this.#score(rank) < this.#score(best)) best = rank;
    }
    return best;
  }

  /** The request that was chosen for is in that rank now. */
  sent(rank: number): void {
    this.#waiting[rank]! += 1;
    this.#inFlight[rank]! += 1;
    if (this.#balance === "in-flight") this.#start = (this.#start + 1) % this.#waiting.length;
  }

  ended(rank: number): void {
    this.#inFlight[rank]! -= 1;
  }

  #score(rank: number): number {
    const [waiting, running] = [this.#waiting[rank]!, this.#running[rank]!];
    if (this.#balance === "weighted-queue") return WAITING_WEIGHT * waiting + running;
    const pressure = Math.max(0, this.#kvUtilization[rank]! - KV_PRESSURE_FROM);
    return Math.max(this.#inFlight[rank]!, waiting + running) + KV_PRESSURE_WEIGHT * waiting * pressure;
  }
}
