import { MICROS_PER_MILLI, type Micros } from "#core/base/units.ts";
import type { EngineConfig } from "./config.ts";
import { Engine } from "./engine.ts";
import { RankBalancer } from "./rank-balancer.ts";
import { Lockstep, stepsTogether } from "./lockstep.ts";
import type { EngineRequest, SubmitOutcome } from "./request.ts";
import type { ServingEngine } from "./serving-engine.ts";
import type { EngineGauges, EngineSink } from "./sink.ts";

/**
 * Counts of the ranks reach the API server so often while they change (vLLM's DPCoordinator, 100 ms). It begins a new
 * interval with the first change after a quiet time; here intervals begin at multiples of it.
 */
const PUBLISH_MICROS: Micros = 100 * MICROS_PER_MILLI;

/**
 * Data-parallel ranks behind one endpoint: each a whole engine with its own scheduler and KV cache, and RankBalancer in
 * front. A request stays with its rank. The ranks of a dense model know nothing of one another; those of a mixture of
 * experts start every step together (Lockstep), where its step times know of the experts.
 */
export class RankedEngine implements ServingEngine {
  readonly #ranks: readonly Engine[];
  readonly #balancer: RankBalancer;
  readonly #lockstep: Lockstep | undefined;
  readonly #rankOf = new Map<string, number>();
  #publishedAt: Micros = 0;

  constructor(config: EngineConfig, sinkOf: (rank: number) => EngineSink) {
    const { dataParallel } = config;
    this.#balancer = new RankBalancer(dataParallel, config.rankBalance);
    const together = stepsTogether(config);
    const single = { ...config, dataParallel: 1, coalesce: config.coalesce && !together };
    this.#ranks = Array.from({ length: dataParallel }, (_, rank) => {
      const sink = sinkOf(rank);
      const own: EngineSink = {
        ...sink,
        token: (at, request, tokens) => sink.token(at, request, tokens),
        finished: (at, request, reason, cached) => {
          this.#rankOf.delete(request.id);
          this.#balancer.ended(rank);
          sink.finished(at, request, reason, cached);
        },
      };
      return new Engine(single, own, together);
    });
    if (together) this.#lockstep = new Lockstep(single, this.#ranks);
  }

  submit(at: Micros, request: EngineRequest): SubmitOutcome {
    if (this.#rankOf.has(request.id)) return "duplicate";
    this.#publishBefore(at);
    const rank = this.#balancer.choose();
    const outcome = this.#ranks[rank]!.submit(at, request);
    if (outcome !== "queued") return outcome;
    this.#balancer.sent(rank);
    this.#rankOf.set(request.id, rank);
    return outcome;
  }

  abort(at: Micros, id: string): boolean {
    this.advanceTo(at);
    const rank = this.#rankOf.get(id);
    return rank !== undefined && this.#ranks[rank]!.abort(at, id);
  }

  nextEventAt(): Micros | undefined {
    const startAt = this.#lockstep?.startAt() ?? Infinity;
    let next: Micros | undefined = startAt === Infinity ? undefined : startAt;
    for (const rank of this.#ranks) {
      const at = rank.nextEventAt();
      if (at !== undefined && (next === undefined || at < next)) next = at;
    }
    return next;
  }

  /**
   * The rank with the earlier event first, and the lower number among equals, so that a host is notified in order of
   * time.
   */
  advanceTo(at: Micros): void {
    this.#publishBefore(at);
    this.#advanceRanks(at);
  }

  reportSettled(): void {
    for (const rank of this.#ranks) rank.reportSettled();
  }

  /** Sums over the ranks; of shares, those of all their blocks together. */
  gauges(): EngineGauges {
    const all = this.#ranks.map((rank) => rank.gauges());
    const [first, ...others] = all as [EngineGauges, ...EngineGauges[]];
    const sums: Record<string, number> = { ...first };
    for (const gauges of others) for (const [name, value] of Object.entries(gauges)) sums[name]! += value;
    const { kvBlocksUsed, kvBlocksFree } = sums as unknown as EngineGauges;
    return {
      ...(sums as unknown as EngineGauges),
      kvUtilization: kvBlocksUsed / (kvBlocksUsed + kvBlocksFree),
    };
  }

  cachedPrefixBlocks(hashes: Int32Array): number {
    return this.#ranks.reduce((most, rank) => Math.max(most, rank.cachedPrefixBlocks(hashes)), 0);
  }

  /** Of all ranks; false where one of them keeps its cache. */
  resetPrefixCache(): boolean {
    return this.#ranks.map((rank) => rank.resetPrefixCache()).every((isReset) => isReset);
  }

  outputTokens(id: string): number | undefined {
    const rank = this.#rankOf.get(id);
    return rank === undefined ? undefined : this.#ranks[rank]!.outputTokens(id);
  }

  /** The rank that has the request; undefined if none has it. */
  rankOf(id: string): number | undefined {
    return this.#rankOf.get(id);
  }

  /**
   * The counts of the last publication before `at` are what a request at `at` is placed by, however a host advances. One
   * that nothing came between and the next is passed over.
   */
  #publishBefore(at: Micros): void {
    const last = (Math.ceil(at / PUBLISH_MICROS) - 1) * PUBLISH_MICROS;
    while (this.#publishedAt < last) {
      const quietUntil = Math.floor((this.nextEventAt() ?? Infinity) / PUBLISH_MICROS) * PUBLISH_MICROS;
      const publishAt = Math.min(last, Math.max(quietUntil, this.#publishedAt + PUBLISH_MICROS));
      this.#advanceRanks(publishAt);
      this.#ranks.forEach((rank, number) => this.#balancer.publish(number, rank));
      this.#publishedAt = publishAt;
    }
  }

  #startTogether(at: Micros): void {
    for (const rank of this.#ranks) rank.advanceTo(at);
    this.#lockstep!.start(at);
  }

  #advanceRanks(at: Micros): void {
    for (;;) {
      let first: Engine | undefined;
      let firstAt = Infinity;
      for (const rank of this.#ranks) {
        const next = rank.nextEventAt() ?? Infinity;
        if (next < firstAt) [first, firstAt] = [rank, next];
      }
      const startAt = this.#lockstep?.startAt() ?? Infinity;
      if (Math.min(firstAt, startAt) > at) break;
      if (first === undefined || startAt < firstAt) this.#startTogether(startAt);
      else first.advanceTo(firstAt);
    }
    for (const rank of this.#ranks) rank.advanceTo(at);
  }
}
