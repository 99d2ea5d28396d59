import { MICROS_PER_SECOND, type Micros } from "../base/units.ts";
import type { HangReason } from "./hang-reason.ts";
import type { Standing } from "./slow-return.ts";

export interface HangOptions {
  /** Silent: not a byte of any kind came from it for so long... */
  readonly silentMicros: Micros;
  /** ...and so many probes in a row were not answered in time. */
  readonly probesFailedMin: number;
  /** Stalled: requests got no byte for so long, while its metrics page is not answered and its health check is. */
  readonly unansweredMicros: Micros;
  /** Stalled: the same, while its metrics page is answered and shows no work done. */
  readonly stalledMicros: Micros;
  /** Stalled: answers that have begun got no byte for so long, and a metrics page read meanwhile shows no work done. */
  readonly begunMicros: Micros;
  /** Stalled: the same, where it has no metrics page. */
  readonly unwatchedMicros: Micros;
  /** Requests that wait are never held against it before this many times what is usual there. */
  readonly usualFactor: number;
  /** The most that this adds up to for streams, however slow the first bytes of an overload were. */
  readonly usualMicrosMax: Micros;
  /** Nor before the longest prompt that waits there could be computed, at so much for each token that is not cached. */
  readonly prefillMicrosPerToken: Micros;
  /** Probes in a row after whose answers a silent one is let back. */
  readonly probesAnsweredMin: number;
  /** After so long a stalled one may try a request; doubles each time that this fails. */
  readonly returnMicros: Micros;
  readonly returnMicrosMax: Micros;
}

export const HANG_DEFAULTS: HangOptions = {
  silentMicros: 5 * MICROS_PER_SECOND,
  probesFailedMin: 2,
  unansweredMicros: 8 * MICROS_PER_SECOND,
  stalledMicros: 15 * MICROS_PER_SECOND,
  begunMicros: 5 * MICROS_PER_SECOND,
  unwatchedMicros: 60 * MICROS_PER_SECOND,
  usualFactor: 4,
  usualMicrosMax: 20 * MICROS_PER_SECOND,
  prefillMicrosPerToken: 1_000,
  probesAnsweredMin: 2,
  returnMicros: 10 * MICROS_PER_SECOND,
  returnMicrosMax: 120 * MICROS_PER_SECOND,
};

/**
 * What asking an engine how it is came to.
 * - none: no answer in time
 * - health: its health check answered, its metrics page did not
 * - no-page: it answered, and has no metrics page that shows work
 * - static, moving: its page shows that it did no work, or some, since the last one
 */
export type ProbeResult = "none" | "health" | "no-page" | "static" | "moving";

/**
 * Requests that wait for a byte. stream: the first one. begun: the next token of a stream, which comes with each step.
 * whole: an answer that comes in one piece, which takes longer.
 */
export type WaitKind = "stream" | "begun" | "whole";
const WAIT_KINDS: readonly WaitKind[] = ["stream", "begun", "whole"];

/** What is usual is known of beginnings and of whole answers. */
export type TimedKind = Exclude<WaitKind, "begun">;

/** What waits at one endpoint: since when the longest waiting request of each kind does, Infinity for none. */
export interface WaitingThere extends Record<WaitKind, Micros> {
  /** Tokens to compute of the longest prompt among them. */
  promptTokens: number;
}

export function nothingWaits(): WaitingThere {
  return { stream: Infinity, begun: Infinity, whole: Infinity, promptTokens: 0 };
}

/** What is to be done with the endpoint; the times are what it was judged by. */
export type HangVerdict =
  | {
      readonly kind: "suspend";
      readonly reason: HangReason;
      /** Nothing came for so long, and from where on that counts. */
      readonly quietMicros: Micros;
      readonly limitMicros: Micros;
      readonly probe: ProbeResult;
    }
  | { readonly kind: "resume"; readonly suspendedMicros: Micros };

const SAMPLES = 64;
/** Fewer say nothing of what is usual. */
const SAMPLES_MIN = 5;
const USUAL_QUANTILE = 0.9;
/** Metrics pages in a row that were not answered while the health check was. */
const PAGES_FAILED_MIN = 2;

