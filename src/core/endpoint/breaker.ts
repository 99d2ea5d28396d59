import type { Fault } from "./fault.ts";
import { mix32 } from "../base/random.ts";
import type { Micros } from "../base/units.ts";
import { widened } from "./slow-return.ts";

/** closed: serves. open: left alone until its pause is over. half-open: one request may try it, more as it answers. */
export type BreakerState = "closed" | "open" | "half-open";

export interface BreakerOptions {
  /** Failures in a row that open it. */
  readonly failuresMax: number;
  /** First pause; doubles with each failed probe. */
  readonly pauseMicros: number;
  readonly pauseMicrosMax: number;
  /**
   * Share by which such a pause is shortened at most, in [0, 1]: what failed at once, and the gateways that saw it, do not
   * try again at once.
   */
  readonly jitterShare: number;
  /** Pause after the endpoint answered that it is full. It is healthy, so this neither counts nor doubles. */
  readonly saturatedPauseMicros: number;
  /** Shortest pause after the endpoint drained: one that shuts down takes seconds, and a probe there may get nothing. */
  readonly drainingPauseMicros: number;
}

export const BREAKER_DEFAULTS: BreakerOptions = {
  failuresMax: 3,
  pauseMicros: 1_000_000,
  pauseMicrosMax: 30_000_000,
  jitterShare: 0.1,
  saturatedPauseMicros: 200_000,
  drainingPauseMicros: 15_000_000,
};

/** What a breaker did: opened, for a pause and by a fault, or closed. */
export type BreakerChange =
  | { readonly state: "open"; readonly fault: Fault; readonly pauseMicros: Micros }
  | { readonly state: "closed" };

/**
 * Keeps requests away from an endpoint that fails, from what happened to requests alone: a vLLM that drains or whose
 * engine died answers /health with 200. A draining endpoint opens it at once, any other fault after `failuresMax` in a
 * row. It has no clock: the time is an argument.
 *
 * A request that was sent before it opened is no evidence of how requests fare now: a draining engine ends what it has
 * and takes nothing new. Hence such a request neither closes it nor counts as a probe.
 */
export class Breaker {
  readonly #options: BreakerOptions;
  readonly #changed: (change: BreakerChange) => void;
  readonly #draws: number;
  #failures = 0;
  #openUntil: Micros = 0;
  #pauseMicros: number;
  #tripped = false;
  #trippedAt: Micros = 0;
  #isDraining = false;
  /** Since its pause was over: requests under way that were sent there, and how many there may be. */
  #probes = 0;
  #room = 1;
  #probesFrom: Micros = 0;
  /** Another router's breaker is open. */
  #suspectedAt: Micros = 0;
  #suspectedUntil: Micros = 0;

  /** `draws`: 32 bits from which and from the time of opening a pause's jitter is drawn, the same in every replay. */
  constructor(options: BreakerOptions, changed: (change: BreakerChange) => void = () => {}, draws = 0) {
    this.#options = options;
    this.#changed = changed;
    this.#draws = draws;
    this.#pauseMicros = options.pauseMicros;
  }

  state(at: Micros): BreakerState {
    if (at < this.#openUntil || at < this.#suspectedUntil) return "open";
    return this.#tripped ? "half-open" : "closed";
  }

  /** It opened, and no request was served since. */
  get isTripped(): boolean {
    return this.#tripped;
  }

  /** It turned a request down as it leaves, and served none since. */
  get isDraining(): boolean {
    return this.#tripped && this.#isDraining;
  }

  /** Whether a request may be sent there now. */
  allows(at: Micros): boolean {
    const state = this.state(at);
    return state === "closed" || (state === "half-open" && this.#probes < this.#room);
  }

  /** A request was sent; in the half-open state it is a probe. */
  sent(at: Micros): void {
    if (this.state(at) === "half-open") this.#probes++;
  }

  /** The request sent at `sentAt` has its first token. A long answer that goes well must not keep all others waiting. */
  answered(sentAt: Micros): void {
    if (this.#isProbe(sentAt)) this.#room = widened(this.#room);
  }

  /** Another router's breaker opened: the endpoint is left alone for that pause, and nothing else is concluded. */
  suspected(at: Micros, pauseMicros: Micros): void {
    this.#suspectedAt = at;
    this.#suspectedUntil = Math.max(this.#suspectedUntil, at + Math.min(pauseMicros, this.#options.pauseMicrosMax));
  }

  /** It closed, or its router is gone. */
  trusted(): void {
    this.#suspectedUntil = 0;
  }

  /** The request sent at `sentAt` was served. */
  succeeded(sentAt: Micros): void {
    if (sentAt >= this.#suspectedAt) this.#suspectedUntil = 0;
    if (this.#tripped && sentAt < this.#trippedAt) return;
    const closes = this.#tripped;
    this.#failures = 0;
    this.#tripped = false;
    this.#openUntil = 0;
    this.#pauseMicros = this.#options.pauseMicros;
    if (closes) this.#changed({ state: "closed" });
  }

  /** It ended without saying anything about the endpoint, for example because the client left. */
  undecided(sentAt: Micros): void {
    if (this.#isProbe(sentAt)) this.#probes--;
  }

  /** It failed at `at`. */
  failed(at: Micros, fault: Fault, sentAt: Micros): void {
    const isProbe = this.#isProbe(sentAt);
    if (isProbe) this.#probes--;
    if (fault === "saturated") {
      this.#openUntil = Math.max(this.#openUntil, at + this.#options.saturatedPauseMicros);
      return;
    }
    this.#failures++;
    if (!isProbe && fault !== "draining" && this.#failures < this.#options.failuresMax) return;
    if (this.#tripped && !isProbe) return;
    if (this.#tripped) this.#pauseMicros = Math.min(this.#pauseMicros * 2, this.#options.pauseMicrosMax);
    this.#tripped = true;
    this.#trippedAt = at;
    this.#isDraining = fault === "draining";
    const shortest = fault === "draining" ? this.#options.drainingPauseMicros : 0;
    const pauseMicros = Math.max(this.#jittered(at), shortest);
    this.#openUntil = at + pauseMicros;
    this.#probesFrom = this.#openUntil;
    this.#probes = 0;
    this.#room = 1;
    this.#changed({ state: "open", fault, pauseMicros });
  }

  #jittered(at: Micros): Micros {
    const drawn = mix32(this.#draws ^ mix32(at)) / 2 ** 32;
    return Math.round(this.#pauseMicros * (1 - this.#options.jitterShare * drawn));
  }

  #isProbe(sentAt: Micros): boolean {
    return this.#tripped && this.#probes > 0 && sentAt >= this.#probesFrom;
  }
}
