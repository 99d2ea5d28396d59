import type { Load } from "#core/endpoint/endpoint.ts";
import { type Random, nameHash, randomFor } from "#core/base/random.ts";
import { MICROS_PER_SECOND, type Micros } from "#core/base/units.ts";
import type { EngineObserver } from "../path/engine-observer.ts";
import type { EngineFleet } from "../fleet/engine-fleet.ts";
import type { SignalOptions } from "../setting/signal-options.ts";

type ScrapeOptions = Extract<SignalOptions, { mode: "scrape" }>;

/** Scrapes that are drawn one by one although nothing happens: each may be lost. */
const LOSSY_ROUNDS = 10_000;

/** The simulation as its signals see it. */
export interface SignalHost {
  /** Calls back at that time, before engines do anything then. */
  later(at: Micros, take: (at: Micros) => void): void;
  /** Time before which nothing happens in engines and router but what the feed itself does; not after now if unknown. */
  quietUntil(): Micros;
  /** The router gets to know an endpoint's load; `moved` where the engine has worked since the last page. */
  observed(at: Micros, engine: number, load: Load, moved: boolean): void;
  /** What becomes of a probe that is sent now. */
  reach(engine: number): Reach;
  /** A probe failed: no connection, no answer in time, or none but that of the health check. */
  failed(at: Micros, engine: number, found: "unreachable" | "none" | "health"): void;
  /** A probe that takes longer is not answered. */
  readonly probeMicrosMax: Micros;
}

/** answered: with a page. silent: a connection and nothing else. unreachable: no connection. */
export type Reach = "answered" | "silent" | "unreachable";

/** What was read of an engine last, for means over the interval since. */
interface LastRead {
  at: Micros;
  tokens: number;
  ttftMicros: number;
  firstTokens: number;
  decodingMicros: number;
  gaps: number;
  steps: number;
}

/** Reads engines' gauges and brings them to the router when the options let it know them. */
export class SignalFeed {
  /** Scrapes that never arrived. */
  lost = 0;
  taken = 0;
  readonly #options: SignalOptions;
  readonly #fleet: EngineFleet;
  readonly #observer: EngineObserver;
  readonly #host: SignalHost;
  readonly #losses: Random;
  readonly #gone = new Set<number>();
  readonly #last: LastRead[] = [];
  /** Scrapes each engine. */
  readonly #scrapers: ((at: Micros) => void)[] = [];
  #readAt: Micros = 0;

  constructor(options: SignalOptions, seed: number, fleet: EngineFleet, observer: EngineObserver, host: SignalHost) {
    this.#options = options;
    this.#fleet = fleet;
    this.#observer = observer;
    this.#host = host;
    this.#losses = randomFor(seed, nameHash("scrape-loss"));
  }

  joined(at: Micros, engine: number): void {
    this.#gone.delete(engine);
    this.#last[engine] = { at, tokens: 0, ttftMicros: 0, firstTokens: 0, decodingMicros: 0, gaps: 0, steps: 0 };
    if (this.#options.mode === "scrape") {
      const { intervalMicros, phase } = this.#options;
      const spread = phase === "together" ? 0 : Math.floor(intervalMicros * spreadPlace(engine));
      this.#host.later(at + spread, (this.#scrapers[engine] ??= (now) => this.#scrape(now, engine)));
    } else this.#read(at, engine);
  }

  /** Another process is behind it: its counters begin at 0. */
  replaced(at: Micros, engine: number): void {
    const { ttftMicros, firstTokens, decodingMicros } = this.#observer.sums[engine]!;
    this.#last[engine] = { at, tokens: 0, ttftMicros, firstTokens, decodingMicros, gaps: -firstTokens, steps: 0 };
  }

  left(engine: number): void {
    this.#gone.add(engine);
  }