/**
 * Judges whether one endpoint hangs: accepts connections and answers nothing (a stopped process, a machine that
 * vanished), or answers probes and no request (an engine that died behind its server). It has no clock; the host gives
 * it what came and what did not, and asks for a verdict.
 *
 * No single sign is enough. A long prefill is a request without a byte, at an engine that answers probes and whose page
 * shows work: it is never judged by that. A slow metrics page is a probe without an answer, at an engine whose health
 * check or answers bring bytes. And whatever the signs, requests count only from a multiple of what is usual there on,
 * the 90 % quantile of its latest times to a first byte, within bounds, and once the longest prompt there could be
 * computed: a step of its length keeps all others waiting.
 */
export class HangJudge {
  readonly #options: HangOptions;
  readonly #usual: Record<TimedKind, RecentQuantile> = {
    stream: new RecentQuantile(SAMPLES),
    whole: new RecentQuantile(SAMPLES),
  };
  #waiting: Readonly<WaitingThere> = nothingWaits();
  #standing: Standing = "well";
  #reason: HangReason = "silent";
  #probe: ProbeResult = "no-page";
  #probesFailed = 0;
  #probesAnswered = 0;
  #pagesFailed = 0;
  /** The last byte of any kind; of an answer to a request; the last page that showed work; the last page. */
  #aliveAt: Micros;
  #answeredAt: Micros;
  #movedAt: Micros;
  #pageAt: Micros = -Infinity;
  /** From then on silence counts. */
  #seenFrom: Micros = -Infinity;
  #changedAt: Micros;
  #pauseMicros: Micros;

  /** Joined at `at`. */
  constructor(options: HangOptions, at: Micros) {
    this.#options = options;
    this.#aliveAt = at;
    this.#answeredAt = at;
    this.#movedAt = at;
    this.#changedAt = at;
    this.#pauseMicros = options.returnMicros;
  }

  get standing(): Standing {
    return this.#standing;
  }

  probed(at: Micros, result: ProbeResult): void {
    if (result === "none") {
      this.#probesFailed++;
      this.#probesAnswered = 0;
      return;
    }
    this.#probe = result;
    this.#probesFailed = 0;
    this.#probesAnswered++;
    this.#pagesFailed = result === "health" ? this.#pagesFailed + 1 : 0;
    this.alive(at);
    if (result === "moving" || result === "static") this.#pageAt = at;
    if (result === "moving") this.#movedAt = Math.max(this.#movedAt, at);
  }

  /** A byte came from its server, perhaps from another rank behind the same address. */
  alive(at: Micros): void {
    this.#aliveAt = Math.max(this.#aliveAt, at);
  }

  /** A byte of an answer to a request came. */
  answered(at: Micros): void {
    this.alive(at);
    this.#answeredAt = Math.max(this.#answeredAt, at);
  }

  /** A request had its first byte after so long; a whole answer its last. */
  took(kind: TimedKind, micros: Micros): void {
    this.#usual[kind].add(micros);
  }

  /** Replaces what waits. */
  waits(waiting: Readonly<WaitingThere>): void {
    this.#waiting = waiting;
  }

  /** Its host stood still until then and saw nothing: no silence before that speaks against the endpoint. */
  stoodStill(at: Micros): void {
    this.#seenFrom = Math.max(this.#seenFrom, at);
  }

  /** What is to be done now; it counts as done. */
  judge(at: Micros): HangVerdict | undefined {
    const verdict = this.#standing === "hung" ? this.#mayReturn(at) : this.#hangs(at);
    if (verdict?.kind === "suspend") {
      const again = this.#standing === "returning";
      this.#pauseMicros = again
        ? Math.min(this.#pauseMicros * 2, this.#options.returnMicrosMax)
        : this.#options.returnMicros;
      this.#reason = verdict.reason;
      this.#turn("hung", at);
    } else if (verdict?.kind === "resume") this.#turn("returning", at);
    else if (this.#standing === "returning" && this.#answeredAt > this.#changedAt) this.#turn("well", at);
    return verdict;
  }

  #turn(standing: Standing, at: Micros): void {
    this.#standing = standing;
    this.#changedAt = at;
  }

  #hangs(at: Micros): HangVerdict | undefined {
    const { silentMicros, probesFailedMin } = this.#options;
    const silence = at - Math.max(this.#aliveAt, this.#seenFrom);
    if (this.#probesFailed >= probesFailedMin && silence >= silentMicros)
      return this.#suspend("silent", silence, silentMicros, "none");
    for (const kind of WAIT_KINDS) {
      const verdict = this.#stalls(at, kind);
      if (verdict !== undefined) return verdict;
    }
    return undefined;
  }

  #stalls(at: Micros, kind: WaitKind): HangVerdict | undefined {
    const shown = this.#probe === "static" || this.#probe === "moving";
    const lastSign = Math.max(this.#answeredAt, this.#changedAt, this.#seenFrom, shown ? this.#movedAt : 0);
    const from = Math.max(this.#waiting[kind], lastSign);
    const { begunMicros } = this.#options;
    const base = kind === "begun" && shown && this.#pageAt - from >= begunMicros / 2 ? begunMicros : this.#limit();
    if (!(at - from >= base)) return undefined;
    const prefill = this.#waiting.promptTokens * this.#options.prefillMicrosPerToken;
    const limit = Math.max(base, prefill, kind === "begun" ? 0 : this.#usualLimit(kind));
    return at - from >= limit ? this.#suspend("stalled", at - from, limit, this.#probe) : undefined;
  }

  #usualLimit(kind: TimedKind): Micros {
    const usual = this.#usual[kind];
    if (usual.size < SAMPLES_MIN) return 0;
    const { usualFactor, usualMicrosMax } = this.#options;
    return Math.min(usualFactor * usual.at(USUAL_QUANTILE), kind === "stream" ? usualMicrosMax : Infinity);
  }

  #limit(): Micros {
    switch (this.#probe) {
      case "health":
        return this.#pagesFailed < PAGES_FAILED_MIN ? this.#options.stalledMicros : this.#options.unansweredMicros;
      case "static":
      case "moving":
        return this.#options.stalledMicros;
      case "none":
      case "no-page":
        return this.#options.unwatchedMicros;
    }
  }

  #suspend(reason: HangReason, quietMicros: Micros, limitMicros: Micros, probe: ProbeResult): HangVerdict {
    return { kind: "suspend", reason, quietMicros, limitMicros, probe };
  }

  /**
   * A silent one is let back when it answers probes again. A stalled one answers them all along: it is let back when it
   * shows work, or to try a request after its pause, after the longest one where not even its page is answered.
   */
  #mayReturn(at: Micros): HangVerdict | undefined {
    if (this.#probesFailed > 0) return undefined;
    const { probesAnsweredMin, returnMicrosMax } = this.#options;
    const since = at - this.#changedAt;
    const worked = this.#movedAt > this.#changedAt || this.#answeredAt > this.#changedAt;
    const pause = this.#probe === "health" ? returnMicrosMax : this.#pauseMicros;
    const returns =
      this.#probesAnswered >= probesAnsweredMin && (this.#reason === "silent" || worked || since >= pause);
    return returns ? { kind: "resume", suspendedMicros: since } : undefined;
  }
}

/** The latest samples of a figure, for a quantile that single ones cannot move far. */
class RecentQuantile {
  readonly #samples: Float64Array;
  #count = 0;

  /** Keeps at most `size` samples. */
  constructor(size: number) {
    this.#samples = new Float64Array(size);
  }

  get size(): number {
    return Math.min(this.#count, this.#samples.length);
  }

  add(sample: number): void {
    this.#samples[this.#count++ % this.#samples.length] = sample;
  }

  /** The smallest sample that at least the share `q` of all does not exceed; q in (0, 1]. NaN without samples. */
  at(q: number): number {
    const sorted = this.#samples.slice(0, this.size).sort();
    return sorted[Math.max(0, Math.ceil(q * sorted.length) - 1)] ?? NaN;
  }
}