  /** Somebody is about to look: reads everything, where signals are read then. */
  beforeDecision(at: Micros): void {
    if (this.#options.mode === "scrape") return;
    const interval = this.#options.mode === "oracle" ? 0 : this.#options.intervalMicros;
    if (at - this.#readAt < interval) return;
    this.#readAt = at;
    for (let engine = 0; engine < this.#fleet.size; engine++) {
      if (!this.#gone.has(engine)) this.#read(at, engine);
    }
  }

  /** A probe that is answered at once, or never. */
  #read(at: Micros, engine: number): void {
    const reach = this.#host.reach(engine);
    if (reach !== "answered") return this.#host.failed(at, engine, reach === "silent" ? "none" : reach);
    const { steps } = this.#last[engine]!;
    const load = this.#load(at, engine);
    this.#host.observed(at, engine, load, this.#last[engine]!.steps !== steps);
  }

  /** A page that does not come in time is followed by a health check. */
  #await(at: Micros, engine: number, sentAt: Micros, waited: 1 | 2): void {
    if (this.#options.mode !== "scrape" || this.#gone.has(engine)) return;
    const { intervalMicros } = this.#options;
    const reach = this.#host.reach(engine);
    if (waited === 1 && reach === "answered") this.#read(at, engine);
    else if (reach === "unreachable") this.#host.failed(at, engine, "unreachable");
    else {
      this.#host.failed(at, engine, reach === "silent" ? "none" : "health");
      if (waited === 1)
        return this.#host.later(at + this.#host.probeMicrosMax, (now) => this.#await(now, engine, sentAt, 2));
    }
    const next = sentAt + (Math.floor((at - sentAt) / intervalMicros) + 1) * intervalMicros;
    this.#host.later(next, this.#scrapers[engine]!);
  }

  #scrape(at: Micros, engine: number): void {
    if (this.#options.mode !== "scrape" || this.#gone.has(engine)) return;
    const { intervalMicros, delayMicros, lossShare } = this.#options;
    const reach = this.#host.reach(engine);
    if (reach === "silent")
      return this.#host.later(at + this.#host.probeMicrosMax, (now) => this.#await(now, engine, at, 1));
    if (reach === "unreachable") {
      this.#host.later(at + intervalMicros, this.#scrapers[engine]!);
      return this.#host.failed(at, engine, "unreachable");
    }
    const rounds = this.#roundsToNext(at, this.#options);
    this.taken += rounds;
    this.#host.later(at + rounds * intervalMicros, this.#scrapers[engine]!);
    const { steps } = this.#last[engine]!;
    const load = this.#load(at, engine);
    const moved = this.#last[engine]!.steps !== steps;
    if (lossShare > 0 && this.#losses.next() < lossShare) {
      this.lost++;
      return;
    }
    const deliver = (now: Micros): void => {
      if (!this.#gone.has(engine)) this.#host.observed(now, engine, load, moved);
    };
    if (delayMicros === 0) deliver(at);
    else this.#host.later(at + delayMicros, deliver);
  }

  /**
   * How many intervals after a scrape the next one is simulated. While nothing happens scrapes report the same
   * again and again, and the router keeps only the last: of a quiet time the first and the last ones stand for all. They
   * are those that leave the same behind, to the bit, as long as no scrape is lost; where some are, that holds for quiet
   * times of up to LOSSY_ROUNDS, and in longer ones others are lost than would have been.
   */
  #roundsToNext(at: Micros, { intervalMicros, delayMicros, lossShare }: ScrapeOptions): number {
    // Sums of whole numbers are what their products are.
    if (!Number.isSafeInteger(at) || !Number.isSafeInteger(intervalMicros)) return 1;
    const quiet = this.#host.quietUntil() - delayMicros - at;
    // Until nothing happens any more, nobody asks what the last scrape was.
    if (!(quiet > 2 * intervalMicros && quiet < Infinity)) return 1;
    const rounds = Math.ceil(quiet / intervalMicros) - 1;
    return Math.max(1, lossShare > 0 ? rounds - LOSSY_ROUNDS : rounds);
  }

  /** Its gauges as a scrape reads them, and means since the last one. */
  #load(at: Micros, engine: number): Load {
    const gauges = this.#fleet.gauges(at, engine);
    const last = this.#last[engine]!;
    const sums = this.#observer.sums[engine]!;
    const tokens = gauges.promptTokens + gauges.generationTokens;
    const gaps = gauges.generationTokens - sums.firstTokens;
    const decodingMicros = sums.decodingMicros + sums.decoding * (at - sums.decodingAt);
    const ttftMicros = mean(sums.ttftMicros - last.ttftMicros, sums.firstTokens - last.firstTokens);
    const tpotMicros = mean(decodingMicros - last.decodingMicros, gaps - last.gaps);
    const load = {
      running: gauges.running,
      waiting: gauges.waiting,
      kvUtilization: gauges.kvUtilization,
      prefixHitRatio:
        gauges.prefixQueriesTokens === 0 ? undefined : gauges.prefixHitsTokens / gauges.prefixQueriesTokens,
      ttftMicros,
      tpotMicros,
      tokensPerSecond: at > last.at ? ((tokens - last.tokens) * MICROS_PER_SECOND) / (at - last.at) : undefined,
      // What a board reports is unknown.
      adaptersRunning: undefined,
      adaptersWaiting: undefined,
      adaptersMax: undefined,
      watts: undefined,
      smUtilization: undefined,
    };
    last.at = at;
    last.tokens = tokens;
    last.ttftMicros = sums.ttftMicros;
    last.firstTokens = sums.firstTokens;
    last.steps = gauges.steps;
    // A gap counts where it ends, as in vLLM's histogram of the time between tokens.
    if (gaps > last.gaps) {
      last.gaps = gaps;
      last.decodingMicros = decodingMicros;
    }
    return load;
  }
}

/** 0, 1/2, 1/4, 3/4, 1/8, ...: places in [0, 1) that lie apart however many there are (van der Corput). */
function spreadPlace(number: number): number {
  let place = 0;
  for (let share = 0.5, rest = number; rest > 0; share /= 2, rest >>= 1) if ((rest & 1) === 1) place += share;
  return place;
}

function mean(sum: number, count: number): number | undefined {
  return count === 0 ? undefined : sum / count;
}
